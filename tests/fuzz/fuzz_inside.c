/* SPDX-License-Identifier: MIT */
/* Fuzzes the names and pids of workers in namespaces of their own, which their users choose, and lists of
 * pids as in /proc/PID/status. Names are few, so that workers share them. */
#include "frameworks/inside.h"
#include "fuzz.h"
#include "io/proc.h"

#define MOST 3

static struct inside insides[MOST];
static char *identities[MOST];
static struct inside_owner *owners; /* as passed on */
static struct inside_owner copies[MOST];

static void take_name(struct input *input, char *name)
{
        static const char *const all[] = {"", "a", "ab", "b", "a:b", "vm:f.0.x"};

        strcpy(name, all[input_byte(input) % ELEMENTSOF(all)]);
}

static void take_worker(struct input *input, size_t i)
{
        struct inside *inside = &insides[i];
        uint8_t flags = input_byte(input);

        *inside = (struct inside){.complete = flags & 1};
        if (flags & 2)
                snprintf(inside->unique, sizeof(inside->unique), "vm:f.%zu.x", i);
        take_name(input, inside->variable);
        for (size_t n = input_byte(input) % 5; inside->n < n; inside->n++) {
                struct inside_process *process = &inside->list[inside->n];

                process->pid = 1 + input_byte(input) % 8 + (pid_t)(16 * i);
                process->own_pid = 1 + input_byte(input) % 4;
                take_name(input, process->host);
        }
        identities[i] = flags & 4 ? (char *)"a:1:n" : NULL;
        copies[i] = owners[i] = (struct inside_owner){.owner = &insides[i],
                                                      .inside = inside,
                                                      .identity = &identities[i],
                                                      .seeks = !(flags & 8),
                                                      .main_pid = 1000 + (pid_t)i,
                                                      .read_at = flags & 16 ? 10 : 1};
}

static bool has_process(const struct inside *inside, const struct candidate *candidate, const char *host)
{
        for (size_t i = 0; i < inside->n; i++)
                if (inside->list[i].own_pid == candidate->own_pid &&
                    (!host || strcmp(inside->list[i].host, host) == 0))
                        return true;
        return false;
}

static void check_owner(const struct candidate *candidate, const char *host, size_t n)
{
        const struct inside_owner *owner = &copies[(const struct inside *)candidate->owner - insides];
        bool is_listed = false;

        for (size_t i = 0; i < owner->inside->n; i++)
                is_listed |= owner->inside->list[i].pid == candidate->pid &&
                             owner->inside->list[i].own_pid == candidate->own_pid;
        fuzz_check(candidate->claimed && is_listed == !candidate->remote);
        fuzz_check(!candidate->remote || (candidate->unique && candidate->pid == owner->main_pid &&
                                          owner->inside->complete && owner->read_at >= candidate->seen_at));
        fuzz_check(candidate->unique == (strcmp(owner->inside->unique, host) == 0));
        for (size_t i = 0; i < n; i++) {
                bool other = copies[i].owner != candidate->owner;

                fuzz_check(!other || candidate->unique || !identities[i] ||
                           strcmp(identities[i], candidate->identity) != 0);
                fuzz_check(!other || strcmp(insides[i].unique, host) != 0);
                fuzz_check(!other || candidate->unique || !copies[i].seeks ||
                           !(has_process(&insides[i], candidate, host) ||
                             (strcmp(insides[i].variable, host) == 0 &&
                              has_process(&insides[i], candidate, NULL))));
        }
}

static void take_candidate(struct input *input, const struct inside_names *names, size_t n)
{
        char host[16], identity[64];
        struct candidate candidate = {.own_pid = 1 + input_byte(input) % 4, .seen_at = 5};

        take_name(input, host);
        snprintf(identity, sizeof(identity), "%s:%d:n", host, (int)candidate.own_pid);
        candidate.identity = identity;
        candidate.host_len = strlen(host);
        candidate.pid = candidate.own_pid;
        bool found = inside_names_find(names, &candidate);
        fuzz_check(found == !!candidate.owner);
        fuzz_check(found || candidate.pid == candidate.own_pid);
        if (!found)
                return;
        fuzz_check(inside_names_have(names, host, strlen(host), candidate.own_pid));
        check_owner(&candidate, host, n);
        struct candidate again = candidate;
        fuzz_check(inside_names_find(names, &again) && again.owner == candidate.owner &&
                   again.pid == candidate.pid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct inside_names names;
        size_t n = input_byte(&input) % (MOST + 1);
        pid_t pid = 0;

        owners = calloc(n + 1, sizeof(*owners));
        fuzz_check(owners);
        for (size_t i = 0; i < n; i++)
                take_worker(&input, i);
        fuzz_check(inside_names_make(owners, n, &names) == 0);
        for (size_t i = 0; i < 16; i++)
                take_candidate(&input, &names, n);
        inside_names_clear(&names);

        struct field text = input_field(&input, input.left);
        int r = procfile_last_pid(text.text, "NSpid:", &pid);
        fuzz_check(r == 0 ? pid > 0 : r == -ENODATA && pid == 0);
        (void)unique_host_base(text.text, text.len);
        field_free(&text);
        return 0;
}
