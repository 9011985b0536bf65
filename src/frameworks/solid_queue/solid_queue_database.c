/* SPDX-License-Identifier: MIT */
/* Decodes the rows of Solid Queue's tables. */
#include "frameworks/solid_queue/solid_queue_database.h"
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/decode.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "wire/json.h"
#include <stdio.h>

/* The columns of DATABASE_PROCESSES. A supervisor comes before the workers that have its id as their unit. */
enum column {
        COLUMN_UNIT,
        COLUMN_KIND,
        COLUMN_HOST,
        COLUMN_PID,
        COLUMN_HEARTBEAT,
        COLUMN_CREATED,
        COLUMN_METADATA,
        COLUMN_CLAIMS,
};

/* Decodes the metadata of a worker, `{"polling_interval":0.1,"queues":"a,b","thread_pool_size":3}`. A worker
 * whose metadata is damaged serves no queue. lib/solid_queue/worker.rb:25. */
static int take_metadata(struct database_view *view, const struct field *text,
                         struct database_process *process)
{
        static const struct json_bounds bounds = {.bytes = DATABASE_DOCUMENT_MAX, .values = 256, .depth = 8};
        _cleanup_json_ json_t *root = NULL;

        int r = text->text ? json_load(&bounds, text->text, text->len, 0, &root) : -EINVAL;
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        const json_t *queues = json_object_get(root, "queues");
        json_int_t threads = json_integer_value(json_object_get(root, "thread_pool_size"));
        if (threads > 0 && threads <= DECODE_COUNT_MAX)
                process->heartbeat.concurrency =
                        MIN(process->heartbeat.concurrency + (unsigned)threads, (unsigned)DECODE_COUNT_MAX);
        return queues ? database_view_add_queues(view, process, json_string_value(queues) ?: "",
                                                 json_string_length(queues))
                      : 0;
}

static int take_supervisor(struct database_view *view, const struct database_row *row, uint64_t sent_usec)
{
        const struct field host = database_row_text(row, COLUMN_HOST),
                           pid = database_row_text(row, COLUMN_PID);
        const struct field unit = database_row_text(row, COLUMN_UNIT);
        struct database_process *process;

        int r = database_view_add(view, &host, &pid, &unit, &process);
        if (r >= 0 && process) {
                process->heartbeat.sent_usec = sent_usec;
                (void)database_row_time(row, COLUMN_CREATED, &process->heartbeat.born_usec);
        }
        return r;
}

/* Returns true if the row is of a worker of this process. */
static bool is_of(const struct database_row *row, const struct database_process *process)
{
        const struct field host = database_row_text(row, COLUMN_HOST),
                           pid = database_row_text(row, COLUMN_PID);
        const struct field unit = database_row_text(row, COLUMN_UNIT);
        const char *rest = process->identity + process->host_len + 1;
        uint64_t number;

        rest += strcspn(rest, ":") + 1;
        return host.text && host.len == process->host_len &&
               memcmp(host.text, process->identity, host.len) == 0 && pid.text &&
               database_row_number(row, COLUMN_PID, INT_MAX, &number) && (pid_t)number == process->pid &&
               decode_field_is(&unit, rest);
}

static int take_worker(struct database_view *view, const struct database_row *row, uint64_t sent_usec)
{
        struct database_process *process =
                view->n_processes > 0 ? &view->processes[view->n_processes - 1] : NULL;
        const struct field metadata = database_row_text(row, COLUMN_METADATA);
        uint64_t claims;

        if (!process || !is_of(row, process))
                return 0;
        struct heartbeat *heartbeat = &process->heartbeat;
        heartbeat->sent_usec = MAX(heartbeat->sent_usec, sent_usec);
        if (database_row_number(row, COLUMN_CLAIMS, DECODE_COUNT_MAX, &claims))
                heartbeat->busy = MIN(heartbeat->busy + (unsigned)claims, (unsigned)DECODE_COUNT_MAX);
        return take_metadata(view, &metadata, process);
}

static int take_process(struct database_view *view, const struct database_row *row)
{
        const struct field kind = database_row_text(row, COLUMN_KIND);
        uint64_t sent_usec;

        if (!database_row_time(row, COLUMN_HEARTBEAT, &sent_usec))
                return 0;
        if (decode_field_is(&kind, "Supervisor(async)"))
                return take_supervisor(view, row, sent_usec);
        return decode_field_is(&kind, "Worker") ? take_worker(view, row, sent_usec) : 0;
}

/* app/models/solid_queue/queue_selector.rb:53: `*`, or a prefix before the `*`. */
static bool is_pattern(const char *name)
{
        const char *star = strchr(name, '*');

        return star && star[1] == '\0';
}

static bool matches(const char *pattern, const char *queue)
{
        return is_pattern(pattern) ? strncmp(pattern, queue, strlen(pattern) - 1) == 0
                                   : strcmp(pattern, queue) == 0;
}

#define COUNT_BEGIN "{\"sqmgr_rescues\":"

/* Decodes how often a job was put back: its arguments are a JSON object, and ActiveJob ignores a member that
 * it does not know. */
static bool take_times(const char *arguments, struct database_rescue *ret)
{
        unsigned long long times = 0;

        if (strncmp(arguments, COUNT_BEGIN, strlen(COUNT_BEGIN)) == 0) {
                const char *digits = arguments + strlen(COUNT_BEGIN);
                size_t n = strspn(digits, "0123456789");

                if (digits[n] != ',' || !decode_count(digits, n, 1000000, &times))
                        return false;
                snprintf(ret->old_text, sizeof(ret->old_text), COUNT_BEGIN "%.*s,", (int)n, digits);
                snprintf(ret->new_text, sizeof(ret->new_text), COUNT_BEGIN "%llu,", times + 1);
        } else if (strncmp(arguments, "{\"", 2) == 0) {
                snprintf(ret->old_text, sizeof(ret->old_text), "{\"");
                snprintf(ret->new_text, sizeof(ret->new_text), COUNT_BEGIN "1,\"");
        } else {
                return false;
        }
        ret->times = (unsigned)times;
        return true;
}

/* The entry is `CLAIM:JOB:` and the beginning of the job's arguments. */
static bool take_entry(const struct field *entry, struct database_rescue *ret)
{
        char text[256], *const numbers[] = {ret->claim, ret->job};
        const char *at = text;
        unsigned long long number;

        *ret = (struct database_rescue){0};
        if (entry->len >= sizeof(text))
                return false;
        memcpy(text, entry->text, entry->len);
        text[entry->len] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                size_t n = strspn(at, "0123456789");

                if (at[n] != ':' || !decode_count(at, n, INT64_MAX, &number))
                        return false;
                snprintf(numbers[i], DATABASE_NUMBER_MAX, "%llu", number);
                at += n + 1;
        }
        return take_times(at, ret);
}

const struct database_format solid_queue_database_format = {
        .traits = &solid_queue_traits,
        .engines = {[DATABASE_POSTGRESQL] = &solid_queue_postgresql, [DATABASE_SQLITE] = &solid_queue_sqlite},
        .has_roles = true,
        .identity_parse = solid_queue_identity_parse,
        .take_process = take_process,
        .is_pattern = is_pattern,
        .matches = matches,
        .take_entry = take_entry,
};
