/* SPDX-License-Identifier: MIT */
/* The page: its shorter sections, their order, and the frame around them. */
#include "web/page.h"
#include "base/memstream.h"
#include "web/assets.h"
#include "web/assets_made.h"
#include "web/html.h"
#include "web/page_parts.h"

/* More queues are collapsed. */
#define QUEUES_SEEN_MAX 12

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

static void put_queues(FILE *out, const json_t *redis, const json_t *instance, bool several)
{
        size_t n = json_array_size(json_object_get(redis, "queues")), seen = MIN(n, QUEUES_SEEN_MAX);
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

/* The queues of each Redis. */
static void page_queues(FILE *out, const struct page *page)
{
        const json_t *instance, *redis;
        size_t n = 0;

        page_section(out, "queues", "Queues");
        json_foreach(instance, page->instances)
                json_foreach_in(redis, instance, "queues") {
                        put_queues(out, redis, instance, json_array_size(page->instances) > 1);
                        n++;
                }
        if (n == 0)
                fputs("<p class=\"none\">No queues.</p>", out);
        fputs("</section>", out);
}

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

/* The instances of sqmgr and their Redis servers. */
static void page_instances(FILE *out, const struct page *page)
{
        const json_t *instance;

        fputs("<footer id=\"instances\"><div class=\"inner\">", out);
        json_foreach(instance, page->instances)
                put_instance(out, instance);
        fputs("</div></footer>", out);
}

/* Older events are collapsed. */
#define EVENTS_SEEN_MAX 20

static void put_event(FILE *out, const json_t *event, const struct page *page)
{
        fputs("<tr><td class=\"when\">", out);
        page_event_time(out, event, page, true);
        fputs("</td><td>", out);
        page_event_text(out, event);
        fputs("</td></tr>", out);
}

static void put_events(FILE *out, const struct page *page, size_t from, size_t to)
{
        html_print(out,
                   "<table class=\"events\"><caption>%s</caption><thead><tr><th scope=\"col\">When (UTC)</th>"
                   "<th scope=\"col\">What</th></tr></thead><tbody>",
                   from == 0 ? "Latest events" : "Earlier events");
        for (size_t i = from; i < to; i++)
                put_event(out, json_array_get(page->events, i), page);
        fputs("</tbody></table>", out);
}

static void page_events(FILE *out, const struct page *page)
{
        size_t n = MIN(json_array_size(page->events), PAGE_EVENTS_MAX), seen = MIN(n, EVENTS_SEEN_MAX);

        page_section(out, "events", "Events");
        if (n == 0)
                fputs("<p class=\"none\">No events yet.</p>", out);
        else
                put_events(out, page, 0, seen);
        if (n > seen) {
                html_print(out, "<details data-key=\"older\"><summary>%zu earlier events</summary>",
                           n - seen);
                put_events(out, page, seen, n);
                fputs("</details>", out);
        }
        fputs("</section>", out);
}

static const char doctype[] =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
        "<meta name=\"color-scheme\" content=\"light dark\"/><meta name=\"robots\" content=\"noindex\"/>";

#define FIGURE(id, title)                                                                                    \
        "<figure id=\"plot-" id "\"><figcaption><b>" title "</b> <span>loading</span></figcaption>"          \
        "<div class=\"canvas\" aria-hidden=\"true\"></div></figure>"

/* The section has the same height before and after its graphs are drawn. */
static const char plots[] =
        "<section id=\"plots\" aria-labelledby=\"plots-title\"><h2 id=\"plots-title\">Graphs</h2>"
        "<noscript><p class=\"none\">Graphs and automatic updates need JavaScript. Reload the page to see "
        "the current state.</p></noscript>"
        "<div id=\"plots-live\"><div class=\"choices\"><div role=\"group\" aria-label=\"Time shown\">"
        "<button type=\"button\" data-range=\"hour\" aria-pressed=\"true\">Last hour</button>"
        "<button type=\"button\" data-range=\"day\" aria-pressed=\"false\">Day</button>"
        "<button type=\"button\" data-range=\"month\" aria-pressed=\"false\">30 days</button></div>"
        "<label>of <select id=\"plots-of\"><option value=\"\">all fleets</option></select></label>"
        "<p id=\"plots-note\" role=\"status\"></p></div>"
        "<div class=\"grid\">" FIGURE("memory", "Memory") FIGURE("active", "Active workers") FIGURE(
                "busy", "Busy threads")
                FIGURE("latency", "Queue latency") "</div><details id=\"marks\"><summary>Markers: R restart, "
                                                   "C crash, H halt</summary>"
                                                   "<div id=\"marks-list\"></div></details></div></section>";

static void put_head(FILE *out, const struct page *page)
{
        char headline[PAGE_HEADLINE_MAX];
        enum page_level level = page_headline(page, headline);

        fputs(doctype, out);
        html_print(out, "<title>%s - sqmgr%s%s</title><link rel=\"icon\" id=\"icon\" href=\"%s\"/>", headline,
                   page->host[0] != '\0' ? " on " : "", page->host, page_icon(level));
        fputs("<style>", out);
        fputs(assets_style, out);
        fputs("</style></head><body><a class=\"skip\" href=\"#fleets\">Skip to the fleets</a>", out);
}

/* The changing elements are the same in both parts. The whole document adds the static elements around
 * them. */
static void put_page(FILE *out, const struct page *page, bool whole)
{
        if (whole)
                put_head(out, page);
        page_verdict(out, page);
        fputs(whole ? "<main class=\"inner\"><div id=\"now\">" : "<div id=\"now\">", out);
        page_progress(out, page);
        page_fleets(out, page);
        page_queues(out, page);
        fputs("</div>", out);
        if (whole)
                fputs(plots, out);
        fputs("<div id=\"past\">", out);
        page_events(out, page);
        fputs(whole ? "</div></main>" : "</div>", out);
        page_instances(out, page);
        if (whole)
                html_print(out,
                           "<script src=\"%s\" defer=\"\"></script><script src=\"%s\" "
                           "defer=\"\"></script></body></html>\n",
                           assets_plot_script, assets_page_script);
}

int page_render(enum page_part part, const json_t *status, const json_t *events, usec_t now, char **ret,
                size_t *ret_size)
{
        const json_t *instances = json_object_get(status, "instances");
        _cleanup_json_ json_t *findings = page_findings(instances);
        struct page page = {.host = reply_string(status, "host"),
                            .instances = instances,
                            .findings = findings,
                            .events = events,
                            .now = now};
        FILE *out = open_memstream(ret, ret_size);

        if (out)
                put_page(out, &page, part == PAGE_WHOLE);
        return memstream_close(out, ret);
}

const char *page_csp(void)
{
        return "default-src 'none'; script-src 'self'; style-src 'sha256-" ASSETS_STYLE_HASH
               "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
               "'none'";
}
