/* SPDX-License-Identifier: MIT */
/* What each does with its signal, and for how long: the source of each row stands above it.
 * tests/e2e/plain.bats runs those of which sqmgr.ini(5) says so; the others were read. */
#include "settings/presets.h"
#include <signal.h>

const struct preset presets[_PRESET_MAX] = {
        /* Celery 5, "Workers Guide", "Stopping the worker", and celery/apps/worker.py: TERM is the warm
         * shutdown, which waits for the tasks that run, however long. A second one may interrupt them. */
        [PRESET_CELERY] = {.stop_signal = SIGTERM},
        /* Huey, release notes of 1.4.0, and huey/consumer.py: INT lets the tasks that run finish, however
         * long, and a second one cuts them off, as a single TERM does. */
        [PRESET_HUEY] = {.stop_signal = SIGINT},
        /* GoodJob, lib/good_job/cli.rb: TERM and INT stop it once, with shutdown_timeout, by default for
           ever. */
        [PRESET_GOOD_JOB] = {.stop_signal = SIGTERM},
        /* Solid Queue, lib/solid_queue/supervisor/signals.rb and fork_supervisor.rb: TERM waits for
         * shutdown_timeout, 5 seconds by default, then ends its processes, whose jobs are released. QUIT
         * would do so at once. */
        [PRESET_SOLID_QUEUE] = {.stop_signal = SIGTERM, .stop_usec = 60 * USEC_PER_SEC},
        /* Delayed::Job 4.1, lib/delayed/worker.rb: TERM lets the job that runs finish, and so does a second
         * one, unless raise_signal_exceptions is set. */
        [PRESET_DELAYED_JOB] = {.stop_signal = SIGTERM},
        /* Que 1 and 2, lib/que/command_line_interface.rb: TERM and INT let the jobs that run finish, however
           long. */
        [PRESET_QUE] = {.stop_signal = SIGTERM},
        /* Dramatiq, dramatiq/cli.py: TERM waits for --worker-shutdown-timeout, 10 minutes by default; a
         * second one cuts off at once. */
        [PRESET_DRAMATIQ] = {.stop_signal = SIGTERM, .stop_usec = 11 * USEC_PER_MIN},
        /* Puma 5 and 6, docs/signals.md and lib/puma/dsl.rb: TERM finishes the requests that it has, in a
         * cluster those that take up to worker_shutdown_timeout, 30 seconds by default. */
        [PRESET_PUMA] = {.stop_signal = SIGTERM},
};
