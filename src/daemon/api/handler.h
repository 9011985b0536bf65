/* SPDX-License-Identifier: MIT */
/* Shared parts of the call handlers. Each method has a handler, handle_NAME(), which replies to the call or
 * keeps it before returning. */
#pragma once

#include "daemon/api/doctor.h"
#include "daemon/api/events.h"
#include "daemon/api/jobs.h"
#include "daemon/api/queue_calls.h"
#include "daemon/api/status.h"
#include "daemon/api/watch.h"
#include "wire/control.h"

struct orderer;
struct reexec;   /* daemon/lifecycle/reexec.h; a layer above api/ */
struct reloader; /* daemon/lifecycle/reload.h */

/* Parts of the daemon that handlers use. All must outlive the control. */
struct control_host {
        struct world *world;
        struct persist *persist;
        struct config_check *config;
        const struct status_settings *settings;
        const char *version;
        const char *instance; /* the name of this sqmgr, for clients */
        const char *selector; /* see problem_command() */
        usec_t started_at;    /* monotonic */
        struct reloader *reloader;
        int (*reload)(struct reloader *reloader, const struct orderer *by, char **ret_lines);
        struct reexec *reexec;
        void (*reexec_request)(struct reexec *reexec, struct call *call);
};

struct control {
        struct control_host host;
        struct problem_source problems;
        struct watch_list watches;
        struct events *events;
        struct queue_calls queue_calls;
        struct jobs_calls jobs_calls;
        /* The cached replies to GetStatus for all fleets: for viewers, and for others. */
        struct {
                struct shared_reply reply;
                uint64_t serial;
                usec_t at;
        } status[2];
};

/* Drops cached statuses of before that time. Returns true if there was one. */
bool handler_forget_status(struct control *control, usec_t before);

#define HANDLER_DECLARE(method, name, ...)                                                                   \
        void handle_##name(struct control *control, struct call *call, json_t *parameters, usec_t now);
CONTROL_METHODS(HANDLER_DECLARE)
#undef HANDLER_DECLARE

/* Callbacks of struct queue_calls, called once the queues were read; userdata is the control.
 * handler_metrics() returns the reply to GetMetrics as a new reference, or NULL when memory is short.
 * handler_diagnose() replies to the call or keeps it. */
json_t *handler_metrics(void *userdata);
void handler_diagnose(struct call *call, void *userdata);

/* Call after a command has changed the model, before the reply. Plans soon and writes the state first, so an
 * acknowledged order survives a restart of sqmgr. */
void handler_changed(struct control *control);
/* Like handler_changed() for an order. If the state cannot be written, ends the call with an error and
 * returns false: the order is carried out, and a later sqmgr would not know of it. */
bool handler_record(struct control *control, struct call *call);
/* Like handler_record(), then ends the call with an empty reply. */
void handler_done(struct control *control, struct call *call);

/* Call before an order that a later sqmgr must finish: Restart, Start, Scale. Writes the state, and returns
 * true after refusing the call if that fails. A restart that is not recorded would be forgotten halfway, with
 * a part of the fleet on the old code. Quiet, Stop and Abort are carried out all the same: they must work in
 * an emergency, and forgetting one of them leaves workers as they were before. */
bool handler_refuse_unrecorded(struct control *control, struct call *call);

/* Returns the caller, as the orderer that commands record. */
struct orderer handler_orderer(const struct call *call);

/* Parse an optional parameter. If missing or null, *ret is false or NULL. The functions return false after
 * replying with an error. */
bool handler_parse_flag(struct call *call, json_t *parameters, const char *name, bool *ret);
bool handler_parse_text(struct call *call, json_t *parameters, const char *name, const char **ret);

/* Returns the lines of text as a JSON list, a new reference; NULL when memory is short. Modifies text. */
json_t *handler_lines(char *text);

/* The handler_refuse functions end the call with an error. */
void handler_refuse_parameter(struct call *call, const char *name);
void handler_refuse(struct call *call, const char *format, ...) _printf_(2, 3);
/* quoted: text from elsewhere that the reason is about; NULL: nothing. */
void handler_refuse_quoted(struct call *call, const struct quoted *quoted, const char *format, ...)
        _printf_(3, 4);
/* The fleet is no longer configured. */
void handler_refuse_removed(struct call *call, const struct fleet *fleet);
/* No fleet or worker has this name. */
void handler_refuse_unknown(struct control *control, struct call *call, const char *name);
/* Returns true after refusing the call because sqmgr is shutting down; else returns false without a reply. */
bool handler_refuse_at_shutdown(struct control *control, struct call *call);

/* The fleets named by a call, without duplicates. */
struct handler_fleets {
        struct fleet **fleets; /* owned */
        size_t n_fleets;
        bool all;
};
void handler_fleets_free(struct handler_fleets *list);

/* Returns false after replying with an error. Free *ret in both cases. */
bool handler_parse_fleets(struct control *control, struct call *call, json_t *parameters,
                          struct handler_fleets *ret);
/* Returns the fleet named by the parameter "fleet", or NULL after replying with an error. */
struct fleet *handler_parse_fleet(struct control *control, struct call *call, json_t *parameters);
