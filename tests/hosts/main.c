/* SPDX-License-Identifier: MIT */
/* Runs seeds of a group of hosts, and prints the first that fails. */
#include "base/parse.h"
#include "hosts.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double seconds_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int usage(void)
{
        fputs("Usage: hosts [--seeds N] [--from SEED] [--seconds S] [--verbose]\n"
              "       hosts --seed SEED [--verbose]\n",
              stderr);
        return 2;
}

int main(int argc, char *argv[])
{
        static const struct option longs[] = {
                {"seeds", required_argument, NULL, 'n'}, {"from", required_argument, NULL, 'f'},
                {"seed", required_argument, NULL, 's'},  {"seconds", required_argument, NULL, 't'},
                {"verbose", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0},
        };
        /* Without arguments, as a test of `make check`, runs for ten seconds. */
        uint64_t seeds = 400, from = 0, seconds = argc == 1 ? 10 : 0, number = 0, calls = 0, leases = 0, i;
        bool verbose = false;
        int option;

        while ((option = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
                if (option == '?' || (optarg && parse_unsigned(optarg, 0, UINT32_MAX, &number) < 0))
                        return usage();
                if (option == 'n' || option == 's')
                        seeds = option == 's' ? 1 : number;
                if (option == 'f' || option == 's')
                        from = number;
                if (option == 't')
                        seconds = number;
                verbose |= option == 'v';
        }
        struct group_sim *sim = calloc(1, sizeof(*sim));
        if (!sim || !script_open())
                return 1;
        double begun = seconds_now();
        for (i = 0; i < seeds && (seconds == 0 || seconds_now() < begun + (double)seconds); i++) {
                uint64_t seed = from + i;

                group_run(sim, seed, verbose);
                group_end(sim);
                calls += sim->n_calls;
                leases += sim->n_leases;
                if (sim->broken[0] == '\0')
                        continue;
                printf("seed %llu: %s\nIts story: tests/hosts/hosts --seed %llu --verbose\n",
                       (unsigned long long)seed, sim->broken, (unsigned long long)seed);
                return 1;
        }
        printf("%llu seeds, %llu calls of the script, %llu leases, %.1f s: 0 invariants violated\n",
               (unsigned long long)i, (unsigned long long)calls, (unsigned long long)leases,
               seconds_now() - begun);
        script_close();
        free(sim);
        return 0;
}
