/* SPDX-License-Identifier: MIT */
/* Values derived from a fleet's settings and its framework's traits. */
#include "settings/settings.h"
#include "base/macro.h"
#include "settings/database_url.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

/* The source is above each row. tests/e2e/plain.bats runs the presets marked as tested in sqmgr.ini(5); the
 * rows of other presets come from reading the source. */
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

usec_t fleet_settings_stop_usec(const struct fleet_settings *fleet)
{
        const struct traits *traits = fleet->traits;
        usec_t shutdown =
                traits->command_shutdown_usec && fleet->argv ? traits->command_shutdown_usec(fleet->argv) : 0;

        shutdown = shutdown ?: traits->shutdown_usec;
        return shutdown > 0 ? shutdown + SETTINGS_STOP_MARGIN_USEC : 0;
}

bool fleet_settings_database_fits(const struct fleet_settings *fleet)
{
        _cleanup_database_url_ struct database_url url = {0};

        return !fleet->traits->postgresql_only || !fleet->database_url ||
               database_url_parse(fleet->database_url, &url, NULL) < 0 || url.engine == DATABASE_POSTGRESQL;
}

int fleet_settings_stop_signal(const struct fleet_settings *fleet)
{
        if (!fleet->traits->stop_chosen)
                return 0;
        if (fleet->stop_signal != 0)
                return fleet->stop_signal;
        return fleet->preset != PRESET_NONE ? presets[fleet->preset].stop_signal : 0;
}

const char *shim_error_text(int error)
{
        return error == EINVAL ? "the path contains a blank, a colon, a quote or a backslash"
                               : strerrordesc_np(error);
}
