/* SPDX-License-Identifier: MIT */
/* The table of problems, and a list of those that are known; see the header. */
#include "advice/problem.h"
#include "base/argv.h"
#include "base/memstream.h"
#include "base/text.h"
#include "model/names.h"
#include <stdarg.h>

static const char *const severity_names[] = {[PROBLEM_OK] = "ok",
                                             [PROBLEM_NOTICE] = "notice",
                                             [PROBLEM_WARNING] = "warning",
                                             [PROBLEM_ERROR] = "error"};
DEFINE_ENUM_NAMES(problem_severity_name, enum problem_severity, _PROBLEM_SEVERITY_MAX, severity_names)

#define PROBLEM_KIND(code, name, severity, cause, remedy, command)                                           \
        [PROBLEM_##code] = {name, PROBLEM_##severity, cause, remedy, command},
const struct problem_kind problem_kinds[_PROBLEM_MAX] = {PROBLEMS(PROBLEM_KIND)};
#undef PROBLEM_KIND

static void problem_free(struct problem *problem)
{
        free(problem->about);
        free(problem->text);
        free((void *)problem->command);
        free((void *)problem->remedy);
        free((void *)problem->quoted);
}

static bool own_quoted(const struct quoted **quoted)
{
        bool any = *quoted && !quoted_is_empty(*quoted);
        struct quoted *copy = any ? malloc(sizeof(*copy)) : NULL;

        if (copy)
                *copy = **quoted;
        *quoted = copy;
        return copy || !any;
}

void problems_clear(struct problems *problems)
{
        for (size_t i = 0; i < problems->n; i++)
                problem_free(&problems->list[i]);
        free(problems->list);
        *problems = (struct problems){0};
}

/* Searches backwards from the end: the problems of one fleet are added one after another. */
static struct problem *find_of_workers(struct problems *problems, const struct problem *problem)
{
        for (size_t i = problems->n; i > 0 && problems->list[i - 1].fleet == problem->fleet; i--)
                if (problems->list[i - 1].code == problem->code && problems->list[i - 1].worker)
                        return &problems->list[i - 1];
        return NULL;
}

static void count_worker(struct problem *found, const struct problem *problem)
{
        found->count++;
        found->severity = MAX(found->severity, problem->severity);
        if (found->since != 0 && problem->since != 0)
                found->since = MIN(found->since, problem->since);
}

static void append(struct problems *problems, const struct problem *problem, const char *about,
                   const char *format, va_list arguments)
{
        struct problem added = *problem;

        added.count = 1;
        bool complete = text_copy(about, &added.about) >= 0;
        complete &= text_copy(problem->command, (char **)&added.command) >= 0;
        complete &= text_copy(problem->remedy, (char **)&added.remedy) >= 0;
        complete &= own_quoted(&added.quoted);
        if (vasprintf(&added.text, format, arguments) < 0)
                added.text = NULL;
        if (!complete || !added.text || !ARRAY_RESERVE(problems->list, problems->n, problems->allocated)) {
                problems->lost = true;
                problem_free(&added);
                return;
        }
        problems->list[problems->n++] = added;
}

void problems_add(struct problems *problems, const struct problem *problem, const char *about,
                  const char *format, ...)
{
        struct problem *found = problem->worker ? find_of_workers(problems, problem) : NULL;
        struct problem raised = *problem;
        va_list arguments;

        if (found) {
                count_worker(found, problem);
                return;
        }
        raised.severity = MAX(problem->severity, problem_kinds[problem->code].severity);
        va_start(arguments, format);
        append(problems, &raised, about, format, arguments);
        va_end(arguments);
}

void problems_note(struct problems *problems, enum problem_severity severity, const char *about,
                   const char *remedy, const char *format, ...)
{
        const struct problem problem = {.code = PROBLEM_NONE, .severity = severity, .remedy = remedy};
        va_list arguments;

        va_start(arguments, format);
        append(problems, &problem, about, format, arguments);
        va_end(arguments);
}

void problems_quote(struct problems *problems, const struct quoted *quoted)
{
        const struct quoted *copy = quoted;

        if (problems->n == 0 || problems->lost)
                return;
        problems->lost |= !own_quoted(&copy);
        problems->list[problems->n - 1].quoted = copy;
}

void problems_move(struct problems *from, const struct fleet *fleet, struct problems *to)
{
        size_t kept = 0;

        to->lost |= from->lost;
        for (size_t i = 0; i < from->n; i++) {
                bool moves = from->list[i].fleet == fleet;

                if (moves && ARRAY_RESERVE(to->list, to->n, to->allocated)) {
                        to->list[to->n++] = from->list[i];
                } else {
                        to->lost |= moves;
                        from->list[kept++] = from->list[i];
                }
        }
        from->n = kept;
}

const struct problem *problems_find(const struct problems *problems, enum problem_code code)
{
        for (size_t i = 0; i < problems->n; i++)
                if (problems->list[i].code == code)
                        return &problems->list[i];
        return NULL;
}

void problems_sort(struct problems *problems)
{
        _cleanup_free_ struct problem *sorted = calloc(problems->n + 1, sizeof(*sorted));
        size_t n = 0;

        if (!sorted)
                return;
        for (int severity = _PROBLEM_SEVERITY_MAX - 1; severity >= 0; severity--)
                for (size_t i = 0; i < problems->n; i++)
                        if (problems->list[i].severity == (enum problem_severity)severity)
                                sorted[n++] = problems->list[i];
        if (n > 0)
                memcpy(problems->list, sorted, n * sizeof(*sorted));
}

const char *problem_about(const struct problem *problem, char text[static PROBLEM_ABOUT_MAX])
{
        if (problem->about)
                snprintf(text, PROBLEM_ABOUT_MAX, "%s", problem->about);
        else if (problem->worker && problem->count > 1)
                snprintf(text, PROBLEM_ABOUT_MAX, "%s and %u more", WORKER_ID(problem->worker),
                         problem->count - 1);
        else if (problem->worker)
                snprintf(text, PROBLEM_ABOUT_MAX, "%s", WORKER_ID(problem->worker));
        else if (problem->fleet)
                snprintf(text, PROBLEM_ABOUT_MAX, "fleet '%s'", problem->fleet->settings->name);
        else
                snprintf(text, PROBLEM_ABOUT_MAX, "sqmgr");
        return text;
}

static bool is_word(const char *at, size_t length, const char *word)
{
        return length == strlen(word) && strncmp(at, word, length) == 0;
}

/* Writes one word of a command; FLEET, WORKER, COUNT and CONFIG are replaced. */
static void put_word(FILE *out, const struct problem *problem, const char *word, size_t length,
                     const char *config_path)
{
        const struct fleet *fleet = problem->fleet;

        if (fleet && is_word(word, length, "FLEET"))
                argv_put_quoted(out, fleet->settings->name);
        else if (problem->worker && is_word(word, length, "WORKER"))
                argv_put_quoted(out, WORKER_ID(problem->worker));
        else if (fleet && is_word(word, length, "COUNT"))
                fprintf(out, "%u", fleet->settings->active_process_count);
        else if (is_word(word, length, "CONFIG"))
                argv_put_quoted(out, config_path);
        else
                fwrite(word, 1, length, out);
}

const char *problem_remedy(const struct problem *problem)
{
        return problem->remedy || problem->code == PROBLEM_NONE ? problem->remedy
                                                                : problem_kinds[problem->code].remedy;
}

static const char *command_of(enum problem_code code)
{
        return code == PROBLEM_NONE ? "" : problem_kinds[code].command ?: "";
}

char *problem_command(const struct problem *problem, const char *instance, const char *config_path)
{
        const char *word = problem->command ?: command_of(problem->code);
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        for (bool first = true; out && *word != '\0'; first = false) {
                size_t length = strcspn(word, " ");

                put_word(out, problem, word, length, config_path);
                if (first && instance && is_word(word, length, "sqmgrctl")) {
                        fputs(instance[0] == '/' ? " -s " : " -i ", out);
                        argv_put_quoted(out, instance);
                }
                word += length;
                if (*word == ' ')
                        fputc(*word++, out);
        }
        return memstream_close(out, &text) < 0 ? NULL : text;
}
