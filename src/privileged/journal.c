/* SPDX-License-Identifier: MIT */
/* Reads the last output of processes from the journal, in a child process. Journal files are mapped: a
 * truncated or damaged file may kill its reader with a signal. The files may also be on a hung disk. */
#include "privileged/journal.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/log_tail.h"
#include "privileged/program.h"
#include "wire/quoted.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

/* Lines are final after SETTLE_USEC without new ones, and after PATIENCE_USEC in any case. */
#define SETTLE_USEC   (500 * USEC_PER_MSEC)
#define PATIENCE_USEC USEC_PER_SEC
/* The child is killed after this time. If even that hangs, the parent gives up a second later. */
#define DEADLINE_SECONDS 5

struct journal_read {
        sd_event_source *answer;
        sd_event_source *deadline;
        int fd;
        journal_read_fn callback;
        void *userdata;
};

static int add_match_pid(sd_journal *journal, pid_t pid)
{
        char match[32];

        if (pid == 0)
                return 0;
        snprintf(match, sizeof(match), "_PID=%d", (int)pid);
        return sd_journal_add_match(journal, match, 0);
}

/* Opens all namespaces: a unit may have its own. */
static int open_journal(const struct journal_query *query, sd_journal **ret)
{
        char match[64];
        sd_id128_t boot;

        int r = sd_id128_get_boot(&boot);
        if (r >= 0)
                r = sd_journal_open_namespace(ret, NULL, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_ALL_NAMESPACES);
        if (r < 0)
                return r;
        snprintf(match, sizeof(match), "_BOOT_ID=" SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(boot));
        if ((r = sd_journal_add_match(*ret, match, 0)) < 0 ||
            (r = sd_journal_add_match(*ret, "_TRANSPORT=stdout", 0)) < 0 ||
            (r = add_match_pid(*ret, query->pids[0])) < 0 || (r = add_match_pid(*ret, query->pids[1])) < 0)
                return r;
        return sd_journal_set_data_threshold(*ret, LOG_TAIL_LOOK_BACK_BYTES);
}

/* Fills text from its end with the last output, one entry per line. Returns the length. */
static size_t collect_lines(sd_journal *journal, usec_t since, char *text, size_t size)
{
        static const char field[] = "MESSAGE=";
        const size_t field_length = sizeof(field) - 1;
        size_t at = size, length;
        const void *data;
        uint64_t written_at;
        sd_id128_t boot;

        if (sd_journal_seek_tail(journal) < 0)
                return 0;
        while (at > 0 && sd_journal_previous(journal) > 0) {
                if (sd_journal_get_monotonic_usec(journal, &written_at, &boot) < 0 || written_at < since)
                        break;
                if (sd_journal_get_data(journal, "MESSAGE", &data, &length) < 0 || length < field_length)
                        continue;
                text[--at] = '\n';
                length = MIN(length - field_length, at);
                at -= length;
                memcpy(text + at, (const char *)data + field_length, length);
        }
        return size - at;
}

/* Reads until the lines are final. Returns their length; the lines are at the end of text. */
static size_t await_lines(sd_journal *journal, usec_t since, char text[static LOG_TAIL_LOOK_BACK_BYTES])
{
        usec_t now = clock_now(CLOCK_MONOTONIC), until = usec_add(now, PATIENCE_USEC), settled = until;
        size_t length = 0;

        for (;;) {
                char seen[LOG_TAIL_LOOK_BACK_BYTES];
                size_t seen_length = collect_lines(journal, since, seen, sizeof(seen));

                now = clock_now(CLOCK_MONOTONIC);
                if (seen_length != length ||
                    memcmp(seen + sizeof(seen) - length, text + sizeof(seen) - length, length) != 0) {
                        length = seen_length;
                        memcpy(text + sizeof(seen) - length, seen + sizeof(seen) - length, length);
                        settled = MIN(usec_add(now, SETTLE_USEC), until);
                }
                if (now >= settled || sd_journal_wait(journal, settled - now) < 0)
                        return length;
        }
}

/* The parent may have had threads. If one of them held a lock that is needed here, the alarm ends the
 * child. */
static _Noreturn void child_run(const struct journal_query *query, int fd)
{
        char text[LOG_TAIL_LOOK_BACK_BYTES], lines[LOG_TAIL_MAX_BYTES + 1];
        sd_journal *journal;
        sigset_t none;

        (void)signal(SIGALRM, SIG_DFL);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)alarm(DEADLINE_SECONDS);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Close all other descriptors: sqmgr's locks and sockets must not outlive sqmgr in this child. */
        if (fd_close_range(STDERR_FILENO + 1, (unsigned)fd - 1, false) < 0 ||
            fd_close_range((unsigned)fd + 1, UINT_MAX, false) < 0 || open_journal(query, &journal) < 0)
                _exit(EXIT_FAILURE);
        size_t length = await_lines(journal, query->since, text);
        log_tail_cut(text + sizeof(text) - length, length, (pid_t[2]){0}, lines, sizeof(lines));
        (void)send(fd, lines, strlen(lines), MSG_NOSIGNAL);
        _exit(EXIT_SUCCESS);
}

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
        if (r >= 0) {
                r = program_fork("sqmgr-journal");
                if (r == 0)
                        child_run(query, child_end);
        }
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
