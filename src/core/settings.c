/* SPDX-License-Identifier: MIT */
/* Frees, finds, prints, compares and merges finished settings. */
#include "core/settings.h"
#include "base/words.h"
#include "core/settings_keys.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct fleet_settings *fleet_settings_free(struct fleet_settings *fleet)
{
        if (fleet) {
                settings_values_clear(SETTINGS_FLEET, fleet);
                words_free(fleet->argv);
                words_free(fleet->environment_list);
                free(fleet->name);
                free(fleet);
        }
        return NULL;
}

struct settings *settings_free(struct settings *settings)
{
        if (settings) {
                settings_values_clear(SETTINGS_SQMGR, settings);
                settings_values_clear(SETTINGS_REDIS, &settings->redis);
                for (size_t i = 0; i < settings->n_fleets; i++)
                        fleet_settings_free(settings->fleets[i]);
                free(settings->fleets);
                free(settings);
        }
        return NULL;
}

const struct fleet_settings *settings_find_fleet(const struct settings *settings, const char *name)
{
        for (size_t i = 0; i < settings->n_fleets; i++) {
                if (strcmp(settings->fleets[i]->name, name) == 0)
                        return settings->fleets[i];
        }
        return NULL;
}

struct text {
        char *text; /* owned */
        size_t length;
};

static int text_add(struct text *text, const char *format, ...) _printf_(2, 3);
static int text_add(struct text *text, const char *format, ...)
{
        _cleanup_free_ char *more = NULL;
        va_list args;

        va_start(args, format);
        int length = vasprintf(&more, format, args);
        va_end(args);
        if (length < 0)
                return -ENOMEM;
        char *larger = realloc(text->text, text->length + (size_t)length + 1);
        if (!larger)
                return -ENOMEM;
        memcpy(larger + text->length, more, (size_t)length + 1);
        text->text = larger;
        text->length += (size_t)length;
        return 0;
}

static int print_scope(struct text *text, enum settings_scope scope, const void *base)
{
        int r = 0;

        for (size_t i = 0; i < settings_keys_n && r == 0; i++) {
                const struct settings_key *key = &settings_keys[i];
                _cleanup_free_ char *value = NULL;
                if (key->scope != scope)
                        continue;
                r = settings_value_text(key, base, &value);
                if (r < 0)
                        return r;
                r = value ? text_add(text, "%s = %s\n", key->name, value)
                          : text_add(text, "# %s: %s\n", key->name, key->unset);
        }
        return r;
}

char *settings_print(const struct settings *settings)
{
        struct text text = {0};

        int r = text_add(&text, "[%s]\n", settings_scope_name(SETTINGS_SQMGR));
        if (r == 0)
                r = print_scope(&text, SETTINGS_SQMGR, settings);
        if (r == 0)
                r = text_add(&text, "\n[%s]\n", settings_scope_name(SETTINGS_REDIS));
        if (r == 0)
                r = print_scope(&text, SETTINGS_REDIS, &settings->redis);
        for (size_t i = 0; i < settings->n_fleets && r == 0; i++) {
                r = text_add(&text, "\n[%s:%s]\n", settings_scope_name(SETTINGS_FLEET),
                             settings->fleets[i]->name);
                if (r == 0)
                        r = print_scope(&text, SETTINGS_FLEET, settings->fleets[i]);
        }
        if (r < 0) {
                free(text.text);
                return NULL;
        }
        return text.text;
}

struct diff {
        int (*changed)(const struct settings_change *change, void *userdata);
        void *userdata;
        int n;
};

static int diff_tell(struct diff *diff, const struct settings_change *change)
{
        diff->n++;
        return diff->changed(change, diff->userdata);
}

static int diff_scope(struct diff *diff, enum settings_scope scope, const char *section, const void *old,
                      const void *new)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                _cleanup_free_ char *old_text = NULL, *new_text = NULL;
                if (key->scope != scope || settings_value_equal(key, old, new))
                        continue;

                int r = settings_value_text(key, old, &old_text);
                if (r == 0)
                        r = settings_value_text(key, new, &new_text);
                if (r == 0)
                        r = diff_tell(diff, &(struct settings_change){
                                                    .section = section,
                                                    .key = key->name,
                                                    .old_text = old_text ? old_text : key->unset,
                                                    .new_text = new_text ? new_text : key->unset,
                                                    .reloadable = key->reloadable,
                                            });
                if (r < 0)
                        return r;
        }
        return 0;
}

