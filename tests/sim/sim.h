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
struct world;

#define FLEETS_MAX    2
#define JOBS_MAX      5
#define RECORDS_MAX   4
#define GIVEN_MAX     8
#define SCHEDULE_MAX  40
#define MEGABYTE      ((uint64_t)1 << 20)
#define MEMORY_PLENTY (1024 * 1024 * MEGABYTE)
#define CLONES_MAX    256
/* A worker that has slept for this long counts as not taking a job: the idle check passes. */
#define IDLE_CHECK_USEC (3 * USEC_PER_SEC)
/* For this long after a backward step of the wall clock, an old answer may count as new. */
#define STEPPED_USEC (2 * USEC_PER_MIN)
/* Pids from here on belong to processes that are no workers: strangers, and leftovers of jobs. */
#define STRANGERS_PID 100000000

struct sim;

/* What workers of one framework do and report; the table is in behavior.c. The unsigned shares are per 100
 * processes. */
struct behavior {
        const char *framework;
        unsigned weight; /* relative frequency of fleets with this framework */

        int quiet_signal; /* 0: none */
        int stop_signal;
        int cut_off_signal; /* the stop signal for a worker that is not known to be idle; 0: stop_signal */
        bool wakes;         /* the stop signal wakes a frozen process */
        bool stop_waits;    /* told to exit it gives its jobs all their time, and does not put them back */
        bool second_kills;  /* a second stop signal costs its jobs */
        bool fetch_is_lost; /* a stop signal loses a job that is just being fetched */
        unsigned uncaught;  /* share without a handler for the quiet signal */
        unsigned bare;      /* share without a handler for the stop signal */

        unsigned jobs_max;
        bool job_is_child; /* each job runs in a child, which may outlive the worker and has its environment
                            */
        bool heartbeats_at_change; /* sends a heartbeat whenever its work changes, too */
        bool counts_fetches;       /* as jobs: what it takes is told before it has it */
        bool quiet_read_late;      /* the quiet flag is read a round trip after the work state was copied */
        bool reports_start;        /* some of the processes report their start time */
        bool reports_birth;        /* reports when it registered, right before it shows that it has booted */
        usec_t heartbeat_idle, heartbeat_busy; /* intervals; 0: that of the release */
        usec_t record_expiry;

        bool shows_boot; /* title or threads show that it has booted */
        bool title_may_lack;
        unsigned titleless; /* share without a title, which shows nothing */
};

/* How the processes of a release behave; chance decides the rest. */
struct release {
        usec_t boot_min, boot_max;
        unsigned never_boots, crashes_booting, crashes_young;    /* per 100 */
        unsigned elsewhere;                                      /* per 100: heartbeats go to another Redis */
        unsigned wrapped, deaf, native_thread;                   /* per 100 */
        unsigned late_heartbeats, double_heartbeats, slow_trips; /* per 1000 */
        usec_t heartbeat_interval, shutdown_usec;
        usec_t job_gap; /* mean time between two jobs of a process */
        unsigned long_jobs, endless_jobs;
        unsigned unhooked, unsafe; /* of 100: loaded as a template, it goes on to work, or cannot be forked */
        usec_t long_max;
        uint64_t base_bytes, leak_per_sec;
};

/* A heartbeat as Redis has it. */
struct record {
        usec_t written_at; /* 0: there is none */
        bool lie;          /* invented by a reader, not in Redis */
        struct heartbeat heartbeat;
};

/* The result of a requested fork: a process, no answer, a process that dies, or a lack of memory or
 * processes. */
enum fork_fate { FORK_MADE, FORK_STICKS, FORK_DIES, FORK_LACKS };

/* A process that was started as a template, with what the shell knows of it. */
struct template_process {
        struct process *process;   /* the process that contains this */
        struct template *template; /* NULL: not known to sqmgr */
        uint64_t generation;
        bool unhooked, unsafe;
        bool awaits_start; /* begins its command only after an attempt to write the state */
        bool connected;    /* sqmgr still has its end of the channel */
        bool loaded, ready;
        usec_t ready_report_at; /* when sqmgr learns that it is ready */
        usec_t ended_at;        /* when sqmgr asked it to end; 0: never */

