/* SPDX-License-Identifier: MIT */
/* Answers questions about a process from files that can make the caller wait. */
#include "io/proc_answer.h"
#include "base/fd.h"
#include "io/log_tail.h"
#include "io/proc.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define PROC_READER_COMM "sqmgr-proc-read"

/* Longer environments are cut. sqmgr's variables come first, but a shell in between may have reordered them.
 */
#define ENVIRONMENT_MAX_BYTES ((size_t)128 << 10)

static bool is_answered(const char *variable)
{
        static const char *const begins[] = PROC_VARIABLES;
        bool any = false;

        FOREACH_ELEMENT(begin, begins)
                any |= strncmp(variable, *begin, strlen(*begin)) == 0;
        return any;
}

static int answer_environment(const struct proc *proc, struct proc_reply *reply)
{
        static char text[ENVIRONMENT_MAX_BYTES];

        ssize_t length = proc_environment(proc, text, sizeof(text));
        if (length < 0)
                return (int)length;
        reply->read_bytes = (uint32_t)length;
        for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1) {
                size_t size = strlen(text + at) + 1;

                if (!is_answered(text + at) || size > sizeof(reply->text) - reply->length)
                        continue;
                memcpy(reply->text + reply->length, text + at, size);
                reply->length += (uint32_t)size;
        }
        return 0;
}

static int answer_process(const struct proc_question *question, struct proc_reply *reply)
{
        _cleanup_proc_ struct proc *proc = NULL;

        int r = proc_open(question->pid, &proc);
        if (r < 0)
                return r;
        if (proc_start_time(proc) != question->start)
                return -ESRCH;
        switch (question->subject) {
        case PROC_TITLE:
                return proc_title(proc, reply->text, sizeof(reply->text));
        case PROC_PEERS:
                return proc_peers(proc, reply->text);
        case PROC_ENVIRONMENT:
                return answer_environment(proc, reply);
        case PROC_MEMORY:
                return proc_mapped_bytes(proc, &reply->pss_bytes, &reply->private_bytes);
        default:
                return -EINVAL;
        }
}

static int answer_log_tail(const struct proc_question *question, int log_fd, struct proc_reply *reply)
{
        const pid_t pids[2] = {question->pid, question->other_pid};

        return log_tail_read(log_fd, question->start, pids, reply->text, LOG_TAIL_MAX_BYTES + 1);
}

void proc_answer(const struct proc_question *question, int log_fd, struct proc_reply *reply)
{
        bool is_text = question->subject != PROC_MEMORY && question->subject != PROC_ENVIRONMENT;

        memset(reply, 0, offsetof(struct proc_reply, text));
        reply->error = question->subject == PROC_LOG_TAIL ? answer_log_tail(question, log_fd, reply)
                                                          : answer_process(question, reply);
        if (reply->error < 0)
                reply->length = 0;
        else if (is_text)
                reply->length = (uint32_t)strlen(reply->text) + 1;
}

int proc_answer_serve(int fd)
{
        static struct proc_question questions[PROC_QUESTIONS_MAX];
        static struct proc_reply reply;
        ssize_t n;
        int log_fd;

        (void)prctl(PR_SET_NAME, PROC_READER_COMM);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        /* Questions, and the log if one is attached. */
        while ((n = fd_receive(fd, questions, sizeof(questions), &log_fd, 0)) >=
               (ssize_t)sizeof(*questions)) {
                for (size_t i = 0; i < (size_t)n / sizeof(*questions); i++) {
                        proc_answer(&questions[i], log_fd, &reply);
                        if (send(fd, &reply, offsetof(struct proc_reply, text) + reply.length, MSG_NOSIGNAL) <
                            0)
                                return -errno;
                }
                close_fd(log_fd);
        }
        return 0;
}
