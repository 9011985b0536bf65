/* SPDX-License-Identifier: MIT */
/* Child processes other than workers, and the callbacks for their exits. */
#include "daemon/runtime/children.h"
#include "io/signal.h"
#include <sys/wait.h>

void children_add(struct children *children, struct child *child)
{
        child->next = children->first;
        children->first = child;
}

void children_remove(struct children *children, struct child *child)
{
        LIST_UNLINK(children->first, child);
        child->deadline = sd_event_source_disable_unref(child->deadline);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct child *child = userdata;

        child->late = true;
        (void)signal_child_group(child->pid, SIGKILL);
        return 0;
}

int child_limit(struct child *child, sd_event *event, usec_t timeout)
{
        int r = sd_event_add_time_relative(event, &child->deadline, CLOCK_MONOTONIC, timeout, 0, on_deadline,
                                           child);

        return MIN(r, 0);
}

void children_kill(struct children *children, struct child *child)
{
        if (child->pid <= 0)
                return;
        children_remove(children, child);
        (void)signal_child(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
        child->pid = 0;
}

struct exit_status children_status(const siginfo_t *info)
{
        return (struct exit_status){
                .known = true, .by_signal = info->si_code != CLD_EXITED, .status = info->si_status};
}

bool children_reap(struct children *children, pid_t pid)
{
        struct child *child = children->first;
        siginfo_t info = {0};

        while (child && child->pid != pid)
                child = child->next;
        if (!child || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return false;
        children_remove(children, child);
        child->pid = 0;
        child->exited(child, &info);
        return true;
}
