/* SPDX-License-Identifier: MIT */
/* Observes the processes that run workers of BullMQ. All queries of a poll share one round of commands:
 *
 * 1. CLIENT LIST: which processes are connected, for which queues, and whether they wait for a job.
 * 2. SORT for each queue that these processes serve: which process runs which active job.
 * 3. PTTL, for processes of which the rest shows no sign of life: of the lock of a job, or of the rate limit.
 *
 * BullMQ writes no heartbeat, and a frozen process keeps its connections. So a connection that exists is no
 * sign of life. The following are; the time of the last one is the time of the heartbeat:
 *
 * - A connection of a worker has sent or received something. A worker that waits does so each drainDelay.
 * - The set of jobs that the process runs has changed.
 * - The lock of a running job was renewed.
 * - The process neither waits nor runs a job because the rate limit of its queue is reached.
 *
 * A process that was quieted gives none of these signs once its jobs are done, and a process whose job takes
 * very long with a long lockDuration gives them rarely. sqmgr knows which processes it has quieted: see
 * traits.quiet_is_silent. */
#include "frameworks/bullmq/clients.h"
#include "frameworks/decode.h"
#include "frameworks/live_format.h"
#include "io/clock.h"
#include "model/heartbeat_info.h"
#include "redis/redis.h"
#include "redis/redis_command.h"
#include <stdio.h>
#include <string.h>

/* More queues of one process, or of all processes that sqmgr asks for: the processes are not read. Whoever
 * can connect can name queues that do not exist. */
#define QUEUES_OF_PROCESS_MAX 64
#define QUEUES_MAX            1000
/* The time since a connection spoke is in whole seconds, by a clock that Redis reads once in a while. */
#define IDLE_ERROR_USEC (2 * USEC_PER_SEC)
/* A lock or a rate limit is read only if the last sign of life is older. */
#define SILENT_USEC (5 * USEC_PER_SEC)
/* A lock that expires later than before was renewed. The two times differ by the duration of commands. */
#define RENEWED_USEC USEC_PER_SEC
/* After a loss, the connections of a worker are made anew one after another. A younger connection does not
 * show that the worker was quieted, as the other one may still have to send that it takes a job. */
#define SETTLED_SECONDS 5
/* Lower than the socket of queries: all queries of a poll have arrived before the round begins. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 5)

/* A connection of a worker. */
struct link {
        char *identity, *queue; /* owned */
        size_t host_len;
        pid_t pid;
        uint64_t age, idle;
        bool waits;
};

struct process {
        const struct link *links; /* one or more, sorted by queue */
        size_t n_links;
        uint64_t age, idle; /* the least of its links */
        bool waits;

        /* Kept from round to round: */
        usec_t sent;         /* the last sign of life, CLOCK_MONOTONIC */
        uint64_t jobs;       /* a sum over its running jobs */
        char *lock;          /* owned: the key of the lock of a running job; NULL: none */
        usec_t lock_expires; /* 0: not known */
        bool jobs_known;     /* jobs and lock are known */

        /* Of the current round, if asked: */
        bool asked;
        bool unread; /* not all of its jobs could be read */
        unsigned busy;
        uint64_t new_jobs;
        char *new_lock;       /* owned */
        size_t counted_queue; /* the index of the queue that busy_there counts */
        unsigned busy_there;
        struct job_list list;
};

/* A queue that a process serves which sqmgr has asked for. */
struct served {
        char *name;                               /* owned */
        unsigned peak;                            /* the most jobs that one process was seen to run at once */
        bool asked, failed, limit_asked, limited; /* of the current round */
};

enum step { STEP_NONE, STEP_LIST, STEP_ACTIVE, STEP_TIMES };

struct live {
        const struct live_server *server;
        const char *prefix;
        sd_event_source *begin; /* starts a round */

        enum step step;
        struct live_ask *asks;    /* of the current round */
        struct live_ask *waiting; /* for the next one: the current one may have been read before they came */
        bool with_jobs;           /* the round lists jobs */
        bool lost;
        unsigned pending; /* commands */
        usec_t began_at;

        struct link *links; /* sorted by identity and queue */
        size_t n_links, allocated;
        struct process *processes; /* sorted by identity */
        size_t n_processes;
        struct served *queues; /* sorted by name */
        size_t n_queues, queues_allocated;
};

/* A command of a round. */
struct request {
        struct live *live;
        void (*take)(struct live *live, size_t index, const redisReply *reply);
        size_t index; /* of the process or queue */
};

