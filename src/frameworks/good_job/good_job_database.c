/* SPDX-License-Identifier: MIT */
/* Decodes the rows of GoodJob's tables. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/decode.h"
#include "frameworks/good_job/good_job.h"
#include "wire/json.h"

/* The columns of DATABASE_PROCESSES. */
enum column {
        COLUMN_HOST,
        COLUMN_PID,
        COLUMN_ID,
        COLUMN_UPDATED,
        COLUMN_CREATED,
        COLUMN_QUEUES,
        COLUMN_THREADS,
        COLUMN_JOBS,
};

/* Loads an array. Returns 0; -EINVAL if it is damaged; or -ENOMEM. */
static int load(const struct database_row *row, size_t column, json_t **ret)
{
        static const struct json_bounds bounds = {.bytes = DATABASE_DOCUMENT_MAX, .values = 1024, .depth = 4};
        const struct field text = database_row_text(row, column);
        int r = text.text ? json_load(&bounds, text.text, text.len, 0, ret) : -EINVAL;

        return r == -EMSGSIZE ? -EINVAL : r;
}

/* app/models/good_job/job.rb:235, queue_parser(): all queues; all but some; or a list, possibly in its order.
 */
static int add_queues(struct database_view *view, struct database_process *process, const char *text,
                      size_t length)
{
        const char *end = text + length;
        bool all = false;

        while (text < end && *text == ' ')
                text++;
        for (const char *at = text; at < end; at++)
                all |= *at == '*';
        if (text == end || all)
                return database_view_add_queue(view, process, "*", 1);
        if (*text == '-')
                return database_view_add_queue(view, process, text, (size_t)(end - text));
        text += *text == '+';
        return database_view_add_queues(view, process, text, (size_t)(end - text));
}

static int take_state(struct database_view *view, const struct database_row *row,
                      struct database_process *process)
{
        _cleanup_json_ json_t *queues = NULL, *threads = NULL;
        json_t *entry;

        int r = load(row, COLUMN_THREADS, &threads);
        json_foreach(entry, threads) {
                json_int_t n = json_integer_value(entry);

                if (n > 0 && n <= DECODE_COUNT_MAX)
                        process->heartbeat.concurrency =
                                MIN(process->heartbeat.concurrency + (unsigned)n, (unsigned)DECODE_COUNT_MAX);
        }
        if (r != -ENOMEM)
                r = load(row, COLUMN_QUEUES, &queues);
        json_foreach(entry, queues)
                if (r >= 0 && json_is_string(entry))
                        r = add_queues(view, process, json_string_value(entry), json_string_length(entry));
        return r == -ENOMEM ? r : 0;
}

static int take_process(struct database_view *view, const struct database_row *row)
{
        const struct field host = database_row_text(row, COLUMN_HOST),
                           pid = database_row_text(row, COLUMN_PID);
        const struct field id = database_row_text(row, COLUMN_ID);
        struct database_process *process;
        uint64_t sent_usec, n_jobs;

        if (!database_row_time(row, COLUMN_UPDATED, &sent_usec))
                return 0;
        int r = database_view_add(view, &host, &pid, &id, &process);
        if (r < 0 || !process)
                return r;
        process->heartbeat.sent_usec = sent_usec;
        (void)database_row_time(row, COLUMN_CREATED, &process->heartbeat.born_usec);
        if (database_row_number(row, COLUMN_JOBS, DECODE_COUNT_MAX, &n_jobs))
                process->heartbeat.busy = (unsigned)n_jobs;
        return take_state(view, row, process);
}

static bool is_pattern(const char *name)
{
        return name[0] == '-' || strcmp(name, "*") == 0;
}

/* Returns true if the list, separated by commas, contains the queue. */
static bool lists(const char *list, const char *queue)
{
        size_t length = strlen(queue);

        for (const char *at = list; *at != '\0';) {
                size_t n = strcspn(at, ","), last = n;

                while (last > 0 && *at == ' ')
                        at++, n--, last--;
                while (last > 0 && at[last - 1] == ' ')
                        last--;
                if (last == length && memcmp(at, queue, length) == 0)
                        return true;
                at += n + (at[n] == ',');
        }
        return false;
}

static bool matches(const char *pattern, const char *queue)
{
        if (pattern[0] == '-')
                return !lists(pattern + 1, queue);
        return strcmp(pattern, "*") == 0 || strcmp(pattern, queue) == 0;
}

const struct database_format good_job_database_format = {
        .traits = &good_job_traits,
        .engines = {[DATABASE_POSTGRESQL] = &good_job_postgresql},
        .refusal = "GoodJob works with PostgreSQL only",
        .identity_parse = good_job_identity_parse,
        .take_process = take_process,
        .is_pattern = is_pattern,
        .matches = matches,
};
