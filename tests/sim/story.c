/* SPDX-License-Identifier: MIT */
/* Prints what happened, and reduces a failing schedule to the acts that the failure needs. */
#include "story.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 70

struct story {
        bool all;      /* print each line at once */
        char name[24]; /* the host of the story; "": there is only one */
        char verdict[600];
        size_t n;
        char lines[LINES_MAX][360];
};

void violate(struct sim *sim, const char *invariant, const char *format, ...)
{
        va_list arguments;

        if (sim->broken)
                return;
        sim->broken = true;
        snprintf(sim->invariant, sizeof(sim->invariant), "%s", invariant);
        va_start(arguments, format);
        vsnprintf(sim->detail, sizeof(sim->detail), format, arguments);
        va_end(arguments);
        report(sim, "VIOLATED: %s: %s", sim->invariant, sim->detail);
        if (sim->story)
                snprintf(sim->story->verdict, sizeof(sim->story->verdict), "%s: %s", sim->invariant,
                         sim->detail);
}

void report(struct sim *sim, const char *format, ...)
{
        struct story *story = sim->story;
        usec_t at = sim->now - sim->begun_at;
        va_list arguments;

        if (!story)
                return;
        char *line = story->lines[story->n++ % LINES_MAX];
        int length = snprintf(line, sizeof(story->lines[0]), "%3u:%02u:%02u.%03u  ",
                              (unsigned)(at / USEC_PER_HOUR), (unsigned)(at / USEC_PER_MIN % 60),
                              (unsigned)(at / USEC_PER_SEC % 60), (unsigned)(at / USEC_PER_MSEC % 1000));
        va_start(arguments, format);
        vsnprintf(line + length, sizeof(story->lines[0]) - (size_t)length, format, arguments);
        va_end(arguments);
        if (story->all)
                printf("%s%s\n", story->name, line);
}

const char *process_name(const struct sim *sim, const struct process *process)
{
        static char names[4][64];
        static unsigned next;
        char *name = names[next++ % ELEMENTSOF(names)];

        snprintf(name, sizeof(names[0]), "%s/%u (pid %d)", sim->fleets[process->fleet].name, process->index,
                 (int)process->runner_pid);
        return name;
}

/* Runs the world without the acts that are left out. Returns true if it fails, with the broken invariant in
 * *ret_invariant. */
static bool run(const struct origin *origin, const bool left_out[static SCHEDULE_MAX], struct story *story,
                char invariant[static 16])
{
        struct sim *sim = calloc(1, sizeof(*sim));

        if (!sim)
                abort();
        sim_open(sim, origin);
        sim->story = story;
        for (size_t i = 0; i < sim->n_acts; i++)
                sim->acts[i].left_out = left_out[i];
        sim_run(sim);
        bool broken = sim->broken;
        memcpy(invariant, sim->invariant, 16);
        sim_close(sim);
        free(sim);
        return broken;
}

/* Tries to leave out halves, then ever smaller parts and single acts, until no act can be left out. */
static void leave_out(const struct origin *origin, bool left_out[static SCHEDULE_MAX], const char *invariant)
{
        char other[16];
        bool shorter = true;

        while (shorter) {
                shorter = false;
                for (size_t size = SCHEDULE_MAX / 2; size > 0; size /= 2) {
                        for (size_t at = 0; at < SCHEDULE_MAX; at += size) {
                                bool tried[SCHEDULE_MAX];
                                bool changes = false;

                                memcpy(tried, left_out, sizeof(tried));
                                for (size_t i = at; i < at + size && i < SCHEDULE_MAX; i++) {
                                        changes = changes || !tried[i];
                                        tried[i] = true;
                                }
                                if (!changes || !run(origin, tried, NULL, other) ||
                                    strcmp(other, invariant) != 0)
                                        continue;
                                shorter = shorter || size == 1;
                                memcpy(left_out, tried, sizeof(tried));
                        }
                }
        }
}

static void print_schedule(const struct origin *origin, const bool left_out[static SCHEDULE_MAX])
{
        struct sim *sim = calloc(1, sizeof(*sim));
        char text[128];

        if (!sim)
                abort();
        sim_open(sim, origin);
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet_settings *settings = &sim->fleets[i].settings[0];

                printf("  fleet '%s' of %s: %u workers, max_processes %u, surge %u%s, check_interval %u s\n",
                       settings->name, settings->traits->name, settings->active_process_count,
                       settings->max_processes, settings->restart_surge.value,
                       settings->restart_surge.percent ? "%" : "",
                       (unsigned)(sim->shell.settings.check_interval / USEC_PER_SEC));
        }
        printf("needed for it:\n");
        for (size_t i = 0; i < sim->n_acts; i++)
                if (!left_out[i])
                        printf("  %8.3f s  %s\n", (double)(sim->acts[i].at - sim->begun_at) / 1e6,
                               act_text(&sim->acts[i], text));
        sim_close(sim);
        free(sim);
}

void story_explain(const struct origin *origin, bool shrink)
{
        struct story *story = calloc(1, sizeof(*story));
        bool left_out[SCHEDULE_MAX] = {false};
        char invariant[16];

        if (!story)
                abort();
        if (run(origin, left_out, NULL, invariant)) {
                if (shrink)
                        leave_out(origin, left_out, invariant);
                run(origin, left_out, story, invariant);
                if (origin->bytes)
                        printf("the world of these bytes violates %s\n", invariant);
                else
                        printf("seed %llu violates %s\n", (unsigned long long)origin->seed, invariant);
                print_schedule(origin, left_out);
                printf("the last that happened:\n");
                size_t n = MIN(story->n, (size_t)LINES_MAX);
                for (size_t i = story->n - n; i < story->n; i++)
                        printf("%s\n", story->lines[i % LINES_MAX]);
                if (!origin->bytes)
                        printf("replay the whole: tests/sim/sim --seed %llu --verbose\n",
                               (unsigned long long)origin->seed);
        } else {
                printf("seed %llu violates nothing\n", (unsigned long long)origin->seed);
        }
        free(story);
}

void story_name(const struct origin *origin)
{
        struct story *story = calloc(1, sizeof(*story));
        const bool left_out[SCHEDULE_MAX] = {false};
        char invariant[16];

        if (!story)
                abort();
        if (run(origin, left_out, story, invariant))
                printf("seed %llu violates %s\n", (unsigned long long)origin->seed, story->verdict);
        free(story);
}

bool story_report_all(const struct origin *origin)
{
        struct story *story = calloc(1, sizeof(*story));
        bool left_out[SCHEDULE_MAX] = {false};
        char invariant[16];

        if (!story)
                abort();
        story->all = true;
        bool broken = run(origin, left_out, story, invariant);
        free(story);
        return broken;
}

void story_begin(struct sim *sim, const char *name)
{
        sim->story = calloc(1, sizeof(*sim->story));
        if (!sim->story)
                abort();
        sim->story->all = true;
        snprintf(sim->story->name, sizeof(sim->story->name), "%12s", name);
}

void story_end(struct sim *sim)
{
        free(sim->story);
        sim->story = NULL;
}
