/* SPDX-License-Identifier: MIT */
/* Findings: problems, their severity, and how to fix them. */
#include "web/page_findings.h"
#include "base/argv.h"
#include <string.h>

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
