/* SPDX-License-Identifier: MIT */
/* Elements shared by several sections of the page. */
#include "web/page_parts.h"
#include "base/argv.h"
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

#define TITLE_MAX 160
/* The worst come first. */
#define PROBLEMS_MAX 1000

struct finding_search {
        const struct page *page;
        page_found found;
        void *userdata;
};

/* Appends a word, quoted for the shell if needed: the name of a file must not inject commands. A word that
 * does not fit is left out. */
static void add_word(char *text, const char *word)
{
        size_t length = strlen(text), at = length;

        if (argv_is_plain(word)) {
                snprintf(text + length, PAGE_COMMAND_MAX - length, " %s", word);
                return;
        }
        if (length + 4 * strlen(word) + sizeof(" ''") > PAGE_COMMAND_MAX)
                return;
        at += (size_t)snprintf(text + at, PAGE_COMMAND_MAX - at, " '");
        for (; *word != '\0'; word++)
                at += (size_t)snprintf(text + at, PAGE_COMMAND_MAX - at, *word == '\'' ? "'\\''" : "%c",
                                       *word);
        snprintf(text + at, PAGE_COMMAND_MAX - at, "'");
}

static enum page_level level_of(const json_t *problem)
{
        return reply_is(problem, "severity", "error")     ? PAGE_ACT
               : reply_is(problem, "severity", "warning") ? PAGE_ATTENTION
                                                          : PAGE_OK;
}

/* Returns a time rather than an age: an age would grow and could move the text below. */
static const char *since_text(const json_t *problem, char text[static PAGE_TIME_MAX])
{
        usec_t since = reply_usec(problem, "since");

        return since == 0 ? "" : PAGE_TIME(since, "since %Y-%m-%d %H:%M:%S UTC", text);
}

static void find_problem(const struct finding_search *search, const json_t *problem)
{
        char since[PAGE_TIME_MAX];

        search->found(
                &(struct page_finding){
                        .level = level_of(problem),
                        .title = reply_string(problem, "summary"),
                        .text = since_text(problem, since),
                        .remedy = reply_string(problem, "remedy"),
                        .command = reply_string(problem, "command"),
                },
                search->userdata);
}

const char *page_service_command(const json_t *instance, char text[static PAGE_COMMAND_MAX])
{
        const char *name = reply_string(instance, "name");
        char unit[160];

        /* A path is the name of an instance of which only the socket is known. */
        text[0] = '\0';
        if (name[0] == '/' || name[0] == '\0')
                return text;
        snprintf(unit, sizeof(unit), "sqmgr@%.128s", name);
        snprintf(text, PAGE_COMMAND_MAX, "systemctl status");
        add_word(text, unit);
        return text;
}

/* Reports an instance that does not answer. The last known state remains visible. */
static void find_away(const struct finding_search *search, const json_t *instance)
{
        const char *error = reply_string(instance, "error");
        char title[TITLE_MAX], age[FORMAT_MAX], text[1024], command[PAGE_COMMAND_MAX];
        bool known = json_is_object(json_object_get(instance, "status"));

        if (json_array_size(search->page->instances) > 1)
                snprintf(title, sizeof(title), "sqmgr %.120s does not answer",
                         reply_string(instance, "name"));
        else
                snprintf(title, sizeof(title), "sqmgr does not answer");
        if (known)
                snprintf(text, sizeof(text),
                         "%.700s%sWorkers keep running without sqmgr. The page shows the state of %s ago.",
                         error, error[0] != '\0' ? ". " : "", reply_seconds(instance, "age_seconds", age));
        else
                snprintf(text, sizeof(text), "%.700s%ssqmgr has not answered yet.", error,
                         error[0] != '\0' ? ". " : "");
        search->found(
                &(struct page_finding){
                        .level = PAGE_ACT,
                        .title = title,
                        .text = text,
                        .remedy = "Check whether the service runs",
                        .command = page_service_command(instance, command),
                },
                search->userdata);
}

static void find_in_instance(const struct finding_search *search, const json_t *instance)
{
        const json_t *status = json_object_get(instance, "status"), *entry;
        size_t n = 0;

        /* Without a connection all other data is old. The page shows old data below and marks it. */
        if (!page_is_current(instance)) {
                find_away(search, instance);
                return;
        }
        json_foreach_in(entry, status, "problems") {
                if (n++ == PROBLEMS_MAX)
                        break;
                find_problem(search, entry);
        }
}

void page_findings(const struct page *page, page_found found, void *userdata)
{
        struct finding_search search = {.page = page, .found = found, .userdata = userdata};
        const json_t *instance;

        json_foreach(instance, page->instances)
                find_in_instance(&search, instance);
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
                        worst = MAX(worst, level_of(problem));
        }
        return worst;
}

bool page_worker_needs_attention(const json_t *worker)
{
        return reply_string(worker, "problem")[0] != '\0';
}