static void process_clear(struct process *process)
{
        free(process->lock);
        free(process->new_lock);
        job_list_clear(&process->list);
}

static void processes_free(struct process *processes, size_t n)
{
        for (size_t i = 0; i < n; i++)
                process_clear(&processes[i]);
        free(processes);
}

static void links_free(struct link *links, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                free(links[i].identity);
                free(links[i].queue);
        }
        free(links);
}

static int compare_identity(const void *identity, const void *process)
{
        return strcmp(identity, ((const struct process *)process)->links->identity);
}

static struct process *find_process(const struct live *live, const char *identity)
{
        return live->n_processes == 0 ? NULL
                                      : bsearch(identity, live->processes, live->n_processes,
                                                sizeof(*live->processes), compare_identity);
}

static int compare_name(const void *name, const void *queue)
{
        return strcmp(name, ((const struct served *)queue)->name);
}

static struct served *find_queue(const struct live *live, const char *name)
{
        return live->n_queues == 0
                       ? NULL
                       : bsearch(name, live->queues, live->n_queues, sizeof(*live->queues), compare_name);
}

/* Returns the queue, or NULL if there are too many or memory is short. Moves other queues. */
static struct served *add_queue(struct live *live, const char *name)
{
        struct served *found = find_queue(live, name);
        size_t at = 0;

        if (found || live->n_queues == QUEUES_MAX ||
            !ARRAY_RESERVE(live->queues, live->n_queues, live->queues_allocated))
                return found;
        char *copy = strdup(name);
        if (!copy)
                return NULL;
        while (at < live->n_queues && strcmp(live->queues[at].name, name) < 0)
                at++;
        memmove(&live->queues[at + 1], &live->queues[at], (live->n_queues - at) * sizeof(*live->queues));
        live->queues[at] = (struct served){.name = copy};
        live->n_queues++;
        return &live->queues[at];
}

static void advance(struct live *live);

static void on_reply(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct request request = *(struct request *)userdata;

        free(userdata);
        request.live->pending--;
        if (reply)
                request.take(request.live, request.index, reply);
        else
                request.live->lost = true;
        if (request.live->pending == 0)
                advance(request.live);
}

/* Sends a command of the round, which is lost if that fails. An ACL that forbids the command ends the
 * connection: without it nothing is known of any process. */
static void send_command(struct live *live, void (*take)(struct live *, size_t, const redisReply *),
                         size_t index, int argc, const char *const argv[])
{
        struct request *request = malloc(sizeof(*request));

        if (request)
                *request = (struct request){.live = live, .take = take, .index = index};
        if (!request || redis_command(live->server->redis, on_reply, request, argc, argv, NULL) < 0) {
                free(request);
                live->lost = true;
                return;
        }
        live->pending++;
}

/* Sends a command on a key, which is owned. */
static void send_key(struct live *live, void (*take)(struct live *, size_t, const redisReply *), size_t index,
                     const char *command, char *key)
{
        const char *const argv[] = {command, key};

        if (key)
                send_command(live, take, index, ELEMENTSOF(argv), argv);
        else
                live->lost = true;
        free(key);
}

static int compare_links(const void *a, const void *b)
{
        const struct link *one = a, *other = b;
        int order = strcmp(one->identity, other->identity);

        return order != 0 ? order : strcmp(one->queue, other->queue);
}

static bool add_link(struct live *live, const struct bullmq_client *client)
{
        if (!ARRAY_RESERVE(live->links, live->n_links, live->allocated))
                return false;
        struct link *link = &live->links[live->n_links];
        *link = (struct link){
                .identity = strndup(client->identity.text, client->identity.len),
                .queue = strdup(client->queue),
                .host_len = client->host_len,
                .pid = client->pid,
                .age = client->age,
                .idle = client->idle,
                .waits = client->waits,
        };
        live->n_links++;
        return link->identity && link->queue;
}

/* A sign of life: a link has spoken since the last one. */
static void judge_links(struct process *process, bool is_new, usec_t began_at, usec_t now)
{
        usec_t idle = process->idle * USEC_PER_SEC;

        if (is_new || usec_sub(began_at, idle + IDLE_ERROR_USEC) > process->sent)
                process->sent = MAX(process->sent, usec_sub(now, idle));
}

/* Makes the processes of the sorted links, and keeps what was known of them. Returns false if memory is
 * short.
 */
