/* SPDX-License-Identifier: MIT */
/* Advice on leaks; see the header. */
#include "advice/leak.h"
#include "base/parse.h"
#include "model/world.h"
#include <stdio.h>

#define JUDGE_USEC USEC_PER_MIN
/* Smaller ratios are within the error of measurement. */
#define TIMES_LEAST 1.5
#define PER_DAY     86400.0
#define PER_HOUR    3600.0

void leak_observe(struct worker *worker, uint64_t bytes, usec_t now)
{
        if (worker->state != WORKER_ACTIVE || !trend_add(&worker->memory.trend, bytes, now))
                return;
        worker->memory.fit = trend_fit(&worker->memory.trend);
        worker->fleet->leak.due = true;
}

static bool is_judged(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker->memory.fit.kind != TREND_YOUNG;
}

/* Each generation is reported once. */
static void remember(struct fleet *fleet)
{
        struct leak *leak = &fleet->leak;
        bool known = leak->past[0].generation == leak->generation;
        char text[LEAK_TEXT_MAX];

        for (size_t i = LEAK_PAST - 1; !known && i > 0; i--)
                leak->past[i] = leak->past[i - 1];
        leak->past[0] = (struct leak_past){.generation = leak->generation,
                                           .bytes_per_day = (uint64_t)(leak->fit.slope * PER_DAY)};
        if (!known)
                fleet_event(fleet, EVENT_MEMORY_GROWTH, ": %s", leak_text(fleet, text));
}

static void judge(struct fleet *fleet)
{
        _cleanup_free_ struct trend_fit *fits = calloc(fleet->n_workers + 1, sizeof(*fits));
        struct leak *leak = &fleet->leak;
        uint64_t generation = 0;
        size_t n = 0;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (is_judged(worker))
                        generation = MAX(generation, worker->generation);
        for (size_t i = 0; fits && i < fleet->n_workers; i++)
                if (fleet->workers[i]->state == WORKER_ACTIVE && fleet->workers[i]->generation == generation)
                        fits[n++] = fleet->workers[i]->memory.fit;
        leak->generation = generation;
        leak->grows = fits && trend_agree(fits, n, &leak->fit) && leak->fit.slope > 0;
        /* Growth of a remaining older generation is no news. */
        if (leak->grows && generation >= leak->past[0].generation)
                remember(fleet);
}

void leak_observe_time(struct fleet *fleet, usec_t now)
{
        struct leak *leak = &fleet->leak;

        if (!leak->due || now < usec_add(leak->judged_at, JUDGE_USEC))
                return;
        leak->due = false;
        leak->judged_at = now;
        judge(fleet);
}

/* Returns the limit that the workers grow towards: memory_threshold, else memory_limit. 0: neither is set.
 * Always sets *ret_name to the name of the setting. */
static uint64_t limit_bytes(const struct fleet *fleet, const char **ret_name)
{
        const struct fleet_settings *settings = fleet->settings;

        *ret_name = settings->memory_threshold > 0 ? "memory_threshold" : "memory_limit";
        return settings->memory_threshold > 0 ? settings->memory_threshold : settings->memory_limit;
}

usec_t leak_reaches(const struct worker *worker)
{
        const struct leak *leak = &worker->fleet->leak;
        const char *name;
        uint64_t limit = limit_bytes(worker->fleet, &name);

        /* The trend is of resident memory, but the limit of a forked worker is for its proportional share. */
        if (worker->process.forked || !leak->grows || worker->state != WORKER_ACTIVE ||
            worker->generation != leak->generation || worker->memory.fit.kind != TREND_GROWS || limit == 0 ||
            worker->memory.bytes >= limit)
                return USEC_INFINITY;
        return trend_reaches(&worker->memory.fit, limit);
}

const struct worker *leak_first(const struct fleet *fleet)
{
        const struct worker *first = NULL;

        FLEET_FOREACH_WORKER(fleet, worker) {
                usec_t reaches = leak_reaches(worker);

                if (reaches != USEC_INFINITY && (!first || reaches < leak_reaches(first)))
                        first = worker;
        }
        return first;
}

double leak_times(const struct fleet *fleet, uint64_t *ret_generation)
{
        const struct leak *leak = &fleet->leak;

        for (size_t i = 0; leak->grows && i < LEAK_PAST; i++) {
                const struct leak_past *past = &leak->past[i];

                if (past->generation == 0 || past->generation >= leak->generation || past->bytes_per_day == 0)
                        continue;
                *ret_generation = past->generation;
                return leak->fit.slope * PER_DAY / (double)past->bytes_per_day;
        }
        return 0;
}

uint64_t leak_bytes_per_hour(const struct fleet *fleet)
{
        return fleet->leak.grows ? (uint64_t)(fleet->leak.fit.slope * PER_HOUR) : 0;
}

/* The value is an estimate, so the text is rounded. */
static usec_t about(usec_t usec)
{
        usec_t step = usec >= 2 * USEC_PER_DAY    ? USEC_PER_DAY
                      : usec >= 2 * USEC_PER_HOUR ? USEC_PER_HOUR
                                                  : 10 * USEC_PER_MIN;

        return MAX((usec + step / 2) / step, 1U) * step;
}

static void times_text(const struct fleet *fleet, char *text, size_t size)
{
        uint64_t generation = 0;
        double times = leak_times(fleet, &generation);
        unsigned tenths = (unsigned)(MIN(times, 1000.0) * 10 + 0.5);

        text[0] = '\0';
        if (times < TIMES_LEAST)
                return;
        if (tenths >= 30)
                tenths = (tenths + 5) / 10 * 10;
        snprintf(text, size, "; this release leaks %.*f times as fast as generation %llu",
                 tenths % 10 == 0 ? 0 : 1, tenths / 10.0, (unsigned long long)generation);
}

const char *leak_text(const struct fleet *fleet, char text[static LEAK_TEXT_MAX])
{
        const struct worker *first = leak_first(fleet);
        char reaches[LEAK_TEXT_MAX / 2] = "", times[96];
        const char *name;
        uint64_t limit = limit_bytes(fleet, &name);

        text[0] = '\0';
        if (!fleet->leak.grows)
                return text;
        if (first)
                snprintf(reaches, sizeof(reaches), "; %s reaches %s (%s) in about %s", WORKER_ID(first), name,
                         FORMAT_SIZE(limit), FORMAT_DURATION(about(leak_reaches(first))));
        times_text(fleet, times, sizeof(times));
        snprintf(text, LEAK_TEXT_MAX, "workers grow by about %s per hour each%s%s",
                 FORMAT_SIZE(leak_bytes_per_hour(fleet)), reaches, times);
        return text;
}

const char *leak_worker_text(const struct worker *worker, char text[static LEAK_TEXT_MAX])
{
        usec_t reaches = leak_reaches(worker);
        const char *name;

        text[0] = '\0';
        (void)limit_bytes(worker->fleet, &name);
        if (reaches != USEC_INFINITY)
                snprintf(text, LEAK_TEXT_MAX, "reaches %s in about %s", name,
                         FORMAT_DURATION(about(reaches)));
        return text;
}
