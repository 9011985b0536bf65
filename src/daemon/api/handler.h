/* SPDX-License-Identifier: MIT */
/* What the handlers of calls have in common. Each method of the interface has one, handle_NAME, which replies
 * or keeps the call before it returns. */
#pragma once

#include "daemon/api/doctor.h"
#include "daemon/api/events.h"
#include "daemon/api/jobs.h"
#include "daemon/api/queue_calls.h"
#include "daemon/api/status.h"
#include "daemon/api/watch.h"
#include "wire/control.h"

struct orderer;
struct reexec;   /* life/reexec.h, and so on below: that layer stands above this one */
struct reloader; /* life/reload.h */

/* What the daemon lends. Everything must outlive the control. */
struct control_host {
        struct world *world;
        struct persist *persist;
        const struct doctor_readers *readers;
        const struct status_settings *settings;
        const char *version;
        usec_t started_at; /* monotonic */
        struct reloader *reloader;
        int (*reload)(struct reloader *reloader, const struct orderer *by, char **ret_lines);
        struct reexec *reexec;
        void (*reexec_request)(struct reexec *reexec, struct call *call);
};

struct control {
        struct control_host host;
        struct watch_list watches;
        struct events *events;
        struct queue_calls queue_calls;
        struct jobs_calls jobs_calls;
        char *status; /* the reply to GetStatus for all fleets, or NULL */
        size_t status_size;
        uint64_t status_serial;
        usec_t status_at;
};

#define HANDLER_DECLARE(method, name, ...)                                                                   \
        void handle_##name(struct control *control, struct call *call, json_t *parameters, usec_t now);
CONTROL_METHODS(HANDLER_DECLARE)
#undef HANDLER_DECLARE

/* For those who wait for the queues, which have been read; userdata is the control. What answers GetMetrics,
 * to be released, NULL: memory is short; and the checks of the surroundings, which answer the call, or keep
 * it. */
json_t *handler_metrics(void *userdata);
void handler_diagnose(struct call *call, void *userdata);

/* The model has been changed by a command: plans soon, and writes the state before the reply. Who was told
 * that an order is recorded finds it again. */
void handler_changed(struct control *control);
/* The same, and answers the call with nothing but that. */
void handler_done(struct control *control, struct call *call);

/* Who called, for the commands. */
struct orderer handler_orderer(const struct call *call);

/* A parameter that may be left out, or null: *ret is false then, or NULL. Both return false where the call
 * was answered with an error. */
bool handler_parse_flag(struct call *call, json_t *parameters, const char *name, bool *ret);
bool handler_parse_text(struct call *call, json_t *parameters, const char *name, const char **ret);

/* The lines of text, which is cut up, as a JSON list, to be released; NULL: memory is short. */
json_t *handler_lines(char *text);

/* Each answers the call with an error. */
void handler_refuse_parameter(struct call *call, const char *name);
void handler_refuse(struct call *call, const char *format, ...) _printf_(2, 3);
/* Neither a fleet nor a worker has that name. */
void handler_refuse_unknown(struct control *control, struct call *call, const char *name);
/* Returns false where sqmgr is not shutting down, and nothing was answered. */
bool handler_refuse_at_shutdown(struct control *control, struct call *call);

/* The fleets that a call names, each once. */
struct handler_fleets {
        struct fleet **fleets; /* owned */
        size_t n_fleets;
        bool all;
};
void handler_fleets_free(struct handler_fleets *list);

/* Returns false where the call was answered with an error; *ret is to be freed in both cases. */
bool handler_parse_fleets(struct control *control, struct call *call, json_t *parameters,
                          struct handler_fleets *ret);
/* The fleet that the parameter `fleet` names, or NULL where the call was answered with an error. */
struct fleet *handler_parse_fleet(struct control *control, struct call *call, json_t *parameters);