static bool make_processes(struct live *live, struct process *old, size_t n_old)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        size_t at = 0;

        live->processes = calloc(live->n_links + 1, sizeof(*live->processes));
        if (!live->processes)
                return false;
        for (size_t i = 0; i < live->n_links; i++) {
                const struct link *link = &live->links[i];
                struct process *process = &live->processes[live->n_processes];
                bool first = i == 0 || strcmp(link->identity, link[-1].identity) != 0;

                if (!first) {
                        process--;
                } else {
                        live->n_processes++;
                        while (at < n_old && strcmp(old[at].links->identity, link->identity) < 0)
                                at++;
                        if (at < n_old && strcmp(old[at].links->identity, link->identity) == 0)
                                *process = (struct process){.sent = old[at].sent,
                                                            .jobs = old[at].jobs,
                                                            .lock = TAKE_PTR(old[at].lock),
                                                            .lock_expires = old[at].lock_expires,
                                                            .jobs_known = old[at].jobs_known};
                        process->links = link;
                        process->age = process->idle = UINT64_MAX;
                }
                process->n_links++;
                process->age = MIN(process->age, link->age);
                process->idle = MIN(process->idle, link->idle);
                process->waits |= link->waits;
        }
        for (size_t i = 0; i < live->n_processes; i++)
                judge_links(&live->processes[i], live->processes[i].sent == 0, live->began_at, now);
        return true;
}

static void fail_asks(struct live *live, const redisReply *reply)
{
        struct live_ask *ask;

        while ((ask = live->asks)) {
                live->asks = ask->next;
                (void)live_ask_failed(ask, reply);
        }
}

static void take_list(struct live *live, size_t index _unused_, const redisReply *reply)
{
        struct field text = reply_text(reply), line;
        struct link *old_links = TAKE_PTR(live->links);
        struct process *old = TAKE_PTR(live->processes);
        size_t n_old_links = live->n_links, n_old = live->n_processes;
        struct bullmq_client client;

        live->n_links = live->allocated = live->n_processes = 0;
        if (reply->type == REDIS_REPLY_ERROR)
                fail_asks(live, reply);
        while (!live->lost && bullmq_next_line(&text, &line))
                if (bullmq_client_parse(&line, live->prefix, live->server->database, &client) &&
                    client.identity.text && live->n_links < BULLMQ_CLIENTS_MAX)
                        live->lost = !add_link(live, &client);
        if (!live->lost && live->n_links > 0)
                qsort(live->links, live->n_links, sizeof(*live->links), compare_links);
        if (!live->lost)
                live->lost = !make_processes(live, old, n_old);
        processes_free(old, n_old);
        links_free(old_links, n_old_links);
}

static struct process *process_of(const struct live *live, const struct live_ask *ask, size_t i)
{
        return find_process(live, query_text(ask->query, i));
}

/* Marks the process and the queues that it serves. */
static void mark_asked(struct live *live, struct process *process)
{
        if (!process || process->asked)
                return;
        process->asked = true;
        process->counted_queue = SIZE_MAX;
        process->unread = process->n_links > QUEUES_OF_PROCESS_MAX;
        for (size_t i = 0; i < process->n_links && !process->unread; i++) {
                struct served *queue = add_queue(live, process->links[i].queue);

                process->unread = !queue;
                if (queue)
                        queue->asked = true;
        }
}

static uint64_t hash_text(uint64_t hash, const struct field *text)
{
        for (size_t i = 0; i < text->len; i++)
                hash = (hash ^ (unsigned char)text->text[i]) * UINT64_C(0x100000001b3);
        return hash;
}

/* An active job: id and worker, and if jobs are listed, name and start. */
enum { JOB_ID, JOB_WORKER, JOB_NAME, JOB_START, _JOB_MAX };

static bool list_job(struct process *process, const char *queue, const struct field *job)
{
        static const struct field thread = {.text = "", .len = 0};
        const struct field texts[] = {job[JOB_ID], job[JOB_NAME], job[JOB_START]};
        size_t len;
        _cleanup_free_ char *entry = bullmq_job_entry(queue, texts, &len);
        const struct field field = {entry, len};

        return entry && job_list_add(&process->list, false, &thread, &field) >= 0;
}

