/* SPDX-License-Identifier: MIT */
/* The processes that run workers of BullMQ; see the header. */
#include "frameworks/bullmq/view.h"
#include "base/hash.h"
#include "model/heartbeat_info.h"
#include <stdio.h>
#include <string.h>

/* Redis reports the time since a connection was used in whole seconds, by a cached clock. */
#define IDLE_ERROR_USEC (2 * USEC_PER_SEC)
/* A lock that expires later than before was renewed. The two times differ by the duration of commands. */
#define RENEWED_USEC USEC_PER_SEC

static void forget_queues(struct bullmq_process *process)
{
        for (size_t i = 0; i < process->n_queues; i++)
                free(process->queues[i]);
        free(process->queues);
        process->queues = NULL;
        process->n_queues = 0;
}

static void process_clear(struct bullmq_process *process)
{
        forget_queues(process);
        free(process->lock);
        free(process->new_lock);
        job_list_clear(&process->list);
}

static void clear_processes(struct bullmq_view *view)
{
        for (size_t i = 0; i < view->n_processes; i++)
                process_clear(&view->processes[i]);
        for (size_t i = 0; i < view->n_connections; i++) {
                free(view->connections[i].identity);
                free(view->connections[i].queue);
        }
        free(view->processes);
        free(view->connections);
        view->processes = NULL;
        view->connections = NULL;
        view->n_processes = view->n_connections = view->allocated = 0;
}

static void clear_queues(struct bullmq_view *view)
{
        for (size_t i = 0; i < view->n_queues; i++)
                free(view->queues[i].name);
        free(view->queues);
        view->queues = NULL;
        view->n_queues = view->queues_allocated = 0;
}

void bullmq_view_clear(struct bullmq_view *view)
{
        clear_processes(view);
        clear_queues(view);
}

static int compare_identity(const void *identity, const void *process)
{
        return strcmp(identity, ((const struct bullmq_process *)process)->connections->identity);
}

struct bullmq_process *bullmq_view_find(const struct bullmq_view *view, const char *identity)
{
        return view->n_processes == 0 ? NULL
                                      : bsearch(identity, view->processes, view->n_processes,
                                                sizeof(*view->processes), compare_identity);
}

static int compare_name(const void *name, const void *queue)
{
        return strcmp(name, ((const struct bullmq_queue *)queue)->name);
}

struct bullmq_queue *bullmq_view_find_queue(const struct bullmq_view *view, const char *name)
{
        return view->n_queues == 0
                       ? NULL
                       : bsearch(name, view->queues, view->n_queues, sizeof(*view->queues), compare_name);
}

/* Returns the queue, or NULL if there are too many or memory is short. Moves other queues. */
static struct bullmq_queue *add_queue(struct bullmq_view *view, const char *name)
{
        struct bullmq_queue *found = bullmq_view_find_queue(view, name);
        size_t at = 0;

        if (found || view->n_queues == BULLMQ_QUEUES_MAX ||
            !ARRAY_RESERVE(view->queues, view->n_queues, view->queues_allocated))
                return found;
        char *copy = strdup(name);
        if (!copy)
                return NULL;
        while (at < view->n_queues && strcmp(view->queues[at].name, name) < 0)
                at++;
        memmove(&view->queues[at + 1], &view->queues[at], (view->n_queues - at) * sizeof(*view->queues));
        view->queues[at] = (struct bullmq_queue){.name = copy};
        view->n_queues++;
        return &view->queues[at];
}

static int compare_connections(const void *a, const void *b)
{
        const struct bullmq_connection *one = a, *other = b;
        int order = strcmp(one->identity, other->identity);

        return order != 0 ? order : strcmp(one->queue, other->queue);
}

static bool add_connection(struct bullmq_view *view, const struct bullmq_client *client)
{
        if (!ARRAY_RESERVE(view->connections, view->n_connections, view->allocated))
                return false;
        struct bullmq_connection *connection = &view->connections[view->n_connections++];
        *connection = (struct bullmq_connection){
                .identity = strndup(client->identity.text, client->identity.len),
                .queue = strdup(client->queue),
                .host_len = client->host_len,
                .pid = client->pid,
                .age = client->age,
                .idle = client->idle,
                .waits = client->waits,
        };
        return connection->identity && connection->queue;
}

static bool take_connections(struct bullmq_view *view, struct field text)
{
        struct bullmq_client client;
        struct field line;

        while (view->n_connections < BULLMQ_CLIENTS_MAX && bullmq_next_line(&text, &line))
                if (bullmq_client_parse(&line, view->prefix, view->database, &client) &&
                    client.identity.text && !add_connection(view, &client))
                        return false;
        if (view->n_connections > 0)
                qsort(view->connections, view->n_connections, sizeof(*view->connections),
                      compare_connections);
        return true;
}

