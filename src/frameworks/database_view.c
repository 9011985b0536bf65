/* SPDX-License-Identifier: MIT */
/* The content of the rows of one batch; see the header. */
#include "frameworks/database_view.h"
#include "base/printable.h"
#include "frameworks/database_format.h"
#include "frameworks/decode.h"
#include "servers/answer.h"
#include <stdio.h>

void database_view_clear(struct database_view *view)
{
        for (size_t i = 0; i < view->n_processes; i++) {
                free(view->processes[i].identity);
                free(view->processes[i].queues);
        }
        free(view->processes);
        for (size_t i = 0; i < view->n_works; i++) {
                free(view->works[i].identity);
                job_list_clear(&view->works[i].list);
        }
        free(view->works);
        for (size_t i = 0; i < view->queues.n; i++)
                free(view->queues.list[i].name);
        free(view->queues.list);
        *view = (struct database_view){.format = view->format};
}

struct field database_row_text(const struct database_row *row, size_t column)
{
        return column < row->n ? row->values[column] : (struct field){0};
}

bool database_row_number(const struct database_row *row, size_t column, uint64_t max, uint64_t *ret)
{
        const struct field text = database_row_text(row, column);
        unsigned long long value;

        if (!text.text || !decode_count(text.text, text.len, max, &value))
                return false;
        *ret = value;
        return true;
}

bool database_row_time(const struct database_row *row, size_t column, uint64_t *ret_usec)
{
        const struct field text = database_row_text(row, column);
        char iso[40];

        if (!text.text || text.len >= sizeof(iso))
                return false;
        if (decode_seconds(text.text, text.len, ret_usec))
                return *ret_usec <= DECODE_CLOCK_MAX_USEC;
        memcpy(iso, text.text, text.len);
        if (text.len > 10 && iso[10] == ' ')
                iso[10] = 'T';
        const struct field field = {.text = iso, .len = text.len};
        return decode_iso8601(&field, ret_usec) && *ret_usec <= DECODE_CLOCK_MAX_USEC;
}

/* Builds `host:pid:rest`. Returns 1 with *ret, 0 if that is no identity, or -ENOMEM. */
static int make_identity(const struct database_view *view, const struct field *host, const struct field *pid,
                         const struct field *rest, struct database_process *ret)
{
        char text[ANSWER_IDENTITY_MAX + 1];
        size_t length = host->len + pid->len + rest->len + 2, host_len;

        if (!host->text || !pid->text || !rest->text || host->len > ANSWER_HOST_MAX ||
            pid->len > ANSWER_HOST_MAX || rest->len > ANSWER_HOST_MAX || length >= sizeof(text))
                return 0;
        memcpy(text, host->text, host->len);
        text[host->len] = ':';
        memcpy(text + host->len + 1, pid->text, pid->len);
        text[host->len + 1 + pid->len] = ':';
        memcpy(text + host->len + 1 + pid->len + 1, rest->text, rest->len);
        text[length] = '\0';
        if (!view->format->identity_parse(text, length, &host_len, &ret->pid) || host_len != host->len)
                return 0;
        ret->host_len = host_len;
        ret->identity = strndup(text, length);
        return ret->identity ? 1 : -ENOMEM;
}

int database_view_add(struct database_view *view, const struct field *host, const struct field *pid,
                      const struct field *rest, struct database_process **ret)
{
        struct database_process process = {0};

        *ret = NULL;
        if (view->n_processes == ANSWER_IDENTITIES_MAX)
                return 0;
        if (!ARRAY_RESERVE(view->processes, view->n_processes, view->processes_allocated))
                return -ENOMEM;
        int r = make_identity(view, host, pid, rest, &process);
        if (r <= 0)
                return r;
        view->processes[view->n_processes] = process;
        *ret = &view->processes[view->n_processes++];
        return 0;
}

int database_view_add_queue(struct database_view *view, struct database_process *process, const char *name,
                            size_t length)
{
        char text[QUEUE_NAME_MAX + 1];

        if (length == 0 || length > QUEUE_NAME_MAX || memchr(name, '\0', length) ||
            process->queues_length + length + 2 > HEARTBEAT_QUEUES_MAX ||
            view->compared >= DATABASE_COMPARED_MAX)
                return 0;
        view->compared += process->queues_length;
        memcpy(text, name, length);
        text[length] = '\0';
        if (queue_names_have(process->queues, text))
                return 0;
        if (!ARRAY_RESIZE(process->queues, process->queues_length + length + 2))
                return -ENOMEM;
        memcpy(process->queues + process->queues_length, text, length + 1);
        process->queues_length += length + 1;
        process->queues[process->queues_length] = '\0';
        return 0;
}

