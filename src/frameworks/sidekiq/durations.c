/* SPDX-License-Identifier: MIT */
/* Job durations by class, from Sidekiq's own metrics; see the header. */
#include "frameworks/sidekiq/durations.h"
#include "frameworks/decode.h"
#include <stdio.h>
#include <time.h>

/* Many times the milliseconds that a thousand threads spend in a minute. */
#define NUMBER_MAX 1000000000000ULL

const char *durations_key(usec_t realtime, bool newer, char text[static DURATIONS_KEY_MAX])
{
        time_t at = (time_t)(realtime / USEC_PER_SEC) - 60;
        struct tm tm = {0};
        char rest[16];

        (void)gmtime_r(&at, &tm);
        (void)strftime(rest, sizeof(rest), newer ? "%m%d|%-H:%M" : "%m%d|%-H:%-M", &tm);
        snprintf(text, DURATIONS_KEY_MAX, "j|%02d%s", newer ? tm.tm_year % 100 : tm.tm_year + 1900, rest);
        return text;
}

void durations_age(struct durations *durations)
{
        for (size_t i = 0; i < ELEMENTSOF(durations->classes); i++) {
                durations->classes[i].ms /= 2;
                durations->classes[i].jobs /= 2;
        }
}

/* Returns the index of the class; if absent, n_classes: the next free entry, or the merged last entry if
 * the table is full. */
static size_t find_class(const struct durations *durations, const char *name)
{
        size_t i = 0;

        while (i < durations->n_classes && strcmp(durations->classes[i].name, name) != 0)
                i++;
        return i;
}

void durations_take(struct durations *durations, const struct field *name, const struct field *value)
{
        const char *bar = memrchr(name->text, '|', name->len);
        size_t length = bar ? (size_t)(bar - name->text) : 0;
        unsigned long long number;
        char class[JOB_CLASS_MAX];

        if (length == 0 || length >= sizeof(class) || memchr(name->text, '\0', length) ||
            !decode_count(value->text, value->len, NUMBER_MAX, &number))
                return;
        memcpy(class, name->text, length);
        class[length] = '\0';
        const struct field kind = {.text = bar + 1, .len = name->len - length - 1};
        bool is_ms = decode_field_is(&kind, "ms"), is_failed = decode_field_is(&kind, "f");
        if (!is_ms && !is_failed && !decode_field_is(&kind, "p"))
                return;
        size_t i = find_class(durations, class);
        if (i == durations->n_classes && i < DURATIONS_CLASSES_MAX)
                memcpy(durations->classes[durations->n_classes++].name, class, sizeof(class));
        if (is_ms)
                durations->classes[i].ms += (double)number;
        else
                durations->classes[i].jobs += is_failed ? -(double)number : (double)number;
}

static size_t find_queue(const struct durations *durations, const char *name)
{
        size_t i = 0;

        while (i < durations->n_queues && strcmp(durations->queues[i].name, name) != 0)
                i++;
        return i;
}

void durations_see(struct durations *durations, const char *queue, const char *class)
{
        size_t i = find_queue(durations, queue);

        if (class[0] == '\0' || i == DURATIONS_QUEUES_MAX)
                return;
        if (i == durations->n_queues) {
                durations->queues[i].name = strdup(queue);
                if (!durations->queues[i].name)
                        return;
                durations->n_queues++;
        }
        snprintf(durations->queues[i].seen[durations->queues[i].next], JOB_CLASS_MAX, "%s", class);
        durations->queues[i].next = (durations->queues[i].next + 1) % DURATIONS_SEEN;
        durations->queues[i].n = MIN(durations->queues[i].n + 1, (size_t)DURATIONS_SEEN);
}

/* The quotient of decayed counts and new times can be arbitrarily large. */
static usec_t usec_of(double ms)
{
        return (usec_t)MIN(ms * (double)USEC_PER_MSEC, (double)QUEUE_SERVICE_MAX);
}

void durations_fill(const struct durations *durations, struct queues *queues)
{
        double ms = 0, jobs = 0;

        for (size_t n = 0; n < queues->n; n++) {
                struct queue *queue = &queues->list[n];
                size_t q = find_queue(durations, queue->name);

                for (size_t s = 0; q < durations->n_queues && s < durations->queues[q].n; s++) {
                        size_t i = find_class(durations, durations->queues[q].seen[s]);

                        if (durations->classes[i].jobs <= 0)
                                continue;
                        queue->service += usec_of(durations->classes[i].ms / durations->classes[i].jobs);
                        queue->n_classes++;
                }
        }
        for (size_t i = 0; i < ELEMENTSOF(durations->classes); i++) {
                ms += durations->classes[i].ms;
                jobs += MAX(durations->classes[i].jobs, 0.0);
        }
        queues->service = jobs > 0 ? usec_of(ms / jobs) : 0;
}

void durations_clear(struct durations *durations)
{
        for (size_t i = 0; i < durations->n_queues; i++)
                free(durations->queues[i].name);
        *durations = (struct durations){0};
}
