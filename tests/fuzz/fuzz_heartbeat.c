/* SPDX-License-Identifier: MIT */
/* Fuzzes what a Sidekiq reports: heartbeat fields, identities, titles and thread names. Each line is one of
 * these; `-` is a missing field. */
#include "frameworks/sidekiq/format.h"
#include "fuzz.h"
#include "model/queues.h"
#include "observe/match.h"

#define FIELDS (_SIDEKIQ_FIELD_MAX + 1)

/* Returns what the last of them tells, or NULL. */
static struct heartbeat_info *take_heartbeat(const struct field fields[static FIELDS])
{
        struct heartbeat_info *info;
        struct heartbeat heartbeat;

        if (sidekiq_heartbeat_decode(fields, &heartbeat)) {
                fuzz_check(heartbeat.sent_usec > 0 && heartbeat.busy <= 1000000 &&
                           heartbeat.concurrency <= 1000000);
                fuzz_check(!heartbeat.work_list_known);
                fuzz_check(heartbeat.outcomes.failed <= heartbeat.outcomes.processed &&
                           heartbeat.outcomes.class_failed <= heartbeat.outcomes.failed);
        }
        if (sidekiq_info_decode(&fields[_SIDEKIQ_FIELD_MAX], &info) < 0)
                return NULL;
        fuzz_check(info->n_capsules <= HEARTBEAT_CAPSULES_MAX);
        for (size_t i = 0; i < info->n_capsules; i++)
                fuzz_check(strlen(info->capsules[i]) <= HEARTBEAT_COMM_MAX);
        for (const char *name = info->queues; *name != '\0'; name += strlen(name) + 1) {
                fuzz_check(name + strlen(name) + 1 - info->queues < HEARTBEAT_QUEUES_MAX);
                fuzz_check(!queue_names_have(name + strlen(name) + 1, name));
        }
        return info;
}

static void take_line(const struct field *line, const struct heartbeat_info *info, struct match *match)
{
        struct title title;
        struct match_found found = {.identity = line->text, .len = line->len};

        if (sidekiq_identity_parse(line->text, line->len, &found.host_len, &found.pid)) {
                fuzz_check(found.host_len > 0 && found.host_len < line->len &&
                           line->text[found.host_len] == ':' && found.pid > 0);
                fuzz_check(match_host_was(match, line->text, found.host_len, 1) == 0);
                fuzz_check(match_scan_add(match, &found, 1) == 0);
        }
        if (sidekiq_title_parse(line->text, &title)) {
                fuzz_check(strlen(title.version) < sizeof(title.version));
                fuzz_check(title.busy <= 1000000 && title.concurrency <= 1000000);
        }
        (void)sidekiq_thread_is_processor(line->text, info);
        char *pattern = decode_host_pattern(line->text);
        fuzz_check(pattern && strlen(pattern) >= strlen(line->text) + 2);
        free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field lines[FIELDS], fields[FIELDS] = {0};
        struct match match = {0};

        for (size_t i = 0; i < FIELDS; i++) {
                lines[i] = input_line(&input);
                if (strcmp(lines[i].text, "-") != 0)
                        fields[i] = lines[i];
        }
        struct heartbeat_info *info = take_heartbeat(fields);
        match_scan_begin(&match, 1);
        while (input.left > 0) {
                struct field line = input_line(&input);

                take_line(&line, info, &match);
                field_free(&line);
        }
        match_scan_end(&match);
        for (size_t i = 1; i < match.n_candidates; i++)
                fuzz_check(strcmp(match.candidates[i - 1]->identity, match.candidates[i]->identity) < 0);
        match_clear(&match);
        free(info);
        for (size_t i = 0; i < FIELDS; i++)
                field_free(&lines[i]);
        return 0;
}
