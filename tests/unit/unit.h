/* SPDX-License-Identifier: MIT */
/* What every unit test needs: Check, and a main() in one line. */
#pragma once

#include "../guard.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Runs the suite. Returns the exit status for main(). */
static inline int unit_main(Suite *suite)
{
        if (!guard_start()) {
                fprintf(stderr, "the guard of what tests leave behind could not be started\n");
                return EXIT_FAILURE;
        }
        SRunner *runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        int failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Writes a file below dir, and makes the folders that it needs. */
static inline void unit_write_file(const char *dir, const char *path, const char *text)
{
        char full[512];

        snprintf(full, sizeof(full), "%s/%s", dir, path);
        for (char *slash = strchr(full + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                ck_assert(mkdir(full, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
        FILE *file = fopen(full, "we");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(text, file), 0);
        ck_assert_int_eq(fclose(file), 0);
}

/* Leaves room for so many descriptors more, until *before is in force again. */
static inline void unit_leave_descriptors(unsigned n, struct rlimit *before)
{
        struct rlimit limit;
        int fd = 0;

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, before), 0);
        for (unsigned free = 0; free < n || fcntl(fd, F_GETFD) >= 0; fd++)
                free += fcntl(fd, F_GETFD) < 0;
        limit = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = before->rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Removes a folder made with mkdtemp() and all that is in it. */
static inline void unit_remove_tree(const char *dir)
{
        char command[512];

        snprintf(command, sizeof(command), "rm -rf -- '%s'", dir);
        ck_assert_int_eq(system(command), 0);
}
