/* SPDX-License-Identifier: MIT */
/* Tests of how the settings of a running sqmgr are read again (daemon/lifecycle/reload.h), with real files.
 */
/* promises: P10 */
#include "base/argv.h"
#include "daemon/lifecycle/reload.h"
#include "golden.h"
#include "model/counts.h"
#include "model/world.h"
#include "runtime_folder.h"

#define BEFORE RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=1\n"

static char path[64], log_path[64];
static struct reloader reloader;
static char *lines_text, *lines[8]; /* what the last reload said, and its lines, up to a NULL */

static unsigned reloads;

static void count_reload(void *userdata _unused_)
{
        reloads++;
}

static void setup(void)
{
        runtime_folder_open();
        /* The socket of the settings of this test; see settings_text.c. */
        ck_assert_int_eq(setenv("RUNTIME_DIRECTORY", "/run/sqmgr/own", true), 0);
        snprintf(path, sizeof(path), "%s/ini", dir);
        snprintf(log_path, sizeof(log_path), "%s/log", dir);
        runtime_start(BEFORE);
        reloader = (struct reloader){
                .config = {.runtime = &runtime, .config_path = path},
                .settings = runtime_settings,
                .runtime = &runtime,
                .reloaded = count_reload,
        };
        reloads = 0;
        lines_text = NULL;
        while (sd_event_run(event, 0) > 0)
                ;
}

static void teardown(void)
{
        free(lines_text);
        runtime_settings = reloader.settings;
        runtime_folder_close();
}

static int reload_file(void)
{
        size_t n = 0;

        free(lines_text);
        lines_text = NULL;
        int r = reload_settings(&reloader, NULL, &lines_text);
        char *rest = lines_text;
        for (char *line; (line = strsep(&rest, "\n"));)
                if (line[0] != '\0')
                        lines[n++] = line;
        lines[n] = NULL;
        return r;
}

static int reload(const char *text)
{
        unit_write_file(dir, "ini", text);
        runtime_wakeup.pass.unsaved = false;
        return reload_file();
}

/* The text of the order that the world reported first. */
static const char *order_text(void)
{
        for (size_t i = 0; i < runtime_world->n_events; i++)
                if (runtime_world->events[i].kind == EVENT_ORDER)
                        return runtime_world->events[i].text;
        return "";
}