        /* The fork that sqmgr has requested. */
        unsigned index; /* 0: none */
        enum fork_fate fate;
        usec_t asked_at, fork_at;
        struct process *fork;  /* made, but unknown to sqmgr; NULL: none */
        usec_t fork_report_at; /* when sqmgr learns of the fork, or of its failure */
};

/* The process of a worker or a template, alone or below a wrapper. */
struct process {
        unsigned serial, fleet, index;
        struct release release;
        struct rng rng;
        usec_t next_at;

        /* The environment markers: set from launched_at on, visible in /proc from marked_at on, until a title
         * overwrites them. */
        unsigned mark_fleet, mark_index;
        uint64_t mark_generation;
        usec_t launched_at, marked_at;
        /* Its slot of the ledger, which it claims at claim_at unless sqmgr has claimed it. */
        struct ledger *ledger;
        struct ledger_claim claim;
        unsigned record;
        usec_t claim_at;
        bool titled;      /* its title overwrites the markers once it has booted */
        bool leftover;    /* a job has left a process behind, with the markers of this one */
        bool detached;    /* that leftover process leads a session of its own */
        bool left_behind; /* is such a leftover process itself, which sqmgr attached to */
        bool let_go; /* sqmgr may forget this process: no evidence showed that it is a worker, or it ends by
                        itself */
        bool unseen; /* its wrapper was known to have ended before it had booted: it is told from nothing
                      * that a job may have left behind */

        /* The main process, and the runner that sends heartbeats and runs jobs: the same process unless
         * wrapped. */
        pid_t pid, runner_pid;
        uint64_t start, runner_start;
        usec_t runner_boottime; /* start of the runner by CLOCK_BOOTTIME */
        bool wrapped, main_alive, runner_alive;
        usec_t wrapper_exit_at;
        /* The wrapper starts another runner when the first has ended (restarts), or had started two (twins).
         */
        bool restarts, twins;
        usec_t respawn_at;
        usec_t forgotten_at; /* when the shell learned that the runner that sent heartbeats has ended; 0:
                                never */
        bool knows_end;      /* the current runner was asked to exit */
        usec_t died_at;      /* when the last of its processes died */

        usec_t spawned_at, boot_at, crash_at, hang_until;
        bool booted, frozen, elsewhere, deaf, native_thread;
        bool uncaught, bare, titleless, reports_start; /* drawn from its behavior */
        usec_t booted_at;
        unsigned host; /* number of the host name at the time of its boot */
        char name[40]; /* its identity; "": not made yet */
        uint64_t jumped_bytes, leak_per_sec;

        usec_t job_at, fetched_until; /* a fetched job is running, but not registered before fetched_until */
        usec_t fetched_job_end;
        usec_t job_end[JOBS_MAX];
        unsigned n_jobs;
        uint64_t wakes; /* how often it has woken up: to take a job, to end one, or for a heartbeat */
        usec_t woken_at;

        usec_t quiet_from, quiet_since, threads_gone_at; /* when the quiet signal is handled; when it was
                                                            handled; when idle threads exit */
        bool quiet;
        usec_t term_from, stop_by, exit_at;
        bool stopping;

        usec_t heartbeat_at, write_at;
        unsigned copied_busy;
        bool copied_quiet;
        unsigned title_busy; /* set right before copied_busy is */
        bool title_quiet;
        struct record records[RECORDS_MAX]; /* the newest first */
        struct record frozen_record;
        bool listed;     /* in the set of identities: a clean exit removes it, death does not */
        bool registered; /* has written its time of registration once */

        /* What the shell knows. */
        struct worker *worker; /* NULL: unknown */
        unsigned identity; /* serial + 1 of the process whose heartbeats count as this worker's; 0: unknown */
        unsigned poll_items;
        struct record answer;
        /* The last answers, the newest first, and when they were given: a reader may repeat one. */
        struct record given[GIVEN_MAX];
        usec_t given_at[GIVEN_MAX];
        bool answered, main_reported, runner_reported;
        usec_t exit_report_at;
        uint64_t slept_wakes; /* wakes at slept_at: if unchanged, the process has slept since */
        usec_t slept_at;

