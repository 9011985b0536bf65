/* SPDX-License-Identifier: MIT */
/* A simulated world for the core: workers, Redis, the host and the operator are models driven by one seed;
 * the core that observes and decides is the real one. Everything that happens is a function of the seed and
 * of the schedule made from it. */
#pragma once

#include "continuity/ledger.h"
#include "decide/pass.h"
#include "model/fleet.h"
#include "observe/match.h"
#include "rng.h"

struct adoption;
struct claimant;
struct state_fleet;

#define FLEETS_MAX    2
#define SIM_JOBS_MAX  5
#define RECORDS_MAX   4
#define SCHEDULE_MAX  40
#define DRAINS        2 /* in a row */
#define ACTS_MAX      ((size_t)SCHEDULE_MAX + 2 * DRAINS)
#define MEGABYTE      ((uint64_t)1 << 20)
#define MEMORY_PLENTY (1024 * 1024 * MEGABYTE)
#define CLONES_MAX    256
/* A worker that has waited for a job for this long hardly takes one at the very moment of a signal. */
#define IDLE_CHECK_USEC (3 * USEC_PER_SEC)
/* Pids from here on belong to processes that are not ours. */
#define STRANGERS_PID 100000000

struct sim;

/* The behavior of workers of one framework, and what they report: behavior.c. Shares are of 100. */
struct behavior {
        const char *framework;
        unsigned weight; /* number of fleets with this framework, relative to the other frameworks */

        int quiet_signal; /* 0: none */
        int stop_signal;
        int cut_off_signal; /* stop signal of a worker that is not known to be idle; 0: stop_signal */
        bool wakes;         /* a frozen worker is woken to be stopped */
        bool stop_waits;    /* after TERM, jobs have unlimited time, and are not put back */
        bool second_kills;  /* a second stop signal ends the running jobs */
        bool fetch_is_lost; /* the first stop signal loses a job that is being fetched */
        unsigned uncaught;  /* share without a handler for the quiet signal */
        unsigned bare;      /* share without a handler for the stop signal either */

        unsigned jobs_max;
        bool job_is_child;                 /* a job may outlive the worker, with the worker's environment */
        bool heartbeats_at_change;         /* also sends a heartbeat when the number of jobs changes */
        bool counts_fetches;               /* reports a job as running while it is still being fetched */
        bool quiet_read_late;              /* reads quiet one round trip after the work state was copied */
        bool reports_turns;                /* reports when its loop that fetches jobs last turned */
        bool reports_start;                /* some workers report when their process was started */
        bool reports_birth, repeats_birth; /* when it registered, before it shows its boot; in each record */
        bool database; /* a row: its jobs are read as they are now, and it does not show quiet */
        bool locked;   /* its row counts only while the worker lives */
        usec_t heartbeat_idle, heartbeat_busy; /* 0: by the release */
        usec_t record_expiry;

        bool shows_boot; /* by its title or threads */
        bool title_may_lack;
        unsigned titleless; /* share without a title, which shows nothing */
};

#define REMOTE_SIGNALS_MAX 16

/* A worker out of reach: what sqmgr started is a client, such as `docker run`. It takes signals from its
 * server, one with each heartbeat, and /proc does not show it. */
struct remote_sim {
        bool is; /* out of reach */
        int signals[REMOTE_SIGNALS_MAX];
        unsigned n_signals;
        usec_t expire_at;
        usec_t repeated_at; /* when the stop signal was last sent again; 0: never */
};

/* The trials of a fleet. */
struct trial_sim {
        struct rng rng;
        bool tries;          /* restarts of the fleet are judged, and it may return */
        uint64_t generation; /* of the restart for which the following was chosen */
        unsigned limit;
        usec_t until;     /* when the verdict falls */
        bool worse;       /* the verdict */
        usec_t return_at; /* when the operator orders the return; USEC_INFINITY: never */
        usec_t kill_at;   /* when the template that is returned to dies; USEC_INFINITY: never */
};

/* How the processes of a release behave, apart from chance. */
struct release {
        usec_t boot_min, boot_max;
        unsigned never_boots, crashes_booting, crashes_young; /* of 100 */
        unsigned elsewhere; /* of 100: sends heartbeats to a place that sqmgr does not read */
        unsigned wrapped, deaf, native_thread;                   /* of 100 */
        unsigned late_heartbeats, double_heartbeats, slow_trips; /* of 1000 */
        usec_t heartbeat_interval, shutdown_usec;
        usec_t job_gap; /* mean time between two jobs of a process */
        unsigned long_jobs, endless_jobs;
        unsigned unhooked, unsafe; /* of 100: as a template, runs jobs, or cannot be forked */
        usec_t long_max;
        uint64_t base_bytes, leak_per_sec;
};

