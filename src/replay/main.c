/* SPDX-License-Identifier: MIT */
/* sqmgr-replay: replays a record of sqmgr, and shows where the planner decides otherwise. */
#include "base/fd.h"
#include "config.h"
#include "decide/action.h"
#include "frameworks/table.h"
#include "model/fleet.h"
#include "model/names.h"
#include "model/world.h"
#include "record/replay_rules.h"
#include "settings/value.h"
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FILE_BYTES_MAX ((size_t)17 << 30)

enum { EXIT_DIFFERS = 1, EXIT_REFUSED = 2 };

static const char *const kinds[] = {
        [ACTION_START] = "start",
        [ACTION_GO] = "run",
        [ACTION_QUIET] = "quiet",
        [ACTION_STOP] = "stop",
        [ACTION_KILL] = "kill",
        [ACTION_LOAD] = "load a template",
        [ACTION_TEMPLATE_END] = "end a template",
        [ACTION_TEMPLATE_KILL] = "kill a template",
};

struct options {
        bool verbose, changed;
        const char *file;
};

struct totals {
        uint64_t segments, passes, actions, differ;
        uint64_t first_usec, last_usec;
};

static const char *time_text(uint64_t usec, char text[static 32])
{
        time_t seconds = (time_t)(usec / USEC_PER_SEC);
        struct tm parts;

        if (!localtime_r(&seconds, &parts) || strftime(text, 32, "%Y-%m-%d %H:%M:%S", &parts) == 0)
                snprintf(text, 32, "?");
        return text;
}

static bool same_action(const struct recorded_action *a, const struct recorded_action *b)
{
        return a->kind == b->kind && a->fleet == b->fleet && a->index == b->index && a->slot == b->slot &&
               a->reason == b->reason;
}

static bool has_action(const struct decision *decision, const struct recorded_action *action)
{
        for (size_t i = 0; decision->actions && i < decision->n; i++)
                if (same_action(&decision->actions[i], action))
                        return true;
        return false;
}

static void print_action(const struct replay_step *step, const struct recorded_action *action,
                         const char *mark)
{
        const struct fleet *fleet = step->world->fleets[action->fleet];
        const struct worker *worker = NULL;
        char text[32];

        FLEET_FOREACH_WORKER(fleet, other)
                if (other->index == action->index && action->kind != ACTION_START)
                        worker = other;
        printf("%s %s", time_text(step->real_usec, text), mark);
        if (action->index != 0)
                printf(" %s", WORKER_ID_OF(fleet->settings->name, action->index));
        else
                printf(" fleet '%s'", fleet->settings->name);
        if (worker && worker->process.pid != 0)
                printf(" (pid %d)", (int)worker->process.pid);
        printf(": %s", kinds[action->kind]);
        if (action->reason != REASON_NONE)
                printf(" (reason: %s)", reason_name((enum reason)action->reason));
        putchar('\n');
}

/* Prints the actions of one decision that the other one lacks. With changed settings, each pass begins with
 * the recorded state, so a difference would be repeated until the recorded workers change: before has the
 * last one. */
static void print_missing(const struct replay_step *step, const struct decision *decision,
                          const struct decision *other, const struct decision *before, const char *mark)
{
        for (size_t i = 0; i < decision->n; i++)
                if (!has_action(other, &decision->actions[i]) && !has_action(before, &decision->actions[i]))
                        print_action(step, &decision->actions[i], mark);
}

static int keep_decision(struct decision *kept, const struct decision *decision)
{
        struct recorded_action *actions = reallocarray(kept->actions, decision->n + 1, sizeof(*actions));

        if (!actions)
                return -ENOMEM;
        if (decision->actions)
                memcpy(actions, decision->actions, decision->n * sizeof(*actions));
        *kept = (struct decision){.actions = actions, .n = decision->n};
        return 0;
}

static int take_step(const struct options *options, const struct replay_step *step, struct decision *before,
                     struct totals *totals)
{
        static const struct decision none = {0};
        char text[32];

        totals->segments += step->begins;
        totals->passes++;
        totals->actions += step->recorded->n;
        totals->differ += !step->same;
        if (totals->first_usec == 0)
                totals->first_usec = step->real_usec;
        totals->last_usec = step->real_usec;
        if (options->verbose)
                for (size_t i = 0; i < step->recorded->n; i++)
                        print_action(step, &step->recorded->actions[i], "recorded");
        if (step->same)
                return keep_decision(before, &none);
        if (!options->verbose)
                print_missing(step, step->recorded, step->replayed, &none, "only recorded:");
        print_missing(step, step->replayed, step->recorded, options->changed ? before : &none,
                      "only replayed:");
        bool only_wakes = step->recorded->n == step->replayed->n;
        for (size_t i = 0; only_wakes && i < step->recorded->n; i++)
                only_wakes = same_action(&step->recorded->actions[i], &step->replayed->actions[i]);
        if (only_wakes && !options->changed)
                printf("%s the time of the next plan differs\n", time_text(step->real_usec, text));
        return keep_decision(before, step->replayed);
}