        /* What the invariants are checked against: what was read of the process, and done to it. */
        usec_t lied_at;         /* when sqmgr last read a lie about the process; 0: never */
        usec_t read_written_at; /* when the newest heartbeat read so far was written */
        uint64_t read_heartbeat;
        bool rebased; /* the next reading has no earlier one to compare with */
        bool shown_title, shown_quiet;
        unsigned shown_busy;
        usec_t first_read_at, changed_at;
        uint64_t held_bytes; /* its own memory when the machine's memory was last read; 0: it did not exist */
        uint64_t read_bytes; /* the last sample of its memory; 0: none since it became active */
        bool marked; /* was read since time, Redis and sqmgr are trusted: later readings are compared with
                        that one */
        unsigned trusted_reads; /* changes of the heartbeat since then */
        bool hung;              /* silent for hang_after, and still silent */
        unsigned idle_row;      /* number of distinct readings in a row with quiet and 0 busy */
        bool read_list_empty, counted_failure;
        usec_t title_first_at;  /* when a title that shows a boot was first read; 0: never */
        usec_t title_read_at;   /* last reading of the title while its heartbeat was unknown */
        usec_t title_idle_from; /* first reading of the title in a row with quiet and 0 busy */
        bool threads_counted;   /* all job threads that its title claims were seen */
        bool pressed;           /* was quieted because of memory pressure */
        unsigned quiets, stops;
        unsigned reported_to_exit; /* how often the runner was asked to exit */
        usec_t term_at, kill_at;
        usec_t cut_at; /* when its drain was cut off */
        bool refused;  /* was seen not to catch the quiet signal */
        bool drains;   /* got its stop signal as it was quieted */
        usec_t tried_at,
                try_at; /* first and last of the tries in a row to quiet it that the idle check refused */

        bool is_template; /* false once it turns out to be a worker */
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
        /* Replace some of the other acts in a world with templates. */
        ACT_TEMPLATE_KILL,
        ACT_TEMPLATE_FREEZE,
        ACT_FORK_LACKS,
        ACT_FORK_KILLS_SQMGR,
        /* In some worlds these replace some of the other acts. */
        ACT_READER_DIES,
        ACT_READER_DELAYS,
        ACT_READER_REPEATS,
        ACT_READER_LIES,
        _ACT_MAX,
};

struct act {
        usec_t at;
        enum act_kind kind;
        uint64_t a, b, c;
        bool left_out; /* while a failing schedule is reduced */
};

/* How a reader lies. */
enum lie { LIE_IDLE, LIE_BUSY, LIE_PAST, LIE_FUTURE, LIE_FOREIGN, _LIE_MAX };

/* The reader of a fleet's server. */
struct reader_sim {
        struct rng rng;
        usec_t delays_until, repeats_until, lies_until;
        usec_t delay_max;
        enum lie lie;
        usec_t lied_at;  /* of the last lie */
        usec_t dies_at;  /* USEC_INFINITY: never */
        unsigned deaths; /* deaths that are to follow, each soon after the previous one */
        unsigned failures;
        usec_t connected_at;
};

struct link {
        bool up;
        usec_t up_at;
        usec_t next_at; /* when the next attempt to connect is due, or the answer is overdue */
        bool asked;
        usec_t asked_at, served_at, answer_at;
        bool served;
        struct match match;
};

