/* SPDX-License-Identifier: MIT */
/* Elements shared by several sections of the page. */
#include "web/page_parts.h"
#include "web/html.h"
#include <string.h>

/* Limits years to four digits; larger numbers are wrong input. */
#define SECONDS_MAX 253402300799.0

bool page_is_current(const json_t *instance)
{
        return reply_is_true(instance, "reachable") && json_is_object(json_object_get(instance, "status"));
}

/* Circle, triangle and square, which differ without color, too. */
static const char *const signs[] = {
        [PAGE_UNKNOWN] = "<svg class=\"sign unknown\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                         "<circle cx=\"12\" cy=\"12\" r=\"10\"/></svg>",
        [PAGE_OK] = "<svg class=\"sign ok\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                    "<circle cx=\"12\" cy=\"12\" r=\"11\"/><path d=\"M6.5 12.5l3.7 3.7 7.3-7.6\"/></svg>",
        [PAGE_ATTENTION] =
                "<svg class=\"sign attention\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                "<path class=\"solid\" d=\"M12 1.5L23.5 22H.5z\"/><path d=\"M12 9v6M12 17.6v1.6\"/></svg>",
        [PAGE_ACT] = "<svg class=\"sign act\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                     "<rect x=\"1\" y=\"1\" width=\"22\" height=\"22\" rx=\"3\"/><path d=\"M7.5 7.5l9 9M16.5 "
                     "7.5l-9 9\"/></svg>",
};
static_assert(ELEMENTSOF(signs) == _PAGE_LEVEL_MAX, "a sign for each level");

void page_sign(FILE *out, enum page_level level)
{
        fputs(signs[level], out);
}

void page_section(FILE *out, const char *id, const char *title)
{
        html_print(out, "<section id=\"%s\" aria-labelledby=\"%s-title\"><h2 id=\"%s-title\">%s</h2>", id, id,
                   id, title);
}

void page_note(FILE *out, const char *key, const char *text)
{
        if (text[0] == '\0')
                return;
        fputs("<p class=\"note\"", out);
        if (key)
                html_print(out, " data-key=\"%s\"", key);
        html_print(out, ">%s</p>", text);
}

void page_remedy(FILE *out, const char *remedy, const char *command)
{
        html_print(out, "<p class=\"remedy\">%s", remedy);
        if (command[0] != '\0')
                html_print(out, ": <code>%s</code>", command);
        fputs("</p>", out);
}

void page_bar(FILE *out, double value, double max, const char *kind)
{
        double share = max > 0 ? value / max : 0;
        unsigned width = share >= 1 ? 100 : share > 0 ? (unsigned)(share * 100 + 0.5) : 0;

        html_print(out,
                   "<svg class=\"bar %s\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\">"
                   "<rect class=\"rail\" width=\"100\" height=\"4\"/><rect width=\"%u\" height=\"4\"/></svg>",
                   kind, width);
}

const struct tm *page_utc(usec_t at, struct tm *utc)
{
        time_t seconds = (time_t)(at / USEC_PER_SEC);

        (void)gmtime_r(&seconds, utc);
        return utc;
}

void page_event_time(FILE *out, const json_t *event, const struct page *page, bool with_age)
{
        double seconds = json_number_value(json_object_get(event, "at"));
        usec_t at = seconds > 0 && seconds <= SECONDS_MAX ? (usec_t)(seconds * (double)USEC_PER_SEC) : 0;
        usec_t age = usec_sub(page->now, at);
        char iso[PAGE_TIME_MAX], whole[PAGE_TIME_MAX], clock[PAGE_TIME_MAX], span[FORMAT_MAX];

        html_print(out, "<time datetime=\"%s\" title=\"%s UTC\">%s</time>", PAGE_TIME(at, PAGE_TIME_ISO, iso),
                   PAGE_TIME(at, "%Y-%m-%d %H:%M:%S", whole),
                   PAGE_TIME(at, age < USEC_PER_DAY ? PAGE_TIME_CLOCK : "%m-%d %H:%M", clock));
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
