/* SPDX-License-Identifier: MIT */
/* Fuzzes the rows of Solid Queue's and GoodJob's tables, one a line with its columns between tabs: workers,
 * their metadata or state, jobs, queues, and the entries of jobs that are to be put back. */
#include "continuity/codec.h"
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/decode.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/table.h"
#include "fuzz.h"
#include "servers/answer.h"

#define COLUMNS_MAX 12
static const char job_of[] = "h:1:1", job_of_good_job[] = "h:1:0f8fad5b-d9cb-469f-a165-70867728950e";

static bool is_number(const char *text)
{
        return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Checks that the entry of a rescued job counts one rescue more. */
static void check_entry(const struct database_format *format, const struct field *entry)
{
        struct database_rescue rescue, again;
        char text[128];

        if (!format->take_entry || !format->take_entry(entry, &rescue))
                return;
        fuzz_check(is_number(rescue.claim) && is_number(rescue.job));
        fuzz_check(strcmp(rescue.old_text, rescue.new_text) != 0);
        int n = snprintf(text, sizeof(text), "%s:%s:%s", rescue.claim, rescue.job, rescue.new_text);
        const struct field next = {.text = text, .len = (size_t)n};
        fuzz_check(rescue.times == 1000000 ||
                   (format->take_entry(&next, &again) && again.times == rescue.times + 1));
        fuzz_check(rescue.times == 1000000 ||
                   strncmp(again.old_text, rescue.new_text, strlen(again.old_text)) == 0);
}

static void check_queue_names(const char *names)
{
        for (const char *name = names; *name != '\0'; name += strlen(name) + 1) {
                fuzz_check(strlen(name) <= QUEUE_NAME_MAX);
                fuzz_check(!queue_names_have(name + strlen(name) + 1, name));
        }
}

static void check_process(const struct database_view *view, const struct database_process *process)
{
        struct heartbeat_info *info = calloc(1, sizeof(*info) + process->queues_length + 2);
        size_t host_len;
        pid_t pid;

        fuzz_check(info && database_view_find(view, process->identity));
        fuzz_check(
                view->format->identity_parse(process->identity, strlen(process->identity), &host_len, &pid));
        fuzz_check(host_len == process->host_len && pid == process->pid);
        fuzz_check(!process->heartbeat.work_list_known && process->heartbeat.start == 0);
        if (process->queues) {
                fuzz_check(process->queues_length == queue_names_length(process->queues));
                check_queue_names(process->queues);
                memcpy(info->queues, process->queues, process->queues_length);
        }
        fuzz_check(strlen(process->identity) <= ANSWER_IDENTITY_MAX && host_len <= ANSWER_HOST_MAX);
        fuzz_check(heartbeat_check(framework_of(view->format->traits), &process->heartbeat, info));
        free(info);
}

static void check_queue(const struct queue *queue)
{
        fuzz_check(strlen(queue->name) <= QUEUE_NAME_MAX && queue->size <= QUEUE_JOBS_MAX);
        fuzz_check(queue->latency <= DECODE_CLOCK_MAX_USEC && !queue->due_known && queue->n_classes == 0);
}

static void check_job(const struct job *job)
{
        const char *const names[] = {job->thread, job->queue, job->class, job->jid};

        FOREACH_ELEMENT(name, names)
                fuzz_check(*name && strlen(*name) <= JOB_NAME_MAX);
        fuzz_check(job->started_usec <= DECODE_CLOCK_MAX_USEC && job->entry_len <= JOB_ENTRY_MAX);
}

static void check_facts(const struct database_facts *facts)
{
        for (const char *text = facts->version; *text; text++)
                fuzz_check((unsigned char)*text >= ' ' && *text != 0x7f);
        fuzz_check(facts->failed <= QUEUE_JOBS_MAX);
}

static void check_view(struct database_view *view)
{
        database_view_sort(view);
        check_facts(&view->facts);
        fuzz_check(view->released <= QUERY_RELEASED_MAX);
        for (size_t i = 0; i < view->n_processes; i++)
                check_process(view, &view->processes[i]);
        for (size_t i = 0; i < view->queues.n; i++) {
                fuzz_check(database_view_find_queue(view, view->queues.list[i].name));
                check_queue(&view->queues.list[i]);
                struct queue sum = {0};
                database_view_sum(view, view->queues.list[i].name, &sum);
                fuzz_check(sum.size <= QUEUE_JOBS_MAX);
        }
        fuzz_check(MAX(view->queues.schedule, view->queues.dead) <= QUEUE_JOBS_MAX);
        struct job_list *list = &view->works[0].list;
        for (size_t i = 0; i < list->n_jobs; i++) {
                const struct field entry = {.text = list->jobs[i].entry, .len = list->jobs[i].entry_len};

                check_job(&list->jobs[i]);
                check_entry(view->format, &entry);
        }
}

static int take_row(struct database_view *view, char kind, const struct database_row *row)
{
        switch (kind) {
        case 'j':
                return database_view_take_job(view, row);
        case 'q':
                return database_view_take_queue(view, row);
        case 'c':
                return database_view_take_counts(view, row);
        case 'd':
                return database_view_take_facts(view, row);
        case 'r':
                return database_view_take_released(view, row);
        case 'e':
                if (row->n > 0 && row->values[0].text)
                        check_entry(view->format, &row->values[0]);
                return 0;
        default:
                return view->format->take_process(view, row);
        }
}

/* A column that is a single '-' is NULL. */
static void take_line(struct database_view *view, struct input *input)
{
        struct field line = input_line(input), values[COLUMNS_MAX], copies[COLUMNS_MAX];
        const char *end = line.text + line.len, *at = line.text + MIN(line.len, (size_t)1);
        size_t n = 0;

        for (bool more = line.len > 0; more && n < COLUMNS_MAX; n++) {
                const char *tab = memchr(at, '\t', (size_t)(end - at)), *last = tab ?: end;
                struct input column = {(const uint8_t *)at, (size_t)(last - at)};

                copies[n] = input_field(&column, column.left);
                values[n] = copies[n].len == 1 && copies[n].text[0] == '-' ? (struct field){0} : copies[n];
                more = tab;
                at = last + 1;
        }
        const struct database_row row = {.values = values, .n = n};
        fuzz_check(take_row(view, line.len > 0 ? line.text[0] : ' ', &row) == 0);
        for (size_t i = 0; i < n; i++)
                field_free(&copies[i]);
        field_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        bool is_good_job = input_byte(&input) == 'g';
        struct database_view view = {.format = is_good_job ? &good_job_database_format
                                                           : &solid_queue_database_format};

        fuzz_check(database_view_ask_work(&view, is_good_job ? job_of_good_job : job_of) == 0);
        while (input.left > 0)
                take_line(&view, &input);
        check_view(&view);
        database_view_clear(&view);
        return 0;
}
