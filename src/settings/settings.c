/* SPDX-License-Identifier: MIT */
/* Values derived from a fleet's settings and its framework's traits, and the flaws of its command. */
#include "settings/settings.h"
#include "settings/database_url.h"
#include <signal.h>
#include <stdio.h>

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

/* Returns the end of these words in the text, which may have `=VALUE` after them; NULL: the text lacks them.
 */
static const char *find_words(const char *text, const char *words)
{
        size_t length = strlen(words);

        for (const char *at = text; (at = strstr(at, words)); at += length)
                if ((at == text || strchr(" \t'\"", at[-1])) && strchr(" \t'\"=", at[length]))
                        return at + length;
        return NULL;
}

/* A shell has several words in one argument. Options before the subcommand are those of another program, such
 * as Python. */
static bool command_has(const struct fleet_settings *fleet, const char *option)
{
        if (fleet->traits->command_passes_option)
                return fleet->traits->command_passes_option(fleet->argv, option);
        const char *subcommand = fleet->traits->subcommand;
        for (char *const *argv = fleet->argv; *argv; argv++) {
                const char *text = subcommand ? find_words(*argv, subcommand) : *argv;

                subcommand = text ? NULL : subcommand;
                if (text && find_words(text, option))
                        return true;
        }
        return false;
}

static bool environment_has(char *const *list, const char *entry)
{
        for (; list && *list; list++)
                if (strcmp(*list, entry) == 0)
                        return true;
        return false;
}

bool command_has_flaw(const struct fleet_settings *fleet, const struct command_flaw *flaw)
{
        for (size_t i = 0; i < ELEMENTSOF(flaw->options) && flaw->options[i]; i++)
                if (!command_has(fleet, flaw->options[i]))
                        return false;
        for (size_t i = 0; i < ELEMENTSOF(flaw->unless) && flaw->unless[i]; i++)
                if (find_words(fleet->command, flaw->unless[i]) ||
                    environment_has(fleet->environment_list, flaw->unless[i]))
                        return false;
        return true;
}

const char *command_flaw_text(const struct command_flaw *flaw, char text[static COMMAND_FLAW_MAX])
{
        const char *const *options = flaw->options;

        snprintf(text, COMMAND_FLAW_MAX, "'command'%s%s%s%s%s", options[0] ? " has " : " ", options[0] ?: "",
                 options[0] && options[1] ? " " : "", (options[0] ? options[1] : NULL) ?: "", flaw->text);
        return text;
}
