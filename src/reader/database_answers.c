/* SPDX-License-Identifier: MIT */
/* Answers queries from the rows of a batch; see the header. */
#include "reader/database_answers.h"
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "model/heartbeat_info.h"
#include "reader/ask.h"
#include <string.h>

static bool answer_heartbeat(const struct database_view *view, struct ask *ask)
{
        const struct database_process *process = database_view_find(view, query_text(ask_query(ask), 0));
        struct answer_heartbeat *answer = &ask->answer.heartbeat;

        answer->found = process;
        if (!process)
                return true;
        answer->heartbeat = process->heartbeat;
        if (ask_query(ask)->numbers[0] == 0)
                return true;
        answer->info = calloc(1, sizeof(*answer->info) + process->queues_length + 2);
        if (!answer->info)
                return false;
        answer->info->concurrency = process->heartbeat.concurrency;
        if (process->queues_length > 0)
                memcpy(answer->info->queues, process->queues, process->queues_length);
        return true;
}

static bool answer_work_list(const struct database_view *view, struct ask *ask)
{
        const struct database_process *process = database_view_find(view, query_text(ask_query(ask), 0));

        ask->answer.work_list.known = process;
        ask->answer.work_list.empty = process && process->heartbeat.busy == 0;
        return true;
}

static bool answer_scan(const struct database_view *view, struct ask *ask)
{
        struct answer_scan *scan = &ask->answer.scan;
        const char *host = ask_query(ask)->n_texts > 1 ? query_text(ask_query(ask), 1) : NULL;

        scan->list = calloc(view->n_processes + 1, sizeof(*scan->list));
        if (!scan->list)
                return false;
        for (size_t i = 0; i < view->n_processes; i++) {
                const struct database_process *process = &view->processes[i];

                if ((i > 0 && strcmp(process[-1].identity, process->identity) == 0) ||
                    (host && (strlen(host) != process->host_len ||
                              memcmp(host, process->identity, process->host_len) != 0)))
                        continue;
                struct answer_identity *identity = &scan->list[scan->n];
                identity->identity = strdup(process->identity);
                if (!identity->identity)
                        return false;
                identity->host_len = process->host_len;
                identity->pid = process->pid;
                scan->n++;
        }
        return true;
}

static bool answer_jobs(const struct database_view *view, struct ask *ask)
{
        const struct query *query = ask_query(ask);
        struct answer_jobs *answer = &ask->answer.jobs;

        answer->with_entries = query->numbers[0] != 0;
        answer->lists = calloc(query->n_texts + 1, sizeof(*answer->lists));
        if (!answer->lists)
                return false;
        answer->n = query->n_texts;
        for (size_t i = 0; i < query->n_texts; i++) {
                struct database_work *work = database_view_find_work(view, query_text(query, i));

                if (!work)
                        continue;
                answer->lists[i] = work->list;
                work->list = (struct job_list){0};
        }
        return true;
}

static struct queue *add_queue(struct queues *queues, const char *name, const struct queue *from)
{
        struct queue *queue = queues_add(queues, name, strlen(name));

        if (queue && from) {
                char *own = queue->name;

                *queue = *from;
                queue->name = own;
        }
        return queue;
}

static bool answer_named(const struct database_view *view, const char *names, struct queues *queues)
{
        for (const char *name = names; *name != '\0'; name += strlen(name) + 1) {
                if (strlen(name) > QUEUE_NAME_MAX || queues->n == QUEUES_READ_MAX)
                        continue;
                bool sums = view->format->is_pattern(name);
                struct queue *queue =
                        add_queue(queues, name, sums ? NULL : database_view_find_queue(view, name));
                if (!queue)
                        return false;
                if (sums)
                        database_view_sum(view, name, queue);
        }
        return true;
}

static bool answer_queues(const struct database_view *view, struct ask *ask)
{
        const struct query *query = ask_query(ask);
        struct queues *queues = calloc(1, sizeof(*queues));

        ask->answer.queues.queues = queues;
        if (!queues)
                return false;
        if (query->n_texts > 0)
                return answer_named(view, query_text(query, 0), queues);
        queues->schedule = view->queues.schedule;
        queues->dead = view->queues.dead;
        for (size_t i = 0; i < MIN(view->queues.n, (size_t)QUEUES_READ_MAX); i++)
                if (!add_queue(queues, view->queues.list[i].name, &view->queues.list[i]))
                        return false;
        queues->left_out = view->queues.n - queues->n + view->queues.left_out;
        return true;
}

static bool answer_diagnosis(const struct database_view *view, struct ask *ask)
{
        ask->answer.diagnosis.database = view->facts;
        return true;
}

static bool answer_released(const struct database_view *view, struct ask *ask)
{
        ask->answer.released.n = view->released;
        return true;
}

/* Each function returns false if memory is short. */
static bool (*const answers[_QUERY_KIND_MAX])(const struct database_view *view, struct ask *ask) = {
        [QUERY_HEARTBEAT] = answer_heartbeat, [QUERY_WORK_LIST] = answer_work_list,
        [QUERY_SCAN] = answer_scan,           [QUERY_JOBS] = answer_jobs,
        [QUERY_QUEUES] = answer_queues,       [QUERY_DIAGNOSIS] = answer_diagnosis,
        [QUERY_RELEASED] = answer_released,
};

bool database_answers(enum query_kind kind)
{
        return answers[kind];
}

void database_answer(const struct database_view *view, struct ask *ask)
{
        if (answers[ask->answer.kind](view, ask))
                ask_done(ask);
        else
                ask_fail_errno(ask, -ENOMEM);
}
