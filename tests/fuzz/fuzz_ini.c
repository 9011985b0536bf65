/* SPDX-License-Identifier: MIT */
/* Fuzzes the text of an ini file, with all parts of its reader that need no file. */
#include "frameworks/table.h"
#include "fuzz.h"
#include "io/ini.c"
#include "settings/operations.h"

static const struct settings_surroundings surroundings = {
        .frameworks = framework_traits,
        .memory_total_bytes = UINT64_C(8) << 30,
        .service_dir = "/run/sqmgr",
        .runtime_dir = "/run/user/1000",
};

static struct settings *read_settings(const char *text, size_t length)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;

        fuzz_check(settings_draft_new(&surroundings, &errors, &warnings, &draft) == 0);
        fuzz_check(read_ini(text, length, 0, draft, &errors) == 0);
        fuzz_check(settings_draft_finish(draft) == 0);
        char *reported = settings_errors_text(&errors, "f");
        fuzz_check(reported && !errors.lost && !reported[0] == !settings_errors_any(&errors));
        free(reported);
        for (size_t i = 1; i < errors.n; i++)
                fuzz_check(errors.list[i - 1].line <= errors.list[i].line);
        return settings_errors_any(&errors) ? NULL : settings_draft_take(draft);
}

static int on_change(const struct settings_change *change, void *userdata _unused_)
{
        fuzz_check(change->section && change->old_text && change->new_text);
        return 0;
}

/* Checks that printed settings are accepted and have the same meaning. */
static void check_print(const struct settings *settings)
{
        char *text = settings_print(settings);
        struct settings *again, *merged = NULL;

        fuzz_check(text);
        again = read_settings(text, strlen(text));
        if (again) {
                char *text_again = settings_print(again);

                fuzz_check(text_again && strcmp(text, text_again) == 0);
                free(text_again);
                fuzz_check(settings_diff(settings, again, on_change, NULL) >= 0);
                fuzz_check(settings_merge(settings, again, &merged) == 0);
        } else {
                fputs(text, stderr);
        }
        fuzz_check(again);
        settings_free(merged);
        settings_free(again);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field text = input_field(&input, size);
        struct settings *settings = read_settings(text.text, text.len);

        if (settings)
                check_print(settings);
        settings_free(settings);
        field_free(&text);
        return 0;
}