/* A fleet of the world, with what is known of it from outside the core. */
struct fleet_sim {
        struct fleet_settings settings[2]; /* the ini file, and another version of it for reloads */
        unsigned in_force;
        const struct behavior *behavior;
        struct release release, good;
        struct link link; /* always up if the fleet needs no Redis */
        struct reader_sim reader;
        unsigned failures; /* failed new workers in a row, as the world saw them */
        usec_t failed_at;
        uint64_t failed_generation;
        usec_t p6_since, gap_since;
        usec_t fresh_since; /* since when at least one of its workers has fresh heartbeats; 0: none has */
        uid_t uid;
        usec_t hour_at;
        unsigned hour_starts, burst_starts;
        unsigned hour_target; /* the highest target in that hour */
        usec_t burst_at;
        uint64_t reloaded_generation; /* the last generation that a reload began, not a restart */
        unsigned count;               /* the count that scaling applied; 0: none */
        struct rng demand;            /* generator for its queues */
        struct rng heads;             /* generator for the oldest jobs in its queues */
        usec_t demand_until;
        unsigned waiting;
        bool head_unknown; /* the oldest job is too large to be read */
        bool preloads;     /* in either version of its settings */
        usec_t load_since; /* since when a template must be loaded; 0: none must */
        usec_t slowest_fork;
        unsigned troubles; /* failures of templates since the last successful fork */
        bool excused;      /* sqmgr has seen a template that could not be forked, or that was a worker */
        unsigned left; /* workers that left because of memory pressure, and are not replaced while it lasts */
        bool written;  /* the rest is so, as last written: what a new sqmgr must go on with */
        uint64_t written_generation, written_newest;
        enum fleet_order written_order;
        uint64_t written_hash;
        unsigned written_count, written_for, written_scaled;
        enum rollout_state written_rollout;
        char name[16];
};

struct shell {
        bool running;
        bool dying; /* killed in the middle of a pass: the rest of the pass does nothing */
        struct settings settings;
        struct fleet_settings *fleet_list[FLEETS_MAX];
        struct world *world;
        struct pass pass;
        usec_t wake_at, start_at, stalled_until;
        bool timer_first;
        struct adoption *adoption; /* NULL: the search for workers of an earlier sqmgr has ended */
        usec_t search_at;          /* the next, where it goes on */
        unsigned hosts,
                written_hosts; /* host names that sqmgr has seen, a bit each; those in the state file */
        uint8_t *state;        /* the state file */
        size_t state_size;
        uint64_t written; /* check_digest() of its contents */
        uint64_t n_written;
        bool behind; /* the last attempt to write it failed */
        struct ledger ledger;
        void *ledger_memory;
        bool ledger_lost; /* the ledger ends with this sqmgr, or is lost when sqmgr is killed */
        unsigned ledger_losses;
        usec_t behind_since;
        int kill_in; /* steps until sqmgr is killed; < 0: never */
        unsigned kill_fate;
        int kill_forking; /* the same, counted from the next fork on */
        usec_t down_usec;
        unsigned deaths;
        usec_t trusted_at; /* when sqmgr started, or the last disturbance of time ended */
        usec_t iterated_at, seen_suspended;
        usec_t deferred_at; /* the first of the passes in a row that were deferred; 0: the last pass was
                               complete */
        int64_t seen_stepped;
};

/* A process on another host that has the name of this one. */
struct clone {
        unsigned serial, fleet; /* fleet: the one whose Redis gets its heartbeats */
        pid_t pid;
        unsigned host;
        struct rng rng;
        usec_t next_at, end_at;
        unsigned busy;
        bool quiet, listed;
        uint64_t born_usec; /* as its record says */
        struct record record, answer;
};

struct sim {
        uint64_t seed;
        struct rng rng;
        usec_t now, begun_at, calm_at, end_at;
        bool calm;
        usec_t settled_at, swept_at;
        unsigned same; /* number of steps in a row at the same time */
        uint64_t actions, calm_actions;

        usec_t suspended_usec;
        int64_t stepped_usec;
        usec_t stepped_back_at;         /* 0: never */
        usec_t paused_at, paused_until; /* while the whole machine stands still */
        usec_t fork_fails_until, fork_lacks_until, proc_fails_until, disk_full_until;
        uint64_t total_bytes;
        uint64_t read_left; /* free memory when it was last read; 0: not read yet by this sqmgr */
        unsigned host;      /* number of the current host name */
        bool service;       /* sqmgr has a control group of its own */
        bool strangers;     /* there are foreign processes that look like workers */

        usec_t down_until, silent_until, slow_until, garbage_until, frozen_until, lags_until;
        usec_t slow_usec;
        bool frozen;
        unsigned lag;

        struct fleet_sim fleets[FLEETS_MAX];
        unsigned n_fleets;
        struct process **processes;
        size_t n_processes, processes_allocated;
        unsigned serial;
        pid_t next_pid;
        struct shell shell;

