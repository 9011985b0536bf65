/* SPDX-License-Identifier: MIT */
/* Fuzzes what the machine shows of a worker, and identities: each line is tried as a title, as the name of a
 * thread and as an identity, with each framework. */
#include "frameworks/decode.h"
#include "frameworks/table.h"
#include "fuzz.h"
#include "observe/match.h"

static void take_line(const struct framework *framework, const struct field *line, struct match *match)
{
        struct title title = {0};
        struct match_found found = {.identity = line->text, .len = line->len};

        if (framework->identity_parse &&
            framework->identity_parse(line->text, line->len, &found.host_len, &found.pid)) {
                fuzz_check(found.host_len > 0 && found.host_len < line->len &&
                           line->text[found.host_len] == ':' && found.pid > 0);
                fuzz_check(match_host_was(match, line->text, found.host_len, 1) == 0);
                fuzz_check(match_scan_add(match, &found, 1) == 0);
        }
        if (framework->title_parse && framework->title_parse(line->text, &title)) {
                fuzz_check(strnlen(title.version, sizeof(title.version)) < sizeof(title.version));
                fuzz_check(title.busy <= 1000000 && title.concurrency <= 1000000);
                fuzz_check(title.busy >= title.maybe_child);
        }
        if (framework->thread_is_processor)
                (void)framework->thread_is_processor(line->text, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct match match = {0};

        match_scan_begin(&match, 1);
        while (input.left > 0) {
                struct field line = input_line(&input);

                for (size_t i = 0; framework_traits[i]; i++)
                        take_line(framework_of(framework_traits[i]), &line, &match);
                char *pattern = decode_host_pattern(line.text);
                fuzz_check(pattern && strlen(pattern) >= strlen(line.text) + 2);
                free(pattern);
                field_free(&line);
        }
        match_scan_end(&match);
        for (size_t i = 1; i < match.n_candidates; i++)
                fuzz_check(strcmp(match.candidates[i - 1]->identity, match.candidates[i]->identity) < 0);
        match_clear(&match);
        return 0;
}
