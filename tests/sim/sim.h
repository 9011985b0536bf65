/* SPDX-License-Identifier: MIT */
/* A simulated world for the core: workers, Redis, the host and the operator are models driven by one seed;
 * the core that observes and decides is the real one. Everything that happens is a function of the seed and
 * of the schedule made from it. */
#pragma once

#include "model/adoption.h"
#include "model/command.h"
#include "model/match.h"
#include "model/observe.h"
#include "model/pass.h"
#include "model/rollout.h"
#include "model/state.h"
#include "rng.h"

#define FLEETS_MAX   2
#define JOBS_MAX     5
#define RECORDS_MAX  4
#define SCHEDULE_MAX 40
#define MEGABYTE     ((uint64_t)1 << 20)

struct sim;

/* How the processes of a release behave, apart from chance. */
struct release {
        usec_t boot_min, boot_max;
        unsigned never_boots, crashes_booting, crashes_young; /* of 100 */
        unsigned elsewhere;                                   /* of 100: beats where nobody looks */
        unsigned wrapped, deaf, native_thread;                /* of 100 */
        unsigned late_beats, double_beats, slow_trips;        /* of 1000 */
        usec_t beat_interval, shutdown_usec;
        usec_t job_gap; /* mean time between two jobs of a process */
        unsigned long_jobs, endless_jobs;
        usec_t long_max;
        uint64_t base_bytes, leak_per_sec;
};

/* A heartbeat as it stands in Redis. */
struct record {
        usec_t written_at; /* 0: there is none */
        struct heartbeat beat;
};

/* One worker's process, or a wrapper and the process under it. */
struct process {
        unsigned serial, fleet, index;
        struct release release;
        struct rng rng;
        usec_t next_at;

        /* What its environment says, from launched_at on, and shows, from marked_at on, until its title grows
         * over it. */
        unsigned mark_fleet, mark_index;
        uint64_t mark_generation;
        usec_t launched_at, marked_at;
        bool titled;   /* that happens once it has booted */
        bool leftover; /* a job of it left a process behind, which carries its environment */
        bool detached; /* as a leader of its own */

        /* The main process, and the runner that beats and runs jobs: the same one unless wrapped. */
        pid_t pid, runner_pid;
        uint64_t start, runner_start;
        bool wrapped, main_alive, runner_alive;
        usec_t wrapper_exit_at;
        usec_t died_at; /* the last of them */

        usec_t spawned_at, boot_at, crash_at, hang_until;
        bool booted, frozen, elsewhere, deaf, native_thread;
        usec_t booted_at;
        uint64_t jumped_bytes, leak_per_sec;

        usec_t job_at, fetched_until; /* a fetched job is running, but not registered before fetched_until */
        usec_t fetched_job_end;
        usec_t job_end[JOBS_MAX];
        unsigned n_jobs;

        usec_t quiet_from, quiet_since, threads_gone_at; /* when TSTP is handled; was; idle threads exit */
        bool quiet;
        usec_t term_from, stop_by, exit_at;
        bool stopping;

        usec_t beat_at, write_at;
        unsigned copied_busy;
        struct record records[RECORDS_MAX]; /* the newest first */
        struct record frozen_record;
        bool listed; /* in the set of identities: a clean exit takes it out, death does not */

        /* The shell's side. */
        struct worker *worker; /* NULL: not known to it */
        unsigned identity;     /* serial + 1 of the process whose heartbeat is read as its; 0: not known */
        unsigned looks;
        struct record answer;
        bool answered, main_told, runner_told;
        usec_t exit_tell_at;

        /* What the invariants are checked against: what was read of it, and done to it. */
        uint64_t read_beat;
        usec_t first_read_at, changed_at;
        bool marked;            /* read since time, Redis and sqmgr are trusted: change is judged from that */
        unsigned trusted_reads; /* changes seen since then */
        bool hung;              /* silent for hang_after, and not heard of since */
        unsigned idle_row;      /* distinct readings in a row: quiet, 0 busy */
        bool read_list_empty, counted_failure;
        unsigned quiets, stops;
        unsigned told_to_exit; /* how often its runner was */
        usec_t term_at, kill_at;
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
        ACT_FORK_FAILS,
        ACT_PROC_FAILS,
        ACT_DISK_FULL,
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
        _ACT_MAX,
};

struct act {
        usec_t at;
        enum act_kind kind;
        uint64_t a, b, c;
        bool left_out; /* by shrinking */
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

/* A fleet of the world, and what is known of it from outside the core. */
struct fleet_sim {
        struct fleet_settings settings[2]; /* the ini file, and what a reload would make of it */
        unsigned in_force;
        struct release release, good;
        struct link link;
        unsigned failures; /* of new workers in a row, as the world saw them */
        usec_t failed_at;
        uint64_t failed_generation;
        usec_t p6_since, gap_since;
        usec_t heard_since; /* at least one of its workers is heard; 0: none is */
        uid_t uid;
        usec_t hour_at;
        unsigned hour_starts, burst_starts;
        usec_t burst_at;
        uint64_t reloaded_generation; /* that a reload made, not a restart */
        /* As last written: what a new sqmgr must go on with. */
        uint64_t written_generation;
        enum fleet_order written_order;
        uint64_t written_hash;
        unsigned written_count, written_for;
        enum rollout_state written_rollout;
        char name[16];
};

struct shell {
        bool running;
        bool dying; /* killed in the middle of a pass: nothing more comes of the rest of it */
        struct settings settings;
        struct fleet_settings *fleet_list[FLEETS_MAX];
        struct world *world;
        struct pass pass;
        usec_t wake_at, start_at, stalled_until;
        bool timer_first;
        struct adoption *adoption; /* NULL: all that lives is known */
        usec_t search_at;          /* the next, where it goes on */
        uint8_t *state;            /* the file */
        size_t state_size;
        uint64_t written; /* check_digest() of what it tells */
        bool behind;      /* it could not be written at last */
        int kill_in;      /* steps; < 0: never */
        unsigned kill_fate;
        usec_t down_usec;
        unsigned deaths;
        usec_t trusted_at; /* the last disturbance of time ended, or sqmgr began */
        usec_t turn_at, seen_suspended;
        int64_t seen_stepped;
};

struct sim {
        uint64_t seed;
        struct rng rng;
        usec_t now, begun_at, calm_at, end_at;
        bool calm;
        usec_t settled_at;
        uint64_t actions, calm_actions;