/* Adds the queue unless the process has it, or more than are read. Returns false if memory is short. */
static bool serve(struct bullmq_process *process, const char *queue)
{
        for (size_t i = 0; i < process->n_queues; i++)
                if (strcmp(process->queues[i], queue) == 0)
                        return true;
        if (process->n_queues > BULLMQ_QUEUES_OF_PROCESS_MAX)
                return true;
        char **queues = reallocarray(process->queues, process->n_queues + 1, sizeof(*queues));
        if (!queues)
                return false;
        process->queues = queues;
        queues[process->n_queues] = strdup(queue);
        return queues[process->n_queues] && ++process->n_queues;
}

static bool add_to_process(struct bullmq_process *process, const struct bullmq_connection *connection)
{
        process->n_connections++;
        process->age = MIN(process->age, connection->age);
        process->idle = MIN(process->idle, connection->idle);
        process->waits |= connection->waits;
        return serve(process, connection->queue);
}

/* Takes over what is kept of the same process in `old`, which is sorted too. */
static void begin_process(struct bullmq_process *process, const struct bullmq_connection *connection,
                          struct bullmq_view *old, size_t *at)
{
        *process = (struct bullmq_process){.connections = connection, .age = UINT64_MAX, .idle = UINT64_MAX};
        while (*at < old->n_processes &&
               strcmp(old->processes[*at].connections->identity, connection->identity) < 0)
                (*at)++;
        if (*at == old->n_processes ||
            strcmp(old->processes[*at].connections->identity, connection->identity) != 0)
                return;
        struct bullmq_process *before = &old->processes[*at];
        /* Forged names that have gone must not keep the process unread. */
        if (before->n_queues > BULLMQ_QUEUES_OF_PROCESS_MAX)
                forget_queues(before);
        process->queues = TAKE_PTR(before->queues);
        process->n_queues = before->n_queues;
        before->n_queues = 0;
        process->sent = before->sent;
        process->jobs = before->jobs;
        process->lock = TAKE_PTR(before->lock);
        process->lock_expires = before->lock_expires;
        process->jobs_known = before->jobs_known;
}

static bool make_processes(struct bullmq_view *view, struct bullmq_view *old)
{
        size_t at = 0;

        view->processes = calloc(view->n_connections + 1, sizeof(*view->processes));
        for (size_t i = 0; i < view->n_connections && view->processes; i++) {
                const struct bullmq_connection *connection = &view->connections[i];

                if (i == 0 || strcmp(connection->identity, connection[-1].identity) != 0)
                        begin_process(&view->processes[view->n_processes++], connection, old, &at);
                if (!add_to_process(&view->processes[view->n_processes - 1], connection))
                        return false;
        }
        return view->processes;
}

/* Records a sign of life if a connection was used since the last one. */
static void judge_connections(struct bullmq_process *process, usec_t asked_at, usec_t now)
{
        usec_t idle = process->idle * USEC_PER_SEC;

        if (process->sent == 0 || usec_sub(asked_at, idle + IDLE_ERROR_USEC) > process->sent)
                process->sent = MAX(process->sent, usec_sub(now, idle));
}

int bullmq_view_take_clients(struct bullmq_view *view, const struct field *text, usec_t asked_at, usec_t now)
{
        struct bullmq_view old = {.connections = view->connections,
                                  .n_connections = view->n_connections,
                                  .processes = view->processes,
                                  .n_processes = view->n_processes};

        view->connections = NULL;
        view->processes = NULL;
        view->n_connections = view->allocated = view->n_processes = 0;
        bool done = take_connections(view, *text) && make_processes(view, &old);
        clear_processes(&old);
        if (!done) {
                clear_processes(view);
                return -ENOMEM;
        }
        for (size_t i = 0; i < view->n_processes; i++)
                judge_connections(&view->processes[i], asked_at, now);
        /* Forged names must not leave real queues without a place. */
        if (view->n_queues == BULLMQ_QUEUES_MAX)
                clear_queues(view);
        for (size_t i = 0; i < view->n_queues; i++) {
                struct bullmq_queue *queue = &view->queues[i];

                queue->asked = queue->failed = queue->limit_asked = queue->limited = false;
        }
        return 0;
}

void bullmq_view_ask(struct bullmq_view *view, const char *identity)
{
        struct bullmq_process *process = bullmq_view_find(view, identity);

        if (!process || process->asked)
                return;
        process->asked = true;
        process->counted_queue = SIZE_MAX;
        process->unread = process->n_queues > BULLMQ_QUEUES_OF_PROCESS_MAX;
        for (size_t i = 0; i < process->n_queues && !process->unread; i++) {
                struct bullmq_queue *queue = add_queue(view, process->queues[i]);

                process->unread = !queue;
                if (queue)
                        queue->asked = true;
        }
}

