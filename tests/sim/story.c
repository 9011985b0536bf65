/* SPDX-License-Identifier: MIT */
/* Prints what happened, and reduces a failing schedule to the acts that the failure needs. */
#include "story.h"

#define LINES_MAX 70

struct story {
        bool all; /* print each line at once */
        char verdict[600];
        size_t n;
        char lines[LINES_MAX][360];
};

void violate(struct sim *sim, const char *invariant, const char *format, ...)
{
        char detail[512];
        va_list arguments;

        if (sim->broken)
                return;
        sim->broken = true;
        snprintf(sim->invariant, sizeof(sim->invariant), "%s", invariant);
        if (!sim->story)
                return;
        va_start(arguments, format);
        vsnprintf(detail, sizeof(detail), format, arguments);
        va_end(arguments);
        snprintf(sim->story->verdict, sizeof(sim->story->verdict), "%s: %s", invariant, detail);
        report(sim, "VIOLATED: %s", sim->story->verdict);
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
                printf("%s\n", line);
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

/* Runs the world without the acts that are left out. Returns the invariant that it breaks, valid until the
 * next call; NULL: none. */
static const char *run(const struct origin *origin, const bool left_out[static ACTS_MAX], struct story *story)
{
        static struct sim sim;

        sim_open(&sim, origin);
        sim.story = story;
        for (size_t i = 0; i < sim.n_acts; i++)
                sim.acts[i].left_out = left_out[i];
        sim_run(&sim);
        sim_close(&sim);
        return sim.broken ? sim.invariant : NULL;
}

/* Tries to leave out halves, then ever smaller parts and single acts, until no act can be left out. */
static void leave_out(const struct origin *origin, bool left_out[static ACTS_MAX], const char *invariant)
{
        bool shorter = true;

        while (shorter) {
                shorter = false;
                for (size_t size = ACTS_MAX / 2; size > 0; size /= 2)
                        for (size_t at = 0; at < ACTS_MAX; at += size) {
                                bool tried[ACTS_MAX];

                                memcpy(tried, left_out, sizeof(tried));
                                memset(tried + at, true, MIN(size, ACTS_MAX - at));
                                if (memcmp(tried, left_out, sizeof(tried)) == 0)
                                        continue;
                                const char *other = run(origin, tried, NULL);
                                if (!other || strcmp(other, invariant) != 0)
                                        continue;
                                shorter = shorter || size == 1;
                                memcpy(left_out, tried, sizeof(tried));
                        }
        }
}

static void print_schedule(const struct origin *origin, const bool left_out[static ACTS_MAX])
{
        static struct sim sim;
        char text[128];

        sim_open(&sim, origin);
        for (unsigned i = 0; i < sim.n_fleets; i++) {
                const struct fleet_settings *settings = &sim.fleets[i].settings[0];

                printf("  fleet '%s' of %s: %u workers, max_processes %u, surge %u%s, check_interval %u s\n",
                       settings->name, settings->traits->name, settings->active_process_count,
                       settings->max_processes, settings->restart_surge.value,
                       settings->restart_surge.percent ? "%" : "",
                       (unsigned)(sim.shell.settings.check_interval / USEC_PER_SEC));
        }
        printf("needed for it:\n");
        for (size_t i = 0; i < sim.n_acts; i++)
                if (!left_out[i])
                        printf("  %8.3f s  %s\n", (double)(sim.acts[i].at - sim.begun_at) / 1e6,
                               act_text(&sim.acts[i], text));
        sim_close(&sim);
}

void story_explain(const struct origin *origin)
{
        static struct story story;
        bool left_out[ACTS_MAX] = {false};
        char invariant[16];
        const char *broken = run(origin, left_out, NULL);

        if (!broken) {
                printf("seed %llu violates nothing\n", (unsigned long long)origin->seed);
                return;
        }
        snprintf(invariant, sizeof(invariant), "%s", broken);
        leave_out(origin, left_out, invariant);
        (void)run(origin, left_out, &story);
        if (origin->bytes)
                printf("the world of these bytes violates %s\n", invariant);
        else
                printf("seed %llu violates %s\n", (unsigned long long)origin->seed, invariant);
        print_schedule(origin, left_out);
        printf("the last that happened:\n");
        for (size_t i = story.n - MIN(story.n, (size_t)LINES_MAX); i < story.n; i++)
                printf("%s\n", story.lines[i % LINES_MAX]);
        if (!origin->bytes)
                printf("replay the whole: tests/sim/sim --seed %llu --verbose\n",
                       (unsigned long long)origin->seed);
}

bool story_tell(const struct origin *origin, bool all)
{
        static struct story story;
        const bool left_out[ACTS_MAX] = {false};
        bool broken;

        story.all = all;
        broken = run(origin, left_out, &story);
        if (broken && !all)
                printf("seed %llu violates %s\n", (unsigned long long)origin->seed, story.verdict);
        return broken;
}
