/* SPDX-License-Identifier: MIT */
/* What happened, the newest first. */
#include "web/html.h"
#include "web/page.h"
#include "web/page_parts.h"
#include <string.h>
#include <time.h>

/* The older ones are folded. */
#define SEEN_MAX 20

/* Years of five digits would be noise from elsewhere. */
#define SECONDS_MAX 253402300799.0

const char *page_time(usec_t at, enum page_time_form form, char text[static PAGE_TIME_MAX])
{
        time_t seconds = (time_t)(at / USEC_PER_SEC);
        struct tm utc;
        size_t n = 0;

        text[0] = '\0';
        if (!gmtime_r(&seconds, &utc))
                return text;
        switch (form) {
        case PAGE_TIME_ISO:
                n = strftime(text, PAGE_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc);
                break;
        case PAGE_TIME_WHOLE:
                n = strftime(text, PAGE_TIME_MAX, "%Y-%m-%d %H:%M:%S", &utc);
                break;
        case PAGE_TIME_CLOCK:
                n = strftime(text, PAGE_TIME_MAX, "%H:%M:%S", &utc);
                break;
        case PAGE_TIME_DAY:
                n = strftime(text, PAGE_TIME_MAX, "%m-%d %H:%M", &utc);
                break;
        case _PAGE_TIME_MAX:
                break;
        }
        if (n == 0)
                text[0] = '\0';
        return text;
}

static usec_t event_at(const json_t *event)
{
        double seconds = json_number_value(json_object_get(event, "at"));

        return seconds > 0 && seconds <= SECONDS_MAX ? (usec_t)(seconds * (double)USEC_PER_SEC) : 0;
}

void page_event_time(FILE *out, const json_t *event, const struct page *page, bool with_age)
{
        usec_t at = event_at(event), age = usec_sub(page->now, at);
        char iso[PAGE_TIME_MAX], whole[PAGE_TIME_MAX], clock[PAGE_TIME_MAX], span[FORMAT_MAX];

        page_time(at, PAGE_TIME_ISO, iso);
        page_time(at, PAGE_TIME_WHOLE, whole);
        page_time(at, age < USEC_PER_DAY ? PAGE_TIME_CLOCK : PAGE_TIME_DAY, clock);
        html_print(out, "<time datetime=\"%s\" title=\"%s UTC\">%s</time>", iso, whole, clock);
        if (with_age)
                html_print(out, " <span class=\"age\">%s ago</span>",
                           format_duration(age - age % USEC_PER_SEC, span, sizeof(span)));
}

void page_event_text(FILE *out, const json_t *event)
{
        const char *level = reply_string(event, "level");

        if (strcmp(level, "info") != 0 && level[0] != '\0')
                html_print(out, "<span class=\"%s\">%s:</span> ", level, level);
        html_print(out, "%s", reply_string(event, "text"));
}

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
                   from == 0 ? "The last events" : "Events before these");
        for (size_t i = from; i < to; i++)
                put_event(out, json_array_get(page->events, i), page);
        fputs("</tbody></table>", out);
}

void page_events(FILE *out, const struct page *page)
{
        size_t n = MIN(json_array_size(page->events), PAGE_EVENTS_MAX), seen = MIN(n, SEEN_MAX);

        fputs("<section id=\"events\" aria-labelledby=\"events-title\"><h2 id=\"events-title\">Events</h2>",
              out);
        if (n == 0)
                fputs("<p class=\"none\">Nothing has happened yet.</p>", out);
        else
                put_events(out, page, 0, seen);
        if (n > seen) {
                html_print(out, "<details data-key=\"older\"><summary>%zu before these</summary>", n - seen);
                put_events(out, page, seen, n);
                fputs("</details>", out);
        }
        fputs("</section>", out);
}
