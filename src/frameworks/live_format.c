/* SPDX-License-Identifier: MIT */
/* Functions for the live objects of all frameworks; see the header. */
#include "frameworks/live_format.h"
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void live_ask_add(struct live_ask **list, struct live_ask *ask)
{
        while (*list)
                list = &(*list)->next;
        ask->next = NULL;
        *list = ask;
}

static void end(struct live_ask *ask, enum answer_status status, const struct error_report *error)
{
        answer_clear(ask->answer);
        ask->answer->status = status;
        ask->answer->error = *error;
        ask->done(ask);
}

void live_ask_fail(struct live_ask *ask, enum answer_status status, const char *format, ...)
{
        struct error_report error = {0};
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error.text, sizeof(error.text), format, arguments);
        va_end(arguments);
        end(ask, status, &error);
}

void live_asks_end(struct live_ask **list)
{
        struct live_ask *ask;

        while ((ask = *list)) {
                *list = ask->next;
                live_ask_fail(ask, ANSWER_LOST, "connection lost");
        }
}

bool live_ask_failed(struct live_ask *ask, const redisReply *reply)
{
        struct error_report error;

        if (reply && reply->type != REDIS_REPLY_ERROR)
                return false;
        if (reply)
                error_report_quote(&error, reply->str, "command refused");
        else
                error_report_set(&error, "connection lost");
        end(ask, reply ? ANSWER_REFUSED : ANSWER_LOST, &error);
        return true;
}

int live_scan_add(struct live_ask *ask, const char *identity, size_t host_len, pid_t pid)
{
        struct answer_scan *scan = &ask->answer->scan;
        const char *host = query_text(ask->query, 1);

        if (scan->n == ANSWER_IDENTITIES_MAX || host_len > ANSWER_HOST_MAX ||
            strlen(identity) > ANSWER_IDENTITY_MAX)
                return 0;
        if (ask->query->n_texts > 1 && (strlen(host) != host_len || memcmp(host, identity, host_len) != 0))
                return 0;
        struct answer_identity *list = reallocarray(scan->list, scan->n + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        scan->list = list;
        list[scan->n] =
                (struct answer_identity){.identity = strdup(identity), .host_len = host_len, .pid = pid};
        return list[scan->n].identity ? (scan->n++, 0) : -ENOMEM;
}