/* Counts a job. Returns false if memory is short. */
static bool take_job(struct live *live, size_t index, const struct field *job)
{
        struct served *queue = &live->queues[index];
        const struct field name = {queue->name, strlen(queue->name)};
        _cleanup_free_ char *worker =
                job[JOB_WORKER].text ? strndup(job[JOB_WORKER].text, job[JOB_WORKER].len) : NULL;
        struct process *process = worker ? find_process(live, worker) : NULL;

        if (!process || !process->asked)
                return !job[JOB_WORKER].text || worker;
        process->busy++;
        process->busy_there = process->counted_queue == index ? process->busy_there + 1 : 1;
        process->counted_queue = index;
        queue->peak = MAX(queue->peak, process->busy_there);
        process->new_jobs += hash_text(hash_text(UINT64_C(0xcbf29ce484222325), &name), &job[JOB_ID]);
        /* The last one is the oldest one of the queue: its lock is the one that is renewed most often. */
        free(process->new_lock);
        if (asprintf(&process->new_lock, "%s:%s:%.*s:lock", live->prefix, queue->name, (int)job[JOB_ID].len,
                     job[JOB_ID].text) < 0) {
                process->new_lock = NULL;
                return false;
        }
        return !live->with_jobs || list_job(process, queue->name, job);
}

static void take_active(struct live *live, size_t index, const redisReply *reply)
{
        size_t each = live->with_jobs ? _JOB_MAX : JOB_NAME;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % each != 0) {
                live->queues[index].failed = true;
                return;
        }
        for (size_t i = 0; i < reply->elements; i += each) {
                struct field job[_JOB_MAX] = {0};

                for (size_t field = 0; field < each; field++)
                        job[field] = reply_element(reply, i + field);
                if (job[JOB_ID].text && job[JOB_ID].len <= INT32_MAX && !take_job(live, index, job))
                        live->queues[index].failed = true;
        }
}

static void ask_active(struct live *live)
{
        for (struct live_ask *ask = live->asks; ask; ask = ask->next)
                for (size_t i = 0; i < ask->query->n_texts && ask->answer->kind != QUERY_SCAN; i++)
                        mark_asked(live, process_of(live, ask, i));
        for (size_t i = 0; i < live->n_queues; i++) {
                const char *queue = live->queues[i].name;
                _cleanup_free_ char *key = NULL, *worker = NULL, *name = NULL, *start = NULL;

                if (!live->queues[i].asked)
                        continue;
                key = bullmq_key(live->prefix, "active", queue);
                worker = bullmq_key(live->prefix, "*->pb", queue);
                name = bullmq_key(live->prefix, "*->name", queue);
                start = bullmq_key(live->prefix, "*->processedOn", queue);
                if (!key || !worker || !name || !start) {
                        live->lost = true;
                        return;
                }
                const char *const argv[] = {"SORT", key,    "BY",  "nosort", "GET", "#",
                                            "GET",  worker, "GET", name,     "GET", start};
                send_command(live, take_active, i, live->with_jobs ? ELEMENTSOF(argv) : 8, argv);
        }
}

/* Judges what the lists of active jobs say of a process. */
static void judge_jobs(struct live *live, struct process *process)
{
        for (size_t i = 0; i < process->n_links && !process->unread; i++) {
                const struct served *queue = find_queue(live, process->links[i].queue);

                process->unread = !queue || queue->failed;
        }
        if (process->unread)
                return;
        if (process->jobs_known && process->jobs != process->new_jobs)
                process->sent = live->began_at;
        if (!process->lock || !process->new_lock || strcmp(process->lock, process->new_lock) != 0)
                process->lock_expires = 0;
        process->jobs = process->new_jobs;
        process->jobs_known = true;
        free(process->lock);
        process->lock = TAKE_PTR(process->new_lock);
}

static void take_lock(struct live *live, size_t index, const redisReply *reply)
{
        struct process *process = &live->processes[index];

        if (reply->type != REDIS_REPLY_INTEGER || reply->integer <= 0)
                return;
        usec_t left = (usec_t)MIN(reply->integer, (long long)UINT32_MAX) * USEC_PER_MSEC;
        usec_t expires = live->began_at + left;
        if (process->lock_expires != 0 && expires > process->lock_expires + RENEWED_USEC)
                process->sent = live->began_at;
        process->lock_expires = expires;
}

static void take_limit(struct live *live, size_t index, const redisReply *reply)
{
        live->queues[index].limited = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
}

static void ask_limits(struct live *live, const struct process *process)
{
        for (size_t i = 0; i < process->n_links; i++) {
                struct served *queue = find_queue(live, process->links[i].queue);

                if (queue && !queue->limit_asked)
                        send_key(live, take_limit, (size_t)(queue - live->queues), "PTTL",
                                 bullmq_key(live->prefix, "limiter", queue->name));
                if (queue)
                        queue->limit_asked = true;
        }
}

