/* SPDX-License-Identifier: MIT */
/* A crew with real processes and no daemon around it: a loop to wait in, a world of settings from a text, and
 * turns that are counted. */
#pragma once

#include "base/socket_path.h"
#include "daemon/poll/local_beats.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/hold.h"
#include "daemon/workers/process.h"
#include "daemon/workers/rescue.h"
#include "io/clock.h"
#include "io/host.h"
#include "model/fleet.h"
#include "model/fleets.h"
#include "model/world.h"
#include "settings_text.h"
#include "unit.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct fleet;
struct world;

/* No Redis is there. */
#define CREW_REDIS "[redis]\nurl=unix:///nonexistent/sqmgr-test\n"

static struct settings *crew_settings;
static struct world *crew_world;
static struct turn crew_turn;
static struct crew crew;
static unsigned crew_turns; /* so far */

static inline void crew_count_turn(bool timer _unused_, void *userdata _unused_)
{
        crew_turns++;
}

static inline void crew_start(sd_event *event, const char *text)
{
        crew_settings = read_good(text);
        crew_turns = 0;
        ck_assert_int_eq(world_new(crew_settings, 1, &crew_world), 0);
        ck_assert_int_eq(turn_open(&crew_turn, event, crew_world, crew_count_turn, NULL), 0);
        crew = (struct crew){
                .event = event,
                .turn = &crew_turn,
                .world = crew_world,
                .links = {.event = event, .turn = &crew_turn, .world = crew_world, .found = hold_beat},
                .instance = "0123456789abcdef",
        };
        ck_assert_int_eq(gethostname(crew.links.host_name, sizeof(crew.links.host_name) - 1), 0);
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &crew.nofile), 0);
        ck_assert_int_eq(proc_host_open(NULL, NULL, &crew.host), 0);
        if (crew_settings->socket)
                crew.status_parent = socket_path_status(crew_settings->socket);
        ck_assert_int_eq(local_beats_new(&crew.local), 0);
        ck_assert_int_eq(links_make(&crew.links, crew_settings), 0);
        links_join(&crew.links);
}

/* Ends what lives on, too. */
static inline void crew_end(void)
{
        for (size_t i = 0; i < crew_world->n_fleets; i++)
                for (size_t j = 0; j < crew_world->fleets[i]->n_workers; j++) {
                        struct worker *worker = crew_world->fleets[i]->workers[j];

                        /* It need not have a group of its own yet. */
                        if (worker->state != WORKER_GONE && kill(-worker->process.pid, SIGKILL) < 0)
                                (void)kill(worker->process.pid, SIGKILL);
                        process_free(worker->handle);
                }
        rescues_forget(&crew);
        links_end(&crew.links);
        beats_free(crew.local);
        free(crew.status_parent);
        proc_host_close(crew.host);
        turn_close(&crew_turn);
        world_free(crew_world);
        settings_free(crew_settings);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

/* Has worker 1 of the first fleet started. NULL: it could not be. */
static inline struct worker *crew_start_worker(void)
{
        struct fleet *fleet = crew_world->fleets[0];
        const struct action action = {.kind = ACTION_START, .fleet = fleet, .index = 1};

        ck_assert(execute_action(&crew, &action, clock_now(CLOCK_MONOTONIC)));
        return fleet->n_workers > 0 ? fleet->workers[0] : NULL;
}

/* Is this told of? */
static inline bool crew_told(const char *text)
{
        for (size_t i = 0; i < crew_world->n_events; i++)
                if (strstr(crew_world->events[i].text, text))
                        return true;
        return false;
}
