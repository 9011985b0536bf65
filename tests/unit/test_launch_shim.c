/* SPDX-License-Identifier: MIT */
/* Tests of how a worker is started with its shim (traits.shim): each starts a real process, which writes the
 * value of the variable. */
#include "base/fd.h"
#include "io/launch.h"
#include "settings/settings.h"
#include "unit.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct shim path_shim = {.file = "python/shim.py", .variable = "LOADS", .separator = ':'};
static const struct shim option_shim = {
        .file = "python/shim.py", .variable = "LOADS", .separator = ' ', .option = "--require="};
static const struct traits traits_of_path = {.name = "any", .shim = &path_shim};
static const struct traits traits_of_option = {.name = "any", .shim = &option_shim};
static const struct traits traits_without = {.name = "any"};

static char dir[64];

static void make_shim(const char *below)
{
        char path[128];

        ck_assert_int_ge(snprintf(path, sizeof(path), "%s%s", dir, below), 0);
        ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
        strcat(path, "/python");
        ck_assert_int_eq(mkdir(path, 0755), 0);
        strcat(path, "/shim.py");
        ck_assert_int_ge(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
}

static void setup(void)
{
        snprintf(dir, sizeof(dir), "/tmp/test_launch_shim.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        ck_assert_int_eq(chmod(dir, 0755), 0);
        make_shim("");
}

static void teardown(void)
{
        unit_remove_tree(dir);
}

/* Starts a worker, and writes what it has in $LOADS to text, the folder of this test as "D". Returns the
 * error in the report. */
static int run(const struct traits *traits, const char *shims, const char *before, char text[static 256])
{
        char log[128], output[256] = "", loads[64],
                       *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo \"$LOADS\"", NULL};
        char *environment[] = {(char *)"PATH=/usr/bin:/bin", before ? loads : NULL, NULL};
        struct fleet_settings fleet = {.name = (char *)"mail", .traits = traits, .argv = argv, .log = log};
        struct launch_request request = {.fleet = &fleet,
                                         .index = 1,
                                         .generation = 1,
                                         .instance = "0123abcd",
                                         .shims = shims,
                                         .base_environment = environment};
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct launched launched;
        int status;

        snprintf(log, sizeof(log), "%s/log", dir);
        snprintf(loads, sizeof(loads), "LOADS=%s", before ?: "");
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &request.nofile), 0);
        ck_assert_int_eq(launch_start(&request, &launched), 0);
        while (report.outcome == LAUNCH_PENDING) {
                struct pollfd wait = {.fd = launched.report_fd, .events = POLLIN};
                ck_assert_int_eq(poll(&wait, 1, -1), 1);
                ck_assert_int_eq(launch_report_read(launched.report_fd, &report), 0);
        }
        ck_assert_int_eq(report.outcome, LAUNCH_RUNNING);
        ck_assert_int_eq(waitpid(launched.pid, &status, 0), launched.pid);
        ck_assert_int_eq(status, 0);
        close_fd(launched.report_fd);
        ck_assert_int_ge(fd_read_file(AT_FDCWD, log, output, sizeof(output)), 1);
        ck_assert_int_eq(unlink(log), 0);
        output[strcspn(output, "\n")] = '\0';
        char *at = strstr(output, dir);
        if (at)
                snprintf(text, 256, "%.*sD%s", (int)(at - output), output, at + strlen(dir));
        else
                snprintf(text, 256, "%s", output);
        int error = report.shim_error;
        launch_report_clear(&report);
        return error;
}

TEST(adds_the_shim_behind_what_the_variable_has)
{
        char text[256];

        ck_assert_int_eq(run(&traits_of_path, dir, NULL, text), 0);
        ck_assert_str_eq(text, "D/python");
        ck_assert_int_eq(run(&traits_of_path, dir, "", text), 0);
        ck_assert_str_eq(text, "D/python");
        ck_assert_int_eq(run(&traits_of_path, dir, "/app:/lib", text), 0);
        ck_assert_str_eq(text, "/app:/lib:D/python");
        ck_assert_int_eq(run(&traits_of_option, dir, "--max-old-space-size=99", text), 0);
        ck_assert_str_eq(text, "--max-old-space-size=99 --require=D/python/shim.py");
}

TEST(leaves_the_variable_alone_without_a_shim)
{
        char text[256];

        ck_assert_int_eq(run(&traits_without, dir, "kept", text), 0);
        ck_assert_str_eq(text, "kept");
        ck_assert_int_eq(run(&traits_of_path, NULL, "kept", text), 0);
        ck_assert_str_eq(text, "kept");
}

TEST(starts_without_a_shim_that_cannot_be_read_or_named)
{
        char text[256], path[128];

        snprintf(path, sizeof(path), "%s/missing", dir);
        ck_assert_int_eq(run(&traits_of_option, path, "kept", text), ENOENT);
        ck_assert_str_eq(text, "kept");
        static const char *const names[] = {"/a b", "/a:b", "/a\"b", "/a\\b"};
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                make_shim(names[i]);
                snprintf(path, sizeof(path), "%s%s", dir, names[i]);
                ck_assert_int_eq(run(&traits_of_option, path, "kept", text), EINVAL);
                ck_assert_str_eq(text, "kept");
                ck_assert_str_ne(shim_error_text(EINVAL), shim_error_text(ENOENT));
        }
}

TEST_MAIN("launch_shim", .each = {setup, teardown})
