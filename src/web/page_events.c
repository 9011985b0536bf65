/* SPDX-License-Identifier: MIT */
/* Past events, the newest first. */
#include "web/html.h"
#include "web/page_sections.h"

/* Older events are collapsed. */
#define SEEN_MAX 20

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

void page_events(FILE *out, const struct page *page)
{
        size_t n = MIN(json_array_size(page->events), PAGE_EVENTS_MAX), seen = MIN(n, SEEN_MAX);

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
