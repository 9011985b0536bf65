/* SPDX-License-Identifier: MIT */
/* Reads heartbeats, work lists and identities for sqmgr. */
#include "frameworks/decode.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/redis_ask.h"
#include "frameworks/table.h"
#include "redis/redis_command.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* COUNT of one SSCAN step. */
#define PAGE_OF_HOST "1000"
#define PAGE_OF_ALL  "100"

/* All texts must outlive the command. pattern: NULL scans all hosts, in smaller pages because the caller
 * sends a command for each identity found. cursor: "0" for the first step. */
static void identity_scan_ask(const struct heartbeat_format *format, const char *set_key, const char *pattern,
                              const char *cursor, struct redis_command *ret)
{
        *ret = (struct redis_command){
                .argv = {"SSCAN", set_key, cursor, "COUNT", pattern ? PAGE_OF_HOST : PAGE_OF_ALL, "MATCH",
                         pattern},
                .argc = pattern ? 7 : 5,
        };
        if (format->ask_list)
                format->ask_list(set_key, ret);
}

/* Calls found for each identity. Returns 0, or -errno: the error of found, or -EBADMSG for an unexpected
 * reply. *ret_cursor: the cursor of the next step, which points into the reply; NULL: this step was the
 * last. */
static int identity_scan_take(const struct heartbeat_format *format, const redisReply *reply,
                              identity_fn found, void *userdata, const char **ret_cursor)
{
        int r = 0;

        *ret_cursor = NULL;
        if (format->take_list)
                return format->take_list(reply, found, userdata);
        const struct field cursor = reply_element(reply, 0);
        const redisReply *page = cursor.text && reply->elements == 2 ? reply->element[1] : NULL;
        if (!page || page->type != REDIS_REPLY_ARRAY)
                return -EBADMSG;
        for (size_t i = 0; i < page->elements && r >= 0; i++) {
                const struct field member = reply_element(page, i);
                struct match_found one = {.identity = member.text, .len = member.len};

                if (member.text && format->identity_parse(member.text, member.len, &one.host_len, &one.pid))
                        r = found(&one, userdata);
        }
        if (r >= 0 && strcmp(cursor.text, "0") != 0)
                *ret_cursor = cursor.text;
        return r < 0 ? r : 0;
}

/* A command that reads outcomes, sent before that for the heartbeat. The last of the two to end frees it. */
struct outcomes_ask {
        const struct heartbeat_format *format;
        struct worker_outcomes outcomes;
        bool ended; /* the other one */
};

static void outcomes_end(struct outcomes_ask *outcomes)
{
        if (outcomes->ended)
                free(outcomes);
        else
                outcomes->ended = true;
}

static void on_outcomes(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct outcomes_ask *outcomes = userdata;

        /* The heartbeat counts without them. */
        if (reply)
                outcomes->outcomes = outcomes->format->take_outcomes(reply);
        outcomes_end(outcomes);
}

/* Returns NULL if the outcomes cannot be read: they are unknown then. */
static struct outcomes_ask *ask_outcomes(const struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct outcomes_ask *outcomes = NULL;
        struct redis_command command;

        if (ask_query(ask)->numbers[2] == 0 || !heartbeats->ask_outcomes ||
            heartbeats->ask_outcomes(ask_namespace(ask), query_text(ask_query(ask), 0), &command) < 0)
                return NULL;
        outcomes = calloc(1, sizeof(*outcomes));
        if (outcomes && redis_command_forbiddable(ask_redis(ask), on_outcomes, outcomes, command.argc,
                                                  command.argv, NULL) < 0)
                free(TAKE_PTR(outcomes));
        command_clear(&command);
        if (outcomes)
                outcomes->format = heartbeats;
        return outcomes;
}

static void on_heartbeat(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct outcomes_ask *outcomes = ask->work;
        struct answer answer = {0};
        struct worker_outcomes read = {0};

        if (outcomes) {
                read = outcomes->outcomes;
                outcomes_end(outcomes);
        }
        /* A key of another type holds no heartbeat. */
        if (!(reply && reply->type == REDIS_REPLY_ERROR && reply_is_wrong_type(reply)) &&
            ask_failed(ask, reply))
                return;
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct answer_heartbeat *heartbeat = &answer.heartbeat;
        heartbeat->found = heartbeats->take_heartbeat(reply, &heartbeat->heartbeat, &heartbeat->info);
        if (heartbeats->take_outcomes)
                heartbeat->heartbeat.outcomes = read;
        if (!heartbeat_check(framework_of(ask_format(ask)->traits), &heartbeat->heartbeat, heartbeat->info)) {
                heartbeat->found = false;
                free(TAKE_PTR(heartbeat->info));
        }
        ask_done(ask, &answer);
}

