/* SPDX-License-Identifier: MIT */
/* Finds the processes that other running sqmgrs watch; see the header. */
#include "io/watchers.h"
#include "base/fd.h"
#include "io/proc.h"
#include "privileged/proc_inspect.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct reading {
        struct watchers *watchers;
        struct watched next; /* without its pid */
};

static int add(pid_t pid, void *userdata)
{
        const struct reading *reading = userdata;
        struct watchers *watchers = reading->watchers;

        if (!ARRAY_RESERVE(watchers->list, watchers->n, watchers->allocated))
                return -ENOMEM;
        watchers->list[watchers->n] = reading->next;
        watchers->list[watchers->n++].pid = pid;
        return 0;
}

static bool has_name(pid_t pid)
{
        char path[64], text[64];

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        ssize_t length = fd_read_file(AT_FDCWD, path, text, sizeof(text));
        if (length > 0 && text[length - 1] == '\n')
                text[length - 1] = '\0';
        return length > 0 && strcmp(text, WATCHERS_COMM) == 0;
}

static int read_process(struct watchers *watchers, pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;
        struct reading reading = {.watchers = watchers, .next.sqmgr = pid};
        struct proc_place place;
        uid_t uid;

        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_uid(proc, &uid);
        if (r >= 0 && uid != geteuid())
                return 0;
        if (r >= 0)
                r = proc_place(proc, &place);
        /* Skip a child of ours: until it executes its program, it has copies of our pidfds. */
        if (r >= 0 && place.parent == getpid())
                return 0;
        if (r >= 0)
                r = proc_is_elsewhere(proc);
        reading.next.elsewhere = r > 0;
        if (r >= 0)
                r = proc_pidfds_each(proc, add, &reading);
        return none_unless_shortage(r);
}

static int compare_pids(const void *left, const void *right)
{
        const struct watched *a = left, *b = right;

        return (a->pid > b->pid) - (a->pid < b->pid);
}

int watchers_read(struct watchers *watchers)
{
        _cleanup_free_ pid_t *pids = NULL;
        size_t n;

        watchers->n = 0;
        int r = proc_all(&pids, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (pids[i] != getpid() && has_name(pids[i]))
                        r = read_process(watchers, pids[i]);
        if (r >= 0 && watchers->n > 1)
                qsort(watchers->list, watchers->n, sizeof(*watchers->list), compare_pids);
        return r;
}

const struct watched *watchers_find(const struct watchers *watchers, pid_t pid)
{
        const struct watched key = {.pid = pid};

        return watchers->n > 0 ? bsearch(&key, watchers->list, watchers->n, sizeof(key), compare_pids) : NULL;
}

void watchers_clear(struct watchers *watchers)
{
        free(watchers->list);
        *watchers = (struct watchers){0};
}
