/* SPDX-License-Identifier: MIT */
/* Tests of daemon/workers/exit_log.h where there is nothing to be read; tests/e2e/journal.bats has a journal.
 */
#include "daemon/workers/exit_log.h"
#include "io/clock.h"
#include "quoting.h"
#include "unit.h"
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned n_answers;

static void on_lines(const struct quoted *lines, void *userdata)
{
        ck_assert(quoted_is_empty(lines));
        n_answers++;
        ck_assert_int_ge(sd_event_exit(userdata, 0), 0);
}

/* Nobody has logged as this process since now. */
static struct journal_read *start(sd_event *event)
{
        struct journal_query query = {.pids = {getpid()}, .since = clock_now(CLOCK_MONOTONIC)};
        struct journal_read *read;

        n_answers = 0;
        ck_assert_int_eq(journal_read_start(event, &query, on_lines, event, &read), 0);
        return read;
}

TEST(where_there_are_no_lines_the_answer_says_so_once)
{
        sd_event *event;
        int status;

        ck_assert_int_ge(sd_event_new(&event), 0);
        struct journal_read *read = start(event);
        ck_assert_int_ge(sd_event_loop(event), 0);
        ck_assert_uint_eq(n_answers, 1);
        journal_read_free(read);
        sd_event_unref(event);
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
}

/* Any thread of this process may be its parent. */
static int child(void)
{
        glob_t files;
        int pid = 0;

        ck_assert_int_eq(glob("/proc/self/task/*/children", 0, NULL, &files), 0);
        for (size_t i = 0; i < files.gl_pathc && pid == 0; i++) {
                FILE *children = fopen(files.gl_pathv[i], "re");

                ck_assert_ptr_nonnull(children);
                if (fscanf(children, "%d", &pid) != 1)
                        pid = 0;
                ck_assert_int_eq(fclose(children), 0);
        }
        globfree(&files);
        return pid;
}

TEST(a_reader_that_is_killed_has_no_lines)
{
        sd_event *event;

        ck_assert_int_ge(sd_event_new(&event), 0);
        struct journal_read *read = start(event);
        int pid = child();
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_ge(sd_event_loop(event), 0);
        ck_assert_uint_eq(n_answers, 1);
        journal_read_free(read);
        sd_event_unref(event);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

TEST(one_that_is_freed_is_not_answered_and_ends_by_itself)
{
        sd_event *event;

        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_ptr_null(journal_read_free(start(event)));
        ck_assert_int_gt(wait(NULL), 0);
        ck_assert_int_eq(sd_event_run(event, 0), 0);
        ck_assert_uint_eq(n_answers, 0);
        sd_event_unref(event);
}

TEST_MAIN("journal")