/* A heartbeat in Redis. */
struct heartbeat_record {
        usec_t written_at; /* 0: none */
        bool lie;          /* invented, and not in Redis */
        struct heartbeat heartbeat;
};

/* The outcome of a requested fork. */
enum fork_fate { FORK_MADE, FORK_STICKS, FORK_DIES, FORK_LACKS };

/* A process that was started as a template, and the shell's data about it. */
struct template_process {
        struct process *process;   /* the process that contains this struct */
        struct template *template; /* NULL: not known to sqmgr */
        uint64_t generation;
        bool unhooked, unsafe;
        bool awaits_start; /* the command begins after the state was written, or could not be */
        bool connected;    /* sqmgr has the other end of its channel */
        bool loaded, ready;
        usec_t ready_report_at; /* when sqmgr learns that the template is ready */
        usec_t ended_at;        /* when sqmgr asked it to end; 0: never */

        /* The fork that sqmgr has asked for. */
        unsigned index; /* 0: none */
        enum fork_fate fate;
        usec_t asked_at, fork_at;
        struct process *fork;  /* made, and not reported to sqmgr yet; NULL: none */
        usec_t fork_report_at; /* when sqmgr learns of the fork, or of its failure */
};

/* The process of a worker or a template, or a wrapper and the process under it. */
struct process {
        unsigned serial, fleet, index;
        struct release release;
        struct rng rng;
        usec_t next_at;

        /* The environment markers: set from launched_at on, and visible in /proc from marked_at on, until the
         * title overwrites them. */
        unsigned mark_fleet, mark_index;
        uint64_t mark_generation;
        usec_t launched_at, marked_at;
        /* The record of this start in the ledger: the process claims it at claim_at if sqmgr has not. */
        struct ledger *ledger;
        struct ledger_claim claim;
        unsigned record;
        usec_t claim_at;
        bool titled;      /* the title overwrites the markers once the process has booted */
        bool leftover;    /* a job left a process behind, which has the environment of the worker */
        bool detached;    /* the leftover process leads a process group of its own */
        bool left_behind; /* is such a leftover process itself, and sqmgr attached to it */
        bool let_go; /* was let go of, or showed no sign of a worker for too long: sqmgr need not know it */
        bool unseen; /* sqmgr saw the wrapper end before the boot: the process cannot be distinguished from
                      * a leftover of a job */

        /* The main process, and the runner that sends heartbeats and runs jobs: the same unless wrapped. */
        pid_t pid, runner_pid;
        uint64_t start, runner_start;
        usec_t runner_boottime; /* runner_start by CLOCK_BOOTTIME */
        bool wrapped, main_alive, runner_alive;
        usec_t wrapper_exit_at;
        /* A wrapper that starts a new runner when the old one has ended; a wrapper that has started two. */
        bool restarts, twins;
        usec_t respawn_at;
        usec_t forgotten_at; /* when the shell learned that the runner with heartbeats has ended; 0: never */
        bool knows_end;      /* this runner was asked to exit */
        usec_t died_at;      /* when the last runner died */

        usec_t spawned_at, boot_at, crash_at, hang_until;
        bool booted, frozen, elsewhere, deaf, native_thread;
        bool shows_shim;                               /* was seen to have loaded its shim */
        bool takes_none;                               /* sends heartbeats, and begins no job */
        bool uncaught, bare, titleless, reports_start; /* from struct behavior */
        usec_t booted_at, born_usec;                   /* born_usec: when it registered, by the wall clock */
        unsigned host;                                 /* the host's name at the time of the boot */
        char name[40];                                 /* identity of the heartbeats; "": not made yet */
        uint64_t jumped_bytes, leak_per_sec;

        usec_t job_at, fetched_until; /* a fetched job is running, but not registered before fetched_until */
        usec_t fetched_job_end;
        usec_t job_end[SIM_JOBS_MAX];
        unsigned n_jobs;
        uint64_t wakes; /* number of wakeups so far: to take a job, end a job, or send a heartbeat */
        usec_t woken_at;

        /* TSTP will be handled; was handled; idle threads exit. */
        usec_t quiet_from, threads_gone_at;
        bool quiet;
        usec_t term_from, stop_by, exit_at;
        bool stopping;

        usec_t heartbeat_at, write_at;
        unsigned copied_busy, copied_plain; /* plain: may not be interrupted */
        bool copied_quiet;
        unsigned title_busy; /* set right before the heartbeat */
        bool title_quiet;
        struct heartbeat_record records[RECORDS_MAX]; /* the newest first */
        struct heartbeat_record frozen_record;
        bool listed;     /* in the set of identities: a clean exit removes it, a crash does not */
        bool registered; /* has tried to be listed */

        /* The shell's side. */
        struct worker *worker; /* NULL: not known to the shell */
        unsigned identity; /* serial + 1 of the process whose heartbeat is read for this one; 0: not known */
        unsigned poll_items;
        struct heartbeat_record answer;
        bool answered;
        usec_t exit_report_at;
        uint64_t slept_wakes; /* wakes at slept_at: as far as polls show, the process has slept since */
        usec_t slept_at;