static int run(const struct options *options, struct replay *replay)
{
        struct totals totals = {0};
        struct decision before = {0};
        struct replay_step step;
        char why[REPLAY_WHY_MAX] = "out of memory", first[32], last[32];
        int r;

        while ((r = replay_next(replay, &step, why)) > 0)
                if (take_step(options, &step, &before, &totals) < 0) {
                        r = -ENOMEM;
                        break;
                }
        free(before.actions);
        if (r < 0) {
                fprintf(stderr, "sqmgr-replay: %s: %s\n", options->file, why);
                return EXIT_REFUSED;
        }
        printf("%s to %s: %llu segments, %llu passes, %llu actions; ", time_text(totals.first_usec, first),
               time_text(totals.last_usec, last), (unsigned long long)totals.segments,
               (unsigned long long)totals.passes, (unsigned long long)totals.actions);
        if (totals.differ == 0)
                puts("all decisions are the same");
        else
                printf("%llu passes decide otherwise\n", (unsigned long long)totals.differ);
        return totals.differ > 0 && !options->changed ? EXIT_DIFFERS : EXIT_SUCCESS;
}

static int read_file(const char *path, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        return fd < 0 ? -errno : fd_read_whole(fd, FILE_BYTES_MAX, ret, ret_size);
}

static void usage(FILE *out)
{
        fputs("Usage: sqmgr-replay [OPTION]... FILE\n"
              "Replays a record that sqmgr wrote (setting 'record'), and shows where the planner decides "
              "otherwise.\n"
              "\n"
              "  -s, --set [FLEET:]KEY=VALUE  decide with this setting instead\n"
              "  -v, --verbose                also show the recorded actions\n"
              "  -h, --help                   show this help\n"
              "  -V, --version                show the version\n"
              "\n"
              "Exit status: 0 all decisions are the same, or with --set; 1 some differ; 2 FILE, a part of it "
              "or the "
              "command line is refused.\n",
              out);
}

int main(int argc, char *argv[])
{
        static const struct option longs[] = {
                {"set", required_argument, NULL, 's'},
                {"verbose", no_argument, NULL, 'v'},
                {"help", no_argument, NULL, 'h'},
                {"version", no_argument, NULL, 'V'},
                {NULL, 0, NULL, 0},
        };
        static const struct settings_surroundings surroundings = {.frameworks = framework_traits};
        _cleanup_(replay_free_pointer) struct replay *replay = NULL;
        _cleanup_free_ char *bytes = NULL;
        struct options options = {0};
        const char *sets[REPLAY_CHANGES_MAX];
        char why[REPLAY_WHY_MAX] = "";
        size_t size = 0, n_sets = 0;
        int option;

        while ((option = getopt_long(argc, argv, "s:vhV", longs, NULL)) >= 0) {
                switch (option) {
                case 's':
                        if (n_sets == ELEMENTSOF(sets)) {
                                fputs("sqmgr-replay: too many --set\n", stderr);
                                return EXIT_REFUSED;
                        }
                        sets[n_sets++] = optarg;
                        break;
                case 'v':
                        options.verbose = true;
                        break;
                case 'h':
                        usage(stdout);
                        return EXIT_SUCCESS;
                case 'V':
                        puts("sqmgr-replay " PACKAGE_VERSION);
                        return EXIT_SUCCESS;
                default:
                        usage(stderr);
                        return EXIT_REFUSED;
                }
        }
        if (argc - optind != 1) {
                usage(stderr);
                return EXIT_REFUSED;
        }
        options.file = argv[optind];
        options.changed = n_sets > 0;
        int r = read_file(options.file, &bytes, &size);
        if (r == 0)
                r = replay_new((const uint8_t *)bytes, size, &surroundings, &replay, why);
        for (size_t i = 0; i < n_sets && r == 0; i++)
                r = replay_set(replay, sets[i], why);
        if (r < 0) {
                fprintf(stderr, "sqmgr-replay: %s: %s\n", r == -EINVAL ? "--set" : options.file,
                        why[0] != '\0' ? why : strerrordesc_np(-r));
                return EXIT_REFUSED;
        }
        if (replay_damaged(replay) > 0)
                fprintf(stderr, "sqmgr-replay: %s: skips %zu of %d segments (reason: damaged or truncated)\n",
                        options.file, replay_damaged(replay), RECORD_SLOTS);
        int status = run(&options, replay);
        return replay_damaged(replay) > 0 ? EXIT_REFUSED : status;
}
