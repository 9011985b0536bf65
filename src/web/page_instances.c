/* SPDX-License-Identifier: MIT */
/* The instances of sqmgr and their Redis servers. */
#include "web/html.h"
#include "web/page_sections.h"

static void put_redis(FILE *out, const json_t *redis)
{
        const json_t *rtt = json_object_get(redis, "rtt_ms");
        const char *server = reply_string(redis, "server");

        html_print(out, "; %s %s %s%s%s", reply_server_kind(redis), reply_string(redis, "url"),
                   reply_string(redis, "state"), server[0] != '\0' ? " to " : "", server);
        if (json_is_number(rtt))
                html_print(out, " (%gms)", json_number_value(rtt));
}

static void put_instance(FILE *out, const json_t *instance)
{
        const json_t *status = json_object_get(instance, "status"), *redis;
        char span[FORMAT_MAX];

        if (!json_is_object(status)) {
                html_print(out, "<p>%s: no answer yet</p>", reply_string(instance, "name"));
                return;
        }
        html_print(out, "<p>sqmgr %s, instance %s, pid %lld, up %s", reply_string(status, "version"),
                   reply_string(instance, "name"), page_integer(status, "pid"),
                   reply_seconds(status, "uptime_seconds", span));
        json_foreach_in(redis, status, "redis")
                put_redis(out, redis);
        if (!reply_is_true(instance, "reachable"))
                html_print(out, "; last answer %s ago", reply_seconds(instance, "age_seconds", span));
        fputs("</p>", out);
}

void page_instances(FILE *out, const struct page *page)
{
        const json_t *instance;

        fputs("<footer id=\"instances\"><div class=\"inner\">", out);
        json_foreach(instance, page->instances)
                put_instance(out, instance);
        fputs("</div></footer>", out);
}
