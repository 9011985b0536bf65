/* SPDX-License-Identifier: MIT */
/* Connections to Redis and to databases: one per server and framework that fleets use. */
#pragma once

#include "daemon/runtime/proc_facts.h"
#include "daemon/runtime/wakeup.h"
#include "frameworks/heartbeats.h"
#include "model/names.h"
#include "model/queues.h"
#include "servers/server.h"
#include "settings/database_url.h"

struct running_jobs; /* a reading in progress */
struct fleet;
struct ledger;
struct worker;
struct world;

/* Autoscaling state of a link, embedded as the first member of a larger struct. end() is called before the
 * connection is closed, and frees the struct. */
struct link_user {
        void (*end)(struct link_user *user);
};

/* A server as one framework uses it. fleet->link points here if the fleet's heartbeats are on this server,
 * fleet->queue_link if its queues are. */
struct link {
        struct links *links;
        const struct framework *framework;
        char *url;                   /* NULL: the Sentinels of the settings name the server */
        enum database_engine engine; /* _DATABASE_ENGINE_MAX: a Redis */
        char *server_text;           /* the last master named by Sentinels; NULL: none yet */
        struct reader *reader;
        struct heartbeats *heartbeats; /* NULL: only queues are read, see fleet_settings_need_broker() */
        bool reads_queues;             /* the server was asked for them; see queue_reading.h */
        struct queues *queues;         /* as last read; NULL: not available, see queues_error */
        struct error_report queues_error;
        bool queues_error_reported; /* the error was logged; used while Redis answers and limits are set */
        struct queue_watch queue_watch;

        struct link_user *user; /* owned; NULL: none */

        /* The connection to a server in quarantine; see link_quarantine.h. */
        struct link_quarantine {
                sd_event_source *timer; /* NULL: the server was never in quarantine */
                bool lasts;
                bool open; /* the connection */
                usec_t opened_at;
        } quarantine;
};

struct links {
        sd_event *event;                  /* with wakeup and world: not owned */
        struct database_starter *starter; /* not owned; of the programs that speak to databases */
        struct ledger *ledger;            /* not owned; NULL: ends of sqmgr are not judged */
        struct wakeup *wakeup;
        struct world *world;
        /* Called when a process of the worker was found that sends heartbeats. */
        void (*found)(struct worker *worker, pid_t pid, usec_t now);
        struct proc_facts *proc_facts;  /* not owned */
        const char *instance, *boot_id; /* not owned */
        char host_name[256];            /* as of the last links_host_name(); "": never */
        struct link **list;
        size_t n;
        bool reads_queues; /* a reading of the queues of all links is in progress; see queue_reading.h */
};

static inline bool link_is_database(const struct link *link)
{
        return link->engine != _DATABASE_ENGINE_MAX;
}
/* Return what the server is: for people "Redis", "PostgreSQL" or "SQLite"; for programs the same in small
 * letters. */
const char *link_noun(const struct link *link);
const char *link_kind(const struct link *link);

/* Connects to the server of the link again, after reader_pause(). Returns 0 or -errno. */
int link_open(struct link *link);

/* Creates the missing links that the fleets of these settings need. Returns 0 or -errno. After an error, some
 * links may have been created. */
int links_make(struct links *links, const struct settings *settings);
/* Sets fleet->link and fleet->queue_link of each fleet of the world, and frees links that no fleet needs. */
void links_join(struct links *links);
/* Returns the host name of this machine as the workers see it, valid until the next call. Adds an event when
 * the name has changed. */
const char *links_host_name(struct links *links);
/* Writes the host name that a worker of this fleet is given for its heartbeats; "": none. Returns text. */
const char *links_unique_host(struct links *links, const struct fleet_settings *fleet, unsigned index,
                              usec_t started_at, char text[static UNIQUE_HOST_MAX]);
/* Frees all links. Call when no worker process is attached any more. */
void links_end(struct links *links);

/* Reads the queues into answer->queues. due: also when their scheduled jobs fall due. names: the queues to
 * read, with how long their jobs take; a NUL follows each name, and another one the last. NULL: all queues,
 * sorted by name. Returns as reader_ask(). */
int link_read_queues(const struct link *link, const char *names, bool due, reader_answer_fn callback,
                     void *userdata);

/* lists: one per identity, in the same order, valid until the callback returns; move out what must survive.
 * NULL: none could be read. error: some lists could not be read; NULL: all were. Called once, never from
 * within link_read_running_jobs(). The reading is freed after the callback returns. */
typedef void (*running_jobs_fn)(struct job_list *lists, const struct error_report *error, void *userdata);

struct running_jobs_request {
        const char *const *identities;
        size_t n;          /* number of identities, at least one */
        bool with_entries; /* the jobs keep their entries */
};

/* Reads the running jobs of identities. Returns 0 with *ret, or as reader_ask(): done is not called. */
int link_read_running_jobs(const struct link *link, const struct running_jobs_request *request,
                           running_jobs_fn done, void *userdata, struct running_jobs **ret);

/* Cancels a reading: done is not called. Takes NULL. Returns NULL. */
struct running_jobs *running_jobs_cancel(struct running_jobs *running_jobs);
