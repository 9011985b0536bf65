/* SPDX-License-Identifier: MIT */
/* Everything needed to run workers: the event loop, connections to Redis and to databases (links.c),
 * children, and the context of each launch. */
#pragma once

#include "daemon/runtime/database_helpers.h"
#include "daemon/runtime/proc_facts.h"
#include "daemon/runtime/subsystem.h"
#include "daemon/runtime/wakeup.h"
#include "frameworks/heartbeats.h"
#include "io/ledger_file.h"
#include "servers/server.h"
#include <sys/resource.h>

struct fleet;
struct worker;
struct world;
struct proc_host;     /* io/host.h */
struct state_dead;    /* continuity/state.h */
struct systemd_query; /* io/systemd.h */
struct exit_log;      /* workers/exit_log.c */
struct search;        /* takeover/search.h */
struct side_start;    /* workers/side_start.c */

/* A socket passed from one image of sqmgr to the next; see daemon/lifecycle/reexec.h. */
struct handed {
        enum {
                HANDED_LISTEN,   /* the control socket */
                HANDED_IDLE,     /* an idle connection */
                HANDED_CALLER,   /* a connection with a call for the next image to answer */
                HANDED_TEMPLATE, /* the socket of a template */
                _HANDED_MAX,
        } kind;
        int fd;
        pid_t pid; /* HANDED_TEMPLATE: pid of the template's command */
};

/* Autoscaling state of a link, embedded as the first member of a larger struct. end() is called before the
 * connection is closed, and frees the struct. */
struct link_user {
        void (*end)(struct link_user *user);
};

/* A server as one framework uses it. fleet->link points here if the fleet's heartbeats are on this server,
 * fleet->queue_link if its queues are. */
struct link {
        struct runtime *runtime; /* not owned */
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

        /* The connection to a server in quarantine; see links.c. */
        struct link_quarantine {
                sd_event_source *timer; /* NULL: the server was never in quarantine */
                bool lasts;
                bool open; /* the connection */
                usec_t opened_at;
        } quarantine;
};

struct links {
        struct link **list;
        size_t n;
        char host_name[256]; /* as of the last links_host_name(); "": never */
        bool reads_queues;   /* a reading of the queues of all links is in progress; see queue_reading.h */
        /* Called when a process of the worker was found that sends heartbeats. */
        void (*found)(struct worker *worker, pid_t pid, usec_t now);
};

/* Writes what operators ordered to a file that survives a reboot.
 *
 * A disk may be slow, hung or full, so a process of its own writes: sqmgr never waits for it, and neither a
 * re-exec nor an exit does. At most one process of this sqmgr writes. What changes meanwhile is written once
 * that process has ended, so only the newest orders count. Processes of earlier sqmgrs may still write: they
 * go first (statefile_write_synced()). */
struct order_writer {
        struct runtime *runtime; /* not owned */
        char *path;              /* owned; NULL: orders are not written */
        bool makes_folder;
        struct child child; /* the process that writes */
        usec_t started_at;  /* of that process */
        uint64_t hash;      /* of the orders that were given to it; 0: they are to be written */
        int error;          /* -errno of the last write; -ETIMEDOUT: the disk does not respond; 0: written */
        usec_t since;       /* when the orders could no longer be written */
};

/* Processes in the control group of sqmgr's service that belong to no worker: left by an earlier sqmgr, or by
 * a worker of it, and not adopted. sqmgr adopts the orphans of all processes that it starts itself, so only
 * older processes can be unknown. */
#define UNKNOWN_MAX 16

struct unknown {
        struct unknown_process {
                pid_t pid;
                uint64_t start;
        } list[UNKNOWN_MAX];
        size_t n;
};

#define BOOT_ID_MAX 64