        /* Times of memory pressure. */
        struct squeeze {
                usec_t from, until;
        } squeezes[3];
        struct rng squeeze_rng;
        struct squeezed {
                bool high; /* the readings show memory pressure */
                usec_t turned_at, since;
                unsigned quieted;
        } squeezed;

        bool cloned; /* another host has the name of this one */
        struct rng clone_rng;
        struct clone clones[CLONES_MAX];
        unsigned n_clones;

        struct act acts[SCHEDULE_MAX];
        size_t n_acts, next_act;

        uint64_t n_ticks, n_started, n_interrupted_by_others, n_jobs;

        bool broken;
        char invariant[16];
        char detail[512];
        struct story *story; /* the recorder of the run; NULL: none */
};

/* The source of a world and its schedule. */
struct origin {
        uint64_t seed;
        const uint8_t *bytes; /* used up before random numbers are; borrowed until the end of the run */
        size_t size;
};

/* generate.c: makes the world and its schedule. Free with sim_close(). */
void sim_open(struct sim *sim, const struct origin *origin);
/* Returns an origin whose seed is the first of the bytes. */
struct origin origin_of_bytes(const uint8_t *bytes, size_t size);
void sim_close(struct sim *sim);
/* world.c: runs to the end of the world or to the first violation. */
void sim_run(struct sim *sim);
/* Runs until that time or to the first violation. */
void sim_run_to(struct sim *sim, usec_t until);

/* scaling.c */
void scaling_open(struct sim *sim);
/* Call when sqmgr has started and continued from the saved state. */
void scaling_started(struct sim *sim);
/* Reads the queues of the fleet and checks the resulting count. */
void scaling_look(struct sim *sim, unsigned number);
/* Returns the current count of the fleet, ignoring an operator's order. */
unsigned scaling_count(const struct sim *sim, unsigned number);

/* process.c */
struct process *process_spawn(struct sim *sim, const struct fleet *fleet, unsigned index);
/* Has the process claim this slot of the ledger. */
void process_claims(struct sim *sim, struct process *process, unsigned record);
/* Forks the requested worker from a template. The fork waits for process_go(). */
struct process *process_fork(struct sim *sim, const struct template_process *from);
void process_go(struct sim *sim, struct process *process);
void process_exits(struct sim *sim, struct process *process, const char *how);
void process_step(struct sim *sim, struct process *process);
/* Adds the process that a job of the process with this serial left behind. Returns NULL if there is none. */
struct process *process_left_behind(struct sim *sim, pid_t serial, uint64_t start);
bool process_is_alive(const struct process *process);
unsigned process_jobs(const struct process *process);
unsigned process_threads(const struct sim *sim, const struct process *process);
uint64_t process_bytes(const struct sim *sim, const struct process *process);
/* Returns process_bytes() without the memory shared with the template. */
uint64_t process_own_bytes(const struct sim *sim, const struct process *process);
/* Returns the free memory of the machine. */
uint64_t process_bytes_left(const struct sim *sim);
/* Kills the largest process if no memory is left, like the OOM killer. */
void process_oom(struct sim *sim);
/* Returns the traits of its framework. */
const struct traits *process_traits(const struct sim *sim, const struct process *process);
void process_woken(const struct sim *sim, struct process *process);
/* Sends signo to the runner, or to the whole group. Returns 0 or a positive errno. */
int process_signal(struct sim *sim, struct process *process, int signo, bool group);
void process_kill(struct sim *sim, struct process *process, bool main_only);
/* Sends TERM to the wrapper alone. */
void process_end_wrapper(struct sim *sim, struct process *process);

/* pressure.c */
void pressure_open(struct sim *sim);
void pressure_look(struct sim *sim);
void pressure_forgotten(struct sim *sim);
void pressure_continued(struct sim *sim);
void pressure_left(struct sim *sim, const struct process *process);
/* Returns true if a fleet with this many living processes must start none because of memory pressure. */
bool pressure_holds(const struct sim *sim, unsigned fleet, unsigned living, unsigned target);
void pressure_quieted(struct sim *sim, const struct action *action, struct process *process);

