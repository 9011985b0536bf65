/* SPDX-License-Identifier: MIT */
/* Answers of a server to queries of sqmgr. */
#include "servers/answer.h"

static void clear_scan(struct answer_scan *scan)
{
        for (size_t i = 0; i < scan->n; i++)
                free(scan->list[i].identity);
        free(scan->list);
}

void answer_clear(struct answer *answer)
{
        if (answer->status == ANSWER_OK && answer->kind == QUERY_HEARTBEAT)
                free(answer->heartbeat.info);
        else if (answer->status == ANSWER_OK && answer->kind == QUERY_SCAN)
                clear_scan(&answer->scan);
        else if (answer->status == ANSWER_OK && answer->kind == QUERY_QUEUES)
                queues_free(answer->queues.queues);
        else if (answer->status == ANSWER_OK && answer->kind == QUERY_JOBS)
                job_lists_free(answer->jobs.lists, answer->jobs.n);
        answer->status = ANSWER_LOST;
}