        /* The facts for the invariants: what sqmgr read of the process, and did to it. */
        usec_t lied_at;           /* when sqmgr last read a lie about the process; 0: never */
        usec_t read_written_at;   /* when the newest heartbeat that sqmgr has read was written */
        usec_t newest_written_at; /* the same, of all that any sqmgr has read */
        bool shown_again;         /* the last change is no newer than newest_written_at */
        uint64_t read_heartbeat;
        bool rebased; /* the next reading cannot be compared with an earlier one */
        bool shown_title, shown_quiet;
        unsigned shown_busy;
        usec_t first_read_at, changed_at;
        uint64_t held_bytes;    /* size at the last reading of the machine's memory; 0: no process then */
        uint64_t read_bytes;    /* last memory sample of the process; 0: none since it became active */
        bool marked;            /* read since time, Redis and sqmgr are trusted: changes count from then on */
        unsigned trusted_reads; /* changes seen since marked was set */
        bool hung;              /* silent for hang_after, and without a heartbeat since */
        usec_t idle_at;         /* since when it keeps its place though idle: check_drained() */
        unsigned idle_row;      /* distinct readings in a row: quiet, 0 busy */
        bool read_list_empty, counted_failure;
        usec_t title_first_at;  /* first reading of a title that shows the boot; 0: none */
        usec_t title_read_at;   /* last reading of the title while the heartbeat is not known */
        usec_t title_idle_from; /* the first title reading in a row that shows quiet and 0 busy */
        bool threads_counted;   /* the thread count has matched the title */
        unsigned quiets, stops;
        unsigned reported_to_exit; /* how often the runner was asked to exit */
        usec_t term_at;
        usec_t cut_at;           /* when the drain was given up */
        bool refused;            /* was seen to catch no quiet signal */
        bool drains;             /* got the stop signal when it was quieted */
        bool given_up;           /* was asked to exit by a forced order */
        bool outlived_stop;      /* its command was asked to exit, and has left it running */
        usec_t tried_at, try_at; /* first and last time in a row: to be quieted, and not idle */

        struct remote_sim remote;
        bool is_template; /* until known to be a worker */
        struct template_process as_template;
        bool forked, awaits_go; /* forked from a template; does nothing yet */
        uint64_t shared_bytes;
};

enum act_kind {
        ACT_REDIS_DOWN,
        ACT_REDIS_SILENT,
        ACT_REDIS_SLOW,
        ACT_REDIS_FAILOVER,
        ACT_REDIS_FROZEN,
        ACT_REDIS_LAGS,
        ACT_REDIS_GARBAGE,
        ACT_REDIS_EMPTIED,
        ACT_CLOCK_STEP,
        ACT_SUSPEND,
        ACT_STALL,
        ACT_PAUSE,
        ACT_FORK_FAILS,
        ACT_PROC_FAILS,
        ACT_DISK_FULL,
        ACT_HOST_NAME,
        ACT_SQMGR_KILL,
        ACT_WORKER_KILL,
        ACT_WRAPPER_KILL,
        ACT_WORKER_HANG,
        ACT_WORKER_QUIET,
        ACT_WORKER_GROWS,
        ACT_RELEASE_BAD,
        ACT_RELEASE_GOOD,
        ACT_RESTART,
        ACT_ABORT,
        ACT_QUIET_FLEET,
        ACT_QUIET_WORKER,
        ACT_STOP,
        ACT_STOP_FORCE,
        ACT_START,
        ACT_SCALE,
        ACT_RELOAD,
        ACT_SHUTDOWN,
        /* In a world with templates, these replace some of the other acts. */
        ACT_TEMPLATE_KILL,
        ACT_TEMPLATE_FREEZE,
        ACT_FORK_LACKS,
        ACT_FORK_KILLS_SQMGR,
        /* In some worlds these replace some of the other acts. */
        ACT_READER_LOST,
        ACT_READER_DELAYS,
        ACT_READER_LIES,
        _ACT_MAX,
};

struct act {
        usec_t at;
        enum act_kind kind;
        uint64_t a, b, c;
        bool left_out; /* by shrinking */
};

/* How answers lie. */
enum lie { LIE_IDLE, LIE_BUSY, LIE_PAST, LIE_FUTURE, LIE_FOREIGN, _LIE_MAX };

/* How a fleet's server behaves. */
struct reader_sim {
        struct rng rng;
        usec_t delays_until, lies_until;
        usec_t delay_max;
        enum lie lie;
        usec_t lied_at;  /* last */
        usec_t lost_at;  /* when the connection is lost; USEC_INFINITY: never */
        unsigned losses; /* losses that are to follow, each soon after the previous one */
        unsigned failures;
        usec_t connected_at;
};

