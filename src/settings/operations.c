/* SPDX-License-Identifier: MIT */
/* Frees, prints, compares and merges finished settings. */
#include "settings/operations.h"
#include "base/argv.h"
#include "base/hash.h"
#include "base/memstream.h"
#include "base/text.h"
#include "settings/settings.h"

struct fleet_settings *fleet_settings_new(const char *name)
{
        struct fleet_settings *fleet = calloc(1, sizeof(*fleet));

        if (!fleet)
                return NULL;
        settings_values_clear(true, fleet);
        fleet->name = name ? strdup(name) : NULL;
        return fleet->name || !name ? fleet : fleet_settings_free(fleet);
}

struct fleet_settings *fleet_settings_free(struct fleet_settings *fleet)
{
        if (fleet) {
                settings_values_clear(true, fleet);
                argv_free(fleet->argv);
                argv_free(fleet->before_start_argv);
                argv_free(fleet->after_exit_argv);
                argv_free(fleet->environment_list);
                free(fleet->name);
                free(fleet);
        }
        return NULL;
}

struct fleet_settings *settings_add_fleet(struct settings *settings, const char *name)
{
        if (!ARRAY_RESIZE(settings->fleets, settings->n_fleets + 1))
                return NULL;
        struct fleet_settings *fleet = fleet_settings_new(name);
        if (fleet)
                settings->fleets[settings->n_fleets++] = fleet;
        return fleet;
}

struct settings *settings_free(struct settings *settings)
{
        if (settings) {
                settings_values_clear(false, settings);
                for (size_t i = 0; i < settings->n_fleets; i++)
                        fleet_settings_free(settings->fleets[i]);
                free(settings->fleets);
                free(settings->orders_file);
                free(settings);
        }
        return NULL;
}

static int print_scope(FILE *out, enum settings_scope scope, const void *base)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                _cleanup_free_ char *value = NULL;

                if (key->scope != scope)
                        continue;
                int r = settings_value_text(key, base, &value);
                if (r < 0)
                        return r;
                if (value && !key->merged)
                        fprintf(out, "%s = %s\n", key->name, value);
                else
                        fprintf(out, "# %s: %s\n", key->name, value ?: key->unset);
        }
        return 0;
}

static int print_all(FILE *out, const struct settings *settings)
{
        fprintf(out, "[%s]\n", settings_scope_name(SETTINGS_SQMGR));
        int r = print_scope(out, SETTINGS_SQMGR, settings);
        fprintf(out, "\n[%s]\n", settings_scope_name(SETTINGS_REDIS));
        if (r == 0)
                r = print_scope(out, SETTINGS_REDIS, settings);
        for (size_t i = 0; i < settings->n_fleets && r == 0; i++) {
                fprintf(out, "\n[%s:%s]\n", settings_scope_name(SETTINGS_FLEET), settings->fleets[i]->name);
                r = print_scope(out, SETTINGS_FLEET, settings->fleets[i]);
        }
        return r;
}

char *settings_print(const struct settings *settings)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        int r = out ? print_all(out, settings) : -ENOMEM;

        if (memstream_close(out, &text) < 0 || r < 0) {
                free(text);
                return NULL;
        }
        return text;
}

struct diff {
        int (*changed)(const struct settings_change *change, void *userdata);
        void *userdata;
};

/* An environment often contains passwords: report only that it changed. */
static int diff_text(const struct settings_key *key, const void *base, char **ret)
{
        int r = settings_value_text(key, base, ret);

        if (r < 0 || key->type != SETTINGS_ENVIRONMENT || !*ret)
                return r;
        free(*ret);
        *ret = strdup("***");
        return *ret ? 0 : -ENOMEM;
}