/* template.c: the processes of templates, and the shell's part. */
void templates_open(struct sim *sim);
void template_step(struct sim *sim, struct process *process);
usec_t template_next_at(const struct process *process);
/* Returns when sqmgr next learns something from the template. */
usec_t template_reports_at(const struct process *process);
void template_reports(struct sim *sim, struct process *process);
/* Call when a process that was started as a template, or its wrapper, has ended. */
void template_exit_step(struct sim *sim, struct process *process);
void template_looks(struct sim *sim, struct fleet *fleet, bool fast);
/* Execute actions like on_action(). Return true if something changed. */
bool template_act(struct sim *sim, const struct action *action);
bool template_fork(struct sim *sim, const struct action *action);
bool template_go(struct sim *sim, const struct action *action);
/* Call when sqmgr has died: all channels close. */
void template_orphaned(struct sim *sim, struct process *process);
void templates_adopt(struct sim *sim, struct fleet *fleet, const struct state_fleet *saved);
/* Gives the process the good release, for the calm. */
void template_repair(struct sim *sim, struct process *process);
/* Call after an attempt to write the state: templates that wait for it begin their command. */
void templates_begin(struct sim *sim);
/* Call once all processes in the state are adopted. read: the state could be read. */
void template_unknown(struct sim *sim, bool read);
void template_befalls(struct sim *sim, const struct act *act);

/* behavior.c */
const struct behavior *behavior_choose(struct rng *rng, const struct traits **ret_traits);
const struct behavior *process_behavior(const struct sim *sim, const struct process *process);
/* Gives a new process the behavior of its fleet. */
void behavior_give(const struct sim *sim, struct process *process);
void behavior_become_quiet(struct sim *sim, struct process *process);
/* The process handles its stop signal. */
void behavior_stop(struct sim *sim, struct process *process);
/* Delivers a signal other than KILL to a living runner. */
void behavior_signal(struct sim *sim, struct process *process, int signo);

/* evidence.c: what the core is shown. */
bool fleet_is_local(const struct sim *sim, unsigned fleet); /* the heartbeats need no Redis */
bool fleet_is_bare(const struct sim *sim, unsigned fleet);  /* there are no heartbeats */
/* Returns true if a process that shows no boot has certainly not booted. */
bool evidence_denies_boot(const struct sim *sim, const struct process *process);
bool evidence_booted(const struct sim *sim, const struct process *process);
bool evidence_catches(const struct process *process); /* it has a handler for the quiet signal */
/* Returns true if the title shows busy and quiet. */
bool evidence_title(const struct sim *sim, const struct process *process, unsigned *ret_busy,
                    bool *ret_quiet);
/* Completes a heartbeat that was read, as the daemon does. */
void evidence_complete(struct sim *sim, const struct process *process, struct heartbeat *heartbeat);
bool evidence_idle(struct sim *sim, struct process *process);
/* Returns the heartbeat of a worker that needs no Redis; false: none. */
bool evidence_local(struct sim *sim, const struct process *process, struct record *ret);

/* clone.c */
void clones_open(struct sim *sim);
/* Call when a worker starts: the other host may get a process with the same pid. */
void clone_of(struct sim *sim, const struct process *process);
usec_t clones_next_at(const struct sim *sim);
void clones_step(struct sim *sim);
/* Removes all clones from Redis. heartbeat_on: they continue to send heartbeats. */
void clones_end(struct sim *sim, bool heartbeat_on);
/* Call when the wall clock was stepped back: times of registration from before prove nothing. */
void clones_lose_births(struct sim *sim);
void clones_serve(struct sim *sim, unsigned fleet);
/* Returns NULL if the serial is not that of a clone. */
const struct clone *clone_find(const struct sim *sim, unsigned serial);

/* redis.c */
bool redis_answers(const struct sim *sim);
usec_t redis_trip(struct sim *sim, struct rng *rng);
void redis_write(struct sim *sim, struct process *process, const struct heartbeat *heartbeat);
/* Returns what a reader gets now; written_at 0: nothing. */
struct record redis_read(struct sim *sim, struct process *process);
void redis_fail_over(struct sim *sim, unsigned lag);
void redis_freeze(struct sim *sim);
void redis_empty(struct sim *sim);

