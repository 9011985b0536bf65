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

#define SLOT_BYTES_MAX ((size_t)2 << 30)

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

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_actions(const void *left, const void *right)
{
        const struct recorded_action *a = left, *b = right;

        return ORDER(a->fleet, b->fleet)     ?: ORDER(a->index, b->index)
               ?: ORDER(a->kind, b->kind)    ?: ORDER(a->slot, b->slot)
               ?: ORDER(a->reason, b->reason);
}

/* The actions of a decision, sorted: a decision may have thousands. */
struct action_set {
        struct recorded_action *actions; /* owned */
        size_t n;
};

static int set_from(struct action_set *set, const struct decision *decision)
{
        struct recorded_action *actions = reallocarray(set->actions, decision->n + 1, sizeof(*set->actions));

        if (!actions)
                return -ENOMEM;
        memcpy(actions, decision->actions, decision->n * sizeof(*actions));
        qsort(actions, decision->n, sizeof(*actions), compare_actions);
        *set = (struct action_set){.actions = actions, .n = decision->n};
        return 0;
}

static bool set_has(const struct action_set *set, const struct recorded_action *action)
{
        /* -fanalyzer: a set that is not empty has actions. */
        return set->n > 0 && bsearch(action, set->actions, set->n, sizeof(*action), compare_actions);
}

static int compare_index(const void *index, const void *worker)
{
        return ORDER(*(const unsigned *)index, (*(struct worker *const *)worker)->index);
}

static void print_action(const struct replay_step *step, const struct recorded_action *action,
                         const char *mark)
{
        const struct fleet *fleet = step->world->fleets[action->fleet];
        struct worker *const *worker = NULL;
        char text[32];

        if (fleet->n_workers > 0 && action->kind != ACTION_START)
                worker = bsearch(&action->index, fleet->workers, fleet->n_workers, sizeof(*worker),
                                 compare_index);
        printf("%s %s", time_text(step->real_usec, text), mark);
        if (action->index != 0)
                printf(" %s", WORKER_ID_OF(fleet->settings->name, action->index));
        else
                printf(" fleet '%s'", fleet->settings->name);
        if (worker && (*worker)->process.pid != 0)
                printf(" (pid %d)", (int)(*worker)->process.pid);
        printf(": %s", kinds[action->kind]);
        if (action->reason != REASON_NONE)
                printf(" (reason: %s)", reason_name((enum reason)action->reason));
        putchar('\n');
}

/* Prints the actions of a decision that neither of two others has. */
static void print_missing(const struct replay_step *step, const struct decision *decision,
                          const struct action_set *other, const struct action_set *before, const char *mark)
{
        for (size_t i = 0; i < decision->n; i++)
                if (!set_has(other, &decision->actions[i]) && !set_has(before, &decision->actions[i]))
                        print_action(step, &decision->actions[i], mark);
}

/* The decisions of a pass that differ. With changed settings, each pass begins with the recorded state, so a
 * difference would be repeated until the recorded workers change: before has the last one. */
struct difference {
        struct action_set recorded, replayed, before;
};

static int print_difference(const struct options *options, const struct replay_step *step,
                            struct difference *difference)
{
        static const struct action_set none = {0};
        const struct action_set *recorded = &difference->recorded, *replayed = &difference->replayed;
        char text[32];

        if (set_from(&difference->recorded, step->recorded) < 0 ||
            set_from(&difference->replayed, step->replayed) < 0)
                return -ENOMEM;
        if (!options->verbose)
                print_missing(step, step->recorded, replayed, &none, "only recorded:");
        print_missing(step, step->replayed, recorded, options->changed ? &difference->before : &none,
                      "only replayed:");
        bool only_wakes = recorded->n == replayed->n;
        for (size_t i = 0; only_wakes && i < recorded->n; i++)
                only_wakes = compare_actions(&step->recorded->actions[i], &step->replayed->actions[i]) == 0;
        if (only_wakes && !options->changed)
                printf("%s the time of the next plan differs\n", time_text(step->real_usec, text));
        return 0;
}

static int take_step(const struct options *options, const struct replay_step *step,
                     struct difference *difference, struct totals *totals)
{
        struct action_set last = difference->before;

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
        int r = step->same ? 0 : print_difference(options, step, difference);
        difference->before = difference->replayed;
        if (step->same)
                difference->before.n = 0;
        difference->replayed = last;
        return r;
}

static int run(const struct options *options, struct replay *replay)
{
        struct totals totals = {0};
        struct difference difference = {0};
        struct replay_step step;
        char why[REPLAY_WHY_MAX] = "out of memory", first[32], last[32];
        int r;

        while ((r = replay_next(replay, &step, why)) > 0)
                if (take_step(options, &step, &difference, &totals) < 0) {
                        r = -ENOMEM;
                        break;
                }
        free(difference.recorded.actions);
        free(difference.replayed.actions);
        free(difference.before.actions);
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

/* Reads no other file as a whole: a log may have more bytes than the machine has memory. */
static int read_file(const char *path, char **ret, size_t *ret_size, char why[static REPLAY_WHY_MAX])
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        uint8_t header[RECORD_HEADER_SIZE];
        uint64_t slot_bytes;

        ssize_t n = fd < 0 ? -1 : pread(fd, header, sizeof(header), 0);
        if (n < 0 && errno == ESPIPE)
                snprintf(why, REPLAY_WHY_MAX, "a record is read from a file, not from a pipe");
        if (n < 0)
                return -errno;
        int r = replay_check_header(header, (size_t)n, &slot_bytes, why);
        if (r < 0)
                return r;
        r = fd_read_whole(fd, MIN(slot_bytes, SLOT_BYTES_MAX) * RECORD_SLOTS, ret, ret_size);
        if (r == -EFBIG)
                snprintf(why, REPLAY_WHY_MAX, "the file is longer than its record");
        return r;
}

static void usage(FILE *out)
{
        fputs("Usage: sqmgr-replay [OPTION]... FILE\n"
              "Replays a record that sqmgr wrote (setting 'record'), and shows where the\n"
              "planner decides otherwise.\n"
              "\n"
              "  -s, --set [FLEET:]KEY=VALUE  decide with this setting instead\n"
              "  -v, --verbose                also show the recorded actions\n"
              "  -h, --help                   show this help\n"
              "  -V, --version                show the version\n"
              "\n"
              "Exit status: 0 all decisions are the same, or with --set; 1 some differ;\n"
              "2 FILE, a part of it or the command line is refused.\n",
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
        int r = read_file(options.file, &bytes, &size, why);
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
