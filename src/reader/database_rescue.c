/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue; see the header. A repeated request changes nothing, as
 * the claim is gone. */
#include "reader/database_rescue.h"
#include "frameworks/database_view.h"
#include "reader/ask.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_IDENTITY, TEXT_THREAD, TEXT_ENTRY };

/* Adds a statement with the first parameters. */
static void add(struct database_statement *statements, size_t *n, const char *sql,
                const char *const *parameters, size_t n_parameters)
{
        statements[*n] = (struct database_statement){.sql = sql, .parameters = parameters, .n = n_parameters};
        ++*n;
}

int database_rescue_run(struct database_rescue_work *work, struct ask *ask,
                        const struct database_batch_ops *ops, void *userdata)
{
        const struct database_texts *texts = work->texts;
        const struct query *query = ask_query(ask);
        const char *identity = query_text(query, TEXT_IDENTITY);
        struct database_statement statements[DATABASE_RESCUE_STATEMENTS + 1];
        char host[ANSWER_HOST_MAX + 1], pid_text[DATABASE_NUMBER_MAX];
        size_t host_len, n = 0;
        pid_t pid;

        work->ask = ask;
        work->found = work->count_matches = false;
        if (query->n_texts != 4 ||
            !work->format->identity_parse(identity, strlen(identity), &host_len, &pid) ||
            host_len >= sizeof(host) || !work->format->take_entry(&query->texts[TEXT_ENTRY], &work->job))
                return -EINVAL;
        work->writes = query->numbers[1] != 0 && work->job.times < query->numbers[2];
        memcpy(host, identity, host_len);
        host[host_len] = '\0';
        snprintf(pid_text, sizeof(pid_text), "%d", pid);
        const char *const parameters[] = {
                [DATABASE_RESCUE_HOST] = host,
                [DATABASE_RESCUE_PID] = pid_text,
                [DATABASE_RESCUE_UNIT] = strchr(identity + host_len + 1, ':') + 1,
                [DATABASE_RESCUE_THREAD] = query_text(query, TEXT_THREAD),
                [DATABASE_RESCUE_CLAIM] = work->job.claim,
                [DATABASE_RESCUE_JOB] = work->job.job,
                [DATABASE_RESCUE_OLD] = work->job.old_text,
                [DATABASE_RESCUE_NEW] = work->job.new_text,
        };
        static_assert(ELEMENTSOF(parameters) == _DATABASE_RESCUE_PARAMETER_MAX, "a text for each");
        if (texts->begin)
                statements[n++] = (struct database_statement){.sql = texts->begin};
        work->check = n;
        if (!work->writes)
                add(statements, &n, texts->check, parameters, DATABASE_RESCUE_NEW);
        for (size_t i = 0; work->writes && i < DATABASE_RESCUE_STATEMENTS && texts->rescue[i]; i++)
                add(statements, &n, texts->rescue[i], parameters, _DATABASE_RESCUE_PARAMETER_MAX);
        return database_run(work->database, statements, n, work->writes, ops, userdata);
}

void database_rescue_take(struct database_rescue_work *work, size_t statement, const struct database_row *row)
{
        uint64_t same;

        if (statement != work->check)
                return;
        work->found = true;
        work->count_matches = database_row_number(row, 0, 1, &same) && same == 1;
}

void database_rescue_answer(struct database_rescue_work *work)
{
        struct ask *ask = TAKE_PTR(work->ask);
        struct answer_requeue *answer = &ask->answer.requeue;

        if (!work->found)
                answer->outcome = RESCUE_LEFT;
        else if (work->writes && work->count_matches)
                *answer = (struct answer_requeue){.outcome = RESCUE_REQUEUED, .times = work->job.times + 1};
        else
                answer->outcome =
                        ask_query(ask)->numbers[1] != 0 && !work->writes ? RESCUE_PARKED : RESCUE_LOST;
        ask_done(ask);
}