static void ask_times(struct live *live)
{
        for (size_t i = 0; i < live->n_processes; i++) {
                struct process *process = &live->processes[i];

                if (!process->asked)
                        continue;
                judge_jobs(live, process);
                if (process->unread || usec_sub(live->began_at, process->sent) <= SILENT_USEC)
                        continue;
                if (process->lock)
                        send_key(live, take_lock, i, "PTTL", strdup(process->lock));
                else if (!process->waits)
                        ask_limits(live, process);
        }
}

/* Adds the sign of life that a reached rate limit is. */
static void judge_limits(struct live *live)
{
        for (size_t i = 0; i < live->n_processes; i++) {
                struct process *process = &live->processes[i];

                for (size_t n = 0;
                     n < process->n_links && process->asked && process->busy == 0 && !process->waits; n++) {
                        const struct served *queue = find_queue(live, process->links[n].queue);

                        if (queue && queue->limited)
                                process->sent = live->began_at;
                }
        }
}

/* Returns the queues of the process, whose workers connect one after another; NULL: out of memory, or not all
 * may be connected yet. */
static struct heartbeat_info *make_info(const struct process *process)
{
        struct heartbeat_info *info =
                process->age < SETTLED_SECONDS ? NULL : calloc(1, sizeof(*info) + HEARTBEAT_QUEUES_MAX + 1);
        size_t used = 0;

        for (size_t i = 0; i < process->n_links && info; i++) {
                const char *queue = process->links[i].queue;
                size_t size = strlen(queue) + 1;

                if ((i > 0 && strcmp(queue, process->links[i - 1].queue) == 0) ||
                    used + size > HEARTBEAT_QUEUES_MAX)
                        continue;
                memcpy(info->queues + used, queue, size);
                used += size;
        }
        return info;
}

/* BullMQ keeps the concurrency of a worker to itself. */
static unsigned concurrency_of(const struct live *live, const struct process *process)
{
        unsigned sum = 0;

        for (size_t i = 0; i < process->n_links; i++) {
                const char *name = process->links[i].queue;
                const struct served *queue = find_queue(live, name);

                if (queue && (i == 0 || strcmp(name, process->links[i - 1].queue) != 0))
                        sum += queue->peak;
        }
        return sum;
}

static void answer_heartbeat(const struct live *live, struct live_ask *ask)
{
        const struct process *process = process_of(live, ask, 0);
        struct answer_heartbeat *answer = &ask->answer->heartbeat;

        answer->found = process && !process->unread;
        if (!answer->found)
                return;
        answer->heartbeat = (struct heartbeat){
                .sent_usec = process->sent,
                .busy = process->busy,
                .concurrency = concurrency_of(live, process),
                .quiet = !process->waits && process->age >= SETTLED_SECONDS,
        };
        if (ask->query->numbers[0] != 0)
                answer->info = make_info(process);
}

static void answer_work_list(const struct live *live, struct live_ask *ask)
{
        const struct process *process = process_of(live, ask, 0);

        ask->answer->work_list.known = process && !process->unread;
        ask->answer->work_list.empty = ask->answer->work_list.known && process->busy == 0;
}

static bool answer_scan(const struct live *live, struct live_ask *ask)
{
        for (size_t i = 0; i < live->n_processes; i++) {
                const struct link *link = live->processes[i].links;

                if (live_scan_add(ask, link->identity, link->host_len, link->pid) < 0)
                        return false;
        }
        return true;
}

static bool answer_jobs(const struct live *live, struct live_ask *ask)
{
        struct answer_jobs *answer = &ask->answer->jobs;

        answer->lists = calloc(ask->query->n_texts + 1, sizeof(*answer->lists));
        if (!answer->lists)
                return false;
        answer->n = ask->query->n_texts;
        for (size_t i = 0; i < answer->n; i++) {
                struct process *process = process_of(live, ask, i);
                size_t bytes = SIZE_MAX;

                if (process && process->unread)
                        error_report_set(&ask->answer->error, "the active jobs of a queue could not be read");
                if (!process)
                        continue;
                answer->lists[i] = process->list;
                process->list = (struct job_list){0};
                if (job_list_decode(&answer->lists[i], bullmq_job_decode, &bytes) < 0)
                        return false;
        }
        return true;
}