TEST(what_changed_is_reported_and_in_force)
{
        ck_assert_int_eq(reload(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=3\n"), 0);
        ck_assert_str_eq(lines[0], "[fleet:web] active_process_count: 1 -> 3");
        ck_assert_ptr_null(lines[1]);
        ck_assert_uint_eq(fleet_target(world_fleet(runtime_world, "web")), 3);
        ck_assert_ptr_eq(runtime_world->settings, reloader.settings);
        ck_assert(runtime_wakeup.pass.unsaved);
        golden_expect("reload", "what changed is reported and in force", order_text());
}

/* Web had returned to generation 1. */
TEST(a_rollback_that_new_settings_end_is_reported)
{
        struct fleet *web = world_fleet(runtime_world, "web");

        ck_assert_ptr_nonnull(web);
        web->newest_generation = 2;
        web->rollout = (struct rollout){
                .state = ROLLOUT_ABORTED, .before = 1, .returned = true, .error = "rolled back"};
        ck_assert_int_eq(reload(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=3\n"), 0);
        ck_assert(web->rollout.returned);
        ck_assert_ptr_null(lines[1]);
        ck_assert_int_eq(reload(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/false\nactive_process_count=3\n"),
                         0);
        ck_assert(!web->rollout.returned);
        ck_assert_ptr_nonnull(lines[1]);
        ck_assert_ptr_null(lines[2]);
        golden_expect("reload", "a rollback that new settings end", lines[1]);
}

TEST(a_file_that_says_the_same_changes_nothing)
{
        uint64_t generation = runtime_world->fleets[0]->generation;

        ck_assert_int_eq(reload(BEFORE), 0);
        ck_assert_uint_eq(reloads, 1);
        ck_assert_ptr_null(lines[0]);
        ck_assert_uint_eq(runtime_world->fleets[0]->generation, generation);
        golden_expect("reload", "a file that says the same changes nothing", order_text());
}

TEST(what_does_not_reach_all_says_so)
{
        ck_assert_int_eq(reload("[sqmgr]\nstate_file=/nonexistent/state\n" RUNTIME_REDIS
                                "[fleet:web]\ncommand=/bin/false\nactive_process_count=1\n"),
                         0);
        ck_assert_ptr_nonnull(strstr(lines[0], "state_file"));
        golden_begin();
        golden_add_with("state_file", lines[0], reloader.settings->state_file, "STATE");
        golden_add("command", lines[1]);
        golden_end("reload", "what does not reach all");
        ck_assert_str_ne(reloader.settings->state_file, "/nonexistent/state");
}

TEST(fleets_come_and_go)
{
        ck_assert_int_eq(reload(RUNTIME_REDIS "[fleet:mail]\ncommand=/bin/true\n"
                                              "redis_url=unix:///nonexistent/other\n"),
                         0);
        ck_assert_ptr_nonnull(lines[0]);
        ck_assert_ptr_nonnull(lines[1]);
        ck_assert_ptr_null(lines[2]);
        golden_expect("reload", "fleets come and go", lines[0]);
        golden_expect("reload", "fleets come and go, 2", lines[1]);
        const struct fleet *mail = world_fleet(runtime_world, "mail"),
                           *web = world_fleet(runtime_world, "web");
        ck_assert_ptr_nonnull(mail->link);
        ck_assert_ptr_ne(mail->link, web->link);
        ck_assert_uint_eq(runtime.links.n, 2);
        ck_assert_uint_eq(fleet_target(web), 0);
}

static const char *const bad[] = {
        BEFORE "active_process_count=-1\n",
        BEFORE "colour=red\n",
        BEFORE "[fleet:mail]\n",
        "",
};

TEST_LOOP(a_file_with_anything_wrong_is_refused_whole, ELEMENTSOF(bad))
{
        const struct settings *before = reloader.settings;

        ck_assert_int_eq(reload(bad[_i]), 1);
        ck_assert_ptr_nonnull(lines[0]);
        for (char **line = lines; *line; line++)
                ck_assert_msg(strncmp(*line, path, strlen(path)) == 0, "%s", *line);
        ck_assert_ptr_eq(reloader.settings, before);
        ck_assert_ptr_eq(runtime_world->settings, before);
        ck_assert_uint_eq(runtime_world->n_fleets, 1);
        ck_assert_uint_eq(fleet_target(runtime_world->fleets[0]), 1);
        ck_assert(!runtime_wakeup.pass.unsaved);
}

TEST(a_file_that_is_not_there_is_refused)
{
        const struct settings *before = reloader.settings;

        ck_assert_int_eq(reload_file(), 1);
        golden_expect_with("reload", "a file that is not there is refused", lines[0], dir, "D");
        ck_assert_ptr_eq(reloader.settings, before);
}

static void reload_reported_by_signal(const char *text, char *log, size_t size)
{
        int fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), stderr_fd = dup(STDERR_FILENO);

        unit_write_file(dir, "ini", text);
        ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
        reload_by_signal(&reloader);
        ck_assert_int_ge(dup2(stderr_fd, STDERR_FILENO), 0);
        ssize_t n = pread(fd, log, size - 1, 0);
        ck_assert_int_ge(n, 0);
        log[n] = '\0';
        close(fd);
        close(stderr_fd);
}

TEST(the_log_reports_what_a_signal_has_changed)
{
        char log[2048];

        reload_reported_by_signal(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=2\n",
                                  log, sizeof(log));
        ck_assert_ptr_nonnull(strstr(log, "reload: [fleet:web] active_process_count: 1 -> 2"));
        ck_assert_uint_eq(fleet_target(runtime_world->fleets[0]), 2);
        unsigned turns = runtime_wakeups;
        while (runtime_wakeups == turns)
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
}

TEST(the_log_reports_why_a_signal_has_changed_nothing)
{
        char log[2048];

        reload_reported_by_signal(bad[0], log, sizeof(log));
        ck_assert_ptr_nonnull(strstr(log, "active_process_count"));
        char *refusal = strstr(log, "error: ");
        ck_assert_ptr_nonnull(refusal);
        refusal[strcspn(refusal, "\n")] = '\0';
        golden_expect_with("reload", "refused", refusal, dir, "D");
        ck_assert_uint_eq(fleet_target(runtime_world->fleets[0]), 1);
}

TEST_MAIN("reload", .each = {setup, teardown})
