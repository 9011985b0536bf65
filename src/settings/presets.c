/* SPDX-License-Identifier: MIT */
/* Stop signal and stop time of each preset, with the source above each row. tests/e2e/plain.bats runs the
 * presets marked as tested in sqmgr.ini(5); the rows of other presets come from reading the source. */
#include "settings/presets.h"
#include <signal.h>

const struct preset presets[_PRESET_MAX] = {
        /* Celery 5, "Workers Guide", "Stopping the worker", and celery/apps/worker.py: TERM is the warm
         * shutdown, which waits for running tasks without limit. A second TERM may interrupt them. */
        [PRESET_CELERY] = {.stop_signal = SIGTERM},
        /* Huey, release notes of 1.4.0, and huey/consumer.py: INT lets running tasks finish without limit. A
         * second INT, or a single TERM, interrupts them. */
        [PRESET_HUEY] = {.stop_signal = SIGINT},
        /* GoodJob, lib/good_job/cli.rb: TERM and INT stop the process once, with shutdown_timeout, by default
         * unlimited. */
        [PRESET_GOOD_JOB] = {.stop_signal = SIGTERM},
        /* Solid Queue, lib/solid_queue/supervisor/signals.rb and fork_supervisor.rb: TERM waits for
         * shutdown_timeout, 5 seconds by default, then ends the worker processes and releases their jobs.
         * QUIT does so at once. */
        [PRESET_SOLID_QUEUE] = {.stop_signal = SIGTERM, .stop_usec = 60 * USEC_PER_SEC},
        /* Delayed::Job 4.1, lib/delayed/worker.rb: TERM lets the running job finish, and so does a second
         * TERM, unless raise_signal_exceptions is set. */
        [PRESET_DELAYED_JOB] = {.stop_signal = SIGTERM},
        /* Que 1 and 2, lib/que/command_line_interface.rb: TERM and INT let running jobs finish without
         * limit. */
        [PRESET_QUE] = {.stop_signal = SIGTERM},
        /* Dramatiq, dramatiq/cli.py: TERM waits for --worker-shutdown-timeout, 10 minutes by default. A
         * second TERM interrupts at once. */
        [PRESET_DRAMATIQ] = {.stop_signal = SIGTERM, .stop_usec = 11 * USEC_PER_MIN},
        /* Puma 5 and 6, docs/signals.md and lib/puma/dsl.rb: TERM finishes running requests. A cluster allows
         * them worker_shutdown_timeout, 30 seconds by default. */
        [PRESET_PUMA] = {.stop_signal = SIGTERM},
};
