/* SPDX-License-Identifier: MIT */
/* The whole page: the order of its sections and the frame around them. */
#include "web/page.h"
#include "base/memstream.h"
#include "web/assets.h"
#include "web/assets_made.h"
#include "web/html.h"
#include "web/page_sections.h"

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
        struct page page = {.host = reply_string(status, "host"),
                            .instances = json_object_get(status, "instances"),
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
