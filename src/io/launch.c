/* SPDX-License-Identifier: MIT */
/* Starts a worker's process and tells how that went: the parent's part. */
#include "io/launch.h"

#include "base/printable.h"
#include "io/launch_message.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* How far back to look for lines that are no frames of a backtrace. */
#define LOOK_BACK_BYTES ((size_t)16 * 1024)

int launch_start(const struct launch_request *request, struct launched *ret)
{
        sigset_t all, before;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int parent_end = pair[0];
        _cleanup_close_ int child_end = pair[1];
        if (fcntl(parent_end, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        sigfillset(&all);
        int r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        /* Named before it is forked: at no time does it pass for something else. */
        char comm[16] = "";
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, LAUNCH_COMM);
        pid_t pid = fork();
        if (pid == 0)
                launch_child_run(request, child_end);
        r = -errno;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return r;

        *ret = (struct launched){.pid = pid, .report_fd = TAKE_FD(parent_end)};
        return 0;
}

/* Receives one message and the descriptor that may come with it. Returns its length, 0 at the end, or -errno.
 */
static ssize_t message_receive(int report_fd, struct launch_message *message, int *ret_fd)
{
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec data = {.iov_base = message, .iov_len = sizeof(*message)};
        struct msghdr header = {
                .msg_iov = &data,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        do
                n = recvmsg(report_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        struct cmsghdr *item = CMSG_FIRSTHDR(&header);
        if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS &&
            item->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(item), sizeof(int));
        return n;
}

int launch_report_read(int report_fd, struct launch_report *report)
{
        while (report->outcome == LAUNCH_PENDING) {
                struct launch_message message;
                _cleanup_close_ int fd = -1;

                ssize_t n = message_receive(report_fd, &message, &fd);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int)n;
                if (n == 0) {
                        report->outcome = LAUNCH_RUNNING;
                } else if (n != sizeof(message)) {
                        return -EBADMSG;
                } else if (message.kind == LAUNCH_MESSAGE_LOG && fd >= 0 && report->log_fd < 0) {
                        report->log_fd = TAKE_FD(fd);
                        report->log_start_bytes = message.log_start_bytes;
                } else if (message.kind == LAUNCH_MESSAGE_ERROR) {
                        report->error =
                                strndup(message.text, MIN((size_t)message.length, sizeof(message.text)));
                        if (report->error)
                                printable_replace(report->error, strlen(report->error), false);
                        report->outcome = LAUNCH_FAILED;
                }
        }
        return 0;
}

/* As Ruby writes a frame of a backtrace: `FILE:LINE:in 'METHOD'`, and nothing behind it. */
static bool is_ruby_frame(const char *line, size_t length)
{
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
                length--;
        const char *in = memmem(line, length, ":in ", 4);
        if (!in || in == line || in[-1] < '0' || in[-1] > '9' || memchr(line, ' ', (size_t)(in - line)))
                return false;
        const char *method = in + 4, *last = line + length - 1;
        return method < last && (*method == '`' || *method == '\'') &&
               memchr(method + 1, '\'', (size_t)(last - method)) == last;
}

/* Drops frames of backtraces, before which a line tells what went wrong: lines that are indented, where not
 * all are, and those of Ruby behind the first, as Sidekiq writes them when it cannot boot. Returns the new
 * length. */
static size_t drop_frames(char *text, size_t length)
{
        size_t kept = 0;
        bool in_frames = false;

        for (size_t at = 0, next; at < length; at = next) {
                const char *newline = memchr(text + at, '\n', length - at);

                next = newline ? (size_t)(newline - text) + 1 : length;
                if (text[at] == ' ' || text[at] == '\t')
                        continue;
                bool first = !in_frames;
                in_frames = is_ruby_frame(text + at, next - at);
                if (in_frames && !first)
                        continue;
                /* Nothing is overwritten that has not been looked at, but with no line kept all must stay. */
                memmove(text + kept, text + at, next - at);
                kept += next - at;
        }
        return kept > 0 ? kept : length;
}

/* Cuts text down to its last LAUNCH_LAST_LINES lines, and to max bytes: whole lines where one fits. Returns
 * the new length. */
static size_t keep_last_lines(char *text, size_t length, size_t max)
{
        unsigned lines = 0;

        while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
                length--;
        size_t first = length;
        for (size_t at = length; at > 0 && lines < LAUNCH_LAST_LINES && length - at < max; at--) {
                if (at == 1 || text[at - 2] == '\n') {
                        first = at - 1;
                        lines++;
                }
        }
        if (lines == 0)
                first = length - MIN(length, max);
        memmove(text, text + first, length - first);
        return length - first;
}

void launch_cut_lines(char *text, size_t length, char *lines, size_t size)
{
        /* Sidekiq 8 colours each line that it logs, on a terminal or not. */
        length = printable_drop_colours(text, length);
        length = drop_frames(text, length);
        length = keep_last_lines(text, length, MIN((size_t)LAUNCH_LAST_MAX_BYTES, size - 1));
        printable_replace(text, length, true);
        memcpy(lines, text, length);
        lines[length] = '\0';
}

int launch_last_lines(int log_fd, uint64_t start_bytes, char *lines, size_t size)
{
        char text[LOOK_BACK_BYTES];
        struct stat st;

        if (fstat(log_fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode)) {
                lines[0] = '\0';
                return 0;
        }
        uint64_t end = (uint64_t)st.st_size;
        /* A log that is shorter than it was has been cut off since by its rotation: all of it is new. */
        uint64_t start = end < start_bytes ? 0 : start_bytes;
        uint64_t from = end - start > sizeof(text) ? end - sizeof(text) : start;
        ssize_t n;
        do
                n = pread(log_fd, text, (size_t)(end - from), (off_t)from);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        launch_cut_lines(text, (size_t)n, lines, size);
        return 0;
}

int launch_raise_nofile(struct rlimit *ret)
{
        struct rlimit before;

        if (getrlimit(RLIMIT_NOFILE, &before) < 0)
                return -errno;
        struct rlimit raised = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
                return -errno;
        *ret = before;
        return 0;
}
