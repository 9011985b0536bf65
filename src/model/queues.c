/* SPDX-License-Identifier: MIT */
/* The queues of one Redis, as last read, and which of them exceed their limits. */
#include "model/queues.h"
#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "settings/limits.h"

struct queues *queues_free(struct queues *queues)
{
        if (!queues)
                return NULL;
        QUEUES_FOREACH(queues, queue)
                free(queue->name);
        free(queues->list);
        free(queues);
        return NULL;
}

struct queue *queues_add(struct queues *queues, const char *name, size_t length)
{
        struct queue *list = queues->list;

        /* The list is full at each power of two. */
        if ((queues->n & (queues->n - 1)) == 0)
                list = reallocarray(list, MAX(2 * queues->n, (size_t)1), sizeof(*list));
        if (!list)
                return NULL;
        queues->list = list;
        list[queues->n] = (struct queue){.name = strndup(name, length)};
        return list[queues->n].name ? &list[queues->n++] : NULL;
}

static int compare(const void *a, const void *b)
{
        const struct queue *left = a, *right = b;

        return strcmp(left->name, right->name);
}

void queues_sort(struct queues *queues)
{
        if (queues->n > 0)
                qsort(queues->list, queues->n, sizeof(*queues->list), compare);
}

usec_t queues_service(const struct queues *queues)
{
        usec_t sum = 0;
        unsigned n = 0;

        QUEUES_FOREACH(queues, queue) {
                sum += queue->service;
                n += queue->n_classes;
        }
        return n > 0 ? sum / n : queues->service;
}

void queue_watch_clear(struct queue_watch *watch)
{
        for (size_t i = 0; i < watch->n; i++)
                free(watch->over[i].name);
        free(watch->over);
        *watch = (struct queue_watch){0};
}

static const struct queue_over *find_over(const struct queue_watch *watch, const char *name)
{
        for (size_t i = 0; i < watch->n; i++)
                if (strcmp(watch->over[i].name, name) == 0)
                        return &watch->over[i];
        return NULL;
}

/* Returns true if the latency exceeds the limit, or did before and is now unknown: the oldest job may be too
 * large to read. */
static bool is_late(const struct queue *queue, const struct queue_over *before, usec_t limit)
{
        if (limit == 0)
                return false;
        return queue->latency > limit || (before && before->late && queue->size > 0 && !queue->latency_known);
}

/* Appends a description of the queue, if space remains. */
static void append_queue(char *text, const struct queue *queue, uint64_t size_limit, usec_t latency_limit)
{
        char name[64];

        if (strlen(text) > QUEUE_WATCH_TEXT_MAX - 256) {
                if (text[strlen(text) - 1] != '.')
                        text_append(text, QUEUE_WATCH_TEXT_MAX, ", ...");
                return;
        }
        snprintf(name, sizeof(name), "%s", queue->name);
        printable_replace(name, strlen(name), false);
        text_append(text, QUEUE_WATCH_TEXT_MAX, "%squeue '%s'%s", text[0] != '\0' ? ", " : "", name,
                    queue->paused ? " (paused)" : "");
        if (size_limit > 0)
                text_append(text, QUEUE_WATCH_TEXT_MAX, " holds %llu jobs, over queue_warn_size %llu",
                            (unsigned long long)queue->size, (unsigned long long)size_limit);
        if (latency_limit > 0)
                text_append(text, QUEUE_WATCH_TEXT_MAX, "%s is %s behind, over queue_warn_latency %s",
                            size_limit > 0 ? " and" : "", FORMAT_DURATION(queue->latency),
                            FORMAT_DURATION(latency_limit));
}

