/* SPDX-License-Identifier: MIT */
/* What the handlers of calls have in common. Each method of the interface has one, handle_NAME, which replies
 * or keeps the call before it returns. */
#pragma once

#include "daemon/api/control.h"
#include "daemon/api/events.h"
#include "daemon/api/watch.h"
#include "wire/control.h"

/* Those who ask what all hosts do, until that is known or has ended. */
struct rollout_calls {
        struct rollout_call *first;
        sd_event_source *timer; /* NULL: nobody has asked so far */
};

struct control {
        struct control_host host;
        struct watch_list watches;
        struct events *events;
        struct rollout_calls rollouts;
        char *status; /* the reply to GetStatus for all fleets, or NULL */
        size_t status_size;
        uint64_t status_serial;
        usec_t status_at;
};

#define HANDLER_DECLARE(method, name, ...)                                                                   \
        void handle_##name(struct control *control, struct call *call, json_t *parameters, usec_t now);
CONTROL_METHODS(HANDLER_DECLARE)
#undef HANDLER_DECLARE

/* Answers those who wait for what has been shown since. */
void rollouts_tick(struct control *control, usec_t now);

/* The model has been changed by a command. */
void handler_changed(struct control *control);

/* Who called, for the commands. */
struct orderer handler_orderer(const struct call *call);

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
