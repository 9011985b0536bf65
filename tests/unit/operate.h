/* SPDX-License-Identifier: MIT */
/* Two fleets, web and mail, with a worker each, behind a control socket: for tests of the calls of the
 * control interface. The test is linked with CONTROL_WRAPS of Makefile.am. */
#pragma once

#include "client.h"
#include "daemon/service.h"
#include "decide/command.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "quoting.h"

#define CONTROL(method, parameters)                                                                          \
        "{\"method\":\"org.sqmgr.Control." method "\",\"parameters\":" parameters "}"
#define RESTART(parameters)                                                                                  \
        "{\"method\":\"org.sqmgr.Control.Restart\",\"more\":true,\"parameters\":" parameters "}"
#define FOLLOW(parameters)                                                                                   \
        "{\"method\":\"org.sqmgr.Control.Follow\",\"more\":true,\"parameters\":" parameters "}"
#define T0 (1000 * USEC_PER_SEC)

static char names[][8] = {"web", "mail"};
static struct fleet_settings fleet_settings[2];
static struct fleet_settings *fleet_list[] = {&fleet_settings[0], &fleet_settings[1]};
static char state_file[] = "/run/sqmgr/state";
static struct settings settings = {
        .check_interval = 5 * USEC_PER_SEC,
        .state_file = state_file,
        .fleets = fleet_list,
        .n_fleets = 2,
};
static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static sd_event *event;
static struct world *world;
static struct fleet *web, *mail;
static struct control control;
static struct api_server *server;
static struct client client;
static usec_t clock_usec;
static unsigned n_changed, n_rendered; /* n_changed: times that the state was written */
static int save_error;
static int reload_result;
static struct wakeup wakeup;
static struct runtime runtime = {.wakeup = &wakeup};

int __wrap_reload_settings(struct reloader *reloader, const struct orderer *by, char **ret_lines);
int __wrap_reload_settings(struct reloader *reloader _unused_, const struct orderer *by _unused_,
                           char **ret_lines)
{
        if (reload_result >= 0)
                *ret_lines = strdup("a line\n");
        return reload_result;
}

void __wrap_jobs_calls_add(struct control *of, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now);
void __wrap_jobs_calls_add(struct control *of _unused_, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now _unused_)
{
        call_reply(
                call,
                json_pack("{s:[], s:s, s:i}", "jobs", "first", fleets[0]->settings->name, "n", (int)n_fleets),
                false);
}

json_t *__real_status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                             usec_t now);
json_t *__wrap_status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                             usec_t now);
json_t *__wrap_status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                             usec_t now)
{
        n_rendered++;
        return __real_status_render(info, fleets, n_fleets, now);
}

void __wrap_problems_collect(const struct control *of, struct problem_storage *ret, usec_t now);
void __wrap_problems_collect(const struct control *of _unused_, struct problem_storage *ret,
                             usec_t now _unused_)
{
        ret->facts = (struct problem_facts){0};
}

void __wrap_persist_save_now(struct runtime *unsaved, usec_t now);
void __wrap_persist_save_now(struct runtime *unsaved, usec_t now)
{
        ck_assert_ptr_eq(unsaved, &runtime);
        ck_assert_uint_eq(now, clock_usec);
        n_changed++;
        unsaved->save_error = save_error;
}

usec_t __wrap_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock _unused_)
{
        return clock_usec;
}

static const struct status_settings settings_age = {.loaded_at = 1700000000 * USEC_PER_SEC};

static void setup(void)
{
        control = (struct control){
                .version = "1.2.3",
                .instance = "app",
                .started_at = T0,
                .settings = &settings_age,
                .runtime = &runtime,
        };
        char path[64], error[256];

        for (size_t i = 0; i < 2; i++)
                fleet_settings[i] = (struct fleet_settings){
                        .traits = &sidekiq_traits,
                        .name = names[i],
                        .active_process_count = 1,
                        .max_processes = 4,
                        .ready_after = 10 * USEC_PER_SEC,
                        .rollout_timeout = USEC_PER_HOUR,
                };
        clock_usec = T0;
        wakeup = (struct wakeup){.pass = {.ticks = {.n = 7}}};
        n_changed = n_rendered = 0;
        save_error = runtime.save_error = 0;
        reload_result = 0;
        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/control.sock", dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        web = world->fleets[0];
        mail = world->fleets[1];
        runtime.world = world;
        runtime.event = event;
        ck_assert_int_eq(events_new(&control.events), 0);
        struct api_server_options options = {
                .path = path,
                .groups = {CONTROL_NO_GROUP, CONTROL_NO_GROUP, ""},
                .version = "1.2.3",
                .handle = control_handle,
                .userdata = &control,
        };
        ck_assert_int_eq(api_server_new(event, &options, &server, error, sizeof(error)), 0);
        client = client_open(path);
        for (size_t i = 0; i < 2; i++) {
                observe_redis(world->fleets[i], true, T0);
                ck_assert_ptr_nonnull(
                        observe_started(world->fleets[i], 1, REASON_NONE, 100 + (pid_t)i, 1, T0));
        }
}

static void teardown(void)
{
        client_end(&client);
        server = api_server_free(server);
        control_end(&control);
        world = world_free(world);
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

/* A field of a fleet in the reply. */
static json_t *fleet_field(const struct varlink_reply *reply, size_t index, const char *field)
{
        return json_object_get(json_array_get(json_object_get(reply->parameters, "fleets"), index), field);
}

/* The next reply, or none where nothing is under way. */
static bool next_reply(struct varlink_reply *ret)
{
        control_tick(&control, clock_usec);
        client_send(&client, CONTROL("Ping", "{}"));
        /* While the restart is followed the ping waits behind it. */
        while (sd_event_run(event, 1000) > 0)
                ;
        char byte;
        if (varlink_input_size(&client.input) == 0 && recv(client.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
                return false;
        return client_wait(event, &client, ret) == 1;
}

static void expect_fleet(struct varlink_reply *reply, size_t index, const char *state, bool continues)
{
        ck_assert_pstr_eq(reply->error, NULL);
        ck_assert_str_eq(json_string_value(fleet_field(reply, index, "state")), state);
        ck_assert_int_eq(reply->continues, continues);
        varlink_reply_free(reply);
}

/* Waits for the next reply of what is followed. */
static void expect_next(size_t index, const char *state, bool continues)
{
        struct varlink_reply reply;

        ck_assert(next_reply(&reply));
        expect_fleet(&reply, index, state, continues);
}
