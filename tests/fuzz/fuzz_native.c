/* SPDX-License-Identifier: MIT */
/* Fuzzes what a worker reports by sqmgr-heartbeat(7): the lines of its file, also tried as identities in
 * Redis. */
#include "frameworks/native/native.h"
#include "fuzz.h"
#include "model/worker.h"
#include <signal.h>

static void take_record(const struct field *text)
{
        struct field fields[_NATIVE_FIELD_MAX];
        struct heartbeat heartbeat;

        if (!native_lines(text->text, text->len, fields))
                return;
        for (size_t i = 0; i < _NATIVE_FIELD_MAX; i++)
                fuzz_check(!fields[i].text ||
                           (fields[i].text > text->text &&
                            fields[i].text + fields[i].len < text->text + text->len &&
                            fields[i].text[-1] == '=' && fields[i].text[fields[i].len] == '\n'));
        if (!native_take_record(text->text, text->len, &heartbeat))
                return;
        fuzz_check(heartbeat.sent_usec > 0 && heartbeat.busy <= 1000000 && heartbeat.concurrency <= 1000000);
        fuzz_check(!heartbeat.work_list_known && heartbeat.rss_bytes == 0);
        fuzz_check(heartbeat.outcomes.failed <= heartbeat.outcomes.processed);
        for (const int *never = (const int[]){SIGKILL, SIGSTOP, SIGABRT, SIGSEGV, SIGCHLD, -1}; *never > 0;
             never++)
                fuzz_check(heartbeat.quiet_signal != *never && heartbeat.stop_signal != *never);
        fuzz_check(heartbeat.stop_signal != SIGTSTP && heartbeat.stop_signal != SIGCONT);
}

static void take_identity(const struct field *line)
{
        size_t host_len;
        pid_t pid;

        if (native_identity_parse(line->text, line->len, &host_len, &pid))
                fuzz_check(host_len > 0 && host_len < line->len && line->text[host_len] == ':' && pid > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size}, lines = input;
        struct field text = input_field(&input, size);

        take_record(&text);
        field_free(&text);
        while (lines.left > 0) {
                struct field line = input_line(&lines);

                take_identity(&line);
                field_free(&line);
        }
        return 0;
}
