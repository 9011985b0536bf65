/* SPDX-License-Identifier: MIT */
/* Elements shared by several sections of the page. */
#include "web/page_parts.h"
#include "base/argv.h"
#include "base/memstream.h"
#include "base/printable.h"
#include "web/html.h"

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

/* The worst come first. */
#define PROBLEMS_MAX 1000

enum page_level page_problem_level(const json_t *problem)
{
        return reply_is(problem, "severity", "error")     ? PAGE_ACT
               : reply_is(problem, "severity", "warning") ? PAGE_ATTENTION
                                                          : PAGE_OK;
}

char *page_service_command(const json_t *instance)
{
        const char *name = reply_string(instance, "name");
        _cleanup_free_ char *unit = NULL;
        char *text = NULL;
        size_t size;

        /* A path is the name of an instance of which only the socket is known. */
        if (name[0] == '/' || name[0] == '\0' || asprintf(&unit, "sqmgr@%s", name) < 0)
                return NULL;
        FILE *out = open_memstream(&text, &size);
        if (out) {
                fputs("systemctl status ", out);
                argv_put_quoted(out, unit);
        }
        return memstream_close(out, &text) < 0 ? NULL : text;
}

/* Returns the problem of an instance that does not answer. The last known state remains visible. */
static json_t *problem_of_away(const json_t *instance, bool several)
{
        _cleanup_free_ char *command = page_service_command(instance);
        const char *error = reply_string(instance, "error");
        char title[160], age[FORMAT_MAX], text[1024];

        snprintf(title, sizeof(title), "sqmgr %.120s%sdoes not answer",
                 several ? reply_string(instance, "name") : "", several ? " " : "");
        if (json_is_object(json_object_get(instance, "status")))
                snprintf(text, sizeof(text),
                         "%.700s%sWorkers keep running without sqmgr. The page shows the state of %s ago.",
                         error, error[0] != '\0' ? ". " : "", reply_seconds(instance, "age_seconds", age));
        else
                snprintf(text, sizeof(text), "%.700s%ssqmgr has not answered yet.", error,
                         error[0] != '\0' ? ". " : "");
        /* Both may end with half of a character. */
        printable_replace(title, strlen(title), true);
        printable_replace(text, strlen(text), true);
        return json_pack("{s:s, s:s, s:s, s:s, s:s?}", "severity", "error", "summary", title, "text", text,
                         "remedy", "Check whether the service runs", "command", command);
}

json_t *page_findings(const json_t *instances)
{
        json_t *findings = json_array();
        const json_t *instance;
        json_t *problem;

        json_foreach(instance, instances) {
                size_t n = 0;

                /* Without a connection all other data is old. The page shows old data below and marks it. */
                if (!page_is_current(instance)) {
                        (void)json_array_append_new(
                                findings, problem_of_away(instance, json_array_size(instances) > 1));
                        continue;
                }
                json_foreach_in(problem, json_object_get(instance, "status"), "problems") {
                        if (n++ == PROBLEMS_MAX)
                                break;
                        (void)json_array_append(findings, problem);
                }
        }
        return findings;
}

enum page_level page_fleet_level(const json_t *instance, const json_t *fleet)
{
        const json_t *problems = json_object_get(json_object_get(instance, "status"), "problems"), *problem;
        const char *name = reply_string(fleet, "name");
        enum page_level worst = PAGE_OK;
        size_t n = 0;

        json_foreach(problem, problems) {
                if (n++ == PROBLEMS_MAX)
                        break;
                if (reply_is(problem, "fleet", name))
                        worst = MAX(worst, page_problem_level(problem));
        }
        return worst;
}

bool page_worker_needs_attention(const json_t *worker)
{
        return reply_string(worker, "problem")[0] != '\0';
}
