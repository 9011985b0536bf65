/* SPDX-License-Identifier: MIT */
/* Lists a process and its descendants. */
#include "io/proc.h"

#include "base/fd.h"
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Limit for the children of a thread: one line with at most 8 bytes per child in practice. The limit exceeds
 * the kernel's pid_max. */
#define CHILDREN_MAX_BYTES ((size_t)64 << 20)

struct process_parent {
        pid_t pid;
        pid_t parent; /* if known */
};

struct process_parents {
        struct process_parent *list;
        size_t n;
        size_t allocated;
        bool one_level; /* direct children only: no process occurs twice */
};

static void families_done(struct process_parents *families)
{
        free(families->list);
}
#define _cleanup_families_ _cleanup_(families_done)

static int families_add(struct process_parents *families, pid_t pid, pid_t parent)
{
        if (!ARRAY_RESERVE(families->list, families->n, families->allocated))
                return -ENOMEM;
        families->list[families->n++] = (struct process_parent){.pid = pid, .parent = parent};
        return 0;
}

/* A process that is reparented during the scan could occur twice. */
static int families_add_new(struct process_parents *families, pid_t pid)
{
        for (size_t i = 0; i < families->n && !families->one_level; i++)
                if (families->list[i].pid == pid)
                        return 0;
        return families_add(families, pid, 0);
}

/* Calls each() for every directory entry whose name is a number, until a call returns nonzero, and returns
 * that value. */
static int numbers_each(const char *path, int (*each)(int dir_fd, pid_t number, void *userdata),
                        void *userdata)
{
        _cleanup_closedir_ DIR *dir = opendir(path);
        if (!dir)
                return -errno;
        for (const struct dirent *entry; (entry = readdir(dir));) {
                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                int r = each(dirfd(dir), (pid_t)strtol(entry->d_name, NULL, 10), userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int add_children_of_thread(int dir_fd, pid_t tid, void *userdata)
{
        _cleanup_free_ char *text = NULL;
        char path[64];
        size_t length;

        snprintf(path, sizeof(path), "%d/children", (int)tid);
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT || errno == ESRCH ? 0 : -errno;
        int r = fd_read_whole(fd, CHILDREN_MAX_BYTES, &text, &length);
        if (r < 0)
                return r == -ESRCH ? 0 : r;

        char *end;
        for (const char *p = text;; p = end) {
                long child = strtol(p, &end, 10);
                if (end == p)
                        return 0;
                r = families_add_new(userdata, (pid_t)child);
                if (r < 0)
                        return r;
        }
}

static int add_process(int dir_fd, pid_t pid, void *userdata)
{
        char path[64], text[1024];
        int parent;

        snprintf(path, sizeof(path), "%d/stat", (int)pid);
        ssize_t length = fd_read_file(dir_fd, path, text, sizeof(text));
        if (length < 0)
                return is_shortage((int)length) ? (int)length : 0;
        const char *rest = strrchr(text, ')');
        if (!rest || sscanf(rest + 1, " %*c %d", &parent) != 1)
                return 0;
        return families_add(userdata, pid, parent);
}

/* Adds the children of parent: from the `children` files of its threads, or from `all` if that was
 * scanned. */
static int add_children(struct process_parents *tree, const char *proc_root, pid_t parent,
                        const struct process_parents *all)
{
        if (all) {
                int r = 0;
                for (size_t i = 0; i < all->n && r >= 0; i++)
                        if (all->list[i].parent == parent)
                                r = families_add_new(tree, all->list[i].pid);
                return r;
        }

        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%d/task", proc_root, (int)parent);
        int r = numbers_each(path, add_children_of_thread, tree);
        return r == -ENOENT || r == -ESRCH ? 0 : r;
}

/* Returns true if the kernel has no `children` files. */
static bool needs_scan(const char *proc_root)
{
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/thread-self/children", proc_root);
        return access(path, R_OK) < 0;
}

static int families_pids(const struct process_parents *families, pid_t **ret, size_t *ret_n)
{
        pid_t *pids = calloc(families->n + 1, sizeof(*pids));

        if (!pids)
                return -ENOMEM;
        for (size_t i = 0; i < families->n; i++)
                pids[i] = families->list[i].pid;
        *ret = pids;
        *ret_n = families->n;
        return 0;
}

static int add_pid(int dir_fd _unused_, pid_t pid, void *userdata)
{
        return families_add(userdata, pid, 0);
}

int proc_all(pid_t **ret, size_t *ret_n)
{
        _cleanup_families_ struct process_parents all = {0};
        int r = numbers_each("/proc", add_pid, &all);

        return r < 0 ? r : families_pids(&all, ret, ret_n);
}

int proc_children(pid_t pid, pid_t **ret, size_t *ret_n)
{
        _cleanup_families_ struct process_parents children = {.one_level = true}, all = {0};
        bool scan = needs_scan("/proc");

        int r = scan ? numbers_each("/proc", add_process, &all) : 0;
        if (r >= 0)
                r = add_children(&children, "/proc", pid, scan ? &all : NULL);
        return r < 0 ? r : families_pids(&children, ret, ret_n);
}

int proc_tree_each_at(const char *proc_root, pid_t pid, int (*each)(pid_t pid, void *userdata),
                      void *userdata)
{
        _cleanup_families_ struct process_parents tree = {0}, all = {0};
        bool scan = needs_scan(proc_root);
        int r = scan ? numbers_each(proc_root, add_process, &all) : 0;
        if (r < 0)
                return r;

        r = families_add(&tree, pid, 0);
        if (r < 0)
                return r;
        for (size_t i = 0; i < tree.n; i++) {
                pid_t member = tree.list[i].pid;
                /* Read the children first: if each() ends the process, they can no longer be found. */
                r = add_children(&tree, proc_root, member, scan ? &all : NULL);
                if (r < 0)
                        return r;
                r = each(member, userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

struct each_process {
        int (*each)(pid_t pid, void *userdata);
        void *userdata;
        pid_t group;
};

static int call_each(int dir_fd _unused_, pid_t pid, void *userdata)
{
        const struct each_process *call = userdata;

        return getpgid(pid) == call->group ? call->each(pid, call->userdata) : 0;
}

int proc_group_each(pid_t group, int (*each)(pid_t pid, void *userdata), void *userdata)
{
        struct each_process call = {.each = each, .userdata = userdata, .group = group};

        return numbers_each("/proc", call_each, &call);
}

int proc_tree_each(pid_t pid, int (*each)(pid_t pid, void *userdata), void *userdata)
{
        return proc_tree_each_at("/proc", pid, each, userdata);
}