int database_view_add_queues(struct database_view *view, struct database_process *process, const char *names,
                             size_t length)
{
        const char *end = names + length;
        int r = 0;

        while (names < end && r >= 0) {
                const char *comma = memchr(names, ',', (size_t)(end - names)), *last = comma ?: end;
                const char *next = comma ? comma + 1 : end;

                while (names < last && *names == ' ')
                        names++;
                while (last > names && last[-1] == ' ')
                        last--;
                r = database_view_add_queue(view, process, names, (size_t)(last - names));
                names = next;
        }
        return r;
}

static int compare_processes(const void *a, const void *b)
{
        const struct database_process *left = a, *right = b;

        return strcmp(left->identity, right->identity);
}

void database_view_sort(struct database_view *view)
{
        if (view->n_processes > 0)
                qsort(view->processes, view->n_processes, sizeof(*view->processes), compare_processes);
        queues_sort(&view->queues);
}

struct database_process *database_view_find(const struct database_view *view, const char *identity)
{
        const struct database_process key = {.identity = (char *)identity};

        return view->n_processes > 0 ? bsearch(&key, view->processes, view->n_processes,
                                               sizeof(*view->processes), compare_processes)
                                     : NULL;
}

/* Returns the place of the identity, or where it is to be added, with *found false. */
static size_t place_work(const struct database_view *view, const char *identity, bool *found)
{
        size_t low = 0, high = view->n_works;

        *found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(view->works[middle].identity, identity);

                *found |= order == 0;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

int database_view_ask_work(struct database_view *view, const char *identity)
{
        bool found;
        size_t at = place_work(view, identity, &found);

        if (found)
                return -EEXIST;
        if (!ARRAY_RESERVE(view->works, view->n_works, view->works_allocated))
                return -ENOMEM;
        char *copy = strdup(identity);
        if (!copy)
                return -ENOMEM;
        memmove(&view->works[at + 1], &view->works[at], (view->n_works - at) * sizeof(*view->works));
        view->works[at] = (struct database_work){.identity = copy};
        view->n_works++;
        return 0;
}

struct database_work *database_view_find_work(const struct database_view *view, const char *identity)
{
        bool found;
        size_t at = place_work(view, identity, &found);

        return found ? &view->works[at] : NULL;
}

/* Copies a text into *ret, "" for NULL, shortened to what an answer may have. Returns 0; -EINVAL if it
 * contains a NUL; or -ENOMEM. */
static int copy_text(const struct database_row *row, size_t column, char **ret)
{
        const struct field text = database_row_text(row, column);
        size_t length = MIN(text.len, (size_t)JOB_NAME_MAX);

        if (text.text && memchr(text.text, '\0', length))
                return -EINVAL;
        *ret = strndup(text.text ?: "", text.text ? length : 0);
        return *ret ? 0 : -ENOMEM;
}

/* Fills in a job that was added to the list with its thread and entry. */
static int take_names(const struct database_row *row, struct job *job)
{
        bool has_id = database_row_text(row, DATABASE_JOB_ID).text;
        int r = copy_text(row, has_id ? DATABASE_JOB_ID : DATABASE_JOB_NUMBER, &job->jid);

        if (r >= 0)
                r = copy_text(row, DATABASE_JOB_CLASS, &job->class);
        if (r >= 0)
                r = copy_text(row, DATABASE_JOB_QUEUE, &job->queue);
        (void)database_row_time(row, DATABASE_JOB_STARTED, &job->started_usec);
        return r;
}

/* Writes `CLAIM:JOB:ARGUMENTS`, or nothing if the job has no claim or does not fit. Returns the length. */
static size_t make_entry(const struct database_row *row, char *text, size_t size)
{
        size_t length = 0;

        for (size_t column = DATABASE_JOB_CLAIM; column <= DATABASE_JOB_ARGUMENTS; column++) {
                const struct field part = database_row_text(row, column);

                if (!part.text || length + part.len + 1 > size)
                        return 0;
                memcpy(text + length, part.text, part.len);
                length += part.len;
                text[length++] = ':';
        }
        return length - 1;
}

static int keep_names(struct job *job _unused_)
{
        return job->jid && job->class && job->queue ? 0 : -EINVAL;
}

int database_view_take_job(struct database_view *view, const struct database_row *row)
{
        const struct field host = database_row_text(row, DATABASE_JOB_HOST);
        const struct field pid = database_row_text(row, DATABASE_JOB_PID);
        const struct field unit = database_row_text(row, DATABASE_JOB_UNIT);
        const struct field nothing = {.text = "", .len = 0};
        struct field thread = database_row_text(row, DATABASE_JOB_THREAD);
        char entry_text[256];
        const struct field entry = {.text = entry_text,
                                    .len = make_entry(row, entry_text, sizeof(entry_text))};
        struct database_process process = {0};
        size_t bytes = SIZE_MAX;

        int r = make_identity(view, &host, &pid, &unit, &process);
        if (r <= 0)
                return r;
        struct database_work *work = database_view_find_work(view, process.identity);
        free(process.identity);
        if (!work)
                return 0;
        size_t n = work->list.n_entries;
        r = job_list_add(&work->list, false, thread.text ? &thread : &nothing, &entry);
        if (r < 0 || work->list.n_entries == n)
                return r;
        r = take_names(row, &work->list.jobs[n]);
        if (r == -ENOMEM)
                return r;
        return job_list_decode(&work->list, keep_names, &bytes);
}

int database_view_take_queue(struct database_view *view, const struct database_row *row)
{
        const struct field name = database_row_text(row, DATABASE_QUEUE_NAME);
        uint64_t size, since, now, paused;

        if (!name.text || name.len == 0 || name.len > QUEUE_NAME_MAX || memchr(name.text, '\0', name.len) ||
            !database_row_number(row, DATABASE_QUEUE_SIZE, QUEUE_JOBS_MAX, &size))
                return 0;
        if (view->queues.n >= 2 * QUEUES_READ_MAX) {
                view->queues.left_out++;
                return 0;
        }
        struct queue *queue = queues_add(&view->queues, name.text, name.len);
        if (!queue)
                return -ENOMEM;
        queue->size = size;
        queue->latency_known = size == 0;
        if (size > 0 && database_row_time(row, DATABASE_QUEUE_SINCE, &since) &&
            database_row_time(row, DATABASE_QUEUE_NOW, &now)) {
                queue->latency_known = true;
                queue->latency = usec_sub(now, since);
        }
        queue->paused = database_row_number(row, DATABASE_QUEUE_PAUSED, 1, &paused) && paused == 1;
        return 0;
}

int database_view_take_counts(struct database_view *view, const struct database_row *row)
{
        (void)database_row_number(row, 0, QUEUE_JOBS_MAX, &view->queues.schedule);
        (void)database_row_number(row, 1, QUEUE_JOBS_MAX, &view->queues.dead);
        return 0;
}

int database_view_take_released(struct database_view *view, const struct database_row *row)
{
        uint64_t n;

        if (database_row_number(row, 0, QUERY_RELEASED_MAX, &n))
                view->released = n;
        return 0;
}

int database_view_take_facts(struct database_view *view, const struct database_row *row)
{
        struct database_facts *facts = &view->facts;
        const struct {
                size_t column;
                uint64_t *count;
        } counts[] = {
                {DATABASE_FACT_FORKING, &facts->forking},
                {DATABASE_FACT_DISPATCHERS, &facts->dispatchers},
                {DATABASE_FACT_SCHEDULERS, &facts->schedulers},
                {DATABASE_FACT_RECURRING, &facts->recurring},
                {DATABASE_FACT_PAUSED, &facts->paused_queues},
                {DATABASE_FACT_FAILED, &facts->failed},
        };
        const struct field version = database_row_text(row, DATABASE_FACT_VERSION);
        uint64_t read_only;

        *facts = (struct database_facts){.has_roles = view->format->has_roles};
        if (version.text)
                snprintf(facts->version, sizeof(facts->version), "%.*s",
                         (int)MIN(version.len, sizeof(facts->version)), version.text);
        printable_replace(facts->version, strlen(facts->version), false);
        facts->read_only = database_row_number(row, DATABASE_FACT_READ_ONLY, 1, &read_only) && read_only == 1;
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                (void)database_row_number(row, counts[i].column, QUEUE_JOBS_MAX, counts[i].count);
        return 0;
}

static int compare_queues(const void *a, const void *b)
{
        const struct queue *left = a, *right = b;

        return strcmp(left->name, right->name);
}

const struct queue *database_view_find_queue(const struct database_view *view, const char *name)
{
        const struct queue key = {.name = (char *)name};

        return view->queues.n > 0
                       ? bsearch(&key, view->queues.list, view->queues.n, sizeof(key), compare_queues)
                       : NULL;
}

void database_view_sum(const struct database_view *view, const char *pattern, struct queue *queue)
{
        size_t matching = 0, paused = 0;

        queue->latency_known = true;
        for (size_t i = 0; i < view->queues.n; i++) {
                const struct queue *one = &view->queues.list[i];

                if (!view->format->matches(pattern, one->name))
                        continue;
                matching++;
                if (one->paused) {
                        paused++;
                        continue;
                }
                queue->size = MIN(queue->size + one->size, QUEUE_JOBS_MAX);
                queue->latency_known &= one->latency_known;
                queue->latency = MAX(queue->latency, one->latency);
        }
        queue->paused = matching > 0 && paused == matching;
        if (!queue->latency_known)
                queue->latency = 0;
}