struct link {
        bool up;
        usec_t up_at;
        usec_t next_at; /* the next attempt to connect, or when the answer is overdue */
        bool asked;
        usec_t asked_at, served_at, answer_at;
        bool served;
        struct match match;
};

/* A reading of a fleet's queue. */
enum queue_view { QUEUE_TAKEN, QUEUE_EMPTY, QUEUE_PAUSED, QUEUE_UNREAD, QUEUE_LEFT, _QUEUE_VIEW_MAX };

/* The queue of a fleet, in which deaf workers leave jobs. */
struct deaf_sim {
        struct rng rng;
        bool judged; /* the queue is read */
        enum queue_view view;
        usec_t until;
        uint64_t size;
        struct queues *before; /* owned: as last read */
        usec_t before_at;
        usec_t broken_at; /* the last reading without jobs that wait and may be taken */
        /* When two workers last wrote a heartbeat that was read and shows work. */
        struct seen_busy {
                unsigned serial;
                usec_t at;
        } seen[2];
};

/* A fleet of the world, and the facts about it from outside the core. */
/* A fleet as last written: a new sqmgr continues from this. */
struct written {
        bool any, returned;
        uint64_t generation, newest, hash;
        enum fleet_order order;
        unsigned count, for_count, scaled;
        enum rollout_state rollout;
};

struct fleet_sim {
        struct fleet_settings settings[2]; /* the ini file, and what a reload would make of it */
        unsigned in_force;
        const struct behavior *behavior;
        bool untitled, shown; /* its program sets no titles; a worker of it has shown its boot */
        struct release release, good;
        struct link link; /* permanently up, if it needs no Redis */
        struct reader_sim reader;
        unsigned failures; /* consecutive failures of new workers, as the world saw them */
        usec_t failed_at, hour_at, burst_at;
        uint64_t failed_generation;
        usec_t p6_since, gap_since, gap_at;
        /* When this sqmgr adopted workers that the last one quieted for its own end; 0: the fleet has all its
         * workers since. */
        usec_t drained_at;
        usec_t fresh_since; /* since when at least one worker sends heartbeats; 0: none does */
        unsigned hour_starts, burst_starts;
        unsigned hour_target;         /* the highest target in the hour that began at hour_at */
        uint64_t reloaded_generation; /* the generation made by a reload, not by a restart */
        unsigned count;               /* the count that scaling applied; 0: none */
        struct rng demand;            /* of its queues */
        struct rng heads;             /* of the oldest jobs in them */
        struct rng sleeps;            /* of fleets that may have no worker */
        usec_t demand_until;
        unsigned waiting;
        bool head_unknown; /* the oldest job is too large to be read */
        struct deaf_sim deaf;
        struct trial_sim trial;
        bool preloads;     /* by any of its settings */
        usec_t load_since; /* since when a template is due; 0: none is */
        usec_t slowest_fork;
        unsigned troubles, written_troubles; /* of templates, since the last fork that reported; as written */
        bool excused;                        /* sqmgr saw that a template could not fork, or was a worker */
        struct written written, ordered;     /* in the state; in the orders, which are never lost */
        char name[16];
};

struct shell {
        uint8_t *orders; /* the file of the orders */
        size_t orders_size;
        bool running;
        bool dying; /* killed in the middle of a pass: the rest of the pass has no effect */
        struct settings settings;
        struct fleet_settings *fleet_list[FLEETS_MAX];
        struct world *world;
        struct pass pass;
        usec_t wake_at, start_at, stalled_until;
        bool timer_first;
        struct adoption *adoption;     /* NULL: all live workers are known */
        usec_t search_at;              /* time of the next search, if the adoption continues */
        unsigned hosts, written_hosts; /* seen names of the host, as bits: now; in the state file */
        uint8_t *state;                /* the state file */
        size_t state_size;
        uint64_t written; /* check_digest() of the state file */
        bool behind;      /* the last write of the state file failed */
        struct ledger ledger;
        void *ledger_memory;
        bool ledger_lost; /* with this sqmgr, or as it is killed */
        unsigned ledger_losses;
        usec_t behind_since;
        int kill_in; /* steps; < 0: never */
        unsigned kill_fate;
        int kill_forking; /* steps from the next fork on; < 0: never */
        usec_t down_usec;
        unsigned deaths;
        usec_t trusted_at; /* when the last disturbance of time ended, or sqmgr began */
        usec_t iterated_at, seen_suspended;
        usec_t deferred_at; /* time of the first incomplete iteration; 0: the last one was complete */
        int64_t seen_stepped;
};

/* A process of another host with the same name as ours. */
struct clone {
        unsigned serial, fleet; /* the fleet whose Redis gets the heartbeats */
        pid_t pid;
        unsigned host;
        struct rng rng;
        usec_t next_at, end_at;
        unsigned busy;
        bool quiet, listed;
        uint64_t born_usec, ran_usec; /* as in record; how long it ran before: an earlier record was lost */
        struct heartbeat_record record, answer;
};

