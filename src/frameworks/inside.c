/* SPDX-License-Identifier: MIT */
/* Identities of workers in namespaces of their own; see the header. */
#include "frameworks/inside.h"

static int compare_names(const void *a, const void *b)
{
        const struct inside_name *left = a, *right = b;
        int r = strcmp(left->name, right->name);

        if (r == 0)
                r = (left->own_pid > right->own_pid) - (left->own_pid < right->own_pid);
        return r != 0 ? r : right->owner->seeks - left->owner->seeks;
}

/* A name that several processes of a worker have with one pid is added once for each: owners are few. */
static size_t count_names(const struct inside_owner *owners, size_t n)
{
        size_t names = 0;

        for (size_t i = 0; i < n; i++)
                names += 1 + 2 * owners[i].inside->n;
        return names;
}

static void add_name(struct inside_names *names, const char *name, pid_t own_pid,
                     const struct inside_owner *owner)
{
        if (name[0] != '\0')
                names->list[names->n++] =
                        (struct inside_name){.name = name, .own_pid = own_pid, .owner = owner};
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

                add_name(ret, inside->unique, 0, &owners[i]);
                for (size_t k = 0; k < inside->n; k++) {
                        add_name(ret, inside->variable, inside->list[k].own_pid, &owners[i]);
                        add_name(ret, inside->list[k].host, inside->list[k].own_pid, &owners[i]);
                }
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

/* Compares as compare_names() does, without the owner. */
static int compare_name(const struct inside_name *name, const char *host, size_t len, pid_t own_pid)
{
        int r = strncmp(name->name, host, len);

        if (r != 0 || name->name[len] != '\0')
                return r != 0 ? r : 1;
        return (name->own_pid > own_pid) - (name->own_pid < own_pid);
}

/* Returns the position of the first name that is not before this one. */
static size_t first_name(const struct inside_names *names, const char *host, size_t len, pid_t own_pid)
{
        size_t low = 0, high = names->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare_name(&names->list[middle], host, len, own_pid) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Returns the name at the position if it is this one, or NULL. */
static const struct inside_name *name_at(const struct inside_names *names, size_t at, const char *host,
                                         size_t len, pid_t own_pid)
{
        return at < names->n && compare_name(&names->list[at], host, len, own_pid) == 0 ? &names->list[at]
                                                                                        : NULL;
}

static const struct inside_name *find_name(const struct inside_names *names, const char *host, size_t len,
                                           pid_t own_pid)
{
        return name_at(names, first_name(names, host, len, own_pid), host, len, own_pid);
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

bool inside_names_have(const struct inside_names *names, const char *host, size_t len, pid_t own_pid)
{
        return find_name(names, host, len, 0) || find_name(names, host, len, own_pid);
}

/* Returns the owner whose known identity this is, or NULL. */
static const struct inside_owner *find_knower(const struct inside_names *names,
                                              const struct candidate *candidate)
{
        /* Most candidates are of no worker in namespaces. */
        if (!candidate->owner &&
            !find_name(names, candidate->identity, candidate->host_len, candidate->own_pid))
                return NULL;
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

static void assign_owner(struct candidate *candidate, const struct inside_owner *owner,
                         const struct inside_process *process, bool unique)
{
        candidate->owner = owner->owner;
        candidate->pid = process ? process->pid : owner->main_pid;
        candidate->unique = unique;
        candidate->remote = !process;
        candidate->claimed = true;
}

/* Finds the only worker that seeks its identity and has this name with this pid. */
static const struct inside_owner *find_claimant(const struct inside_names *names,
                                                const struct candidate *candidate,
                                                const struct inside_process **ret)
{
        const char *host = candidate->identity;
        size_t len = candidate->host_len, at = first_name(names, host, len, candidate->own_pid);
        const struct inside_owner *claimant = NULL;

        for (const struct inside_name *name; (name = name_at(names, at, host, len, candidate->own_pid));
             at++) {
                bool several, is_any = strcmp(name->name, name->owner->inside->variable) == 0;

                /* Further ones seek nothing. A user can give all processes of its workers one name. */
                if (!name->owner->seeks)
                        break;
                if (claimant == name->owner)
                        continue;
                const struct inside_process *process = inside_find(name->owner->inside, candidate->own_pid,
                                                                   is_any ? NULL : name->name, &several);
                if (!process || claimant)
                        return NULL;
                claimant = name->owner;
                *ret = process;
        }
        return claimant;
}

/* Finds the owner by the name that was given to this start of it alone. */
static const struct inside_owner *find_unique(const struct inside_owner *owner,
                                              const struct candidate *candidate,
                                              const struct inside_process **ret)
{
        bool several;

        *ret = inside_find(owner->inside, candidate->own_pid, NULL, &several);
        return *ret || (!several && is_remote(owner, candidate)) ? owner : NULL;
}

bool inside_names_find(const struct inside_names *names, struct candidate *candidate)
{
        const struct inside_name *unique = find_name(names, candidate->identity, candidate->host_len, 0);
        const struct inside_owner *owner, *knower = unique ? NULL : find_knower(names, candidate);
        const struct inside_process *process = NULL;

        if (knower && candidate->owner == knower->owner)
                return true;
        if (unique)
                owner = find_unique(unique->owner, candidate, &process);
        else
                owner = knower ? NULL : find_claimant(names, candidate, &process);
        if (candidate->owner && (!owner || candidate->owner != owner->owner))
                match_disown(candidate);
        if (owner)
                assign_owner(candidate, owner, process, unique);
        return owner;
}