/* reader.c: the processes that query Redis for sqmgr. */
void readers_open(struct sim *sim);
void reader_befalls(struct sim *sim, const struct act *act);
void readers_calm(struct sim *sim);
/* Returns the answer to a query about this worker. record: what Redis holds. */
struct record reader_answers(struct sim *sim, struct process *process, struct record record);
/* Returns the heartbeat of the identity that the reader has invented, or NULL. */
const struct record *reader_foreign(const struct sim *sim, unsigned fleet);
/* Returns how much later than Redis the reader answers. */
usec_t reader_delay(struct sim *sim, unsigned fleet);
/* The process of the reader has connected. */
void reader_connected(struct sim *sim, unsigned fleet);
/* A process of the reader begins, which has no old answers. */
void reader_started(struct sim *sim, unsigned fleet);
/* The process of the reader has ended. Returns the time until the next one is connected. */
usec_t reader_died(struct sim *sim, unsigned fleet);

/* shell.c: the part of src/daemon around the core; adopt.c: its start and end. */
usec_t shell_next_at(const struct sim *sim);
void shell_step(struct sim *sim);
void shell_iterate(struct sim *sim);
void shell_start(struct sim *sim);
void shell_die(struct sim *sim);
/* Asks a fleet's Redis what is to be looked at, where it is there and nothing was asked yet. */
void shell_ask(struct sim *sim, unsigned fleet);
/* Marks a step of a pass at which sqmgr may be killed. Returns true if it was, here or before. */
bool shell_dies_here(struct sim *sim);
/* Writes the state file. Returns false on failure. */
bool shell_save(struct sim *sim);
/* Gives the worker of this process this slot of the ledger; 0: a new one. */
void shell_record(struct sim *sim, struct process *process, unsigned record);
/* Gives a volatile ledger a file, if the disk has space. */
void shell_keep_ledger(struct sim *sim);
/* Searches once more for the workers of an earlier sqmgr. */
void shell_search(struct sim *sim);

/* identify.c */
void identify(struct sim *sim, unsigned fleet);
struct record identify_answer(const struct sim *sim, const struct process *process);
void identify_forget(struct sim *sim, struct process *process);
void identify_known(struct sim *sim, struct process *process, const char *text);
/* The names of this host under which a worker without a known identity may send heartbeats. */
void identify_known_hosts(struct sim *sim, const struct process *process, const char *names);
/* Call when a worker was added to the fleet. */
void identify_added(struct sim *sim, unsigned fleet);
const char *identify_text(const struct worker *worker, void *userdata);

/* acts.c */
void act_apply(struct sim *sim, const struct act *act);
void act_calm(struct sim *sim);
const char *act_text(const struct act *act, char text[static 128]);

/* check.c */
/* Counts a start, and checks that there are not too many in a row. */
void check_flapping(struct sim *sim, const struct fleet *fleet);
unsigned check_number(const struct sim *sim, const struct fleet *fleet);
void check_action(struct sim *sim, const struct action *action);
/* Call right before a signal that ends an orphan. */
void check_remainder(struct sim *sim, const struct process *process);
/* Call when the shell has learned that the runner that sent heartbeats has ended: later readings are of
 * another one. */
void check_succeeded(struct process *process);
void check_signalled(struct sim *sim, const struct action *action, struct process *process);
/* Call right before the process is quieted. */
void check_reported(struct sim *sim, const struct action *action, const struct process *process);
/* Call instead if the process is not quieted, because the idle check refused it. */
void check_not_idle(const struct sim *sim, struct process *process);
/* Checks that a process which may not be a worker gets no signal, and is given up only if it is none. */
void check_unproven(struct sim *sim, const struct action *action, struct process *process, bool signals);
void check_turn(struct sim *sim);
/* Call as time passes: checks which workers count as hung. */
void check_hung(struct sim *sim);
/* Checks that a living worker was adopted as the one that it was. */
void check_adopted(struct sim *sim, const struct process *process, const struct worker *known,
                   const struct worker *worker);
/* Checks that a process that was found is the worker that it is adopted as. */
void check_found(struct sim *sim, const struct process *process, const struct claimant *claimant,
                 const struct worker *worker);