struct sim {
        uint64_t seed;
        struct rng rng;
        usec_t now, begun_at, calm_at, end_at;
        bool calm;
        usec_t settled_at, swept_at;
        unsigned same; /* steps in a row at one moment */

        usec_t suspended_usec;
        int64_t stepped_usec;
        usec_t stepped_back_at;         /* 0: never */
        usec_t paused_at, paused_until; /* of the machine with all its processes */
        usec_t fork_fails_until, fork_lacks_until, proc_fails_until, disk_full_until;
        uint64_t total_bytes;
        uint64_t read_left; /* free bytes at the last reading of memory; 0: not read by this sqmgr */
        unsigned host;      /* number in the host's name, which may change */
        bool service;       /* sqmgr has a control group of its own */
        bool strangers;     /* foreign processes look like our workers */

        usec_t down_until, silent_until, slow_until, garbage_until, frozen_until, lags_until;
        usec_t slow_usec;
        unsigned lag;

        struct fleet_sim fleets[FLEETS_MAX];
        unsigned n_fleets;
        struct process **processes;
        size_t n_processes, processes_allocated;
        unsigned serial;
        pid_t next_pid;
        struct shell shell;

        bool cloned; /* another host has our name */
        struct rng clone_rng;
        struct clone clones[CLONES_MAX];
        unsigned n_clones;

        struct act acts[ACTS_MAX];
        size_t n_acts, next_act;

        /* Totals. */
        uint64_t n_ticks, n_started, n_jobs, actions;

        bool broken;
        char invariant[16];
        struct story *story; /* NULL: no story is kept */
};

/* The source of a world and its schedule. */
struct origin {
        uint64_t seed;
        const uint8_t *bytes; /* used before random numbers; borrowed, until the run's end */
        size_t size;
};

/* Loops over all processes, also the dead ones that are remembered, and declares process. */
#define SIM_FOREACH_PROCESS(sim, process) FOREACH_POINTER(process, (sim)->processes, (sim)->n_processes)

/* generate.c: the world and its schedule. */
void sim_open(struct sim *sim, const struct origin *origin);
/* The first bytes are the seed. */
struct origin origin_of_bytes(const uint8_t *bytes, size_t size);
void sim_close(struct sim *sim);
/* world.c: runs the world to its end, or to the first violation. */
void sim_run(struct sim *sim);

/* scaling.c */
void scaling_open(struct sim *sim);
/* sqmgr has started, and continues from the saved state. */
void scaling_started(struct sim *sim);
/* Polls the queues of the fleet. */
void scaling_look(struct sim *sim, unsigned number);
/* Returns how many workers the fleet is to have. */
unsigned scaling_target(const struct sim *sim, const struct fleet *fleet);

/* deaf.c */
void deaf_open(struct sim *sim);
/* sqmgr has died, or the world ends. */
void deaf_forget(struct sim *sim);
/* A heartbeat of the process was read. */
void deaf_hear(struct sim *sim, const struct process *process, bool busy, usec_t written_at);
void deaf_check_loop(struct sim *sim, const struct process *process); /* after each heartbeat */
/* Polls the queue of the fleet. */
void deaf_look(struct sim *sim, unsigned number);
/* Checks that the worker is to be quieted because it is deaf. */
void deaf_check(struct sim *sim, const struct action *action, const struct process *process);

/* clone.c: another host of the same name as ours. */
void clones_open(struct sim *sim);
/* A process of ours begins: a clone with its pid may appear on another host, sooner or later. */
void clone_of(struct sim *sim, const struct process *process);
usec_t clones_next_at(const struct sim *sim);
void clones_step(struct sim *sim);
/* Redis loses the clones' records. heartbeat_on: the clones continue to send heartbeats. */
void clones_end(struct sim *sim, bool heartbeat_on);
/* Our wall clock was stepped back: times of earlier registrations prove nothing any more. */
void clones_lose_births(struct sim *sim);
void clones_serve(struct sim *sim, unsigned fleet);
/* Returns true if a clone may not be older than the process. */
bool clones_resemble(const struct sim *sim, const struct process *process);
/* Returns NULL if serial is no clone's. */
const struct clone *clone_find(const struct sim *sim, unsigned serial);

/* drain.c: worlds in which sqmgr is asked to exit and killed in the middle of it, twice in a row. */
/* Adds the drains to the schedule of some worlds. */
void drains_open(struct sim *sim);
/* sqmgr has started, and adopted the workers of the last one. */
void drains_continued(struct sim *sim);
/* Checks that a worker that the last sqmgr has quieted keeps its place only until two of its heartbeats were
 * read that say idle. */
