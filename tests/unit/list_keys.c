/* SPDX-License-Identifier: MIT */
/* Prints the table of keys for tests/check-docs: section, key, default, `reload`, `outdates` or `restart`,
 * and the type with its bounds; separated by tabs. */
#include "base/parse.h"
#include "frameworks/table.h"
#include "settings/value.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
        [SETTINGS_KEPT] = "restart", [SETTINGS_APPLIED] = "reload", [SETTINGS_OUTDATES] = "outdates"};

/* Types without bounds. */
static const char *const types[_SETTINGS_TYPE_MAX] = {
        [SETTINGS_TEXT] = "text",
        [SETTINGS_PATH] = "absolute path",
        [SETTINGS_COMMAND] = "words",
        [SETTINGS_ENVIRONMENT] = "words of the form NAME=VALUE",
        [SETTINGS_LOG] = "inherit, journal or an absolute path",
        [SETTINGS_COUNTS] = "number or none, also by name",
        [SETTINGS_DURATIONS] = "duration or none, also by name",
        [SETTINGS_SENTINELS] = "list of HOST:PORT",
        [SETTINGS_URL] = "URL",
        [SETTINGS_DATABASE] = "URL of a database",
        [SETTINGS_SIGNAL] = "name of a signal",
};

static void print_names(const struct settings_key *key)
{
        if (key->type == SETTINGS_FRAMEWORK)
                for (const struct traits *const *traits = framework_traits; *traits; traits++)
                        printf("%s%s", traits == framework_traits ? "" : ", ", (*traits)->name);
        else
                for (const struct settings_choice *choice = key->choices; choice->name; choice++)
                        printf("%s%s", choice == key->choices ? "" : ", ", choice->name);
}

static void print_type(const struct settings_key *key)
{
        char min[FORMAT_MAX], max[FORMAT_MAX];

        switch (key->type) {
        case SETTINGS_CHOICE:
        case SETTINGS_FRAMEWORK:
                print_names(key);
                break;
        case SETTINGS_COUNT:
                printf("number from %" PRId64 " to %" PRId64, key->min, key->max);
                break;
        case SETTINGS_SHARE:
                printf("number or percentage from %" PRId64 " to %" PRId64, key->min, key->max);
                break;
        case SETTINGS_DURATION:
                printf("duration from %s to %s", format_duration_exact((usec_t)key->min, min, sizeof(min)),
                       format_duration_exact((usec_t)key->max, max, sizeof(max)));
                break;
        case SETTINGS_SIZE:
                printf("size from %s to %s", format_size_exact((uint64_t)key->min, min, sizeof(min)),
                       format_size_exact((uint64_t)key->max, max, sizeof(max)));
                break;
        default:
                fputs(types[key->type], stdout);
        }
        if (key->type >= SETTINGS_CHOICE && key->fallback &&
            (key->unset_value || strcmp(key->fallback, "none") == 0))
                fputs(" or none", stdout);
}

int main(void)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                printf("%s\t%s\t%s\t%s\t", settings_scope_name(key->scope), key->name,
                       key->fallback ? key->fallback : key->unset, words[key->reload]);
                print_type(key);
                putchar('\n');
        }
        return ferror(stdout) || fflush(stdout) != 0;
}
