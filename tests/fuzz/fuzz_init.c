/* SPDX-License-Identifier: MIT */
/* Fuzzes what `sqmgr init` reads: systemd units, supervisord.conf, Procfiles, the variables of sidekiqswarm.
 */
#include "frameworks/table.h"
#include "fuzz.h"
#include "init/source_rules.h"
#include "io/ini.h"
#include "settings/errors.h"

static const struct settings_surroundings surroundings = {
        .frameworks = framework_traits,
        .memory_total_bytes = UINT64_C(8) << 30,
};

/* Checks that the value of each entry is a single line, whatever the source had. */
static void check_entries(const struct entries *entries)
{
        for (size_t i = 0; i < entries->n; i++) {
                fuzz_check(entries->list[i].section && entries->list[i].name && entries->list[i].line > 0);
                fuzz_check(!strchr(entries->list[i].value, '\n'));
        }
}

static int take_source(struct proposal *proposal, uint8_t source, const struct field *text)
{
        _cleanup_environment_ struct environment variables = {0};
        _cleanup_entries_ struct entries entries = {0};
        const char *program = NULL, *error = NULL;
        char *process = NULL;
        unsigned line = 0;
        int r;

        if (source < 2) {
                r = entries_read(&entries, text->text, text->len,
                                 source == 0 ? ENTRIES_SYSTEMD : ENTRIES_SUPERVISORD, &line);
                fuzz_check(r == 0 || (r == -EINVAL && line > 0));
                check_entries(&entries);
                r = source == 0 ? source_systemd(proposal, &entries)
                                : source_supervisord(proposal, &entries, NULL, &program);
        } else if (source == 2) {
                r = source_procfile(proposal, text->text, NULL, &process);
                fuzz_check(r < 0 || process);
                free(process);
        } else {
                (void)environment_put_lines(&variables, text->text, text->len, &line, &error);
                r = source_sidekiqswarm(proposal, &variables);
        }
        fuzz_check(r == 0 || (r == -EINVAL && proposal->error[0] != '\0'));
        return r;
}

/* Checks that the result has one fleet and no other section, whatever the source had. */
static void check_file(const struct proposal *proposal)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0};
        char *text = NULL;
        size_t size = 0, sections = 0;
        const struct proposal_names names = {"a test", "default", "app", "/etc/sqmgr"};
        FILE *out = open_memstream(&text, &size);

        fuzz_check(out);
        proposal_print(proposal, &names, out);
        (void)proposal_print_unit(proposal, &names, "# ", out);
        fuzz_check(fclose(out) == 0 && strlen(text) == size);
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                sections += *line == '[';
        }
        fuzz_check(sections == 1);
        int r = ini_check_text(text, &surroundings, &errors);
        fuzz_check(r == 0 || (r == -EINVAL && settings_errors_any(&errors)));
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_proposal_ struct proposal proposal = {.surroundings = &surroundings};
        struct input input = {data, size};
        uint8_t source = input_byte(&input) % 4;
        struct field text = input_field(&input, size);

        if (take_source(&proposal, source, &text) == 0 && proposal_finish(&proposal) == 0)
                check_file(&proposal);
        for (const char *p = proposal.notes; p && *p != '\0'; p++)
                fuzz_check((unsigned char)*p >= ' ' || *p == '\n');
        field_free(&text);
        return 0;
}
