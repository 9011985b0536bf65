/* SPDX-License-Identifier: MIT */
/* Reads the last output of processes from the journal, by sqmgr-journal. */
#include "io/journal.h"
#include "base/fd.h"
#include "io/launcher.h"
#include "io/log_tail.h"
#include "io/own_program.h"
#include "wire/quoted.h"
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The program is killed after this time. If even that hangs, we give up a second later. */
#define DEADLINE_SECONDS 5

struct journal_read {
        sd_event_source *answer;
        sd_event_source *deadline;
        int fd;
        journal_read_fn callback;
        void *userdata;
};

static void finish(struct journal_read *read, const char *lines)
{
        struct quoted quoted;

        read->answer = sd_event_source_disable_unref(read->answer);
        read->deadline = sd_event_source_disable_unref(read->deadline);
        quoted_set(&quoted, lines);
        read->callback(&quoted, read->userdata);
}

static int on_answer(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        char lines[LOG_TAIL_MAX_BYTES + 1];
        ssize_t n = recv(fd, lines, sizeof(lines) - 1, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        lines[MAX(n, (ssize_t)0)] = '\0';
        finish(userdata, lines);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        finish(userdata, "");
        return 0;
}

/* Returns the pid or -errno. */
static pid_t start_program(const struct journal_query *query, int socket_fd)
{
        _cleanup_close_ int program_fd = own_program_open("sqmgr-journal", JOURNAL_PROGRAM);
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char pids[2][16], since[24], *argv[] = {(char *)"sqmgr-journal", pids[0], pids[1], since, NULL};
        const struct launch_plan plan = {.fleet = {.argv = argv}};

        for (size_t i = 0; i < ELEMENTSOF(pids); i++)
                snprintf(pids[i], sizeof(pids[i]), "%d", (int)query->pids[i]);
        snprintf(since, sizeof(since), "%ju", (uintmax_t)query->since);
        int r = program_fd < 0 ? program_fd : launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->program_fd = program_fd;
        job->input_fd = socket_fd;
        job->seconds = DEADLINE_SECONDS;
        return launcher_start(TAKE_PTR(job));
}

int journal_read_start(sd_event *event, const struct journal_query *query, journal_read_fn callback,
                       void *userdata, struct journal_read **ret)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        _cleanup_close_ int our_end = fds[0];
        _cleanup_close_ int child_end = fds[1];
        struct journal_read *read = malloc(sizeof(*read));
        if (!read)
                return -ENOMEM;
        *read = (struct journal_read){.fd = TAKE_FD(our_end), .callback = callback, .userdata = userdata};
        int r = sd_event_add_io(event, &read->answer, read->fd, EPOLLIN, on_answer, read);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &read->deadline, CLOCK_MONOTONIC,
                                               (DEADLINE_SECONDS + 1) * USEC_PER_SEC, 0, on_deadline, read);
        if (r >= 0)
                r = start_program(query, child_end);
        if (r < 0) {
                journal_read_free(read);
                return r;
        }
        *ret = read;
        return 0;
}

struct journal_read *journal_read_free(struct journal_read *read)
{
        if (!read)
                return NULL;
        sd_event_source_disable_unref(read->answer);
        sd_event_source_disable_unref(read->deadline);
        close_fd(read->fd);
        free(read);
        return NULL;
}
