/* SPDX-License-Identifier: MIT */
/* Shared parts of the call handlers. Each method has a handler, handle_NAME(), which replies to the call or
 * keeps it before returning. */
#pragma once

#include "advice/problem_rules.h"
#include "daemon/api/config_check.h"
#include "daemon/api/events.h"
#include "daemon/api/status.h"
#include "daemon/poll/queue_reading.h"
#include "daemon/takeover/persist.h"

struct orderer;
struct reexec;   /* daemon/lifecycle/reexec.h; a layer above api/ */
struct reloader; /* daemon/lifecycle/reload.h */

struct control;

/* Storage for the facts. Their strings stay valid until the next iteration of the loop. */
#define PROBLEM_REDIS_MAX 64
struct problem_storage {
        struct problem_facts facts;
        struct problem_redis redis[PROBLEM_REDIS_MAX];
        struct problem_process unknown[UNKNOWN_MAX];
};
/* Costs some system calls: to be called when somebody asks, not in each pass. */
void problems_collect(const struct control *control, struct problem_storage *ret, usec_t now);

/* Returns how many descriptors sqmgr needs if all workers run that its fleets may have. */
uint64_t problems_files_needed(const struct world *world);

/* Answers the call once each Redis has answered or failed. */
void doctor_request(const struct control *control, struct call *call);

struct watch_order {
        enum fleet_order kept; /* ORDER_RUN: restarted; otherwise the fleet remains stopped or quieted, and
                                  there is no restart to wait for */
        uint64_t superseded;   /* generation of the interrupted restart; 0: none */
        uint64_t returned_to;  /* follow the return to this generation instead of a restart; 0: a restart */
        /* Why the fleet does not return, a reason of the error NotInMemory: there is no return to wait for.
         * NULL: it returns. */
        const char *not_in_memory;
};

struct watch_request {
        /* Keep the call until the restarts have ended. Newer restarts of these fleets are followed, too. */
        bool wait;
        bool drained; /* ended means: the old workers have exited, too */
        bool workers; /* replies include the workers and are sent every second */
};

/* Returns the members of the error NotInMemory, a new reference; NULL when memory is short. */
json_t *watch_render_not_in_memory(const struct fleet *fleet, const char *reason);

/* Replies with the progress of the restarts or returns of these fleets. orders: results of the order just
 * given, per fleet. Copies what it needs. */
void watch_reply(struct control *control, struct call *call, const struct watch_request *request,
                 const struct handler_fleets *list, const struct watch_order *orders, usec_t now);

/* Sends progress, warnings and errors to the waiting clients. */
void watch_tick(struct control *control, usec_t now);

/* Replies once each Redis has answered, with the running jobs of the workers of these fleets as of their last
 * heartbeats, and the reasons why some are unknown. Replies with an error if nothing is known. Calls for the
 * same fleets share one reading while it runs. A read-only client is refused if another reading for one runs
 * or began within the last second. */
void jobs_calls_add(struct control *control, struct call *call, struct fleet *const *fleets, size_t n_fleets,
                    usec_t now);

/* Replies that several calls share, and those that wait for a reading of the queues. */
enum reply_kind {
        REPLY_STATUS,    /* to GetStatus for all fleets */
        REPLY_QUEUES,    /* waits for the queues, as the next ones */
        REPLY_METRICS,   /* includes the queues */
        REPLY_DIAGNOSIS, /* not shared: by doctor_request() */
        _REPLY_KIND_MAX,
};

/* The control interface: what handlers use, and the calls that wait. */
struct control {
        struct runtime *runtime; /* not owned; the same holds for all members down to reexec */
        struct config_check *config;
        const struct status_settings *settings;
        const char *version;
        const char *instance; /* the name of this sqmgr, for clients */
        const char *selector; /* see problem_command() */
        usec_t started_at;    /* monotonic */
        struct reloader *reloader;
        struct reexec *reexec;

        struct events *events;
        struct watcher *watchers; /* restarts that clients wait for */
        /* The calls that wait for the queues. They share one reading. */
        struct {
                struct call *call;
                enum reply_kind kind;
        } queue_calls[API_CONNECTIONS_MAX];
        size_t n_queue_calls;
        struct jobs_query *jobs_queries; /* the calls of GetJobs that wait for a reply */
        usec_t jobs_view_at;             /* start of the last reading for a read-only client; 0: none */
        /* The latest replies. Those with queues are reused for read-only clients: frequent calls of theirs
         * must not load Redis. */
        struct {
                struct shared_reply reply; /* no text: no recent reply */
                uint64_t serial;           /* of the model */
                usec_t at;
        } latest[_REPLY_KIND_MAX][2]; /* [0]: for other clients; [1]: for viewers */
};

/* Replies to all calls that wait for the queues. Call when the queues were read. */
void queue_calls_answer(struct control *control, usec_t now);

/* Drops the latest replies up to that time. Returns true if there was one. */
bool handler_forget(struct control *control, usec_t until);

#define HANDLER_DECLARE(method, name, ...)                                                                   \
        void handle_##name(struct control *control, struct call *call, json_t *parameters, usec_t now);
CONTROL_METHODS(HANDLER_DECLARE)
#undef HANDLER_DECLARE

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
#define handler_refuse(call, ...) handler_refuse_quoted(call, NULL, __VA_ARGS__)
/* quoted: text from elsewhere that the reason is about; NULL: nothing. */
void handler_refuse_quoted(struct call *call, const struct quoted *quoted, const char *format, ...)
        _printf_(3, 4);
/* The fleet is no longer configured. */
void handler_refuse_removed(struct call *call, const struct fleet *fleet);
/* No fleet or worker has this name. */
void handler_refuse_unknown(struct control *control, struct call *call, const char *name);
/* Returns true after refusing the call because sqmgr is shutting down; else returns false without a reply. */
bool handler_refuse_at_shutdown(struct control *control, struct call *call);

void handler_fleets_free(struct handler_fleets *list);

/* Returns false after replying with an error. Free *ret in both cases. */
bool handler_parse_fleets(struct control *control, struct call *call, json_t *parameters,
                          struct handler_fleets *ret);
/* Returns the fleet named by the parameter "fleet", or NULL after replying with an error. */
struct fleet *handler_parse_fleet(struct control *control, struct call *call, json_t *parameters);
