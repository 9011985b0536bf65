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

const struct inside_process *inside_find(const struct inside *inside, pid_t own_pid, const char *host,
                                         bool *ret_several)
{
        const struct inside_process *below = NULL, *beside = NULL;

        *ret_several = false;
        for (size_t i = 0; i < inside->n; i++) {
                const struct inside_process *process = &inside->list[i];

                if (process->own_pid != own_pid || (host && strcmp(process->host, host) != 0))
                        continue;
                if (process->pid == own_pid) {
                        beside = process;
                        continue;
                }
                *ret_several |= !!below;
                below = process;
        }
        return *ret_several ? NULL : below ?: beside;
}

/* Finds the process of the name's owner that may send heartbeats under this name. */
static const struct inside_process *find_named(const struct inside_name *name, pid_t own_pid,
                                               bool *ret_several)
{
        const struct inside *inside = name->owner->inside;
        bool is_any = name->unique || strcmp(name->name, inside->variable) == 0;

        return inside_find(inside, own_pid, is_any ? NULL : name->name, ret_several);
}

bool inside_names_have(const struct inside_names *names, const char *host, size_t len, pid_t own_pid)
{
        bool several;

        for (size_t at = first_name(names, host, len); name_is(names, at, host, len); at++)
                if (names->list[at].unique || find_named(&names->list[at], own_pid, &several) || several)
                        return true;
        return false;
}

/* Returns the owner whose known identity this is, or NULL. */
static const struct inside_owner *find_knower(const struct inside_names *names,
                                              const struct candidate *candidate)
{
        for (size_t i = 0; i < names->n_owners; i++) {
                const char *identity = *names->owners[i].identity;

                if (identity && strcmp(identity, candidate->identity) == 0)
                        return &names->owners[i];
        }
        return NULL;
}

/* Returns true if all processes of the worker, as of a time when the identity existed, lack its process, as
 * below `docker run`. */
static bool is_remote(const struct inside_owner *owner, const struct candidate *candidate)
{
        return owner->inside->complete && owner->read_at >= candidate->seen_at;
}

static void own(struct candidate *candidate, const struct inside_owner *owner,
                const struct inside_process *process, bool unique)
{
        candidate->owner = owner->owner;
        candidate->pid = process ? process->pid : owner->main_pid;
        candidate->unique = unique;
        candidate->remote = !process;
        candidate->claimed = true;
}

/* Finds the only worker that seeks its identity and has this name with this pid. */
static const struct inside_owner *find_claimant(const struct inside_names *names, size_t at,
                                                const struct candidate *candidate,
                                                const struct inside_process **ret)
{
        const struct inside_owner *claimant = NULL;
        bool several = false;

        for (; name_is(names, at, candidate->identity, candidate->host_len); at++) {
                const struct inside_name *name = &names->list[at];

                if (!name->owner->seeks || claimant == name->owner)
                        continue;
                const struct inside_process *process = find_named(name, candidate->own_pid, &several);
                if (several || (process && claimant))
                        return NULL;
                if (process) {
                        claimant = name->owner;
                        *ret = process;
                }
        }
        return claimant;
}

/* Finds the owner by the name that was given to this start of it alone. Returns false if there is no such
 * name. */
static bool find_unique(const struct inside_names *names, size_t at, const struct candidate *candidate,
                        const struct inside_owner **ret, const struct inside_process **ret_process)
{
        bool several;

        while (name_is(names, at, candidate->identity, candidate->host_len) && !names->list[at].unique)
                at++;
        if (!name_is(names, at, candidate->identity, candidate->host_len))
                return false;
        const struct inside_owner *owner = names->list[at].owner;
        *ret_process = inside_find(owner->inside, candidate->own_pid, NULL, &several);
        *ret = *ret_process || (!several && is_remote(owner, candidate)) ? owner : NULL;
        return true;
}

bool inside_names_find(const struct inside_names *names, struct candidate *candidate)
{
        size_t at = first_name(names, candidate->identity, candidate->host_len);
        const struct inside_owner *owner = NULL;
        const struct inside_process *process = NULL;

        bool unique = find_unique(names, at, candidate, &owner, &process);
        const struct inside_owner *knower = unique ? NULL : find_knower(names, candidate);
        if (knower && candidate->owner == knower->owner)
                return true;
        if (!unique && !knower)
                owner = find_claimant(names, at, candidate, &process);
        if (candidate->owner && (!owner || candidate->owner != owner->owner))
                match_disown(candidate);
        if (owner)
                own(candidate, owner, process, unique);
        return owner;
}
