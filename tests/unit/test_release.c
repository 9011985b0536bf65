/* SPDX-License-Identifier: MIT */
/* Tests of `release` in io/launch.h: whether the code of a release has arrived is looked for in a
 * process. */
#include "golden.h"
#include "io/launch.h"
#include "quoting.h"
#include "settings/settings.h"
#include "settings/traits.h"
#include "unit.h"
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64], two[128], current[128];
static const struct traits traits = {.name = "any"};
static struct fleet_settings fleet;

static void setup(void)
{
        snprintf(dir, sizeof(dir), "/tmp/test_release.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        snprintf(two, sizeof(two), "%s/two", dir);
        snprintf(current, sizeof(current), "%s/current", dir);
        ck_assert(mkdir(two, 0755) == 0 && symlink("two", current) == 0);
        fleet = (struct fleet_settings){.name = (char *)"mail", .traits = &traits, .directory = current};
}

static void teardown(void)
{
        unit_remove_tree(dir);
}

/* error: NULL where it is there. */
static void expect(const char *release, const char *error)
{
        char *environment[] = {NULL};
        struct launch_request request = {.fleet = &fleet,
                                         .index = 1,
                                         .instance = "",
                                         .base_environment = environment,
                                         .release = release};
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct launched launched;
        int status;

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &request.nofile), 0);
        ck_assert_int_eq(launch_start(&request, &launched), 0);
        while (report.outcome == LAUNCH_PENDING) {
                struct pollfd poll_fd = {.fd = launched.report_fd, .events = POLLIN};

                ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
                ck_assert_int_eq(launch_report_read(launched.report_fd, &report), 0);
        }
        close(launched.report_fd);
        ck_assert_int_eq(waitpid(launched.pid, &status, 0), launched.pid);
        ck_assert_int_eq(status == 0, !error);
        ck_assert_int_eq(report.outcome, error ? LAUNCH_FAILED : LAUNCH_RUNNING);
        if (error)
                golden_expect_with("start-errors", error, quoted_reveal(report.error), dir, "D");
        free(report.error);
}

TEST(it_is_where_the_directory_leads)
{
        expect("two", NULL);
        expect("/two", NULL);
        expect("two/", NULL);
        expect(two, NULL);
}

TEST(what_it_does_not_end_in_is_reported)
{
        static const char *const others[] = {"wo", "one", "current", "/", "e/two"};
        char section[64];

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                snprintf(section, sizeof(section), "release: not '%s'", others[i]);
                expect(others[i], section);
        }
}

TEST(without_a_directory_it_is_nowhere)
{
        fleet.directory = NULL;
        expect("two", "release: no directory");
        fleet.directory = current;
        ck_assert_int_eq(unlink(current), 0);
        expect("two", "release: the directory is gone");
}

TEST_MAIN("release", .each = {setup, teardown})