static void answer(const struct live *live, struct live_ask *ask)
{
        bool answered = true;

        if (ask->answer->kind == QUERY_HEARTBEAT)
                answer_heartbeat(live, ask);
        else if (ask->answer->kind == QUERY_WORK_LIST)
                answer_work_list(live, ask);
        else if (ask->answer->kind == QUERY_SCAN)
                answered = answer_scan(live, ask);
        else
                answered = answer_jobs(live, ask);
        if (answered)
                ask->done(ask);
        else
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
}

static void end_round(struct live *live)
{
        struct live_ask *ask;

        live->step = STEP_NONE;
        while ((ask = live->asks)) {
                live->asks = ask->next;
                answer(live, ask);
        }
        if (live->waiting && sd_event_source_set_enabled(live->begin, SD_EVENT_ONESHOT) < 0)
                live_asks_end(&live->waiting);
}

/* Continues the round when no command is pending. */
static void advance(struct live *live)
{
        if (!live->lost && live->step == STEP_LIST) {
                live->step = STEP_ACTIVE;
                ask_active(live);
        }
        if (!live->lost && live->step == STEP_ACTIVE && live->pending == 0) {
                live->step = STEP_TIMES;
                ask_times(live);
        }
        if (live->pending > 0)
                return;
        if (live->lost) {
                live->step = STEP_NONE;
                live_asks_end(&live->asks);
                live_asks_end(&live->waiting);
                return;
        }
        judge_limits(live);
        end_round(live);
}

/* Takes the asks of the round. A list of jobs is handed out once, so a second query for jobs waits. */
static void take_asks(struct live *live)
{
        struct live_ask *ask, *later = NULL;

        live->with_jobs = false;
        while ((ask = live->waiting)) {
                live->waiting = ask->next;
                if (ask->answer->kind == QUERY_JOBS && live->with_jobs)
                        live_ask_add(&later, ask);
                else
                        live_ask_add(&live->asks, ask);
                live->with_jobs |= ask->answer->kind == QUERY_JOBS;
        }
        live->waiting = later;
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        static const char *const argv[] = {"CLIENT", "LIST", "TYPE", "normal"};
        struct live *live = userdata;

        if (live->step != STEP_NONE || !live->waiting)
                return 0;
        take_asks(live);
        for (size_t i = 0; i < live->n_queues; i++)
                live->queues[i].asked = live->queues[i].failed = live->queues[i].limit_asked =
                        live->queues[i].limited = false;
        live->lost = false;
        live->step = STEP_LIST;
        live->began_at = clock_now(CLOCK_MONOTONIC);
        send_command(live, take_list, 0, ELEMENTSOF(argv), argv);
        if (live->pending == 0)
                advance(live);
        return 0;
}

static void ask(struct live *live, struct live_ask *ask)
{
        if (sd_event_source_set_enabled(live->begin, SD_EVENT_ONESHOT) < 0)
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
        else
                live_ask_add(&live->waiting, ask);
}

static char *probe_key(const char *namespace)
{
        return decode_key(bullmq_prefix(namespace), "sqmgr", NULL);
}

static void live_end(struct live *live)
{
        if (!live)
                return;
        live_asks_end(&live->asks);
        live_asks_end(&live->waiting);
        sd_event_source_disable_unref(live->begin);
        processes_free(live->processes, live->n_processes);
        links_free(live->links, live->n_links);
        for (size_t i = 0; i < live->n_queues; i++)
                free(live->queues[i].name);
        free(live->queues);
        free(live);
}

static int live_begin(const struct live_server *server, struct live **ret)
{
        struct live *live = calloc(1, sizeof(*live));

        if (!live)
                return -ENOMEM;
        *live = (struct live){.server = server, .prefix = bullmq_prefix(server->namespace)};
        int r = sd_event_add_defer(server->event, &live->begin, on_begin, live);
        if (r >= 0)
                r = sd_event_source_set_enabled(live->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(live->begin, PRIORITY);
        if (r < 0) {
                live_end(live);
                return r;
        }
        *ret = live;
        return 0;
}

const struct live_format bullmq_live_format = {
        .probe_key = probe_key,
        .begin = live_begin,
        .end = live_end,
        .asks =
                {
                        [QUERY_HEARTBEAT] = ask,
                        [QUERY_WORK_LIST] = ask,
                        [QUERY_SCAN] = ask,
                        [QUERY_JOBS] = ask,
                },
};
