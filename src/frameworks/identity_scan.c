/* SPDX-License-Identifier: MIT */
/* Scans with SSCAN in pages, or with the one command of a framework whose set members contain neither host
 * nor pid. */
#include "frameworks/identity_scan.h"
#include "redis/redis_command.h"
#include <errno.h>
#include <string.h>

/* COUNT of one SSCAN step. */
#define PAGE_OF_HOST "1000"
#define PAGE_OF_ALL  "100"

void identity_scan_ask(const struct heartbeat_format *format, const char *set_key, const char *pattern,
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

int identity_scan_take(const struct heartbeat_format *format, const redisReply *reply, identity_fn found,
                       void *userdata, const char **ret_cursor)
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
