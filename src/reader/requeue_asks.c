/* SPDX-License-Identifier: MIT */
/* Puts jobs of dead processes back into their queues for sqmgr. */
#include "frameworks/redis_running_jobs.h"
#include "frameworks/requeue.h"
#include "reader/redis_ask.h"
#include <limits.h>

static void on_requeued(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer_requeue *answer = &ask->answer.requeue;

        if (ask_failed(ask, reply))
                return;
        if (ask_format(ask)->requeue->take(reply, &answer->outcome, &answer->times))
                ask_done(ask);
        else
                ask_fail(ask, ANSWER_LOST, "Redis sent an invalid reply");
}

void ask_requeue(struct ask *ask)
{
        const struct redis_format *format = ask_format(ask);
        const struct query *query = ask_query(ask);
        struct job_list list = {0};
        size_t bytes = SIZE_MAX;

        if (!format->requeue || query->n_texts != 4) {
                ask_fail(ask, ANSWER_REFUSED, "the framework does not support re-enqueuing");
                return;
        }
        int r = job_list_add(&list, query->numbers[0] != 0, &query->texts[1], &query->texts[2]);
        if (r == 0)
                r = job_list_decode(&list, format->running_jobs->decode, &bytes);
        if (r == 0 && list.n_jobs == 1) {
                const struct requeue_request request = {
                        .namespace = ask_namespace(ask),
                        .identity = query_text(query, 0),
                        .job = &list.jobs[0],
                        .puts_back = query->numbers[1] != 0,
                        .limit = (unsigned)MIN(query->numbers[2], (uint64_t)UINT_MAX),
                        .why = query_text(query, 3),
                        .realtime = query->numbers[3],
                };

                r = format->requeue->send(ask_redis(ask), &request, on_requeued, ask);
        } else if (r == 0) {
                r = -EINVAL;
        }
        job_list_clear(&list);
        if (r == -EINVAL)
                ask_fail(ask, ANSWER_REFUSED, "the entry is not a job");
        else if (r < 0)
                ask_fail_errno(ask, r);
}