struct runtime {
        sd_event *event; /* with wakeup and world: not owned */
        struct wakeup *wakeup;
        struct world *world;
        struct links links;
        struct subsystems subsystems;  /* the optional features */
        struct heartbeats *local;      /* heartbeats of fleets without a link, which need no Redis */
        char *status_parent;           /* parent of the heartbeat file directories; owned */
        struct children children;      /* children other than workers */
        struct proc_facts *proc_facts; /* owned */
        struct database_helpers database_helpers;
        struct proc_host *host;
        struct rlimit nofile;           /* limit before sqmgr raised its own */
        char instance[17];              /* the same for every sqmgr with this state file */
        char boot_id[BOOT_ID_MAX];      /* see state_load_boot_id() */
        struct ledger_file ledger;      /* see workers/start_record.h */
        struct state_dead *rescues;     /* list of rescue.c, written to the state */
        struct exit_log *exit_log;      /* journal readings in progress */
        struct side_start *after_exits; /* running commands */
        char *preload_script;           /* Ruby script of templates; owned */
        char *outcomes_script;          /* Ruby script that counts the jobs of Sidekiq; owned */
        char *shims;                    /* folder of the shims, see traits.h; owned */
        int save_error;                 /* result of the last write of the state; 0: written */
        struct order_writer orders;
        struct search *search;  /* for workers of an earlier sqmgr; NULL: the search is over */
        struct unknown unknown; /* found once the search was over */
        struct handed *handed;  /* sockets from the previous image; not owned */
        size_t n_handed;
        struct systemd_query *end_query; /* asks systemd why sqmgr is to end; NULL: not asked */
        uint64_t lines_token;            /* last token handed out */
        bool lines_missed;               /* a missing log tail of an adopted worker was logged */
};

static inline bool link_is_database(const struct link *link)
{
        return link->engine != _DATABASE_ENGINE_MAX;
}
/* Return what the server is: for people "Redis", "PostgreSQL" or "SQLite"; for programs the same in small
 * letters. */
const char *link_noun(const struct link *link);
const char *link_kind(const struct link *link);

/* Creates the missing links that the fleets of these settings need. Returns 0 or -errno. After an error, some
 * links may have been created. */
int links_make(struct runtime *runtime, const struct settings *settings);
/* Sets fleet->link and fleet->queue_link of each fleet of the world, and frees links that no fleet needs. */
void links_join(struct runtime *runtime);
/* Returns the host name of this machine as the workers see it, valid until the next call. Adds an event when
 * the name has changed. */
const char *links_host_name(struct runtime *runtime);
/* Writes the host name that a worker of this fleet is given for its heartbeats; "": none. Returns text. */
const char *links_unique_host(struct runtime *runtime, const struct fleet_settings *fleet, unsigned index,
                              usec_t started_at, char text[static UNIQUE_HOST_MAX]);
/* Call once, before the loop runs. Judges how the sqmgr before ended, and reports it. Returns 0 or
 * -ENOMEM. */
int links_judge_crash(struct runtime *runtime, usec_t now);
/* Ends all quarantines: the servers are connected to again as soon as the loop runs. */
void links_end_quarantine(struct runtime *runtime);
/* Frees all links. Call when no worker process is attached any more. */
void links_end(struct runtime *runtime);

/* Reads the queues into answer->queues. due: also when their scheduled jobs fall due. names: the queues to
 * read, with how long their jobs take; a NUL follows each name, and another one the last. NULL: all queues,
 * sorted by name. Returns as reader_ask(). */
int link_read_queues(const struct link *link, const char *names, bool due, reader_answer_fn callback,
                     void *userdata);

struct running_jobs_request {
        const char *const *identities;
        size_t n;          /* number of identities, at least one */
        bool with_entries; /* the jobs keep their entries */
};

/* Reads the running jobs of identities into an answer for link_running_jobs(). Returns as reader_ask(). */
int link_read_running_jobs(const struct link *link, const struct running_jobs_request *request,
                           reader_answer_fn callback, void *userdata);
/* Returns the lists in the answer: one for each of the n identities, in the same order; move out what must
 * survive. NULL: none could be read. *ret_error: why some lists could not be read; NULL: all were. */
struct job_list *link_running_jobs(struct answer *answer, size_t n, const struct error_report **ret_error);