/* fleet is the section of both, or NULL. */
static int diff_values(const struct diff *diff, const char *fleet, const void *old, const void *new,
                       bool kept_only)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                _cleanup_free_ char *old_text = NULL, *new_text = NULL;
                if (settings_key_is_of_fleet(key) == !fleet || (kept_only && key->reload != SETTINGS_KEPT) ||
                    settings_value_equal(key, old, new))
                        continue;

                int r = diff_text(key, old, &old_text);
                if (r == 0)
                        r = diff_text(key, new, &new_text);
                const struct settings_change change = {
                        .section = fleet ?: settings_scope_name(key->scope),
                        .key = key->name,
                        .old_text = old_text ?: key->unset,
                        .new_text = new_text ?: key->unset,
                        .reload = key->reload,
                };
                if (r == 0)
                        r = diff->changed(&change, diff->userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* old or new is NULL if only one of the settings has the fleet. */
static int diff_fleet(const struct diff *diff, const struct fleet_settings *old,
                      const struct fleet_settings *new)
{
        _cleanup_free_ char *section =
                text_format("%s:%s", settings_scope_name(SETTINGS_FLEET), old ? old->name : new->name);

        if (!section)
                return -ENOMEM;
        bool was = old && !old->removed, is = new && !new->removed;
        if (!was && !is)
                return 0;
        if (was && is)
                return diff_values(diff, section, old, new, false);
        const struct settings_change change = {
                .section = section,
                .added = is,
                .old_text = was ? "present" : "absent",
                .new_text = is ? "added" : "removed",
                .reload = SETTINGS_APPLIED,
        };
        int r = diff->changed(&change, diff->userdata);
        /* A fleet that is added again while it drains still has the old values of kept keys. */
        return r == 0 && is && old ? diff_values(diff, section, old, new, true) : r;
}

int settings_diff(const struct settings *old, const struct settings *new,
                  int (*changed)(const struct settings_change *change, void *userdata), void *userdata)
{
        const struct diff diff = {.changed = changed, .userdata = userdata};

        int r = diff_values(&diff, NULL, old, new, false);
        for (size_t i = 0; i < old->n_fleets && r == 0; i++)
                r = diff_fleet(&diff, old->fleets[i], settings_find_fleet(new, old->fleets[i]->name));
        for (size_t i = 0; r == 0 && i < new->n_fleets; i++) {
                if (!settings_find_fleet(old, new->fleets[i]->name))
                        r = diff_fleet(&diff, NULL, new->fleets[i]);
        }
        return r;
}

/* Copies each value: from new if a reload applies it, else from old. */
static int merge_values(bool of_fleet, const void *old, const void *new, void *to)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                if (settings_key_is_of_fleet(key) != of_fleet)
                        continue;
                int r = settings_value_copy(key, key->reload != SETTINGS_KEPT ? new : old, to);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* -fanalyzer: old or new may be NULL, but never both, since at least one of the settings has the
 * fleet. */
static int merge_fleet(const struct fleet_settings *old, const struct fleet_settings *new,
                       struct settings *merged)
{
        struct fleet_settings *to = settings_add_fleet(merged, old ? old->name : new->name);

        if (!to)
                return -ENOMEM;
        to->removed = !new;
        to->line = new ? new->line : 0;
        to->stop_bounded = new ? new->stop_bounded : old->stop_bounded;
        /* As the keys that name it. */
        to->broker_named = old ? old->broker_named : new->broker_named;
        int r = merge_values(true, old ?: new, new ?: old, to);
        if (r < 0)
                return r;
        /* A changed framework needs a restart, so the old one's stop settings stay too. */
        if (old && new && old->traits != new->traits) {
                to->preset = old->preset;
                to->stop_signal = old->stop_signal;
                to->stop_timeout = old->stop_timeout;
                to->stop_bounded = old->stop_bounded;
        }
        return fleet_settings_derive(to);
}

int settings_merge(const struct settings *old, const struct settings *new, struct settings **ret)
{
        _cleanup_settings_ struct settings *merged = calloc(1, sizeof(*merged));

        if (!merged)
                return -ENOMEM;
        int r = merge_values(false, old, new, merged);
        for (size_t i = 0; i < old->n_fleets && r == 0; i++)
                r = merge_fleet(old->fleets[i], settings_find_fleet(new, old->fleets[i]->name), merged);
        for (size_t i = 0; r == 0 && i < new->n_fleets; i++)
                if (!settings_find_fleet(old, new->fleets[i]->name))
                        r = merge_fleet(NULL, new->fleets[i], merged);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(merged);
        return 0;
}

void settings_drop_removed(struct settings *settings, size_t i)
{
        assert(settings->fleets[i]->removed);
        fleet_settings_free(settings->fleets[i]);
        settings->n_fleets--;
        memmove(settings->fleets + i, settings->fleets + i + 1,
                (settings->n_fleets - i) * sizeof(*settings->fleets));
}

struct fleet_settings *settings_add_removed(struct settings *settings, const char *name,
                                            const struct traits *traits)
{
        const struct settings_surroundings nothing = {0};
        struct fleet_settings *fleet = settings_add_fleet(settings, name);
        char why[SETTINGS_WHY_MAX];
        int r = 0;

        if (!fleet)
                return NULL;
        fleet->removed = true;
        fleet->traits = traits;
        for (size_t i = 0; i < settings_keys_n && r == 0; i++)
                if (settings_keys[i].scope == SETTINGS_FLEET && settings_keys[i].fallback &&
                    settings_keys[i].type != SETTINGS_FRAMEWORK)
                        r = settings_value_parse(&settings_keys[i], settings_keys[i].fallback, &nothing,
                                                 fleet, why);
        return r == 0 ? fleet : NULL;
}

static int launch_hash(const struct fleet_settings *fleet, uint64_t *ret)
{
        uint64_t hash = HASH_INIT;

        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                _cleanup_free_ char *value = NULL;

                if (key->scope != SETTINGS_FLEET || key->reload != SETTINGS_OUTDATES)
                        continue;
                int r = settings_value_text(key, fleet, &value);
                if (r < 0)
                        return r;
                /* Skip defaults, so that a key added by an upgrade does not outdate workers. */
                if (!value || (key->fallback && strcmp(value, key->fallback) == 0))
                        continue;
                hash = hash_bytes(hash, key->name, strlen(key->name) + 1);
                hash = hash_bytes(hash, value, strlen(value) + 1);
        }
        /* Not the duration: workers need not be replaced for another one. */
        if (fleet_settings_load_outcomes(fleet))
                hash = hash_bytes(hash, "outcomes", sizeof("outcomes"));
        *ret = hash;
        return 0;
}

int fleet_settings_derive(struct fleet_settings *fleet)
{
        const char *error = NULL;
        int r = 0;

        if (fleet->command)
                r = argv_split(fleet->command, &fleet->argv, &error);
        if (r == 0 && fleet->before_start)
                r = argv_split(fleet->before_start, &fleet->before_start_argv, &error);
        if (r == 0 && fleet->after_exit)
                r = argv_split(fleet->after_exit, &fleet->after_exit_argv, &error);
        if (r == 0 && fleet->environment)
                r = argv_split(fleet->environment, &fleet->environment_list, &error);
        return r < 0 ? r : launch_hash(fleet, &fleet->launch_hash);
}
