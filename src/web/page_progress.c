/* SPDX-License-Identifier: MIT */
/* Activity: restarts with their steps, and workers that start or stop without a restart. */
#include "web/html.h"
#include "web/page_parts.h"

/* Maximum number of steps shown: those of the last workers matter. */
#define STEPS_MAX ((size_t)12)

static const char *rollout_state(const json_t *fleet)
{
        return reply_string(json_object_get(fleet, "rollout"), "state");
}

static bool is_halted(const json_t *fleet)
{
        return strcmp(rollout_state(fleet), "halted") == 0;
}

static bool has_progress(const json_t *fleet)
{
        const char *state = rollout_state(fleet);

        return strcmp(state, "running") == 0 || strcmp(state, "halted") == 0 ||
               (strcmp(state, "done") == 0 &&
                page_integer(json_object_get(fleet, "rollout"), "draining") > 0);
}

static bool event_is_of(const json_t *event, const char *socket, const char *fleet)
{
        return reply_is(event, "socket", socket) && reply_is(event, "fleet", fleet);
}

static void put_step(FILE *out, const json_t *event, const struct page *page)
{
        fputs("<li>", out);
        page_event_time(out, event, page, false);
        fputs(" ", out);
        page_event_text(out, event);
        fputs("</li>", out);
}

/* Writes the steps of the fleet's newest restart, found in page->events, which has the newest event first.
 * The steps of several restarts are collapsed. */
static void put_steps(FILE *out, const struct page *page, const char *socket, const char *fleet, bool open)
{
        const json_t *event, *begin = NULL, *steps[STEPS_MAX];
        size_t n = 0;

        json_foreach(event, page->events) {
                if (!event_is_of(event, socket, fleet))
                        continue;
                if (reply_is(event, "event", "rollout-started")) {
                        begin = event;
                        break;
                }
                if (n < STEPS_MAX)
                        steps[n] = event;
                n++;
        }
        if (n == 0 && !begin)
                return;
        size_t n_steps = n + (begin ? 1 : 0);
        fputs(open ? "<details data-key=\"steps\" open=\"\">" : "<details data-key=\"steps\">", out);
        html_print(out, "<summary>%zu step%s</summary><ol class=\"steps\">", n_steps, plural(n_steps));
        if (begin)
                put_step(out, begin, page);
        if (n > STEPS_MAX)
                html_print(out, "<li class=\"skipped\">%zu more, see Events</li>", n - STEPS_MAX);
        for (size_t i = MIN(n, STEPS_MAX); i > 0; i--)
                put_step(out, steps[i - 1], page);
        fputs("</ol></details>", out);
}

/* Writes why a restart halted, and the command that the problem of the fleet names. */
static void put_halt(FILE *out, const json_t *instance, const json_t *fleet)
{
        const json_t *rollout = json_object_get(fleet, "rollout"), *problem;
        const char *name = reply_string(fleet, "name"), *error = reply_string(rollout, "error");

        if (error[0] != '\0')
                html_print(out, "<p class=\"note\" data-key=\"reason\">Reason: %s</p>", error);
        json_foreach_in(problem, json_object_get(instance, "status"), "problems") {
                if (!reply_is(problem, "code", "rollout-halted") || !reply_is(problem, "fleet", name))
                        continue;
                page_remedy(out, reply_string(problem, "remedy"), reply_string(problem, "command"));
                return;
        }
}

static void put_restart(FILE *out, const struct page *page, const json_t *instance, const json_t *fleet,
                        bool single)
{
        const json_t *rollout = json_object_get(fleet, "rollout");
        long long replaced = page_integer(rollout, "replaced"), outdated = page_integer(rollout, "outdated"),
                  draining = page_integer(rollout, "draining");
        const char *name = reply_string(fleet, "name"), *socket = reply_string(instance, "socket");
        bool halted = is_halted(fleet);
        long long left = page_integer(rollout, "rolled_back");

        html_print(out,
                   "<section class=\"restart\" data-key=\"restart %s %s\"><h3>%s: restart to generation %lld "
                   "%s</h3>",
                   socket, name, name, left > 0 ? left : page_integer(rollout, "generation"),
                   rollout_state(fleet));
        html_print(out, "<p class=\"progress\"><b>%lld replaced, %lld outdated, %lld draining</b>", replaced,
                   outdated, draining);
        page_bar(out, (double)replaced, (double)(replaced + outdated), halted ? "over" : "fine");
        fputs("</p>", out);
        if (halted)
                put_halt(out, instance, fleet);
        page_note(out, NULL, reply_string(fleet, "waits_for"));
        put_steps(out, page, socket, name, single);
        fputs("</section>", out);
}

/* Returns true if anything was written. */
static bool put_passers(FILE *out, const char *socket, const json_t *fleet)
{
        static const char *const states[] = {"starting", "quiet", "stopping"};
        const char *name = reply_string(fleet, "name");
        bool any = false;

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                long long n = page_integer(fleet, states[i]);

                if (n <= 0)
                        continue;
                if (!any)
                        html_print(out, "<p class=\"passers\" data-key=\"passers %s %s\"><b>%s</b>: ", socket,
                                   name, name);
                html_print(out, "%s%lld %s", any ? ", " : "", n, states[i]);
                any = true;
        }
        if (any)
                fputs("</p>", out);
        return any;
}

static size_t count_restarts(const struct page *page)
{
        const json_t *instance, *fleet;
        size_t n = 0;

        page_foreach_fleet(page, instance, fleet)
                n += has_progress(fleet);
        return n;
}

static void put_restarts(FILE *out, const struct page *page, bool halted, bool single)
{
        const json_t *instance, *fleet;

        page_foreach_fleet(page, instance, fleet)
                if (has_progress(fleet) && is_halted(fleet) == halted)
                        put_restart(out, page, instance, fleet, single);
}

void page_progress(FILE *out, const struct page *page)
{
        const json_t *instance, *fleet;
        size_t n_restarts = count_restarts(page), n_fleets = 0;
        bool any = n_restarts > 0;

        page_section(out, "activity", "Activity");
        put_restarts(out, page, true, n_restarts == 1);
        put_restarts(out, page, false, n_restarts == 1);
        page_foreach_fleet(page, instance, fleet) {
                n_fleets++;
                any |= put_passers(out, reply_string(instance, "socket"), fleet);
        }
        if (!any)
                html_print(out, "<p class=\"none\" data-key=\"none\">%s</p>",
                           n_fleets == 0 ? "Not known."
                                         : "No restart in progress; no workers starting or stopping.");
        fputs("</section>", out);
}
