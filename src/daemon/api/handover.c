/* SPDX-License-Identifier: MIT */
/* Passes sockets from one image of sqmgr to the next. */
#include "daemon/api/handover.h"
#include "base/fd.h"
#include "base/parse.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE        "SQMGR_REEXEC"
#define ENTRY_MAX_BYTES 40

/* Prefix of the descriptor. For templates, the pid of the command comes in between. */
static const char *const prefixes[] = {
        [HANDED_LISTEN] = "listen:",
        [HANDED_IDLE] = "idle:",
        [HANDED_CALLER] = "caller:",
        [HANDED_TEMPLATE] = "template-",
};
static_assert(ELEMENTSOF(prefixes) == _HANDED_MAX, "one for each kind");

int handover_put(const struct handover *handover)
{
        char text[ENTRY_MAX_BYTES * (1 + HANDOVER_MAX)];
        int at = snprintf(text, sizeof(text), "pid:%d ", (int)getpid());
        int r = fd_close_at_exec(STDERR_FILENO + 1);

        for (size_t i = 0; i < handover->n && r == 0; i++) {
                const struct handed *handed = &handover->list[i];
                char pid[16] = "";

                if (handed->kind == HANDED_TEMPLATE)
                        snprintf(pid, sizeof(pid), "%d:", (int)handed->pid);
                at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s%d ", prefixes[handed->kind], pid,
                               handed->fd);
                r = fcntl(handed->fd, F_SETFD, 0) < 0 ? -errno : 0;
        }
        if (r == 0 && setenv(VARIABLE, text, true) < 0)
                r = -errno;
        return r;
}

void handover_undo(const struct handover *handover)
{
        for (size_t i = 0; i < handover->n; i++)
                (void)fcntl(handover->list[i].fd, F_SETFD, FD_CLOEXEC);
        (void)unsetenv(VARIABLE);
}

static void take_fd(struct handover *handover, const char *word)
{
        const char *colon = strchr(word, ':');
        struct handed handed = {.kind = 0};
        struct stat status;
        uint64_t number;

        if (handover->n == HANDOVER_MAX || !colon ||
            parse_unsigned(colon + 1, STDERR_FILENO + 1, INT32_MAX, &number) < 0)
                return;
        handed.fd = (int)number;
        for (size_t i = 0; i < handover->n; i++)
                if (handover->list[i].fd == handed.fd)
                        return;
        if (fstat(handed.fd, &status) < 0 || !S_ISSOCK(status.st_mode) ||
            fcntl(handed.fd, F_SETFD, FD_CLOEXEC) < 0)
                return;
        while (strncmp(word, prefixes[handed.kind], strlen(prefixes[handed.kind])) != 0)
                if (++handed.kind == _HANDED_MAX)
                        return;
        if (handed.kind == HANDED_TEMPLATE)
                handed.pid = (pid_t)strtol(word + strlen(prefixes[HANDED_TEMPLATE]), NULL, 10);
        handover->list[handover->n++] = handed;
}

void handover_take(struct handover *ret)
{
        char *text = getenv(VARIABLE), *rest = text, own[32];
        const char *pid = strsep(&rest, " ");

        /* Ignore descriptors meant for another process whose environment we inherited. */
        snprintf(own, sizeof(own), "pid:%d", (int)getpid());
        *ret = (struct handover){.taken = pid && strcmp(pid, own) == 0};
        for (const char *word; ret->taken && (word = strsep(&rest, " "));)
                take_fd(ret, word);
        (void)unsetenv(VARIABLE);
}

int handover_fd(const struct handover *handover, unsigned kind)
{
        for (size_t i = 0; i < handover->n; i++)
                if (handover->list[i].kind == kind)
                        return handover->list[i].fd;
        return 0;
}
