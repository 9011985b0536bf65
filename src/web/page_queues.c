/* SPDX-License-Identifier: MIT */
/* The queues of each Redis. */
#include "web/html.h"
#include "web/page_sections.h"

/* More queues are collapsed. */
#define SEEN_MAX 12

static void put_queue(FILE *out, const json_t *queue)
{
        const json_t *latency = json_object_get(queue, "latency_seconds");
        const char *name = reply_string(queue, "name");
        char span[FORMAT_MAX];

        html_print(out, "<tr data-key=\"%s\"><th scope=\"row\">%s</th><td class=\"number\">%lld</td>", name,
                   name, page_integer(queue, "size"));
        html_print(out, "<td class=\"number\">%s</td><td>%s</td></tr>",
                   json_is_number(latency) ? reply_seconds(queue, "latency_seconds", span) : "-",
                   reply_is_true(queue, "paused") ? "paused" : "");
}

static void put_table(FILE *out, const json_t *redis, size_t from, size_t to)
{
        const json_t *queues = json_object_get(redis, "queues");

        html_print(
                out,
                "<table class=\"queues\"><caption>Queues of %s</caption><thead><tr><th "
                "scope=\"col\">Queue</th>"
                "<th scope=\"col\" class=\"number\">Size</th><th scope=\"col\" class=\"number\">Latency</th>"
                "<th scope=\"col\"><span class=\"hidden\">Paused</span></th></tr></thead><tbody>",
                reply_string(redis, "url"));
        for (size_t i = from; i < to; i++)
                put_queue(out, json_array_get(queues, i));
        fputs("</tbody></table>", out);
}

static void put_redis(FILE *out, const json_t *redis, const json_t *instance, bool several)
{
        size_t n = json_array_size(json_object_get(redis, "queues")), seen = MIN(n, SEEN_MAX);
        const char *error = reply_string(redis, "error"), *url = reply_string(redis, "url");

        html_print(out, "<div class=\"redis\" data-key=\"%s %s\"><h3>%s", reply_string(instance, "socket"),
                   url, url);
        if (several)
                html_print(out, ", read by %s", reply_string(instance, "name"));
        fputs("</h3>", out);
        if (error[0] != '\0') {
                html_print(out, "<p class=\"note\">%s</p></div>", error);
                return;
        }
        html_print(out, "<p class=\"sets\">retry %lld, scheduled %lld, dead %lld</p>",
                   page_integer(redis, "retry"), page_integer(redis, "schedule"),
                   page_integer(redis, "dead"));
        if (n > 0)
                put_table(out, redis, 0, seen);
        if (n > seen) {
                html_print(out, "<details data-key=\"more\"><summary>%zu more queues</summary>", n - seen);
                put_table(out, redis, seen, n);
                fputs("</details>", out);
        }
        if (page_integer(redis, "queues_left_out") > 0)
                html_print(out, "<p class=\"note\">%lld more queues are not read.</p>",
                           page_integer(redis, "queues_left_out"));
        fputs("</div>", out);
}

void page_queues(FILE *out, const struct page *page)
{
        const json_t *instance, *redis;
        size_t n = 0;

        page_section(out, "queues", "Queues");
        json_foreach(instance, page->instances)
                json_foreach_in(redis, instance, "queues") {
                        put_redis(out, redis, instance, json_array_size(page->instances) > 1);
                        n++;
                }
        if (n == 0)
                fputs("<p class=\"none\">No queues.</p>", out);
        fputs("</section>", out);
}
