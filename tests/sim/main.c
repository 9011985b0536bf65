/* SPDX-License-Identifier: MIT */
/* Runs seeds on all processors, and prints the first that fails. */
#include "base/parse.h"
#include "story.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

struct totals {
        uint64_t seeds, ticks, started, jobs, actions;
        double simulated_sec;
        uint64_t failed; /* seed + 1; 0: none */
};

struct options {
        uint64_t from, seeds, seconds;
        unsigned processes;
        bool one, verbose, no_shrink, quiet;
};

static double seconds_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs a share of the seeds. stop is shared by all children: the first failure ends all of them. */
static void run_share(const struct options *options, unsigned share, volatile bool *stop,
                      struct totals *totals)
{
        double deadline = seconds_now() + (double)options->seconds;
        struct sim *sim = calloc(1, sizeof(*sim));

        for (uint64_t i = share; sim && i < options->seeds; i += options->processes) {
                if (*stop || (options->seconds > 0 && seconds_now() > deadline))
                        break;
                sim_open(sim, &(struct origin){.seed = options->from + i});
                sim_run(sim);
                totals->seeds++;
                totals->ticks += sim->n_ticks;
                totals->started += sim->n_started;
                totals->jobs += sim->n_jobs;
                totals->actions += sim->actions;
                totals->simulated_sec += (double)(sim->now - sim->begun_at) / 1e6;
                bool broken = sim->broken;
                if (broken)
                        totals->failed = options->from + i + 1;
                sim_close(sim);
                *stop = *stop || broken;
        }
        free(sim);
}

/* Runs each share in a child, which returns its result through a pipe. Returns false if a child failed to do
 * so. */
static bool run_shares(const struct options *options, struct totals *ret)
{
        int *pipes = calloc(options->processes, sizeof(*pipes));
        volatile bool *stop =
                mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        bool well = pipes && stop != MAP_FAILED;

        for (unsigned i = 0; well && i < options->processes; i++) {
                int ends[2];

                if (pipe(ends) < 0)
                        return false;
                pid_t child = fork();
                if (child < 0)
                        return false;
                if (child == 0) {
                        struct totals totals = {0};

                        run_share(options, i, stop, &totals);
                        _exit(write(ends[1], &totals, sizeof(totals)) == sizeof(totals) ? 0 : 1);
                }
                close(ends[1]);
                pipes[i] = ends[0];
        }
        for (unsigned i = 0; well && i < options->processes; i++) {
                struct totals totals;
                int status;

                well = read(pipes[i], &totals, sizeof(totals)) == sizeof(totals);
                close(pipes[i]);
                if (!well || wait(&status) < 0)
                        break;
                ret->seeds += totals.seeds;
                ret->ticks += totals.ticks;
                ret->started += totals.started;
                ret->jobs += totals.jobs;
                ret->actions += totals.actions;
                ret->simulated_sec += totals.simulated_sec;
                if (totals.failed != 0 && (ret->failed == 0 || totals.failed < ret->failed))
                        ret->failed = totals.failed;
        }
        if (stop != MAP_FAILED)
                munmap((void *)stop, sizeof(*stop));
        free(pipes);
        return well;
}

static int usage(void)
{
        fputs("Usage: sim [--seeds N] [--from SEED] [--seconds S] [--processes N] [--quiet]\n"
              "       sim --seed SEED [--verbose] [--no-shrink]\n",
              stderr);
        return 2;
}

static bool read_options(int argc, char *argv[], struct options *options)
{
        static const struct option longs[] = {
                {"seeds", required_argument, NULL, 'n'},
                {"from", required_argument, NULL, 'f'},
                {"seconds", required_argument, NULL, 't'},
                {"processes", required_argument, NULL, 'p'},
                {"seed", required_argument, NULL, 's'},
                {"verbose", no_argument, NULL, 'v'},
                {"no-shrink", no_argument, NULL, 'x'},
                {"quiet", no_argument, NULL, 'q'},
                {NULL, 0, NULL, 0},
        };
        uint64_t number = 0;
        int option;

        while ((option = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
                if (option == '?' || (optarg && parse_unsigned(optarg, 0, UINT32_MAX, &number) < 0))
                        return false;
                switch (option) {
                case 'n':
                        options->seeds = number;
                        break;
                case 'f':
                        options->from = number;
                        break;
                case 't':
                        options->seconds = number;
                        break;
                case 'p':
                        options->processes = MAX((unsigned)number, 1U);
                        break;
                case 's':
                        options->from = number;
                        options->one = true;
                        break;
                case 'v':
                        options->verbose = true;
                        break;
                case 'x':
                        options->no_shrink = true;
                        break;
                default:
                        options->quiet = true;
                        break;
                }
        }
        return optind == argc;
}

int main(int argc, char *argv[])
{
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        struct options options = {
                .seeds = 4000, .seconds = 0, .processes = processors > 1 ? (unsigned)processors : 1};
        struct totals totals = {0};
        double begun = seconds_now();

        /* Without arguments, as a test of `make check`, only for a bounded time. */
        if (argc == 1)
                options.seconds = 20;
        if (!read_options(argc, argv, &options))
                return usage();
        if (options.one && options.verbose)
                return story_report_all(&(struct origin){.seed = options.from}) ? 1 : 0;
        if (options.one) {
                options.seeds = options.processes = 1;
                volatile bool stop = false;

                run_share(&options, 0, &stop, &totals);
        } else if (!run_shares(&options, &totals)) {
                fputs("sim: a part of the run came to grief: run it again with --processes 1\n", stderr);
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
                story_name(&(struct origin){.seed = totals.failed - 1});
        else
                story_explain(&(struct origin){.seed = totals.failed - 1}, !options.no_shrink);
        return 1;
}