void drains_check(struct sim *sim, unsigned number);

/* remote.c */
/* Call when the worker has a process that sends heartbeats. */
void remote_found(const struct sim *sim, struct process *process);
/* Sends a signal through the server. Returns false if it goes another way; *ret_error is 0 or an errno. */
bool remote_signal(struct sim *sim, const struct worker *worker, int signo, bool forced, int *ret_error);
/* The process has written a heartbeat. */
void remote_heartbeat(struct sim *sim, struct process *process);
/* Checks what is read of the worker. */
void remote_polled(struct sim *sim, const struct worker *worker, unsigned poll_items);
/* Checks a stop signal that is sent again. Returns false if it is the first. */
bool remote_repeats(struct sim *sim, const struct action *action, struct process *process);

/* trial.c: restarts that are held at a few new workers until their jobs are judged, and returns to the
 * release before. */
void trial_open(struct sim *sim);
/* Call before each pass. */
void trial_look(struct sim *sim, unsigned fleet);
/* P2 and P7: what a limit and a return allow. */
void trial_check(struct sim *sim, const struct action *action, const struct process *process);
/* Returns true if the fleet stays below its count until a restart, as the release before is not in memory,
 * and no worker leaves any more. */
bool trial_withholds(const struct sim *sim, unsigned fleet);

/* interrupt.c */
/* Interruptible jobs: some fleets name the class of some jobs in `interruptible`. */
void interrupt_open(struct sim *sim);
/* Returns the number of jobs that the process runs and that are of another class. */
unsigned interrupt_plain_jobs(const struct process *process);
/* Returns the end, moved by less than 10 us: a job that ends then instead of before stays of its class. */
usec_t interrupt_end(usec_t before, usec_t end);
/* Reads the work list of a quieted worker, as its last heartbeat copied it. */
void interrupt_look(struct sim *sim, struct worker *worker);

/* process.c */
struct process *process_spawn(struct sim *sim, const struct fleet *fleet, unsigned index);
/* Assigns the process a slot of the ledger, which it will claim. */
void process_claims(struct sim *sim, struct process *process, unsigned record);
/* Forks the requested worker from a template. The fork waits for process_go(). */
struct process *process_fork(struct sim *sim, const struct template_process *from);
void process_go(struct sim *sim, struct process *process);
void process_exits(struct sim *sim, struct process *process, const char *how);
void process_step(struct sim *sim, struct process *process);
/* Returns one of the live processes, or of the live templates; NULL: there is none. */
struct process *process_pick(struct sim *sim, uint64_t which, bool template);
/* Makes the process that a job of the process with this serial has left behind; NULL: there is none. */
struct process *process_left_behind(struct sim *sim, pid_t serial, uint64_t start);
/* Returns the time that a heartbeat carries which is sent now. */
uint64_t sim_time_of_heartbeats(const struct sim *sim);
bool process_is_alive(const struct process *process);
unsigned process_jobs(const struct process *process);
unsigned process_threads(const struct sim *sim, const struct process *process);
uint64_t process_bytes(const struct sim *sim, const struct process *process);
/* Like process_bytes(), without memory that is shared with the template. */
uint64_t process_own_bytes(const struct sim *sim, const struct process *process);
/* Returns the free memory of the machine. */
uint64_t process_bytes_left(const struct sim *sim);
/* If no memory is left, the kernel kills the largest process. */
void process_oom(struct sim *sim);
/* Returns the traits of the process' framework. */
const struct traits *process_traits(const struct sim *sim, const struct process *process);
/* Sends signo to the runner, or to the whole group. Returns 0 or a positive errno. */
int process_signal(struct sim *sim, struct process *process, int signo, bool group);
void process_kill(struct sim *sim, struct process *process, bool main_only);
/* Sends TERM to the wrapper alone. */
void process_end_wrapper(struct sim *sim, struct process *process);

/* template.c: templates as processes, and the shell's operations on them */
void templates_open(struct sim *sim);
void template_step(struct sim *sim, struct process *process);
usec_t template_next_at(const struct process *process);
/* Returns when the next report of the template arrives at sqmgr. */
usec_t template_reports_at(const struct process *process);
void template_reports(struct sim *sim, struct process *process);
/* A process that was started as a template, or its wrapper, has ended. */
void template_exit_step(struct sim *sim, struct process *process);
void template_looks(struct sim *sim, struct fleet *fleet, bool fast);
/* Return values are those of on_action(). */
bool template_act(struct sim *sim, const struct action *action);
bool template_fork(struct sim *sim, const struct action *action);
bool template_go(struct sim *sim, const struct action *action);
/* sqmgr has died: all channels are closed. */
void template_orphaned(struct sim *sim, struct process *process);
void templates_adopt(struct sim *sim, struct fleet *fleet, const struct state_fleet *saved);
/* In the calm phase, gives the template the good release. */
void template_repair(struct sim *sim, struct process *process);
/* The state was written, or could not be: started templates begin to run. */
void templates_begin(struct sim *sim);
/* All processes in the state have been adopted. read: the state could be read. */
void template_unknown(struct sim *sim, bool read);
void template_befalls(struct sim *sim, const struct act *act);

