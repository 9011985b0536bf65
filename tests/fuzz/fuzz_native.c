/* SPDX-License-Identifier: MIT */
/* Fuzzes what a worker reports by sqmgr-heartbeat(7): the lines of its file. */
#include "base/printable.h"
#include "frameworks/native/native.h"
#include "fuzz.h"
#include "model/heartbeat_info.h"
#include "model/queues.h"
#include <signal.h>

static bool is_value(const struct field *text, const struct field *value)
{
        return value->text > text->text && value->text + value->len < text->text + text->len &&
               value->text[-1] == '=' && value->text[value->len] == '\n';
}

static void check_items(const struct field *text, const struct native_items *items)
{
        fuzz_check(items->n <= NATIVE_ITEMS_MAX);
        for (size_t i = 0; i < items->n; i++)
                fuzz_check(is_value(text, &items->list[i]));
}

static bool is_printable(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);

        printable_replace(copy, strlen(copy), false);
        return strcmp(copy, text) == 0;
}

static void check_jobs(const struct job_list *jobs, size_t n)
{
        fuzz_check(jobs->n_jobs == n && job_list_unknown(jobs) == 0);
        for (size_t i = 0; i < n; i++) {
                const struct job *job = &jobs->jobs[i];

                fuzz_check(job->started_usec > 0 && job->jid[0] != '\0' && !strchr(job->jid, ' '));
                fuzz_check(strlen(job->jid) <= 64 && strlen(job->class) <= 128);
                fuzz_check(is_printable(job->jid) && is_printable(job->class));
        }
}

static void check_queues(const struct heartbeat_info *info, size_t n)
{
        const char *name = info->queues;

        for (; *name != '\0'; name += strlen(name) + 1) {
                fuzz_check(n-- > 0 && strlen(name) <= 250 && is_printable(name));
                fuzz_check(!queue_names_have(name + strlen(name) + 1, name));
        }
        fuzz_check(name - info->queues > 0 && name - info->queues <= HEARTBEAT_QUEUES_MAX);
}

static void check_heartbeat(const struct heartbeat *heartbeat)
{
        fuzz_check(heartbeat->sent_usec > 0 && heartbeat->busy <= 1000000 &&
                   heartbeat->concurrency <= 1000000);
        fuzz_check(!heartbeat->work_list_known && heartbeat->rss_bytes == 0);
        fuzz_check(heartbeat->outcomes.failed <= heartbeat->outcomes.processed);
        for (const int *never = (const int[]){SIGKILL, SIGSTOP, SIGABRT, SIGSEGV, SIGCHLD, -1}; *never > 0;
             never++)
                fuzz_check(heartbeat->quiet_signal != *never && heartbeat->stop_signal != *never);
        fuzz_check(heartbeat->stop_signal != SIGTSTP && heartbeat->stop_signal != SIGCONT);
}

static void take_record(const struct field *text)
{
        struct native_lines lines;
        struct heartbeat_record record;

        if (!native_split(text->text, text->len, &lines))
                return;
        for (size_t i = 0; i < _NATIVE_FIELD_MAX; i++)
                fuzz_check(!lines.fields[i].text || is_value(text, &lines.fields[i]));
        check_items(text, &lines.jobs);
        check_items(text, &lines.queues);
        if (native_take_record(text->text, text->len, &record) < 0)
                return;
        check_jobs(&record.jobs, lines.jobs.n);
        fuzz_check(!!record.info == (lines.queues.n > 0));
        if (record.info)
                check_queues(record.info, lines.queues.n);
        check_heartbeat(&record.heartbeat);
        heartbeat_record_clear(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field text = input_field(&input, size);

        take_record(&text);
        field_free(&text);
        return 0;
}
