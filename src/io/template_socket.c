/* SPDX-License-Identifier: MIT */
/* The sockets to a template and to the workers that it forks. */
#include "io/template_socket.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/printable.h"
#include "model/names.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int template_socket_pair(int *ret_ours, int *ret_theirs)
{
        int pair[2], yes = 1;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0 ||
            setsockopt(ours, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
                return -errno;
        *ret_ours = TAKE_FD(ours);
        *ret_theirs = TAKE_FD(theirs);
        return 0;
}

int template_socket_receive(int fd, struct template_message *ret)
{
        /* Without space for descriptors, the kernel drops them. Receiving one is unsafe: close() of a file on
         * FUSE could wait for its server. */
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(struct ucred))];
        } control;
        struct iovec data = {.iov_base = ret->text, .iov_len = TEMPLATE_MESSAGE_MAX};
        struct msghdr header = {
                .msg_iov = &data,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        struct ucred sender = {0};

        ssize_t n = TEMP_FAILURE_RETRY(recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
        if (n < 0)
                return -errno;
        for (struct cmsghdr *item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
                if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_CREDENTIALS &&
                    item->cmsg_len == CMSG_LEN(sizeof(sender)))
                        memcpy(&sender, CMSG_DATA(item), sizeof(sender));
        }
        if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                return -EBADMSG;
        if (n == 0)
                return 0;
        ret->length = (size_t)n;
        ret->text[n] = '\0';
        ret->pid = sender.pid;
        return 1;
}

int template_socket_fork(int fd, const struct template_fork *fork, int worker_fd)
{
        const char *log = fork->log && strcmp(fork->log, "inherit") != 0 ? fork->log : NULL;
        char text[TEMPLATE_MESSAGE_MAX];
        int n = snprintf(text, sizeof(text),
                         "fork%cSQMGR_WORKER=%s%cSQMGR_INDEX=%u%cSQMGR_GENERATION=%ju%cSQMGR_START=%ju", '\0',
                         WORKER_ID_OF(fork->fleet, fork->index), '\0', fork->index, '\0',
                         (uintmax_t)fork->generation, '\0', (uintmax_t)fork->started_at);

        if (n > 0 && log)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%clog=%s", '\0', log);
        if (n < 0 || (size_t)n >= sizeof(text))
                return -ENAMETOOLONG;
        return fd_send(fd, text, (size_t)n, worker_fd, MSG_DONTWAIT);
}

int template_socket_go(int fd)
{
        return fd_send(fd, "go", strlen("go"), -1, MSG_DONTWAIT);
}

/* Returns the word at *at and advances *at, which starts at 0; NULL: no more words. */
static const char *message_word(const struct template_message *message, size_t *at)
{
        const char *word = message->text + *at;

        if (*at >= message->length)
                return NULL;
        *at += strlen(word) + 1;
        return word;
}

bool template_message_is(const struct template_message *message, const char *word)
{
        size_t at = 0;
        const char *first = message_word(message, &at);

        return first && strcmp(first, word) == 0;
}

static const char *value_of(const char *word, const char *name)
{
        size_t length = strlen(name);

        return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Appends as much as fits. */
static void append(char *text, size_t size, const char *more)
{
        size_t length = strlen(text);

        snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", more);
}

bool template_message_ready(const struct template_message *message, struct template_ready *ret)
{
        char unsafe[256] = "", threads[256] = "";
        const char *word, *value;
        bool known = false;
        size_t at = 0;

        *ret = (struct template_ready){0};
        if (!template_message_is(message, "ready"))
                return false;
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "version")))
                        known = strcmp(value, "1") == 0;
                else if ((value = value_of(word, "unsafe")))
                        append(unsafe, sizeof(unsafe), value);
                else if ((value = value_of(word, "thread")))
                        append(threads, sizeof(threads), value);
        }
        quoted_set(&ret->unsafe, unsafe);
        quoted_set(&ret->threads, threads);
        return known;
}

bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text)
{
        const char *word, *value;
        uint64_t number = 0;
        size_t at = 0;

        *ret_errno = 0;
        quoted_set(ret_text, NULL);
        if (!template_message_is(message, "error"))
                return false;
        (void)message_word(message, &at);
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "errno")) && parse_unsigned(value, 1, INT16_MAX, &number) == 0)
                        *ret_errno = (int)number;
                else
                        quoted_set(ret_text, word);
        }
        return true;
}
