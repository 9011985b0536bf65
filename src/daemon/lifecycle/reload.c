/* SPDX-License-Identifier: MIT */
/* Reads the config file again and applies the settings that a reload may change. */
#include "daemon/lifecycle/reload.h"
#include "base/parse.h"
#include "frameworks/backends.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/ini.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/fleets.h"
#include "model/world.h"
#include "settings/errors.h"
#include "settings/operations.h"

/* The changes as lines for the client, and their number. */
struct changes {
        FILE *lines;
        unsigned n;
};

static int on_change(const struct settings_change *change, void *userdata)
{
        static const char *const suffixes[] = {
                [SETTINGS_KEPT] = " (not applied; restart sqmgr, workers keep running)",
                [SETTINGS_APPLIED] = "",
                [SETTINGS_OUTDATES] = " (for new workers only; run 'sqmgrctl restart' to apply to all)",
        };
        struct changes *changes = userdata;

        changes->n++;
        if (!change->key)
                fprintf(changes->lines, "[%s]: %s\n", change->section,
                        change->added ? "added; its workers are being started"
                                      : "removed; its workers are being drained");
        else
                fprintf(changes->lines, "[%s] %s: %s -> %s%s\n", change->section, change->key,
                        change->old_text ? change->old_text : "none",
                        change->new_text ? change->new_text : "none", suffixes[change->reload]);
        return ferror(changes->lines) ? -ENOMEM : 0;
}

/* Explains counts that differ from the config file, for whoever edits the file. */
static void report_scales(const struct world *world, FILE *lines)
{
        char scaled[FLEET_SCALED_MAX];

        WORLD_FOREACH_FLEET(world, fleet) {
                unsigned count = fleet->settings->active_process_count;

                if (!fleet_is_scaled(fleet))
                        continue;
                fleet_scaled_text(fleet, clock_now(CLOCK_MONOTONIC), scaled);
                fprintf(lines, "fleet '%s': active_process_count is %u, but the current count is %u: %s\n",
                        fleet->settings->name, count, fleet_current_count(fleet), scaled);
        }
}

/* Restarts and rollbacks that the reload ended, by their events from the first on. */
static void report_ended(const struct world *world, size_t first, FILE *lines)
{
        for (size_t i = first; i < world->n_events; i++)
                if (world->events[i].kind == EVENT_ROLLOUT_ABORTED)
                        fprintf(lines, "%s\n", world->events[i].text);
}

void reload_log_warnings(const struct settings_errors *warnings, const char *path)
{
        char place[SETTINGS_PLACE_MAX];

        for (size_t i = 0; i < warnings->n; i++)
                log_warning(
                        "%s: %s",
                        settings_errors_place(warnings, warnings->list[i].line, path, place, sizeof(place)),
                        warnings->list[i].text);
}

static int reload(struct reloader *reloader, const struct orderer *by, FILE *lines)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *read = NULL, *merged = NULL;
        struct runtime *runtime = reloader->runtime;
        char who[ORDERER_TEXT_MAX];

        if (ini_load(reloader->config.config_path, framework_traits, redis_judge_tls, &read, &errors,
                     &warnings) < 0) {
                _cleanup_free_ char *text = settings_errors_text(&errors, reloader->config.config_path);

                return text && fputs(text, lines) >= 0 && fflush(lines) == 0 ? 1 : -ENOMEM;
        }
        reload_log_warnings(&warnings, reloader->config.config_path);
        struct changes changes = {.lines = lines};
        size_t n_events = runtime->world->n_events;
        int r = settings_diff(reloader->settings, read, on_change, &changes);
        if (r >= 0 && fflush(lines) != 0)
                r = -ENOMEM;
        if (r >= 0)
                r = settings_merge(reloader->settings, read, &merged);
        if (r >= 0)
                r = links_make(runtime, merged);
        if (r >= 0)
                r = world_reload(runtime->world, merged, by, clock_now(CLOCK_MONOTONIC));
        if (r < 0)
                return r;

        /* Nothing can fail from here on. */
        event_by(by, world_event(runtime->world, EVENT_ORDER, NULL, NULL,
                                 "configuration reloaded by %s, %u change%s", orderer_text(by, who),
                                 changes.n, plural(changes.n)));
        settings_free(reloader->settings);
        reloader->settings = TAKE_PTR(merged);
        report_ended(runtime->world, n_events, lines);
        report_scales(runtime->world, lines);
        links_join(runtime);
        links_end_quarantine(runtime);
        SUBSYSTEMS_CALL(&runtime->subsystems, join);
        wakeup_changed(runtime->wakeup);
        log_set_level(reloader->settings->log_level);
        return 0;
}

int reload_settings(struct reloader *reloader, const struct orderer *by, char **ret_lines)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *lines = open_memstream(&text, &size);
        int r = lines ? reload(reloader, by, lines) : -ENOMEM;

        if (lines)
                (void)fclose(lines);
        if (r >= 0)
                *ret_lines = TAKE_PTR(text);
        reloader->age.refused = r != 0;
        if (r == 0) {
                reloader->age.loaded_at = clock_now(CLOCK_REALTIME);
                config_check_accept(&reloader->config, clock_now(CLOCK_MONOTONIC));
                reloader->reloaded(reloader->userdata);
        } else {
                config_check_doubt(&reloader->config);
        }
        return r;
}

void reload_by_signal(struct reloader *reloader)
{
        _cleanup_free_ char *lines = NULL;
        int r = reload_settings(reloader, NULL, &lines);
        char *rest = lines;

        if (r < 0)
                log_error("cannot reload: %s; the old settings remain active", strerror(-r));
        else if (r > 0)
                log_error("reload refused: '%s' has errors; the old settings remain active",
                          reloader->config.config_path);
        for (const char *line; (line = strsep(&rest, "\n"));)
                if (line[0] != '\0')
                        log_write(r > 0 ? LOG_ERR : LOG_INFO, "reload: %s", line);
}
