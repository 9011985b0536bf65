/* SPDX-License-Identifier: MIT */
/* Reads the config file again, and puts what a reload may change in the place of the old. */
#include "daemon/life/reload.h"
#include "base/words.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/ini.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/names.h"
#include "model/world.h"
#include "settings/errors.h"
#include "settings/operations.h"
#include <stdio.h>
#include <string.h>

struct lines {
        char **list;
        size_t n;
};

static void lines_free(struct lines *lines)
{
        for (size_t i = 0; i < lines->n; i++)
                free(lines->list[i]);
        free(lines->list);
}
#define _cleanup_lines_ _cleanup_(lines_free)

/* Takes line over, which is NULL where memory was short for it. */
static int lines_add(struct lines *lines, char *line)
{
        char **list = line ? realloc(lines->list, (lines->n + 2) * sizeof(char *)) : NULL;

        if (!list) {
                free(line);
                return -ENOMEM;
        }
        lines->list = list;
        list[lines->n++] = line;
        list[lines->n] = NULL;
        return 0;
}

/* An empty list that can be taken as it is. */
static int lines_begin(struct lines *lines)
{
        lines->list = calloc(1, sizeof(char *));
        return lines->list ? 0 : -ENOMEM;
}

static char **lines_take(struct lines *lines)
{
        lines->n = 0;
        return TAKE_PTR(lines->list);
}

static int on_change(const struct settings_change *change, void *userdata)
{
        static const char *const suffixes[] = {
                [SETTINGS_KEPT] = " (not in force: restart sqmgr itself, its workers live on)",
                [SETTINGS_APPLIED] = "",
                [SETTINGS_OUTDATES] = " (for new workers: 'sqmgrctl restart' puts it into effect)",
        };
        char *line = NULL;
        int n;

        if (!change->key)
                n = asprintf(&line, "[%s]: %s", change->section,
                             strcmp(change->new_text, "added") == 0 ? "added, its workers are started"
                                                                    : "removed, its workers are drained");
        else
                n = asprintf(&line, "[%s] %s: %s -> %s%s", change->section, change->key,
                             change->old_text ? change->old_text : "none",
                             change->new_text ? change->new_text : "none", suffixes[change->reload]);
        return lines_add(userdata, n < 0 ? NULL : line);
}

static int refuse(const struct reloader *reloader, const struct settings_errors *errors, char ***ret_lines)
{
        _cleanup_lines_ struct lines lines = {0};
        _cleanup_free_ char *text = settings_errors_text(errors, reloader->config_path);
        char *rest = text;

        if (!text || lines_begin(&lines) < 0)
                return -ENOMEM;
        for (const char *line; (line = strsep(&rest, "\n"));)
                if (line[0] != '\0' && lines_add(&lines, strdup(line)) < 0)
                        return -ENOMEM;
        *ret_lines = lines_take(&lines);
        return 1;
}

/* Where the file's count is not the one in force, which who edits it may wonder at. */
static void tell_scales(const struct world *world, struct lines *lines)
{
        char scaled[FLEET_SCALED_MAX], *line;

        WORLD_FOREACH_FLEET(world, fleet) {
                unsigned count = fleet->settings->active_process_count;

                if (!fleet_is_scaled(fleet))
                        continue;
                fleet_scaled_text(fleet, clock_now(CLOCK_MONOTONIC), scaled);
                if (asprintf(&line,
                             "fleet '%s': active_process_count is %u, but the count in force is %u: %s",
                             fleet->settings->name, count, fleet_count_in_force(fleet), scaled) < 0)
                        line = NULL;
                (void)lines_add(lines, line);
        }
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

static int reload(struct reloader *reloader, const struct orderer *by, char ***ret_lines)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *read = NULL, *merged = NULL;
        _cleanup_lines_ struct lines lines = {0};
        struct crew *crew = reloader->crew;
        char who[ORDERER_TEXT_MAX];

        if (ini_load(reloader->config_path, framework_traits, &read, &errors, &warnings) < 0)
                return refuse(reloader, &errors, ret_lines);
        reload_log_warnings(&warnings, reloader->config_path);
        int r = lines_begin(&lines);
        if (r >= 0)
                r = settings_diff(reloader->settings, read, on_change, &lines);
        if (r >= 0)
                r = settings_merge(reloader->settings, read, &merged);
        if (r >= 0)
                r = links_make(&crew->links, merged);
        if (r >= 0)
                r = world_reload(crew->world, merged, by, clock_now(CLOCK_MONOTONIC));
        if (r < 0)
                return r;

        /* From here on nothing can fail. */
        event_by(by, world_event(crew->world, EVENT_ORDER, NULL, NULL,
                                 "configuration read again by %s, %zu change%s", orderer_text(by, who),
                                 lines.n, lines.n == 1 ? "" : "s"));
        settings_free(reloader->settings);
        reloader->settings = TAKE_PTR(merged);
        tell_scales(crew->world, &lines);
        links_join(&crew->links);
        subsystems_join(&crew->subsystems);
        turn_changed(crew->turn);
        log_set_level(reloader->settings->log_level);
        *ret_lines = lines_take(&lines);
        return 0;
}

int reload_settings(struct reloader *reloader, const struct orderer *by, char ***ret_lines)
{
        int r = reload(reloader, by, ret_lines);

        reloader->age.refused = r != 0;
        if (r == 0)
                reloader->age.loaded_at = clock_now(CLOCK_REALTIME);
        return r;
}

void reload_by_signal(struct reloader *reloader)
{
        char **lines = NULL;
        int r = reload_settings(reloader, NULL, &lines);

        if (r < 0)
                log_error("cannot reload: %s, the old settings stay in force", strerror(-r));
        else if (r > 0)
                log_error("'%s' is refused, the old settings stay in force", reloader->config_path);
        for (char **line = lines; line && *line; line++)
                log_write(r > 0 ? LOG_ERR : LOG_INFO, "reload: %s", *line);
        words_free(lines);
}
