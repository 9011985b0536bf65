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
