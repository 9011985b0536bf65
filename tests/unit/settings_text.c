/* SPDX-License-Identifier: MIT */
/* Reads settings from a text; see the header. */
#include "settings_text.h"
#include "golden.h"
#include "settings/errors.h"
#include "unit.h"

const struct settings_surroundings root_surroundings = {
        .frameworks = framework_traits, .memory_total_bytes = 8 * GIB, .user = "own"};

struct settings *read_settings_warned(const struct settings_surroundings *surroundings, const char *text,
                                      char **ret_errors, char **ret_warnings)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        _cleanup_free_ char *copy = strdup(text);
        unsigned line = 0;
        char *rest = copy;

        ck_assert_int_eq(settings_draft_new(surroundings, &errors, &warnings, &draft), 0);
        for (char *start; (start = strsep(&rest, "\n"));) {
                line++;
                size_t length = strlen(start);
                char *equals = strchr(start, '=');
                if (length > 1 && start[0] == '[') {
                        start[length - 1] = '\0';
                        ck_assert_int_eq(settings_draft_section(draft, start + 1, line), 0);
                } else if (equals) {
                        *equals = '\0';
                        ck_assert_int_eq(settings_draft_set(draft, start, equals + 1, line), 0);
                }
        }
        ck_assert_int_eq(settings_draft_finish(draft), 0);
        *ret_warnings = settings_errors_text(&warnings, "f");
        if (!settings_errors_any(&errors)) {
                *ret_errors = NULL;
                return settings_draft_take(draft);
        }
        *ret_errors = settings_errors_text(&errors, "f");
        return NULL;
}

struct settings *read_settings(const struct settings_surroundings *surroundings, const char *text,
                               char **ret_errors)
{
        _cleanup_free_ char *warnings = NULL;

        return read_settings_warned(surroundings, text, ret_errors, &warnings);
}

struct settings *read_good(const char *text)
{
        char *errors = NULL;
        struct settings *settings = read_settings(&root_surroundings, text, &errors);

        ck_assert_msg(settings, "%s", errors);
        return settings;
}

void add_refused_settings(const struct settings_surroundings *surroundings, const char *text,
                          const char *what)
{
        _cleanup_free_ char *errors = NULL;
        _cleanup_settings_ struct settings *settings = read_settings(surroundings, text, &errors);

        ck_assert_msg(!settings, "accepted: %s", text);
        golden_add(golden_label(what), errors);
}

int note_change(const struct settings_change *change, void *userdata)
{
        static const char *const marks[] = {
                [SETTINGS_KEPT] = " (restart)", [SETTINGS_APPLIED] = "", [SETTINGS_OUTDATES] = " (outdates)"};
        char *text = userdata;
        size_t used = strlen(text);

        snprintf(text + used, NOTES_MAX - used, "%s %s: %s -> %s%s\n", change->section,
                 change->key ? change->key : "*", change->old_text, change->new_text, marks[change->reload]);
        return 0;
}

unsigned count_changes(const char *text)
{
        unsigned n = 0;

        for (; (text = strchr(text, '\n')); text++)
                n++;
        return n;
}
