/* SPDX-License-Identifier: MIT */
/* A simulated world for tests of the core: a clock driven by hand, a Redis that comes and goes, and processes
 * that beat, work and exit. The simulator (tests/sim) checks each action against the promises; here a test
 * says which actions it expects. */
#pragma once

#include "decide/pass.h"
#include "model/counts.h"
#include "settings/settings.h"
#include "unit.h"

struct fleet;
struct template;
struct worker;
struct world;

/* How a worker's process behaves. */
struct process {
        usec_t started_at;
        usec_t boot_usec;   /* from its start to its first beat; USEC_INFINITY: never */
        usec_t die_usec;    /* from its start to its death by itself; USEC_INFINITY: none */
        unsigned busy;      /* jobs that it truly runs */
        bool quiet;         /* was quieted, and accepts no new job */
        bool hung;          /* lives, but its beat has stopped */
        bool silent;        /* the tests hand in its beats themselves: test_heartbeat() */
        bool deaf;          /* ignores TERM */
        bool native_thread; /* a thread of a job's that never goes */
        bool works;         /* without a heartbeat or title, /proc shows that it may run jobs */
        uint64_t memory_bytes;
        bool stopping, killed;
        bool saved; /* the state has told of it */

        usec_t next_heartbeat_at;
        unsigned busy_copied; /* its work state, copied before the beat is written, as Sidekiq does */
        uint64_t sent_usec;
        unsigned busy_written;
        bool quiet_written;
};

/* How a template's process behaves. */
struct template_process {
        usec_t started_at;
        usec_t load_usec;       /* from its start until it is ready; USEC_INFINITY: never */
        usec_t die_usec;        /* from its start to its death by itself; USEC_INFINITY: none */
        usec_t fork_usec;       /* from a request until the fork is there; USEC_INFINITY: never */
        int fork_error;         /* what a fork fails with; 0: none does */
        const char *fork_fails; /* why it fails of its own; NULL: it does not */
        const char *unsafe;     /* why it cannot be forked; NULL: it can */
        const char *log_tail;   /* what it says as it dies; NULL: nothing */
        bool running_jobs;      /* once it has loaded it is a worker */
        bool held;              /* it is stopped, or waits for a disk */
        bool deaf;              /* ignores being asked to end */
        uint64_t memory_bytes;
        bool ending, killed;
};

struct test_world {
        struct settings settings;
        struct fleet_settings fleet_settings;
        struct fleet_settings *fleet_list[1];
        struct world *world;
        struct fleet *fleet;
        struct pass pass;

        usec_t now;
        usec_t suspended_usec; /* asleep so far */
        int64_t stepped_usec;  /* the wall clock's steps so far */
        bool redis_up;
        struct process newborn; /* how the next processes behave */
        struct template_process newborn_template;
        int quiet_error, stop_error, kill_error;
        int start_error, load_error; /* errno with which sqmgr fails to start a process; 0: none */
        int ask_error;               /* a template cannot be asked for a fork */
        pid_t next_pid;
        unsigned starts, quiets, stops, kills; /* actions so far */
        unsigned loads, gos, template_ends, template_kills;
        unsigned saves; /* of the state, so far */
        bool save_fails;
};

/* A fleet "default" of count workers with the contract's defaults, but a trial of 10 s, no worker yet, Redis
 * up. */
void test_world_open(struct test_world *t, unsigned count);
void test_world_close(struct test_world *t);

/* The world t of a file, with count workers, and the fixture of its tests: setup() and teardown(). The block
 * below prepares more. */
#define TEST_WORLD(count)                                                                                    \
        static struct test_world t;                                                                          \
        static void prepare(void);                                                                           \
        static void setup(void)                                                                              \
        {                                                                                                    \
                test_world_open(&t, count);                                                                  \
                prepare();                                                                                   \
        }                                                                                                    \
        static void teardown(void)                                                                           \
        {                                                                                                    \
                test_world_close(&t);                                                                        \
        }                                                                                                    \
        static void prepare(void)