/* behavior.c */
const struct behavior *behavior_choose(struct rng *rng, const struct traits **ret_traits);
const struct behavior *process_behavior(const struct sim *sim, const struct process *process);
/* Sets the behavior of a new process. */
void behavior_give(const struct sim *sim, struct process *process);
void behavior_become_quiet(struct sim *sim, struct process *process);
/* The process acts on its stop signal. */
void behavior_stop(struct sim *sim, struct process *process);
/* Delivers a signal other than KILL to a live runner. */
void behavior_signal(struct sim *sim, struct process *process, int signo);

/* evidence.c: the evidence that the core gets. */
bool fleet_is_local(const struct sim *sim, unsigned fleet); /* needs no Redis */
bool fleet_is_bare(const struct sim *sim, unsigned fleet);  /* writes no heartbeats */
/* Returns true if a process that shows no boot has not booted. */
bool evidence_denies_boot(const struct sim *sim, const struct process *process);
bool evidence_booted(const struct sim *sim, const struct process *process);
bool evidence_lacks_shim(const struct sim *sim, const struct process *process); /* it is not loaded */
bool evidence_catches(const struct process *process); /* the process catches the quiet signal */
/* Returns true if the title shows busy and quiet. */
bool evidence_title(const struct sim *sim, const struct process *process, unsigned *ret_busy,
                    bool *ret_quiet);
/* Adds the shell's evidence to a record that was read of a worker. */
void evidence_complete(struct sim *sim, const struct process *process, struct heartbeat *heartbeat);
bool evidence_idle(struct sim *sim, struct process *process);
/* Reads the heartbeat of a worker that needs no Redis. Returns false if there is none. */
bool evidence_local(struct sim *sim, struct process *process, struct heartbeat_record *ret);

/* redis.c */
bool redis_answers(const struct sim *sim);
usec_t redis_trip(struct sim *sim, struct rng *rng);
void redis_write(struct sim *sim, struct process *process, const struct heartbeat *heartbeat);
/* Returns false if a record proves life however old it is, or is made as it is read. */
bool redis_shows_age(const struct sim *sim, const struct process *process);
/* Returns the record that is read now; written_at 0: none. */
struct heartbeat_record redis_read(struct sim *sim, struct process *process);
void redis_fail_over(struct sim *sim, unsigned lag);
void redis_freeze(struct sim *sim);
void redis_empty(struct sim *sim);

/* What reading a server may lead to. */
void readers_open(struct sim *sim);
void reader_befalls(struct sim *sim, const struct act *act);
void readers_calm(struct sim *sim);
/* Returns the answer to a query about this worker. record: what Redis holds. */
struct heartbeat_record reader_answers(struct sim *sim, struct process *process,
                                       struct heartbeat_record record);
/* Returns the heartbeat of the identity that a writer has invented, or NULL. */
const struct heartbeat_record *reader_foreign(const struct sim *sim, unsigned fleet);
/* Returns how much later than usual an answer is. */
usec_t reader_delay(struct sim *sim, unsigned fleet);
/* Returns true if no answer is late, and the connection is not lost. */
bool reader_is_prompt(const struct sim *sim, unsigned fleet);
/* The connection is up. */
void reader_connected(struct sim *sim, unsigned fleet);
/* A sqmgr begins. */
void reader_started(struct sim *sim, unsigned fleet);
/* The connection is lost. Returns the time until the next attempt. */
usec_t reader_lost(struct sim *sim, unsigned fleet);

/* shell.c: models src/daemon around the core; adopt.c: its start and its end. */
usec_t shell_next_at(const struct sim *sim);
void shell_step(struct sim *sim);
void shell_start(struct sim *sim);
void shell_die(struct sim *sim);
/* Queries a fleet's Redis, if it is up and no query is pending. */
void shell_ask(struct sim *sim, unsigned fleet);
/* Counts a step of a pass. Returns true if sqmgr was killed at this step, or earlier. */
bool shell_dies_here(struct sim *sim);
/* Writes the state file. Returns whether it was written. */
bool shell_save(struct sim *sim);
/* Sets the ledger slot of the process' worker; if record is 0, allocates a slot. */
void shell_record(struct sim *sim, struct process *process, unsigned record);
/* Gives a ledger that ends with sqmgr a file, if the disk has room. */
void shell_keep_ledger(struct sim *sim);
/* One more search for the workers of an earlier sqmgr. */
void shell_search(struct sim *sim);

