/* SPDX-License-Identifier: MIT */
/* Is what a test makes removed, however it ends? */
#include "unit.h"
#include <sys/mman.h>
#include <time.h>

enum end { BY_RETURN, BY_ASSERTION, BY_KILL, BY_TERM, _END_MAX };

static void end_as(enum end end)
{
        if (end == BY_RETURN)
                _exit(0);
        if (end == BY_ASSERTION)
                abort();
        (void)signal(SIGTERM, SIG_DFL); /* Check has its own handler */
        (void)kill(getpid(), end == BY_KILL ? SIGKILL : SIGTERM);
        for (;;)
                (void)pause();
}

TEST_LOOP(what_was_made_is_removed_however_a_test_ends, _END_MAX)
{
        char *dir = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct stat status;

        ck_assert_ptr_ne(dir, MAP_FAILED);
        pid_t pid = fork();
        if (pid == 0) {
                char made[] = "/tmp/sqmgr-test-XXXXXX";

                ck_assert_int_eq(setsid(), getpid());
                /* A guard of its own, which sees no end but this one. */
                (void)close(GUARD_FD);
                ck_assert(guard_start());
                ck_assert_ptr_nonnull(mkdtemp(made));
                unit_write_file(made, "below/it", "left");
                strcpy(dir, made);
                end_as((enum end)_i);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert_str_ne(dir, "");
        while (stat(dir, &status) == 0)
                (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        munmap(dir, 4096);
}

TEST_MAIN("guard")