/* One tick, seconds later. */
void test_tick(struct test_world *t, double seconds);
/* One pass of a tick, which may leave the rest of it to the next: see pass_is_deferred(). */
void test_pass(struct test_world *t);
/* Ticks of one second. */
void test_run(struct test_world *t, unsigned seconds);
/* The same, and what it comes to. */
#define test_after(t, seconds, is, expected)                                                                 \
        do {                                                                                                 \
                test_run(t, seconds);                                                                        \
                ck_assert_int_eq(is, expected);                                                              \
        } while (0)
/* Runs until all of the target's workers are ready. */
void test_settle(struct test_world *t);

enum rollout_state test_rollout(const struct test_world *t);
/* A restart, which begins. */
void test_restart(struct test_world *t);
#define test_restart_to(t, seconds, state)                                                                   \
        do {                                                                                                 \
                test_restart(t);                                                                             \
                test_after(t, seconds, test_rollout(t), state);                                              \
        } while (0)
/* Runs until the restart ends, so many seconds at most. Returns its state. */
enum rollout_state test_run_out(struct test_world *t, unsigned seconds);
/* The same with a restart that begins, ten minutes at most. */
enum rollout_state test_restart_out(struct test_world *t);
void test_redis(struct test_world *t, bool up);

/* Starts a worker in the next free place, outside any plan. */
struct worker *test_spawn(struct test_world *t);
/* The same, and its tests send its heartbeats: the last one at 110, and it is ready. */
struct worker *test_spawn_ready(struct test_world *t);
/* The same, then quieted by the operator. */
struct worker *test_spawn_quiet(struct test_world *t);
/* A heartbeat of its own clock's beat, in seconds, read now with an empty work list. */
void test_heartbeat(struct test_world *t, struct worker *worker, double sent_at, unsigned busy, bool quiet);

struct worker *test_worker(struct test_world *t, unsigned index);
struct process *test_process(const struct worker *worker);
/* For fleet_reap(). */
void test_process_free(struct process *process);
struct fleet_counts test_counts(const struct test_world *t);
/* Returns how many workers of that generation were not asked to leave. */
unsigned test_of_generation(const struct test_world *t, uint64_t generation);

/* The fleet preloads from now on, as after its configuration was made so. */
void test_preload(struct test_world *t);
/* Of those that live, that of the generation; NULL: there is none. */
struct template *test_template(struct test_world *t, uint64_t generation);
unsigned test_templates(const struct test_world *t);
/* Runs until that of the present generation is ready. */
struct template *test_load(struct test_world *t);
/* How many workers were forked. */
unsigned test_forked(const struct test_world *t);
struct template_process *test_template_process(const struct template *template);
/* A forked process exists and waits for `go`. */
struct worker *test_hello(struct test_world *t, struct template *template);
/* An end by itself. */
void test_template_exit(struct test_world *t, struct template *template);

/* Plans, carries nothing out. */
void test_plan(struct test_world *t);
/* How many actions of that kind the last plan has, of worker or, where NULL, of any. */
unsigned test_planned(const struct test_world *t, enum action_kind kind, const struct worker *worker);
/* Plans, carries nothing out, and counts as test_planned() does. */
unsigned test_plans(struct test_world *t, enum action_kind kind, const struct worker *worker);
bool test_stops(struct test_world *t, const struct worker *worker);
/* Carries the last plan out. */
void test_execute(struct test_world *t);

unsigned test_events(const struct test_world *t, enum event_kind kind);
/* The last event of that kind, of which there must be one. */
const struct event *test_event(const struct test_world *t, enum event_kind kind);
/* Its text; "" where there is none. */
const char *test_event_text(const struct test_world *t, enum event_kind kind);
const char *test_waits_for(const struct test_world *t, const struct worker *worker);
const char *test_fleet_waits_for(const struct test_world *t);

/* An end by itself. */
void test_exit(struct test_world *t, struct worker *worker, int status);