/* identify.c */
void identify(struct sim *sim, unsigned fleet);
struct heartbeat_record identify_answer(const struct sim *sim, const struct process *process);
void identify_forget(struct sim *sim, struct process *process);
void identify_known(struct sim *sim, struct process *process, const char *text);
/* The process was not identified: its heartbeats may be under these host names. */
void identify_known_hosts(struct sim *sim, const struct process *process, const char *names);
/* A worker was added. */
void identify_added(struct sim *sim, unsigned fleet);
const char *identify_text(const struct worker *worker, void *userdata);

/* acts.c */
/* Adds an act to the schedule, after those of the same time. */
void act_add(struct sim *sim, const struct act *act);
void act_apply(struct sim *sim, const struct act *act);
void act_calm(struct sim *sim);
const char *act_text(const struct act *act, char text[static 128]);

/* check.c */
unsigned check_number(const struct sim *sim, const struct fleet *fleet);
void check_action(struct sim *sim, const struct action *action);
/* Returns for how long a heartbeat of the fleet's framework is evidence, as readings are some time apart. */
usec_t check_stale_usec(const struct sim *sim, unsigned fleet);
/* Call right before a signal that ends an orphan. */
void check_remainder(struct sim *sim, const struct process *process);
/* The shell has learned that the runner with heartbeats has ended: later readings are of another process. */
void check_succeeded(struct process *process);
void check_signalled(struct sim *sim, const struct action *action, struct process *process);
/* Call right before the process is quieted. */
void check_reported(struct sim *sim, const struct action *action, const struct process *process);
/* The process is not quieted, because the idle check failed. */
void check_not_idle(const struct sim *sim, struct process *process);
/* An unproven process gets no signal, and is let go of only if it is no worker. */
void check_unproven(struct sim *sim, const struct action *action, struct process *process, bool signals);
void check_turn(struct sim *sim);
/* Call as time passes: records which workers hang, and checks that no other worker counts as hung. */
void check_hung(struct sim *sim);
/* Checks that a live worker keeps its index and generation. */
void check_adopted(struct sim *sim, const struct process *process, const struct worker *known,
                   const struct worker *worker);
/* A process that a search found is adopted as the worker that it is. */
void check_found(struct sim *sim, const struct process *process, const struct claimant *claimant,
                 const struct worker *worker);
/* Call after a search. whole: the search was complete, so no starts may be held any more. */
void check_held(struct sim *sim, bool whole);
/* Returns a digest of all facts that a new sqmgr must know: it changes with each of them. */
uint64_t check_digest(const struct sim *sim);
/* Call when the saved state was restored: checks that nothing in it was lost. */
void check_continued(struct sim *sim, bool orders);
void check_command(struct sim *sim, struct fleet *fleet, bool holds, const char *what);
/* written_at: when the simulated process wrote the heartbeat. */
void check_reading(struct sim *sim, struct process *process, const struct heartbeat *heartbeat,
                   usec_t written_at);
/* Earlier readings of the fleet are no evidence any more; fleet UINT32_MAX: of all fleets. */
void check_distrust(struct sim *sim, unsigned fleet);
/* Call when a new sqmgr begins, which has read nothing. */
void check_began(struct sim *sim);
void check_death(struct sim *sim, struct process *process);
/* True for a while after a backward step of the wall clock: old heartbeats cannot be told from new ones. */
bool check_is_unsure(const struct sim *sim);
/* Returns true if everything has settled in the calm phase. must: reports a violation if not. */
bool check_settled(struct sim *sim, bool must);

/* The title of a worker was read whose heartbeat is not known. */
void check_title(struct sim *sim, struct process *process, bool known, bool idle);

/* Returns the ready template of the current generation that sqmgr knows; newest false: the oldest one of an
 * earlier generation. NULL: none. */
const struct template_process *check_template(const struct sim *sim, unsigned fleet, bool newest);
/* Call right before the fork gets `go`. */
void check_go(struct sim *sim, const struct process *process);
/* Call right before the template is asked to end, and before it is killed because it did not. */
void check_template_end(struct sim *sim, const struct template_process *template);
void check_template_kill(struct sim *sim, const struct template_process *template);
/* Checks a worker that was adopted while it waited for `go`. failures: the failures of its fleet before it
 * was adopted. */
void check_unborn(struct sim *sim, const struct worker *known, const struct worker *worker,
                  unsigned failures);
unsigned check_failures(const struct fleet *fleet);
/* A template has failed. fails: the release is the cause, as far as can be known. */
void check_template_trouble(struct sim *sim, const struct template_process *template, bool fails);
/* The fork is a worker from now on. */
void check_hello(struct sim *sim, const struct process *process);

/* story.c */
void violate(struct sim *sim, const char *invariant, const char *format, ...) _printf_(3, 4);
void report(struct sim *sim, const char *format, ...) _printf_(2, 3);
const char *process_name(const struct sim *sim, const struct process *process);
