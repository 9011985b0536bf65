/* SPDX-License-Identifier: MIT */
/* A runtime with real processes and no daemon around it: a world of settings from a text, and wakeups that
 * are counted. */
#pragma once

#include "base/socket_path.h"
#include "daemon/poll/local_heartbeats.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/rescue.h"
#include "io/clock.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "settings_text.h"
#include <sys/prctl.h>
#include <sys/wait.h>

/* Below the headers of the model: parameters there are named event, too. */
#include "local_reader.h"
#include "loop.h"

struct fleet;
struct world;

/* No Redis is there. */
#define RUNTIME_REDIS "[redis]\nurl=unix:///nonexistent/sqmgr-test\n"

static struct settings *runtime_settings;
static struct world *runtime_world;
static struct wakeup runtime_wakeup;
static struct runtime runtime;
static unsigned runtime_wakeups; /* so far */

static inline void runtime_count_wakeup(bool timer _unused_, void *userdata _unused_)
{
        runtime_wakeups++;
}

static usec_t runtime_patience; /* how long a server may take; 0: as long as in use */

static inline void runtime_start(const char *text)
{
        runtime_settings = read_good(text);
        runtime_settings->redis.timeout = runtime_patience;
        runtime_wakeups = 0;
        ck_assert_int_eq(world_new(runtime_settings, 1, &runtime_world), 0);
        ck_assert_int_eq(wakeup_open(&runtime_wakeup, event, runtime_world, runtime_count_wakeup, NULL), 0);
        runtime = (struct runtime){
                .event = event,
                .wakeup = &runtime_wakeup,
                .world = runtime_world,
                .links.found = attach_heartbeat,
        };
        /* Tests that run at the same time are other instances: a search sees their workers, too. */
        snprintf(runtime.instance, sizeof(runtime.instance), "%016x", (unsigned)getpid());
        ck_assert_int_eq(gethostname(runtime.links.host_name, sizeof(runtime.links.host_name) - 1), 0);
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &runtime.nofile), 0);
        ck_assert_int_eq(proc_host_open(NULL, NULL, &runtime.host), 0);
        if (runtime_settings->socket)
                runtime.status_parent = socket_path_status(runtime_settings->socket);
        ck_assert_int_eq(local_heartbeats_new(&runtime.local), 0);
        ck_assert_int_eq(links_make(&runtime, runtime_settings), 0);
        links_join(&runtime);
}

/* Ends what lives on, too. */
static inline void runtime_end(void)
{
        for (size_t i = 0; i < runtime_world->n_fleets; i++)
                for (size_t j = 0; j < runtime_world->fleets[i]->n_workers; j++) {
                        struct worker *worker = runtime_world->fleets[i]->workers[j];

                        /* It need not have a group of its own yet. */
                        if (worker->state != WORKER_GONE && kill(-worker->process.pid, SIGKILL) < 0)
                                (void)kill(worker->process.pid, SIGKILL);
                        process_free(worker->handle);
                }
        rescues_forget(&runtime);
        links_end(&runtime);
        heartbeats_free(runtime.local);
        free(runtime.status_parent);
        proc_host_close(runtime.host);
        wakeup_close(&runtime_wakeup);
        world_free(runtime_world);
        settings_free(runtime_settings);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

/* Has worker 1 of the first fleet started. NULL: it could not be. */
static inline struct worker *runtime_start_worker(void)
{
        struct fleet *fleet = runtime_world->fleets[0];
        const struct action action = {.kind = ACTION_START, .fleet = fleet, .index = 1};

        ck_assert(execute_action(&runtime, &action, clock_now(CLOCK_MONOTONIC)));
        return fleet->n_workers > 0 ? fleet->workers[0] : NULL;
}

/* Has the process adopted as worker 2 of the first fleet, which is not attached yet. */
static inline struct worker *runtime_adopt(pid_t pid, struct proc **ret)
{
        struct worker known = {.index = 2, .state = WORKER_STARTING, .process.pid = pid};

        ck_assert_int_eq(proc_open(pid, ret), 0);
        known.process.start = proc_start_time(*ret);
        struct worker *worker = observe_adopted(runtime_world->fleets[0], &known, known.process.start, 0,
                                                clock_now(CLOCK_MONOTONIC));
        ck_assert_ptr_nonnull(worker);
        return worker;
}

/* The last event of that kind; NULL: none was reported. */
static inline const struct event *runtime_event(enum event_kind kind)
{
        for (size_t i = runtime_world->n_events; i-- > 0;)
                if (runtime_world->events[i].kind == kind)
                        return &runtime_world->events[i];
        return NULL;
}

/* Is this told of? */
static inline bool runtime_reported(const char *text)
{
        for (size_t i = 0; i < runtime_world->n_events; i++)
                if (strstr(runtime_world->events[i].text, text) ||
                    (runtime_world->events[i].quoted &&
                     quoted_contains(runtime_world->events[i].quoted, text)))
                        return true;
        return false;
}

/* The number in a file that a script writes: at the end of its name it is whole. 0: it is not there yet. */
static inline pid_t runtime_read_pid(const char *folder, const char *name)
{
        char path[64], text[16] = "";

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
        fclose(file);
        return (pid_t)strtol(text, NULL, 10);
}

static inline bool runtime_has_booted(pid_t pid)
{
        struct proc *proc = NULL;
        bool booted = proc_open(pid, &proc) >= 0 &&
                      proc_evidence_has_booted(NULL, proc, framework_of(framework_traits[0])) > 0;

        proc_close(proc);
        return booted;
}
