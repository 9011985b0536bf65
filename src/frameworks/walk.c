/* SPDX-License-Identifier: MIT */
/* By SSCAN, in pages, or by the one command of a framework whose identities tell neither host nor pid. */
#include "frameworks/walk.h"
#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

/* Identities that one step covers. */
#define SCAN_COUNT "1000"

void walk_ask(const struct beats_format *format, const char *set_key, const char *pattern, const char *cursor,
              struct beats_command *ret)
{
        *ret = (struct beats_command){
                .argv = {"SSCAN", set_key, cursor, "MATCH", pattern, "COUNT", SCAN_COUNT},
                .argc = 7,
        };
        if (format->ask_list)
                format->ask_list(set_key, ret);
}

static int take_page(const struct beats_format *format, const redisReply *page,
                     int (*found)(const struct match_found *found, void *userdata), void *userdata)
{
        int r = 0;

        for (size_t i = 0; i < page->elements && r >= 0; i++) {
                const redisReply *member = page->element[i];
                struct match_found one = {.identity = member->str, .len = member->len};

                if (member->type == REDIS_REPLY_STRING &&
                    format->identity_parse(one.identity, one.len, &one.host_len, &one.pid))
                        r = found(&one, userdata);
        }
        return r;
}

int walk_take(const struct beats_format *format, const redisReply *reply,
              int (*found)(const struct match_found *found, void *userdata), void *userdata,
              const char **ret_cursor)
{
        *ret_cursor = NULL;
        if (format->take_list)
                return format->take_list(reply, found, userdata);
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
            reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_ARRAY)
                return -EBADMSG;
        int r = take_page(format, reply->element[1], found, userdata);
        if (r >= 0 && strcmp(reply->element[0]->str, "0") != 0)
                *ret_cursor = reply->element[0]->str;
        return r < 0 ? r : 0;
}