int queue_watch_judge(struct queue_watch *watch, const struct queues *queues,
                      const struct redis_settings *settings, char over[static QUEUE_WATCH_TEXT_MAX],
                      char back[static QUEUE_WATCH_TEXT_MAX])
{
        struct queue_watch now = {.over = calloc(queues->n + 1, sizeof(*now.over))};

        if (!now.over)
                return -ENOMEM;
        over[0] = back[0] = '\0';
        QUEUES_FOREACH(queues, queue) {
                const struct queue_over *before = find_over(watch, queue->name);
                uint64_t size_limit = limits_find(settings->queue_warn_size, LIMITS_COUNT, queue->name);
                usec_t latency_limit =
                        limits_find(settings->queue_warn_latency, LIMITS_DURATION, queue->name);

                if (queue->size <= size_limit)
                        size_limit = 0;
                if (!is_late(queue, before, latency_limit))
                        latency_limit = 0;
                if (size_limit == 0 && latency_limit == 0)
                        continue;
                now.over[now.n] = (struct queue_over){.name = strdup(queue->name), .late = latency_limit > 0};
                if (!now.over[now.n].name) {
                        queue_watch_clear(&now);
                        return -ENOMEM;
                }
                now.n++;
                if (!before)
                        append_queue(over, queue, size_limit, latency_limit);
        }
        for (size_t i = 0; i < watch->n; i++)
                if (!find_over(&now, watch->over[i].name))
                        append_queue(back, &(struct queue){.name = watch->over[i].name}, 0, 0);
        queue_watch_clear(watch);
        *watch = now;
        return 0;
}

bool queue_watch_wanted(const struct redis_settings *settings)
{
        return limits_any(settings->queue_warn_size, LIMITS_COUNT) ||
               limits_any(settings->queue_warn_latency, LIMITS_DURATION);
}

bool queue_names_have(const char *list, const char *name)
{
        for (; list && *list != '\0'; list += strlen(list) + 1)
                if (strcmp(list, name) == 0)
                        return true;
        return false;
}

size_t queue_names_length(const char *list)
{
        const char *at = list;

        while (*at != '\0')
                at += strlen(at) + 1;
        return (size_t)(at - list);
}

void latency_count(struct latency_work *work, uint64_t ended, usec_t now)
{
        if (work->since[1] == 0) {
                work->since[1] = now;
                return;
        }
        if (usec_sub(now, work->since[1]) >= LATENCY_PART_USEC) {
                work->since[0] = work->since[1];
                work->ended[0] = work->ended[1];
                work->since[1] = now;
                work->ended[1] = 0;
        }
        work->ended[1] += ended;
        if (ended > 0)
                work->moved_at = now;
}

/* Returns jobs per second; a negative number: too little data. */
static double rate_of(const struct latency_work *work, usec_t now)
{
        usec_t since = work->since[0] ?: work->since[1], elapsed = usec_sub(now, since);

        if (since == 0 || elapsed < LATENCY_LEAST_USEC)
                return -1;
        return ((double)work->ended[0] + (double)work->ended[1]) * (double)USEC_PER_SEC / (double)elapsed;
}

void latency_add(struct latency_flow *flows, const struct queues *queues, struct latency_work *work,
                 const char *served, usec_t now)
{
        double rate = rate_of(work, now);
        bool serves = false, waits = false;

        QUEUES_FOREACH(queues, queue)
                if (queue_names_have(served, queue->name)) {
                        serves = true;
                        waits |= queue->size > 0;
                }
        if (!serves)
                return;
        if (!waits || usec_sub(now, work->read_at) > LATENCY_UNREAD_USEC)
                work->moved_at = now;
        work->read_at = now;
        for (size_t i = 0; i < queues->n; i++) {
                if (!queue_names_have(served, queues->list[i].name))
                        continue;
                flows[i].known |= rate >= 0;
                flows[i].rate += MAX(rate, 0.0);
                flows[i].moved_at = MAX(flows[i].moved_at, work->moved_at);
        }
}

void latency_judge(struct queues *queues, const struct latency_flow *flows, usec_t now)
{
        for (size_t i = 0; i < queues->n; i++) {
                struct queue *queue = &queues->list[i];
                const struct latency_flow *flow = &flows[i];
                double usec = flow->rate > 0 ? (double)queue->size / flow->rate * (double)USEC_PER_SEC
                                             : (double)usec_sub(now, flow->moved_at);

                queue->latency_known = queue->size == 0 || flow->known;
                queue->latency = queue->size == 0 ? 0 : (usec_t)MIN(usec, (double)LATENCY_MAX_USEC);
        }
}
