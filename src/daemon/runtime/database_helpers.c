/* SPDX-License-Identifier: MIT */
/* Starts the helper programs of databases; see the header. */
#include "daemon/runtime/database_helpers.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/own_program.h"
#include "io/program.h"
#include "io/signal.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>

/* Helpers that were killed and have not ended. A helper may wait for a file system that does not answer,
 * which SIGKILL does not end. */
#define STUCK_MAX 4
/* How long database_helpers_clear() waits for the ends of helpers. */
#define END_USEC USEC_PER_SEC

struct database_helper {
        struct child child;
        void (*ended)(const char *how, void *userdata); /* NULL: sqmgr has stopped it */
        void *userdata;
};

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct database_helper *helper = (struct database_helper *)child;
        const struct exit_status exit = children_status(info);

        if (helper->ended)
                helper->ended(EXIT_STATUS_TEXT(&exit), helper->userdata);
        free(helper);
}

/* Returns a descriptor or -errno. */
static int open_program(const struct database_helpers *helpers, enum database_engine engine)
{
        const char *name = database_engine_program(engine);
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", helpers->folder ?: PROGRAMS_FOLDER, name);
        if (!helpers->folder)
                return own_program_open(name, path);
        int fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool is_stuck(const struct database_helpers *helpers)
{
        unsigned n = 0;

        for (const struct child *child = helpers->children->first; child; child = child->next)
                n += child->exited == on_exited && !((const struct database_helper *)child)->ended;
        return n >= STUCK_MAX;
}

static int start(struct database_starter *starter, enum database_engine engine,
                 void (*ended)(const char *how, void *userdata), void *userdata, struct database_helper **ret,
                 int *ret_fd)
{
        struct database_helpers *helpers = (struct database_helpers *)starter;
        int *program_fd = &helpers->program_fds[engine];
        pid_t pid;

        /* The program may be installed by now. */
        if (*program_fd < 0)
                *program_fd = open_program(helpers, engine);
        if (*program_fd < 0)
                return *program_fd;
        if (is_stuck(helpers))
                return -EBUSY;
        struct database_helper *helper = calloc(1, sizeof(*helper));
        if (!helper)
                return -ENOMEM;
        int r = helper_start(*program_fd, database_engine_program(engine), &pid, ret_fd);
        if (r < 0) {
                free(helper);
                return r;
        }
        *helper = (struct database_helper){
                .child = {.pid = pid, .exited = on_exited}, .ended = ended, .userdata = userdata};
        children_add(helpers->children, &helper->child);
        *ret = helper;
        return 0;
}

/* Kills the helper without waiting: a file system can delay its end. on_exited() frees it. */
static void stop(struct database_helper *helper)
{
        helper->ended = NULL;
        (void)signal_child(helper->child.pid, SIGKILL);
}

void database_helpers_init(struct database_helpers *ret, struct children *children, const char *folder)
{
        *ret = (struct database_helpers){
                .starter = {.start = start, .stop = stop},
                .children = children,
                .folder = folder,
        };
        for (unsigned engine = 0; engine < ELEMENTSOF(ret->program_fds); engine++)
                ret->program_fds[engine] = open_program(ret, (enum database_engine)engine);
}

/* Waits for the end of a killed helper until the deadline. */
static void await_end(pid_t pid, siginfo_t *info, usec_t deadline)
{
        *info = (siginfo_t){0};
        while (TEMP_FAILURE_RETRY(waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG)) == 0 &&
               info->si_pid == 0 && clock_now(CLOCK_MONOTONIC) < deadline)
                (void)usleep(USEC_PER_MSEC);
}

void database_helpers_clear(struct database_helpers *helpers)
{
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), END_USEC);
        struct child *first = helpers->children ? helpers->children->first : NULL;

        for (struct child *child = first; child; child = child->next)
                if (child->exited == on_exited)
                        (void)signal_child(child->pid, SIGKILL);
        for (struct child *child = first, *next; child; child = next) {
                siginfo_t info;

                next = child->next;
                if (child->exited != on_exited)
                        continue;
                await_end(child->pid, &info, deadline);
                children_remove(helpers->children, child);
                child->exited(child, &info);
        }
        FOREACH_ELEMENT(fd, helpers->program_fds)
                *fd = close_fd(MAX(*fd, -1));
}
