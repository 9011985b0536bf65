/* SPDX-License-Identifier: MIT */
/* Tests of how sqmgr ends and of what it tells systemd (daemon/lifecycle/termination.h, alerts.h), with a
 * socket that stands for systemd's. */
/* promises: P4 */
#include "base/fd.h"
#include "daemon/lifecycle/alerts.h"
#include "daemon/lifecycle/termination.h"
#include "golden.h"
#include "model/counts.h"
#include "model/world.h"
#include "runtime_folder.h"
#include <sys/socket.h>
#include <sys/un.h>

static int notify_fd;
static char heard[4096]; /* each word of ours to systemd, a line of its own */

static void setup(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        runtime_folder_open();
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", dir);
        notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(notify_fd, 0);
        ck_assert_int_eq(bind(notify_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
        heard[0] = '\0';
}

static void teardown(void)
{
        termination_forget(&runtime);
        close_fd(notify_fd);
        runtime_folder_close();
}

static void start(const char *sqmgr_lines)
{
        char text[512];

        snprintf(text, sizeof(text),
                 "[sqmgr]\n%s" RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sleep 1000\nactive_process_count=2\n",
                 sqmgr_lines);
        runtime_start(text);
        while (sd_event_run(event, 0) > 0)
                ;
}

static const char *hear(void)
{
        size_t used = 0;

        for (;;) {
                ssize_t n = recv(notify_fd, heard + used, sizeof(heard) - used - 2, MSG_DONTWAIT);

                if (n < 0)
                        break;
                used += (size_t)n;
                heard[used++] = '\n';
        }
        heard[used] = '\0';
        return heard;
}

static bool loop_has_ended(void)
{
        while (sd_event_get_state(event) != SD_EVENT_FINISHED && sd_event_run(event, 0) > 0)
                ;
        return sd_event_get_state(event) == SD_EVENT_FINISHED;
}

/* SIGINT asks nobody what is meant. */
TEST(reported_to_end_it_drains_its_workers)
{
        start("on_stop=drain\n");
        unsigned turns = runtime_wakeups;
        termination_request(&runtime, SIGINT);
        ck_assert(runtime_world->shutting_down);
        ck_assert(!runtime_world->shutdown_now);
        ck_assert_uint_eq(fleet_target(runtime_world->fleets[0]), 0);
        ck_assert_str_eq(hear(), "STOPPING=1\n");
        ck_assert(!loop_has_ended()); /* the workers have not */
        ck_assert_uint_gt(runtime_wakeups, turns);
}

TEST(reported_twice_it_stops_them_now)
{
        start("on_stop=drain\n");
        termination_request(&runtime, SIGINT);
        runtime_settings->on_stop = ON_STOP_LEAVE; /* a reload changes nothing of that */
        termination_request(&runtime, SIGTERM);
        ck_assert(runtime_world->shutdown_now);
        ck_assert(!loop_has_ended());
}

TEST(it_leaves_them_where_the_settings_say_so)
{
        start("on_stop=leave\n");
        termination_request(&runtime, SIGINT);
        ck_assert(!runtime_world->shutting_down);
        ck_assert_str_eq(hear(), "STOPPING=1\n");
        ck_assert(loop_has_ended());
}

static struct notify reported;

TEST(systemd_hears_that_it_is_ready_and_then_how_the_workers_are)
{
        start("");
        reported = (struct notify){0};
        ck_assert_int_eq(unsetenv("WATCHDOG_USEC"), 0);
        notify_ready(&reported);
        ck_assert_str_eq(hear(), "READY=1\n");
        notify_systemd(&reported, runtime_world, 1);
        golden_expect("systemd-status", "systemd hears that it is ready and then how the workers are",
                      hear());
        /* The same is not said again. */
        notify_systemd(&reported, runtime_world, USEC_PER_HOUR);
        ck_assert_str_eq(hear(), "");
        runtime_world->fleets[0]->scale = 3;
        notify_systemd(&reported, runtime_world, USEC_PER_HOUR);
        golden_expect("systemd-status", "systemd hears that it is ready and then how the workers are, 2",
                      hear());
        ck_assert_uint_eq(notify_wake_at(&reported, 1), USEC_INFINITY);
}

TEST(the_watchdog_is_fed_four_times_as_often_as_it_must_be)
{
        char pid[16];

        start("");
        reported = (struct notify){0};
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        ck_assert_int_eq(setenv("WATCHDOG_PID", pid, 1), 0);
        ck_assert_int_eq(setenv("WATCHDOG_USEC", "20000000", 1), 0);
        notify_ready(&reported);
        usec_t now = USEC_PER_HOUR;
        notify_systemd(&reported, runtime_world, now);
        ck_assert_ptr_nonnull(strstr(hear(), "WATCHDOG=1\n"));
        ck_assert_uint_eq(notify_wake_at(&reported, now), now + 5 * USEC_PER_SEC);
        notify_systemd(&reported, runtime_world, now + 4 * USEC_PER_SEC);
        ck_assert_str_eq(hear(), "");
        notify_systemd(&reported, runtime_world, now + 5 * USEC_PER_SEC);
        ck_assert_str_eq(hear(), "WATCHDOG=1\n");
}

TEST(a_drain_has_the_time_that_it_takes)
{
        usec_t now = USEC_PER_HOUR;

        start("shutdown_timeout=90s\ncheck_interval=5s\n");
        reported = (struct notify){0};
        runtime_world->shutting_down = true;
        runtime_world->shutdown_at = now;
        notify_systemd(&reported, runtime_world, now + 30 * USEC_PER_SEC);
        golden_expect("systemd-status", "a drain has the time that it takes", hear());
        notify_systemd(&reported, runtime_world, now + 30 * USEC_PER_SEC);
        ck_assert_str_eq(hear(), "EXTEND_TIMEOUT_USEC=70000000\n");
        runtime_world->shutdown_now = true;
        notify_systemd(&reported, runtime_world, now + 31 * USEC_PER_SEC);
        golden_expect("systemd-status", "a drain has the time that it takes, 2", hear());
}

/* The log has it, whoever follows the events, and alert_command. */
TEST(an_event_is_reported_to_all_once)
{
        char path[64], text[256], log[1024];
        struct events *events;
        struct alerts *alerts;

        snprintf(text, sizeof(text), "alert_command=/bin/sh -c 'echo \"$SQMGR_EVENT\" >>%s/alert'\n", dir);
        start(text);
        ck_assert_int_eq(events_new(&events), 0);
        ck_assert_int_eq(alerts_new(&runtime, ALERT_TIMEOUT_USEC, &alerts), 0);
        world_event(runtime_world, EVENT_CRASH_LOOP, runtime_world->fleets[0], NULL, "it broke");

        snprintf(path, sizeof(path), "%s/log", dir);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), stderr_fd = dup(STDERR_FILENO);
        ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
        notify_events(runtime_world, events, alerts);
        notify_events(runtime_world, events, alerts);
        ck_assert_int_ge(dup2(stderr_fd, STDERR_FILENO), 0);
        ssize_t n = pread(fd, log, sizeof(log) - 1, 0);
        ck_assert_int_gt(n, 0);
        log[n] = '\0';
        const char *line = strstr(log, "it broke");
        ck_assert_ptr_nonnull(line);
        ck_assert_ptr_null(strstr(line + 1, "it broke"));
        ck_assert_uint_eq(runtime_world->n_events, 0);

        snprintf(path, sizeof(path), "%s/alert", dir);
        while (access(path, F_OK) < 0)
                ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
        alerts_free(alerts);
        events_free(events);
        close_fd(fd);
        close_fd(stderr_fd);
}

TEST_MAIN("ending", .each = {setup, teardown})
