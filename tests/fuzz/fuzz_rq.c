/* SPDX-License-Identifier: MIT */
/* Fuzzes what an RQ worker reports. The first lines are the fields of its record, where `-` is a missing
 * field. Each later line is an identity, a title, a time and the key of a queue. */
#include "frameworks/rq/rq.h"
#include "fuzz.h"
#include "model/worker.h"

enum { HOST, PID, KEY, STATE, HEARTBEAT, SHUTDOWN, DEATH, BIRTH, SUCCESSFUL, FAILED, _FIELD_MAX };

static void take_record(const struct field fields[static _FIELD_MAX])
{
        const struct rq_worker worker = {.host = fields[HOST], .pid = fields[PID], .key = fields[KEY]};
        struct heartbeat heartbeat;
        size_t host_len;
        int error;
        pid_t pid;

        const struct rq_record record = {
                .state = fields[STATE],
                .last_heartbeat = fields[HEARTBEAT],
                .shutdown_requested_date = fields[SHUTDOWN],
                .death = fields[DEATH],
                .birth = fields[BIRTH],
                .successful = fields[SUCCESSFUL],
                .failed = fields[FAILED],
        };
        if (rq_heartbeat_decode(&record, &heartbeat))
                fuzz_check(heartbeat.sent_usec < UINT64_MAX / 2 && heartbeat.born_usec < UINT64_MAX / 2 &&
                           heartbeat.busy <= 1 && heartbeat.concurrency == 1 &&
                           heartbeat.outcomes.failed <= heartbeat.outcomes.processed);
        char *identity = rq_identity_make(&worker, &error);
        if (!identity)
                return;
        fuzz_check(rq_identity_parse(identity, strlen(identity), &host_len, &pid));
        fuzz_check(host_len == worker.host.len && memcmp(identity, worker.host.text, host_len) == 0);
        const char *key = rq_identity_key(identity);
        fuzz_check(key && strlen(key) == worker.key.len && memcmp(key, worker.key.text, worker.key.len) == 0);
        free(identity);
}

static void take_line(const struct field *line)
{
        const char *name;
        struct title title;
        size_t host_len;
        uint64_t usec;
        pid_t pid;

        if (rq_identity_parse(line->text, line->len, &host_len, &pid))
                fuzz_check(host_len > 0 && host_len < line->len && line->text[host_len] == ':' && pid > 0);
        if (decode_iso8601(line, &usec))
                fuzz_check(usec < UINT64_MAX / 2);
        size_t len = rq_queue_name(line, &name);
        fuzz_check(len == 0 || name + len == line->text + line->len);
        if (rq_title_parse(line->text, &title))
                fuzz_check(title.busy <= 1);
        (void)rq_identity_key(line->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field lines[_FIELD_MAX], fields[_FIELD_MAX] = {0};

        for (size_t i = 0; i < _FIELD_MAX; i++) {
                lines[i] = input_line(&input);
                if (strcmp(lines[i].text, "-") != 0)
                        fields[i] = lines[i];
        }
        take_record(fields);
        while (input.left > 0) {
                struct field line = input_line(&input);

                take_line(&line);
                field_free(&line);
        }
        for (size_t i = 0; i < _FIELD_MAX; i++)
                field_free(&lines[i]);
        return 0;
}
