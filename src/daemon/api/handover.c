/* SPDX-License-Identifier: MIT */
/* The sockets that one image of sqmgr leaves to the next. */
#include "daemon/api/handover.h"
#include "base/fd.h"
#include "base/parse.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE "SQMGR_REEXEC"
/* A kind's name and a number each. */
#define TEXT_MAX (size_t)(16 * (2 * SERVER_CONNECTIONS_MAX + 2) + 40 * HANDOVER_TEMPLATES_MAX)
#define TEMPLATE "template-" /* and the pid of its command */

static int put_fd(char **at, const char *end, const char *kind, int fd)
{
        int n = snprintf(*at, (size_t)(end - *at), "%s:%d ", kind, fd);

        if (n < 0 || n >= end - *at)
                return -ENOBUFS;
        *at += n;
        return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
}

int handover_put(const struct handover *handover)
{
        char text[TEXT_MAX] = "", *at = text;
        const char *end = text + sizeof(text);

        at += snprintf(at, sizeof(text), "pid:%d ", (int)getpid());
        int r = fd_close_range(STDERR_FILENO + 1, UINT_MAX, true);
        if (r == 0)
                r = put_fd(&at, end, "listen", handover->listen_fd);
        if (r == 0 && handover->view_fd > 0)
                r = put_fd(&at, end, "view", handover->view_fd);
        for (size_t i = 0; i < handover->n_idle && r == 0; i++)
                r = put_fd(&at, end, "idle", handover->idle[i]);
        for (size_t i = 0; i < handover->n_callers && r == 0; i++)
                r = put_fd(&at, end, "caller", handover->callers[i]);
        for (size_t i = 0; i < handover->n_templates && r == 0; i++) {
                char kind[32];

                snprintf(kind, sizeof(kind), TEMPLATE "%d", (int)handover->templates[i].pid);
                r = put_fd(&at, end, kind, handover->templates[i].fd);
        }
        if (r == 0 && setenv(VARIABLE, text, true) < 0)
                r = -errno;
        return r;
}

void handover_undo(const struct handover *handover)
{
        (void)fcntl(handover->listen_fd, F_SETFD, FD_CLOEXEC);
        if (handover->view_fd > 0)
                (void)fcntl(handover->view_fd, F_SETFD, FD_CLOEXEC);
        for (size_t i = 0; i < handover->n_idle; i++)
                (void)fcntl(handover->idle[i], F_SETFD, FD_CLOEXEC);
        for (size_t i = 0; i < handover->n_callers; i++)
                (void)fcntl(handover->callers[i], F_SETFD, FD_CLOEXEC);
        for (size_t i = 0; i < handover->n_templates; i++)
                (void)fcntl(handover->templates[i].fd, F_SETFD, FD_CLOEXEC);
        (void)unsetenv(VARIABLE);
}

static bool has_fd(const struct handover *handover, int fd)
{
        bool has = handover->listen_fd == fd || handover->view_fd == fd;

        for (size_t i = 0; i < handover->n_idle; i++)
                has |= handover->idle[i] == fd;
        for (size_t i = 0; i < handover->n_callers; i++)
                has |= handover->callers[i] == fd;
        for (size_t i = 0; i < handover->n_templates; i++)
                has |= handover->templates[i].fd == fd;
        return has;
}

static void take_fd(struct handover *handover, const char *word)
{
        const char *colon = strchr(word, ':');
        struct stat status;
        uint64_t number;

        if (!colon || parse_unsigned(colon + 1, STDERR_FILENO + 1, INT32_MAX, &number) < 0)
                return;
        int fd = (int)number;
        if (has_fd(handover, fd) || fstat(fd, &status) < 0 || !S_ISSOCK(status.st_mode) ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                return;
        size_t length = (size_t)(colon - word);
        if (length == strlen("listen") && strncmp(word, "listen", length) == 0 && handover->listen_fd == 0)
                handover->listen_fd = fd;
        else if (length == strlen("view") && strncmp(word, "view", length) == 0 && handover->view_fd == 0)
                handover->view_fd = fd;
        else if (length == strlen("idle") && strncmp(word, "idle", length) == 0 &&
                 handover->n_idle < SERVER_CONNECTIONS_MAX)
                handover->idle[handover->n_idle++] = fd;
        else if (length == strlen("caller") && strncmp(word, "caller", length) == 0 &&
                 handover->n_callers < SERVER_CONNECTIONS_MAX)
                handover->callers[handover->n_callers++] = fd;
        else if (strncmp(word, TEMPLATE, strlen(TEMPLATE)) == 0 &&
                 handover->n_templates < HANDOVER_TEMPLATES_MAX)
                handover->templates[handover->n_templates++] =
                        (struct template_handed){(pid_t)strtol(word + strlen(TEMPLATE), NULL, 10), fd};
}

void handover_take(struct handover *ret)
{
        char *text = getenv(VARIABLE), *rest = text, own[32];
        const char *pid = strsep(&rest, " ");

        /* What was left to another process, whose environment we inherited, is not for us. */
        snprintf(own, sizeof(own), "pid:%d", (int)getpid());
        *ret = (struct handover){.taken = pid && strcmp(pid, own) == 0};
        for (const char *word; ret->taken && (word = strsep(&rest, " "));)
                take_fd(ret, word);
        (void)unsetenv(VARIABLE);
}
