/* SPDX-License-Identifier: MIT */
/* Reads the queues for sqmgr. */
#include "frameworks/queue_reader.h"
#include "io/clock.h"
#include "reader/redis_ask.h"
#include "settings/traits.h"

static void on_queues(struct queues_reading *queues, const struct error_report *error, void *userdata)
{
        struct queue_reading *reading = userdata;
        struct ask *ask = TAKE_PTR(reading->ask);

        if (error) {
                ask_fail_as(ask, ANSWER_REFUSED, error);
                return;
        }
        ask->answer.queues = *queues;
        queues->queues = NULL;
        ask_done(ask);
}

void ask_queues(struct ask *ask)
{
        const struct queues_format *format = ask_format(ask)->queues;
        bool named = ask_query(ask)->n_texts > 0;
        struct queue_reading *reading = ask_queue_reading(ask, named);
        int r = 0;

        /* sqmgr names queues only for workers that report theirs. */
        if (format && named && !ask_format(ask)->traits->reports_queues)
                format = NULL;
        if (!format || reading->ask) {
                ask_fail(ask, ANSWER_REFUSED,
                         format ? "the queues are being read already"
                                : "the framework does not report its queues");
                return;
        }
        if (!reading->queue_reader)
                r = queue_reader_new(ask_redis(ask), format, ask_namespace(ask), on_queues, reading,
                                     &reading->queue_reader);
        if (r >= 0)
                r = queue_reader_read(reading->queue_reader, named ? query_text(ask_query(ask), 0) : NULL,
                                      ask_query(ask)->numbers[0] != 0, clock_now(CLOCK_REALTIME));
        if (r == -ENODATA && (ask->answer.queues.queues = calloc(1, sizeof(struct queues))))
                ask_done(ask);
        else if (r < 0)
                ask_fail_errno(ask, r);
        else
                reading->ask = ask;
}
