/* SPDX-License-Identifier: MIT */
/* Runs seeds on all processors, and prints the first that fails. */
#include "base/parse.h"
#include "story.h"
#include <getopt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define PROCESSES_MAX 64

struct totals {
        uint64_t seeds, ticks, started, jobs, actions;
        double simulated_sec;
        uint64_t failed; /* seed + 1; 0: none */
};

/* Shared by all child processes. */
struct shared {
        volatile bool stop; /* the first failure ends all of them */
        struct totals totals[PROCESSES_MAX];
};

struct options {
        uint64_t from, seeds;
        unsigned processes;
        bool verbose, quiet;
};

static double seconds_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_share(const struct options *options, unsigned share, struct shared *shared)
{
        struct totals *totals = &shared->totals[share];
        struct sim *sim = calloc(1, sizeof(*sim));

        for (uint64_t i = share; sim && i < options->seeds && !shared->stop; i += options->processes) {
                sim_open(sim, &(struct origin){.seed = options->from + i});
                sim_run(sim);
                totals->seeds++;
                totals->ticks += sim->n_ticks;
                totals->started += sim->n_started;
                totals->jobs += sim->n_jobs;
                totals->actions += sim->actions;
                totals->simulated_sec += (double)(sim->now - sim->begun_at) / 1e6;
                if (sim->broken)
                        totals->failed = options->from + i + 1;
                shared->stop = shared->stop || sim->broken;
                sim_close(sim);
        }
        free(sim);
}

/* Runs each share in a child process. Returns false if one ends badly. */
static bool run_shares(const struct options *options, struct totals *ret)
{
        struct shared *shared =
                mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        bool well = shared != MAP_FAILED;

        for (unsigned i = 0; well && i < options->processes; i++) {
                pid_t child = fork();

                if (child == 0) {
                        run_share(options, i, shared);
                        _exit(0);
                }
                well = child > 0;
        }
        for (int status; wait(&status) > 0;)
                well = well && status == 0;
        for (unsigned i = 0; well && i < options->processes; i++) {
                const struct totals *totals = &shared->totals[i];

                ret->seeds += totals->seeds;
                ret->ticks += totals->ticks;
                ret->started += totals->started;
                ret->jobs += totals->jobs;
                ret->actions += totals->actions;
                ret->simulated_sec += totals->simulated_sec;
                if (totals->failed != 0 && (ret->failed == 0 || totals->failed < ret->failed))
                        ret->failed = totals->failed;
        }
        return well;
}

static bool read_options(int argc, char *argv[], struct options *options)
{
        static const struct option longs[] = {
                {"seeds", required_argument, NULL, 'n'}, {"from", required_argument, NULL, 'f'},
                {"seed", required_argument, NULL, 's'},  {"verbose", no_argument, NULL, 'v'},
                {"quiet", no_argument, NULL, 'q'},       {NULL, 0, NULL, 0},
        };
        uint64_t number = 0;
        int option;

        while ((option = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
                if (option == '?' || (optarg && parse_unsigned(optarg, 0, UINT32_MAX, &number) < 0))
                        return false;
                if (option == 'n' || option == 's')
                        options->seeds = option == 's' ? 1 : number;
                if (option == 'f' || option == 's')
                        options->from = number;
                options->verbose |= option == 'v';
                options->quiet |= option == 'q';
        }
        return optind == argc;
}

int main(int argc, char *argv[])
{
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        struct options options = {.seeds = 500}; /* some seconds of `make check` */
        struct totals totals = {0};
        double begun = seconds_now();

        if (!read_options(argc, argv, &options)) {
                fputs("Usage: sim [--seeds N] [--from SEED] [--quiet]\n"
                      "       sim --seed SEED [--verbose]\n",
                      stderr);
                return 2;
        }
        if (options.verbose)
                return story_tell(&(struct origin){.seed = options.from}, true) ? 1 : 0;
        options.processes = (unsigned)MIN(MAX(processors, 1L), (long)MIN(options.seeds, PROCESSES_MAX));
        if (!run_shares(&options, &totals)) {
                fputs("sim: a part of the run came to grief\n", stderr);
                return 1;
        }
        printf("%llu seeds, %.1f simulated days, %llu workers started, %llu jobs, %llu actions, %llu turns, "
               "%.1f s: "
               "%s\n",
               (unsigned long long)totals.seeds, totals.simulated_sec / 86400,
               (unsigned long long)totals.started, (unsigned long long)totals.jobs,
               (unsigned long long)totals.actions, (unsigned long long)totals.ticks, seconds_now() - begun,
               totals.failed != 0 ? "VIOLATED" : "0 invariants violated");
        if (totals.failed == 0)
                return 0;
        if (options.quiet)
                (void)story_tell(&(struct origin){.seed = totals.failed - 1}, false);
        else
                story_explain(&(struct origin){.seed = totals.failed - 1});
        return 1;
}