/* old or new may be NULL: the fleet is in one of the settings only. */
static int diff_fleet(struct diff *diff, const struct fleet_settings *old, const struct fleet_settings *new)
{
        _cleanup_free_ char *section = NULL;

        if (asprintf(&section, "%s:%s", settings_scope_name(SETTINGS_FLEET), old ? old->name : new->name) < 0)
                return -ENOMEM;
        if (old && new)
                return diff_scope(diff, SETTINGS_FLEET, section, old, new);
        return diff_tell(diff, &(struct settings_change){
                                       .section = section,
                                       .old_text = old ? "present" : "absent",
                                       .new_text = new ? "added" : "removed",
                               });
}

int settings_diff(const struct settings *old, const struct settings *new,
                  int (*changed)(const struct settings_change *change, void *userdata), void *userdata)
{
        struct diff diff = {.changed = changed, .userdata = userdata};

        int r = diff_scope(&diff, SETTINGS_SQMGR, settings_scope_name(SETTINGS_SQMGR), old, new);
        if (r == 0)
                r = diff_scope(&diff, SETTINGS_REDIS, settings_scope_name(SETTINGS_REDIS), &old->redis,
                               &new->redis);
        for (size_t i = 0; i < old->n_fleets && r == 0; i++)
                r = diff_fleet(&diff, old->fleets[i], settings_find_fleet(new, old->fleets[i]->name));
        for (size_t i = 0; i < new->n_fleets &&r == 0; i++) {
                if (!settings_find_fleet(old, new->fleets[i]->name))
                        r = diff_fleet(&diff, NULL, new->fleets[i]);
        }
        return r < 0 ? r : diff.n;
}

/* Copies each value of the scope: from new where a reload applies it, else from old. */
static int merge_scope(enum settings_scope scope, const void *old, const void *new, void *to)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                if (key->scope != scope)
                        continue;
                int r = settings_value_copy(key, key->reloadable ? new : old, to);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int merge_fleet(const struct fleet_settings *old, const struct fleet_settings *new,
                       struct fleet_settings *to)
{
        to->line = new->line;
        to->name = strdup(old->name);
        if (!to->name)
                return -ENOMEM;
        int r = merge_scope(SETTINGS_FLEET, old, new, to);
        if (r < 0)
                return r;
        return fleet_settings_split(to);
}

int settings_merge(const struct settings *old, const struct settings *new, struct settings **ret)
{
        _cleanup_settings_ struct settings *merged = calloc(1, sizeof(*merged));

        if (!merged)
                return -ENOMEM;
        int r = merge_scope(SETTINGS_SQMGR, old, new, merged);
        if (r == 0)
                r = merge_scope(SETTINGS_REDIS, &old->redis, &new->redis, &merged->redis);
        if (r < 0)
                return r;

        merged->fleets = calloc(MAX(old->n_fleets, (size_t)1), sizeof(*merged->fleets));
        if (!merged->fleets)
                return -ENOMEM;
        for (size_t i = 0; i < old->n_fleets; i++) {
                const struct fleet_settings *from = settings_find_fleet(new, old->fleets[i]->name);
                struct fleet_settings *to = calloc(1, sizeof(*to));
                if (!to)
                        return -ENOMEM;
                merged->fleets[merged->n_fleets++] = to;
                r = merge_fleet(old->fleets[i], from ? from : old->fleets[i], to);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(merged);
        return 0;
}

int fleet_settings_split(struct fleet_settings *fleet)
{
        const char *error = NULL;
        int r = 0;

        if (fleet->command)
                r = words_split(fleet->command, &fleet->argv, &error);
        if (r == 0 && fleet->environment)
                r = words_split(fleet->environment, &fleet->environment_list, &error);
        return r;
}
