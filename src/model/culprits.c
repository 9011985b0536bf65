/* SPDX-License-Identifier: MIT */
/* The job classes that ran in a worker as its memory ran out. */
#include "model/culprits.h"
#include "base/parse.h"
#include "base/printable.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A process that is killed may take a while to be gone, the more memory it has. */
#define OOM_USEC (10 * USEC_PER_SEC)

bool culprits_take(struct worker *worker)
{
        usec_t since = worker->breach_at;

        /* What ran then may stand in no earlier work list. */
        if (since == 0 || worker->beat_after < since)
                return false;
        worker->breach_at = 0;
        /* And nobody knows what one of much later has to do with it. */
        return usec_sub(worker->beat_at, since) <= worker_stale_usec(worker);
}

bool culprits_oom_killed(const struct world *world, const struct worker *worker,
                         const struct exit_status *exit, usec_t now)
{
        bool unasked = exit->known ? exit->by_signal && exit->status == SIGKILL && worker->killed_at == 0
                                   : !worker_is_told_to_exit(worker);

        return unasked && world->oom_at != 0 && usec_sub(now, world->oom_at) <= OOM_USEC;
}

/* Those with the most jobs first; of others in the order of their names, in which they come. */
static void add_class(struct culprits *culprits, const char *class, size_t jobs)
{
        size_t at = culprits->n_classes;

        while (at > 0 && culprits->classes[at - 1].jobs < jobs)
                at--;
        if (culprits->n_classes == CULPRITS_CLASSES_MAX) {
                culprits->more_classes++;
                if (at == CULPRITS_CLASSES_MAX)
                        return;
                culprits->n_classes--;
        }
        memmove(&culprits->classes[at + 1], &culprits->classes[at],
                (culprits->n_classes - at) * sizeof(culprits->classes[0]));
        culprits->n_classes++;
        /* It comes from outside. */
        char *name = culprits->classes[at].name;
        snprintf(name, CULPRITS_CLASS_MAX, "%s", class[0] != '\0' ? class : "?");
        printable_replace(name, strlen(name), false);
        culprits->classes[at].jobs = jobs;
}

static int compare_classes(const void *left, const void *right)
{
        const struct job *const *a = left, *const *b = right;

        return strcmp((*a)->class, (*b)->class);
}

/* Returns false where memory is short. */
static bool count_classes(const struct job_list *jobs, struct culprits *culprits)
{
        _cleanup_free_ const struct job **sorted = calloc(jobs->n_jobs + 1, sizeof(struct job *));
        size_t first = 0;

        if (!sorted)
                return false;
        for (size_t i = 0; i < jobs->n_jobs; i++)
                sorted[i] = &jobs->jobs[i];
        qsort(sorted, jobs->n_jobs, sizeof(struct job *), compare_classes);
        for (size_t i = 1; i <= jobs->n_jobs; i++) {
                if (i < jobs->n_jobs && strcmp(sorted[i]->class, sorted[first]->class) == 0)
                        continue;
                add_class(culprits, sorted[first]->class, i - first);
                first = i;
        }
        return true;
}

void culprits_observe(struct fleet *fleet, const struct worker *worker, enum culprits_cause cause,
                      const struct job_list *jobs, usec_t at)
{
        struct culprits culprits = {
                .at = at,
                .cause = cause,
                .index = worker->index,
                .pid = worker_pid(worker),
                .memory_bytes = worker->memory_bytes,
        };
        char text[CULPRITS_TEXT_MAX];

        /* The list has expired, or tells of them what is not understood. */
        if (jobs->n_jobs == 0 && worker->busy > 0)
                return;
        if (worker->mark_at != 0 && worker->memory_bytes > worker->mark_bytes) {
                culprits.growth_bytes = worker->memory_bytes - worker->mark_bytes;
                culprits.growth_usec = usec_sub(at, worker->mark_at);
        }
        if (!count_classes(jobs, &culprits))
                return;
        memmove(&fleet->culprits[1], &fleet->culprits[0], (CULPRITS_KEPT - 1) * sizeof(culprits));
        fleet->culprits[0] = culprits;
        world_event(fleet->world, EVENT_CULPRITS, fleet, worker, "%s",
                    culprits_text(fleet, &culprits, text, sizeof(text)));
}

static void append(char *text, size_t size, const char *format, ...) _printf_(3, 4);
static void append(char *text, size_t size, const char *format, ...)
{
        size_t length = strlen(text);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text + length, size - length, format, arguments);
        va_end(arguments);
}

static void append_memory(const struct culprits *culprits, char *text, size_t size)
{
        char growth[FORMAT_MAX], bytes[FORMAT_MAX], span[FORMAT_MAX];

        format_size(culprits->memory_bytes, bytes, sizeof(bytes));
        format_size(culprits->growth_bytes, growth, sizeof(growth));
        format_duration(culprits->growth_usec, span, sizeof(span));
        if (culprits->growth_bytes > 0)
                append(text, size, "%s by %s to %s within %s,",
                       culprits->cause == CULPRITS_OOM ? " had grown" : " grew", growth, bytes, span);
        else if (culprits->memory_bytes > 0)
                append(text, size, " held %s,", bytes);
        else
                append(text, size, " was");
}

const char *culprits_text(const struct fleet *fleet, const struct culprits *culprits, char *text, size_t size)
{
        snprintf(text, size, "%s (pid %d)%s", WORKER_ID_OF(fleet->settings->name, culprits->index),
                 (int)culprits->pid,
                 culprits->cause == CULPRITS_OOM ? " died while the kernel's OOM killer was at work; it"
                                                 : "");
        append_memory(culprits, text, size);
        append(text, size, " running%s", culprits->n_classes == 0 ? " no job" : "");
        for (size_t i = 0; i < culprits->n_classes; i++) {
                append(text, size, "%s%s", i > 0 ? ", " : " ", culprits->classes[i].name);
                if (culprits->classes[i].jobs > 1)
                        append(text, size, " (%zu)", culprits->classes[i].jobs);
        }
        if (culprits->more_classes > 0)
                append(text, size, " and %zu more", culprits->more_classes);
        return text;
}
