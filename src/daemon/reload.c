/* SPDX-License-Identifier: MIT */
/* Reads the config file again, and puts what a reload may change in the place of the old. */
#include "daemon/supervisor.h"
#include "io/config.h"
#include "io/log.h"
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
        char **list = line != NULL ? realloc(lines->list, (lines->n + 2) * sizeof(char *)) : NULL;

        if (list == NULL) {
                free(line);
                return -ENOMEM;
        }
        lines->list = list;
        list[lines->n++] = line;
        list[lines->n] = NULL;
        return 0;
}

static int lines_take(struct lines *lines, char ***ret)
{
        if (lines->list == NULL)
                lines->list = calloc(1, sizeof(char *));
        if (lines->list == NULL)
                return -ENOMEM;
        *ret = TAKE_PTR(lines->list);
        lines->n = 0;
        return 0;
}

static int on_change(const struct settings_change *change, void *userdata)
{
        static const char needs_restart[] = " (not in force: needs a restart of sqmgr)";
        const char *suffix = change->reloadable ? "" : needs_restart;
        char *line = NULL;
        int n;

        if (change->key == NULL)
                n = asprintf(&line, "[%s]: %s%s", change->section, change->new_text, suffix);
        else
                n = asprintf(&line, "[%s] %s: %s -> %s%s", change->section, change->key,
                             change->old_text != NULL ? change->old_text : "none",
                             change->new_text != NULL ? change->new_text : "none", suffix);
        return lines_add(userdata, n < 0 ? NULL : line);
}

static int refuse(const struct supervisor *supervisor, const struct config_errors *errors, char ***ret_lines)
{
        _cleanup_lines_ struct lines lines = {0};
        _cleanup_free_ char *text = config_errors_text(errors, supervisor->config_path);
        char *rest = text;

        if (text == NULL)
                return -ENOMEM;
        for (const char *line; (line = strsep(&rest, "\n")) != NULL;)
                if (line[0] != '\0' && lines_add(&lines, strdup(line)) < 0)
                        return -ENOMEM;
        return lines_take(&lines, ret_lines) < 0 ? -ENOMEM : 1;
}

int reload(struct supervisor *supervisor, char ***ret_lines)
{
        _cleanup_config_errors_ struct config_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *read = NULL, *merged = NULL;
        _cleanup_lines_ struct lines lines = {0};
        struct world *world = supervisor->world;

        if (config_load(supervisor->config_path, &read, &errors, &warnings) < 0)
                return refuse(supervisor, &errors, ret_lines);
        for (size_t i = 0; i < warnings.n; i++)
                log_warning("%s:%u: %s", supervisor->config_path, warnings.list[i].line,
                            warnings.list[i].text);
        int r = settings_diff(supervisor->settings, read, on_change, &lines);
        if (r >= 0)
                r = settings_merge(supervisor->settings, read, &merged);
        if (r >= 0)
                r = lines_take(&lines, ret_lines);
        if (r < 0)
                return r;

        /* From here on nothing can fail. */
        world->settings = merged;
        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];
                const struct fleet_settings *settings = settings_find_fleet(merged, fleet->settings->name);

                /* The operator's count was given for the configured one. */
                if (settings->active_process_count != fleet->settings->active_process_count)
                        fleet->scale = 0;
                fleet->settings = settings;
        }
        settings_free(supervisor->settings);
        supervisor->settings = TAKE_PTR(merged);
        supervisor->unsaved = true;
        log_set_level(supervisor->settings->log_level);
        return 0;
}