static int list_job(struct bullmq_process *process, const char *queue, const struct field *job)
{
        static const struct field thread = {.text = "", .len = 0};
        const struct field texts[] = {job[BULLMQ_ID], job[BULLMQ_NAME], job[BULLMQ_START]};
        size_t len;
        _cleanup_free_ char *entry = bullmq_job_entry(queue, texts, &len);
        const struct field field = {entry, len};

        return entry ? job_list_add(&process->list, false, &thread, &field) : -ENOMEM;
}

int bullmq_view_take_job(struct bullmq_view *view, size_t index, bool list,
                         const struct field job[static _BULLMQ_JOB_MAX])
{
        struct bullmq_queue *queue = &view->queues[index];
        const struct field *id = &job[BULLMQ_ID], *worker = &job[BULLMQ_WORKER];

        if (!id->text || !worker->text || worker->len > INT32_MAX || id->len > INT32_MAX)
                return 0;
        _cleanup_free_ char *identity = strndup(worker->text, worker->len);
        if (!identity)
                return -ENOMEM;
        struct bullmq_process *process = bullmq_view_find(view, identity);
        if (!process || !process->asked || process->busy == BULLMQ_JOBS_MAX)
                return 0;
        process->busy++;
        process->busy_there = process->counted_queue == index ? process->busy_there + 1 : 1;
        process->counted_queue = index;
        queue->peak = MAX(queue->peak, process->busy_there);
        /* Ids that an attacker makes collide can only hide that the set of jobs has changed. */
        uint64_t hash = hash_bytes(HASH_INIT, queue->name, strlen(queue->name) + 1);
        process->new_jobs += hash_bytes(hash, id->text, id->len);
        /* The last one is the oldest one of the queue: its lock is the one that is read again. */
        free(process->new_lock);
        if (asprintf(&process->new_lock, "%s:%s:%.*s:lock", view->prefix, queue->name, (int)id->len,
                     id->text) < 0) {
                process->new_lock = NULL;
                return -ENOMEM;
        }
        return list ? list_job(process, queue->name, job) : 0;
}

void bullmq_view_judge_jobs(const struct bullmq_view *view, struct bullmq_process *process, usec_t asked_at)
{
        for (size_t i = 0; i < process->n_queues && !process->unread; i++) {
                const struct bullmq_queue *queue = bullmq_view_find_queue(view, process->queues[i]);

                process->unread = !queue || queue->failed;
        }
        if (process->unread)
                return;
        if (process->jobs_known && process->jobs != process->new_jobs)
                process->sent = asked_at;
        if (!process->lock || !process->new_lock || strcmp(process->lock, process->new_lock) != 0)
                process->lock_expires = 0;
        process->jobs = process->new_jobs;
        process->jobs_known = true;
        free(process->lock);
        process->lock = TAKE_PTR(process->new_lock);
}

void bullmq_process_take_lock(struct bullmq_process *process, usec_t left, usec_t asked_at)
{
        usec_t expires = asked_at + left;

        if (process->lock_expires != 0 && expires > process->lock_expires + RENEWED_USEC)
                process->sent = asked_at;
        process->lock_expires = expires;
}

void bullmq_view_judge_limits(const struct bullmq_view *view, struct bullmq_process *process, usec_t asked_at)
{
        for (size_t i = 0; i < process->n_queues && process->busy == 0 && !process->waits; i++) {
                const struct bullmq_queue *queue = bullmq_view_find_queue(view, process->queues[i]);

                if (queue && queue->limited)
                        process->sent = asked_at;
        }
}

bool bullmq_process_may_be_quiet(const struct bullmq_process *process)
{
        return !process->waits && process->age >= BULLMQ_SETTLED_SECONDS;
}

unsigned bullmq_view_concurrency(const struct bullmq_view *view, const struct bullmq_process *process)
{
        unsigned sum = 0;

        for (size_t i = 0; i < process->n_queues; i++) {
                const struct bullmq_queue *queue = bullmq_view_find_queue(view, process->queues[i]);

                sum += queue ? queue->peak : 0;
        }
        return sum;
}

struct heartbeat_info *bullmq_process_info(const struct bullmq_process *process)
{
        struct heartbeat_info *info = process->age < BULLMQ_SETTLED_SECONDS
                                              ? NULL
                                              : calloc(1, sizeof(*info) + HEARTBEAT_QUEUES_MAX + 1);
        size_t used = 0;

        for (size_t i = 0; i < process->n_queues && info; i++) {
                size_t size = strlen(process->queues[i]) + 1;

                if (used + size > HEARTBEAT_QUEUES_MAX)
                        continue;
                memcpy(info->queues + used, process->queues[i], size);
                used += size;
        }
        return info;
}