        usec_t suspended_usec;
        int64_t stepped_usec;
        usec_t fork_fails_until, proc_fails_until, disk_full_until;
        uint64_t total_bytes;
        bool service;   /* sqmgr has a control group in which nothing else is */
        bool strangers; /* processes of others that look like workers of ours */

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

        struct act acts[SCHEDULE_MAX];
        size_t n_acts, next_act;

        /* Totals. */
        uint64_t n_ticks, n_started, n_interrupted_by_others, n_jobs;

        bool broken;
        char invariant[16];
        char detail[512];
        struct story *story; /* NULL: nobody listens */
};

/* generate.c: the world and its schedule. */
void sim_open(struct sim *sim, uint64_t seed);
void sim_close(struct sim *sim);
/* world.c: runs it to its end, or to the first violation. */
void sim_run(struct sim *sim);

/* process.c */
struct process *process_spawn(struct sim *sim, const struct fleet *fleet, unsigned index);
void process_step(struct sim *sim, struct process *process);
bool process_lives(const struct process *process);
unsigned process_jobs(const struct process *process);
unsigned process_threads(const struct sim *sim, const struct process *process);
uint64_t process_bytes(const struct sim *sim, const struct process *process);
/* What its framework is like. */
const struct traits *process_traits(const struct sim *sim, const struct process *process);
/* signo to the runner, or to the whole group. Returns 0 or a positive errno. */
int process_signal(struct sim *sim, struct process *process, int signo, bool group);
void process_kill(struct sim *sim, struct process *process, bool main_only);

/* redis.c */
bool redis_answers(const struct sim *sim);
usec_t redis_trip(struct sim *sim, struct rng *rng);
void redis_write(struct sim *sim, struct process *process, const struct heartbeat *beat);
/* What a reader gets now; written_at 0: nothing. */
struct record redis_read(struct sim *sim, struct process *process);
void redis_fail_over(struct sim *sim, unsigned lag);
void redis_freeze(struct sim *sim);
void redis_empty(struct sim *sim);

/* shell.c: what src/daemon does around the core; adopt.c: its begin and its end. */
usec_t shell_next_at(const struct sim *sim);
void shell_step(struct sim *sim);
void shell_turn(struct sim *sim);
void shell_start(struct sim *sim);
void shell_die(struct sim *sim);
/* One step on the way of a pass; true where sqmgr was killed at it, or before. */
bool shell_dies_here(struct sim *sim);
/* Writes the state file; starting: as state_pack() takes it. Returns whether it was written. */
bool shell_save(struct sim *sim, const struct plan *starting);
/* One more search for the workers of an earlier sqmgr. */
void shell_search(struct sim *sim);

/* identify.c */
void identify(struct sim *sim, unsigned fleet);
struct record identify_answer(const struct sim *sim, const struct process *process);
void identify_forget(struct sim *sim, struct process *process);
void identify_known(struct process *process, const char *text);
const char *identify_text(const struct worker *worker, void *userdata);

/* acts.c */
void act_apply(struct sim *sim, const struct act *act);
void act_calm(struct sim *sim);
const char *act_text(const struct act *act, char text[static 128]);

/* check.c */
unsigned check_number(const struct sim *sim, const struct fleet *fleet);
void check_action(struct sim *sim, const struct action *action);
void check_signalled(struct sim *sim, const struct action *action, struct process *process);
void check_turn(struct sim *sim);
/* Time has passed. */
void check_hung(struct sim *sim);
/* A worker that lives is the one that it was. */
void check_adopted(struct sim *sim, const struct process *process, const struct worker *known,
                   const struct worker *worker);
/* One that was found is the worker that it is taken for. */
void check_found(struct sim *sim, const struct process *process, const struct claimant *claimant,
                 const struct worker *worker);
/* Of what a new sqmgr must know: another one where anything of it is another. */
uint64_t check_digest(const struct sim *sim);
/* What was written is in force again. */
void check_continued(struct sim *sim);
void check_command(struct sim *sim, struct fleet *fleet, bool holds, const char *what);
void check_reading(struct sim *sim, struct process *process, const struct heartbeat *beat);
/* What was read so far is no evidence any more; fleet UINT32_MAX: of all. */
void check_distrust(struct sim *sim, unsigned fleet);
void check_death(struct sim *sim, struct process *process);
/* Calm: has everything settled? Where it must have, and has not, that is a violation. */
bool check_settled(struct sim *sim, bool must);

/* story.c */
void violate(struct sim *sim, const char *invariant, const char *format, ...) _printf_(3, 4);
void tell(struct sim *sim, const char *format, ...) _printf_(2, 3);
const char *process_name(const struct sim *sim, const struct process *process);
