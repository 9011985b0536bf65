/* SPDX-License-Identifier: MIT */
/* Identities of workers in namespaces of their own; see the header. */
#include "frameworks/inside.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
        const struct inside_name *left = a, *right = b;

        return strcmp(left->name, right->name);
}

/* A name that several processes of a worker have is added once for each: owners are few. */
static size_t count_names(const struct inside_owner *owners, size_t n)
{
        size_t names = 0;

        for (size_t i = 0; i < n; i++)
                names += 2 + owners[i].inside->n;
        return names;
}

static void add_name(struct inside_names *names, const char *name, const struct inside_owner *owner,
                     bool unique)
{
        if (name[0] != '\0')
                names->list[names->n++] = (struct inside_name){name, owner, unique};
}

int inside_names_make(struct inside_owner *owners, size_t n, struct inside_names *ret)
{
        *ret = (struct inside_names){.owners = owners, .n_owners = n};
        if (n == 0)
                return 0;
        ret->list = calloc(count_names(owners, n), sizeof(*ret->list));
        if (!ret->list) {
                inside_names_clear(ret);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++) {
                const struct inside *inside = owners[i].inside;

                add_name(ret, inside->unique, &owners[i], true);
                add_name(ret, inside->variable, &owners[i], false);
                for (size_t k = 0; k < inside->n; k++)
                        if (k == 0 || strcmp(inside->list[k].host, inside->list[k - 1].host) != 0)
                                add_name(ret, inside->list[k].host, &owners[i], false);
        }
        qsort(ret->list, ret->n, sizeof(*ret->list), compare_names);
        return 0;
}

void inside_names_clear(struct inside_names *names)
{
        free(names->list);
        free(names->owners);
        *names = (struct inside_names){0};
}

/* Returns the position of the first name that is not before this one. */
static size_t first_name(const struct inside_names *names, const char *host, size_t len)
{
        size_t low = 0, high = names->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strncmp(names->list[middle].name, host, len) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool name_is(const struct inside_names *names, size_t at, const char *host, size_t len)
{
        return at < names->n && strncmp(names->list[at].name, host, len) == 0 &&
               names->list[at].name[len] == '\0';
}

bool inside_names_have(const struct inside_names *names, const char *host, size_t len)
{
        return name_is(names, first_name(names, host, len), host, len);
}

/* Counts the processes of the worker with this pid and host name; host NULL: any host name. *ret: the last
 * one. */
static size_t find_processes(const struct inside *inside, pid_t own_pid, const char *host,
                             const struct inside_process **ret)
{
        size_t n = 0;

        for (size_t i = 0; i < inside->n; i++) {
                const struct inside_process *process = &inside->list[i];

                if (process->own_pid != own_pid || (host && strcmp(process->host, host) != 0))
                        continue;
                *ret = process;
                n++;
        }
        return n;
}

static bool is_known(const struct inside_names *names, struct candidate *candidate)
{
        for (size_t i = 0; i < names->n_owners; i++) {
                const char *identity = *names->owners[i].identity;

                if (identity && strcmp(identity, candidate->identity) == 0)
                        return true;
        }
        return false;
}

static void take(struct candidate *candidate, const struct inside_owner *owner, pid_t pid, bool unique)
{
        candidate->owner = owner->owner;
        candidate->pid = pid;
        candidate->unique = unique;
}

/* Without a process of that pid among all processes of the worker, the process is none of its descendants, as
 * below `docker run`. */
static bool take_unique(struct candidate *candidate, const struct inside_owner *owner)
{
        const struct inside_process *process = NULL;
        size_t n = find_processes(owner->inside, candidate->own_pid, NULL, &process);

        if (n > 1 || (n == 0 && !owner->inside->complete))
                return false;
        candidate->remote = n == 0;
        take(candidate, owner, process ? process->pid : owner->main_pid, true);
        return true;
}

bool inside_names_find(const struct inside_names *names, struct candidate *candidate)
{
        const char *host = candidate->identity;
        size_t len = candidate->host_len;
        const struct inside_owner *claimant = NULL;
        const struct inside_process *process = NULL;

        for (size_t at = first_name(names, host, len); name_is(names, at, host, len); at++) {
                const struct inside_name *name = &names->list[at];
                const struct inside *inside = name->owner->inside;

                if (name->unique)
                        return take_unique(candidate, name->owner);
                if (!name->owner->seeks || claimant == name->owner)
                        continue;
                bool by_variable = strcmp(name->name, inside->variable) == 0;
                const struct inside_process *one = NULL;
                size_t n = find_processes(inside, candidate->own_pid, by_variable ? NULL : name->name, &one);
                if (n > 1 || (n == 1 && claimant))
                        return false;
                if (n == 1) {
                        claimant = name->owner;
                        process = one;
                }
        }
        if (!claimant || is_known(names, candidate))
                return false;
        take(candidate, claimant, process->pid, false);
        return true;
}