/* Call after a search. whole: the search was complete, so no starts may be held any more. */
void check_held(struct sim *sim, bool whole);
/* Returns a hash of all that a new sqmgr must know. */
uint64_t check_digest(const struct sim *sim);
/* Call when the saved state was restored: checks it. */
void check_continued(struct sim *sim);
void check_command(struct sim *sim, struct fleet *fleet, bool holds, const char *what);
/* written_at: when the simulated process wrote the heartbeat. */
void check_reading(struct sim *sim, struct process *process, const struct heartbeat *heartbeat,
                   usec_t written_at);
/* From now on earlier readings are no evidence. fleet: UINT32_MAX: all fleets. */
void check_distrust(struct sim *sim, unsigned fleet);
/* Call when a new sqmgr begins, which has read nothing. */
void check_began(struct sim *sim);
void check_death(struct sim *sim, struct process *process);
bool check_has_lied(const struct sim *sim, unsigned fleet);
bool check_is_lied_of(const struct sim *sim, const struct process *process);
/* Returns true if everything has settled in the calm. must: not to have settled is a violation. */
bool check_settled(struct sim *sim, bool must);

/* check_title.c */
/* Returns true if no heartbeat of the worker is known, but its title was read recently, while time, Redis and
 * sqmgr were trusted. */
bool check_title_tells(const struct sim *sim, const struct process *process);
/* Call when the title of a worker without known heartbeats was read. */
void check_title(struct sim *sim, struct process *process, bool known, bool idle);
/* The number of workers whose heartbeats are not known, and that have taken jobs for ready_after by their
 * titles. */
unsigned check_title_ready(const struct sim *sim, unsigned fleet, const struct process *except);
/* Returns check_title_tells(), and checks what quieting a worker by its title requires. */
bool check_title_quiet(struct sim *sim, const struct process *process);
void check_title_idle(struct sim *sim, const struct process *process);

/* check_template.c */
/* Returns true if sqmgr need not know of this process. */
bool check_is_unowned(const struct process *process);
/* Returns the number of requested forks of this fleet that sqmgr does not know yet, of this generation and
 * later ones. */
unsigned check_forking(const struct sim *sim, unsigned fleet, uint64_t generation);
/* Returns the number of template processes that live, or count as alive. */
unsigned check_living_templates(const struct sim *sim, unsigned fleet);
/* Returns true if a template must be loaded, and memory is too short for it. */
bool check_load_lacks_memory(const struct sim *sim, unsigned fleet);
/* Returns true if the workers of the fleet must be forked, as far as the world knows. */
bool check_preloads(const struct sim *sim, unsigned fleet);
/* Returns the ready template of the current generation that sqmgr knows. newest false: the oldest one of
 * another generation. NULL: none. */
const struct template_process *check_template(const struct sim *sim, unsigned fleet, bool newest);
/* Checks a start: the worker must be forked from the right template, and only once. */
void check_fork(struct sim *sim, const struct action *action);
/* Call right before the fork may continue. */
void check_go(struct sim *sim, const struct process *process);
/* Call right before the template is asked to end, and before it is killed because it did not. */
void check_template_end(struct sim *sim, const struct template_process *template);
void check_template_kill(struct sim *sim, const struct template_process *template);
/* A worker that is known to have waited for the word to go on: failures were told of its fleet before it was
 * taken over. */
void check_unborn(struct sim *sim, const struct worker *known, const struct worker *worker,
                  unsigned failures);
unsigned check_failures(const struct fleet *fleet);
/* Counts a failure of the template. fails: the release is at fault, as far as can be known. */
void check_template_trouble(struct sim *sim, const struct template_process *template, bool fails);
/* Call when sqmgr has learned of a fork: it is a worker from now on. */
void check_hello(struct sim *sim, const struct process *process);
void check_templates(struct sim *sim);
bool check_templates_settled(const struct sim *sim, unsigned fleet);

/* story.c */
void violate(struct sim *sim, const char *invariant, const char *format, ...) _printf_(3, 4);
void report(struct sim *sim, const char *format, ...) _printf_(2, 3);
const char *process_name(const struct sim *sim, const struct process *process);