void ask_heartbeat(struct ask *ask)
{
        const struct query *query = ask_query(ask);
        struct redis_command command;

        if (ask_format(ask)->heartbeats->ask_heartbeat(ask_namespace(ask), query_text(query, 0),
                                                       query->numbers[0] != 0, &command) < 0) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        struct outcomes_ask *outcomes = ask_outcomes(ask);
        ask->work = outcomes;
        if (!ask_command(ask, on_heartbeat, &command, query->numbers[1] != 0) && outcomes)
                outcomes_end(outcomes);
}

static void on_work_list(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {0};

        if (ask_failed(ask, reply))
                return;
        answer.work_list.known = reply->type == REDIS_REPLY_INTEGER;
        answer.work_list.empty = answer.work_list.known && reply->integer == 0;
        ask_done(ask, &answer);
}

void ask_work_list(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct redis_command command;

        if (!heartbeats->ask_work_list)
                ask_fail(ask, ANSWER_REFUSED, "the framework has no work list");
        else if (heartbeats->ask_work_list(ask_namespace(ask), query_text(ask_query(ask), 0), &command) < 0)
                ask_fail_errno(ask, -ENOMEM);
        else
                ask_command(ask, on_work_list, &command, false);
}

static bool is_wanted(const struct query *query, const struct match_found *found)
{
        const struct field host = {.text = found->identity, .len = found->host_len};

        /* Skip an identity that sqmgr would reject as too long: no worker has one. */
        return found->len <= ANSWER_IDENTITY_MAX && found->host_len <= ANSWER_HOST_MAX &&
               (query->n_texts < 2 || decode_field_is(&host, query_text(query, 1)));
}

/* The context of found(). */
struct page {
        const struct query *query;
        struct answer_scan *scan;
};

static int found(const struct match_found *found, void *userdata)
{
        const struct page *page = userdata;
        struct answer_scan *scan = page->scan;

        if (!is_wanted(page->query, found))
                return 0;
        if (scan->n == ANSWER_IDENTITIES_MAX)
                return -E2BIG;
        struct answer_identity *list = scan->list;
        /* The list is full at each power of two. */
        if ((scan->n & (scan->n - 1)) == 0)
                list = reallocarray(list, MAX(2 * scan->n, (size_t)1), sizeof(*list));
        if (!list)
                return -ENOMEM;
        scan->list = list;
        list[scan->n] = (struct answer_identity){
                .identity = strndup(found->identity, found->len),
                .host_len = found->host_len,
                .pid = found->pid,
        };
        return list[scan->n].identity ? (scan->n++, 0) : -ENOMEM;
}

static void on_scan(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {.kind = QUERY_SCAN};
        struct page page = {.query = ask_query(ask), .scan = &answer.scan};
        const char *cursor;

        if (ask_failed(ask, reply))
                return;
        int r = identity_scan_take(ask_format(ask)->heartbeats, reply, found, &page, &cursor);
        if (r >= 0 && cursor && strlen(cursor) >= sizeof(answer.scan.cursor))
                r = -EBADMSG;
        if (r < 0) {
                answer_clear(&answer);
                ask_fail(ask, ANSWER_REFUSED, "the list of processes is invalid");
                return;
        }
        snprintf(answer.scan.cursor, sizeof(answer.scan.cursor), "%s", cursor ?: "");
        ask_done(ask, &answer);
}

void ask_scan(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        const struct query *query = ask_query(ask);
        _cleanup_free_ char *set_key = heartbeats->key(ask_namespace(ask), heartbeats->set, NULL);
        _cleanup_free_ char *pattern = NULL;
        struct redis_command command;

        if (query->n_texts > 1)
                pattern = decode_host_pattern(query_text(query, 1));
        if (!set_key || (query->n_texts > 1 && !pattern)) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        const char *cursor = query_text(query, 0);
        identity_scan_ask(heartbeats, set_key, pattern, cursor[0] != '\0' ? cursor : "0", &command);
        ask_command(ask, on_scan, &command, query->numbers[0] != 0);
}
