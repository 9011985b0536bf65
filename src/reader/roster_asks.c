/* SPDX-License-Identifier: MIT */
/* Reads the workers of a host that the server lists. */
#include "frameworks/decode.h"
#include "frameworks/heartbeat_format.h"
#include "reader/redis_ask.h"
#include "redis/redis_command.h"
#include <string.h>

static int listed(const struct listed_worker *worker, void *userdata)
{
        struct ask *ask = userdata;
        struct answer_roster *roster = &ask->answer.roster;

        /* Skip queues that no command of a fleet can have. */
        if (worker->queues.len > ANSWER_QUEUES_MAX || memchr(worker->queues.text, '\0', worker->queues.len) ||
            !decode_field_is(&worker->host, query_text(ask_query(ask), 0)) || roster->n == ANSWER_ROSTER_MAX)
                return 0;
        struct answer_worker *list = reallocarray(roster->list, roster->n + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        roster->list = list;
        list[roster->n] = (struct answer_worker){
                .queues = strndup(worker->queues.text, worker->queues.len),
                .pid = worker->pid,
                .born_usec = worker->born_usec,
        };
        return list[roster->n].queues ? (roster->n++, 0) : -ENOMEM;
}

static void on_roster(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;

        if (ask_failed(ask, reply))
                return;
        int r = ask_format(ask)->heartbeats->take_roster(reply, listed, ask);
        if (r == -ENOMEM)
                ask_fail_errno(ask, r);
        else if (r < 0)
                ask_fail(ask, ANSWER_REFUSED, "the list of workers is invalid");
        else
                ask_done(ask);
}

void ask_roster(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        _cleanup_free_ char *set_key = NULL;
        struct redis_command command;

        if (!heartbeats || !heartbeats->ask_roster) {
                ask_fail(ask, ANSWER_REFUSED, "the framework lists no workers");
                return;
        }
        set_key = heartbeats->key(ask_namespace(ask), heartbeats->set, NULL);
        if (!set_key) {
                ask_fail_errno(ask, -ENOMEM);
        } else {
                heartbeats->ask_roster(set_key, &command);
                ask_command(ask, on_roster, &command, true);
        }
}
