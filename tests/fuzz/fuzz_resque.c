/* SPDX-License-Identifier: MIT */
/* Fuzzes what a Resque worker reports: each line is an identity, a title, a time and a job. */
#include "base/macro.h"
#include "frameworks/resque/resque.h"
#include "fuzz.h"
#include "model/worker.h"

static void take_job(const struct field *line)
{
        const struct field thread = {"", 0};
        struct job_list list = {0};
        size_t bytes = SIZE_MAX;

        fuzz_check(job_list_add(&list, false, &thread, line) == 0);
        fuzz_check(job_list_decode(&list, resque_job_decode, &bytes) == 0);
        for (size_t i = 0; i < list.n_jobs; i++)
                fuzz_check(list.jobs[i].class && list.jobs[i].jid && list.jobs[i].queue &&
                           list.jobs[i].started_usec < UINT64_MAX / 2);
        job_list_clear(&list);
}

static void take_line(const struct field *line)
{
        struct heartbeat heartbeat;
        struct title title;
        size_t host_len;
        pid_t pid;

        if (resque_identity_parse(line->text, line->len, &host_len, &pid))
                fuzz_check(host_len > 0 && host_len < line->len && line->text[host_len] == ':' && pid > 0);
        if (resque_heartbeat_decode(line, &heartbeat))
                fuzz_check(heartbeat.sent_usec < UINT64_MAX / 2 && heartbeat.busy == 0 && !heartbeat.quiet);
        if (resque_title_parse(line->text, &title))
                fuzz_check(title.busy + title.quiet <= 1 && title.busy >= title.maybe_child &&
                           strnlen(title.version, sizeof(title.version)) < sizeof(title.version));
        take_job(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};

        while (input.left > 0) {
                struct field line = input_line(&input);

                take_line(&line);
                field_free(&line);
        }
        return 0;
}
