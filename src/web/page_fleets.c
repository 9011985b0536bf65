/* SPDX-License-Identifier: MIT */
/* Fleets and their workers. Workers with problems, and workers that are starting or stopping, are visible at
 * once; others are collapsed. */
#include "web/html.h"
#include "web/page_parts.h"

/* Maximum of visible workers in a fleet with collapsed workers. */
#define UNFOLDED_MAX 12
/* With up to this many workers on the page, nothing is collapsed initially. */
#define SMALL_MAX 8

#define WHY_MAX 640

/* Higher shares are limited to this. */
#define SHARE_MAX 100.0

/* Order of the workers. */
enum rank { RANK_TROUBLE, RANK_OVER, RANK_MOVES, RANK_SETTLED, _RANK_MAX };

static double memory_share(const json_t *worker, long long threshold)
{
        return threshold > 0
                       ? MIN((double)page_integer(worker, "memory_bytes") / (double)threshold, SHARE_MAX)
                       : 0;
}

static enum rank worker_rank(const json_t *worker, long long threshold)
{
        const char *state = reply_worker_state(worker), *code = reply_string(worker, "waits_for_code");

        if (page_worker_needs_attention(worker))
                return RANK_TROUBLE;
        if (memory_share(worker, threshold) >= 1)
                return RANK_OVER;
        /* Waits for Redis and for fresh heartbeats concern all workers and are reported once, elsewhere. */
        bool waits = reply_string(worker, "waits_for")[0] != '\0' && strcmp(code, "redis") != 0 &&
                     strcmp(code, "fresh-beat") != 0;
        if (strcmp(state, "active") == 0 && !waits &&
            !json_is_number(json_object_get(worker, "ready_seconds")))
                return RANK_SETTLED;
        return RANK_MOVES;
}

static const char *share_kind(double share)
{
        return share >= 1 ? "over" : share >= 0.9 ? "near" : "fine";
}

/* Writes the worker's id. The fleet's name in the id can be hidden on a narrow screen, because the heading
 * shows it. */
static void put_id(FILE *out, const char *id)
{
        const char *slash = strrchr(id, '/');
        char fleet[256];

        if (!slash || (size_t)(slash - id) >= sizeof(fleet)) {
                html_print(out, "<th scope=\"row\"><span class=\"of\"></span>%s</th>", id);
                return;
        }
        snprintf(fleet, sizeof(fleet), "%.*s", (int)(slash - id), id);
        html_print(out, "<th scope=\"row\"><span class=\"of\">%s</span>%s</th>", fleet, slash);
}

static void put_busy(FILE *out, const json_t *worker)
{
        long long concurrency = page_integer(worker, "concurrency"), busy = page_integer(worker, "busy");

        if (concurrency > 0)
                html_print(out, "<td class=\"number\">%lld/%lld</td>", busy, concurrency);
        else if (!json_is_integer(json_object_get(worker, "busy")) || !reply_has_heartbeat(worker))
                fputs("<td class=\"number\">-</td>", out);
        else
                html_print(out, "<td class=\"number\">%lld</td>", busy);
}

static void put_memory(FILE *out, const json_t *worker, long long threshold)
{
        double share = memory_share(worker, threshold);
        char memory[FORMAT_MAX];

        html_print(out, "<td class=\"number memory\"><data value=\"%lld\">%s</data>",
                   page_integer(worker, "memory_bytes"), reply_memory(worker, memory));
        if (threshold > 0 && share > 0) {
                html_print(out, " <span class=\"share %s\">%lld%%</span>", share_kind(share),
                           (long long)(share * 100));
                page_bar(out, share, 1, share_kind(share));
        }
        fputs("</td>", out);
}

static void put_worker(FILE *out, const json_t *worker, long long threshold)
{
        const char *state = reply_worker_state(worker), *id = reply_string(worker, "id");
        char why[WHY_MAX], span[FORMAT_MAX];

        reply_worker_why(worker, why, sizeof(why));
        html_print(out, "<tr data-key=\"%s\" class=\"%s\">", id, why[0] != '\0' ? "has-why" : "");
        put_id(out, id);
        html_print(out, "<td class=\"state %s\">%s <span class=\"for\">%s</span></td>", state, state,
                   reply_worker_since(worker, span));
        put_busy(out, worker);
        put_memory(out, worker, threshold);
        html_print(out, "<td class=\"number spare\">%s</td>", reply_seconds(worker, "uptime_seconds", span));
        html_print(out, "<td class=\"number spare\">%lld</td><td class=\"number spare\">%lld</td></tr>",
                   page_integer(worker, "generation"), page_integer(worker, "pid"));
        if (why[0] != '\0')
                html_print(out,
                           "<tr class=\"why\" data-key=\"%s why\"><td colspan=\"4\">%s</td><td "
                           "class=\"spare\" colspan=\"3\"></td></tr>",
                           id, why);
}

/* Writes workers `from` up to but excluding `to`, in display order. */
static void put_workers(FILE *out, const json_t *fleet, size_t from, size_t to)
{
        long long threshold = page_integer(fleet, "memory_threshold_bytes");
        const json_t *worker;
        size_t at = 0;

        html_print(
                out,
                "<table class=\"workers\"><caption>Workers of %s</caption><thead><tr><th "
                "scope=\"col\">Worker</th>"
                "<th scope=\"col\">State</th><th scope=\"col\" class=\"number\">Busy</th><th scope=\"col\" "
                "class=\"number memory\">Memory</th><th scope=\"col\" class=\"number spare\">Uptime</th>"
                "<th scope=\"col\" class=\"number spare\">Generation</th>"
                "<th scope=\"col\" class=\"number spare\">PID</th></tr></thead><tbody>",
                reply_string(fleet, "name"));
        for (int rank = 0; rank < _RANK_MAX; rank++)
                json_foreach_in(worker, fleet, "workers") {
                        if (worker_rank(worker, threshold) != (enum rank)rank)
                                continue;
                        if (at >= from && at < to)
                                put_worker(out, worker, threshold);
                        at++;
                }
        fputs("</tbody></table>", out);
}

struct census {
        size_t all;
        size_t settled;
        size_t outdated, ready; /* of the settled workers */
        long long busy, concurrency;
        bool reports_busy;
        long long largest_worker;
};

static struct census take_census(const json_t *fleet)
{
        struct census census = {0};
        long long threshold = page_integer(fleet, "memory_threshold_bytes");
        const json_t *worker;

        json_foreach_in(worker, fleet, "workers") {
                census.all++;
                bool settled = worker_rank(worker, threshold) == RANK_SETTLED;

                census.settled += settled;
                census.outdated += settled && reply_is_true(worker, "outdated");
                census.ready += settled && reply_is_true(worker, "ready");
                census.busy += page_integer(worker, "busy");
                census.concurrency += page_integer(worker, "concurrency");
                census.reports_busy |= json_is_integer(json_object_get(worker, "busy"));
                census.largest_worker = MAX(census.largest_worker, page_integer(worker, "memory_bytes"));
        }
        return census;
}

/* Writes the collapsed workers, if any. */
static void put_folded(FILE *out, const json_t *fleet, const struct census *census, bool open)
{
        size_t moving = census->all - census->settled, seen = MIN(moving, UNFOLDED_MAX),
               folded = census->all - seen;

        if (folded == 0)
                return;
        fputs(open ? "<details data-key=\"rest\" open=\"\"><summary>"
                   : "<details data-key=\"rest\"><summary>",
              out);
        if (seen > 0 && moving > seen)
                html_print(out, "%zu more: ", folded);
        html_print(out, "%zu %sactive%s", census->settled, seen > 0 && moving == seen ? "more " : "",
                   census->ready == census->settled ? " and ready" : "");
        if (census->ready < census->settled)
                html_print(out, ", %zu of them ready", census->ready);
        if (census->outdated > 0)
                html_print(out, ", %zu of them outdated", census->outdated);
        if (moving > seen)
                html_print(out, "; %zu waiting, starting or stopping", moving - seen);
        fputs("</summary>", out);
        put_workers(out, fleet, seen, census->all);
        fputs("</details>", out);
}

static void put_memory_fact(FILE *out, const json_t *fleet, const struct census *census)
{
        long long threshold = page_integer(fleet, "memory_threshold_bytes");
        double share = threshold > 0 ? MIN((double)census->largest_worker / (double)threshold, SHARE_MAX) : 0;
        char memory[FORMAT_MAX], limit[FORMAT_MAX];

        html_print(out, "<li><b><data value=\"%lld\">%s</data></b> memory%s",
                   page_integer(fleet, "memory_bytes"), reply_memory(fleet, memory),
                   threshold > 0 && census->largest_worker > 0 ? ", " : "");
        if (threshold > 0 && census->largest_worker > 0) {
                html_print(out, "<span class=\"share %s\">largest %lld%% of %s</span>", share_kind(share),
                           (long long)(share * 100), format_size((uint64_t)threshold, limit, sizeof(limit)));
                page_bar(out, share, 1, share_kind(share));
        }
        fputs("</li>", out);
}

static void put_facts(FILE *out, const json_t *fleet, const struct census *census)
{
        static const char *const others[] = {"starting", "hung", "quiet", "stopping"};
        long long active = page_integer(fleet, "active"), target = page_integer(fleet, "target");
        const char *scaled = reply_string(fleet, "scaled_text");
        char restart[REPLY_ROLLOUT_MAX];

        html_print(out, "<ul class=\"facts\"><li>%s<b>%lld of %lld</b> active", reply_at_zero(fleet), active,
                   target);
        if (scaled[0] != '\0' && !json_is_object(json_object_get(fleet, "scaling")))
                html_print(out, " (file: %lld; %s)", page_integer(fleet, "configured"), scaled);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (page_integer(fleet, others[i]) > 0)
                        html_print(out, ", %lld %s", page_integer(fleet, others[i]), others[i]);
        page_bar(out, (double)active, (double)target, active >= target ? "fine" : "over");
        fputs("</li>", out);
        if (census->reports_busy) {
                html_print(out, "<li><b>%lld of %lld</b> busy", census->busy, census->concurrency);
                page_bar(out, (double)census->busy, (double)census->concurrency, "fine");
        } else {
                fputs(census->all > 0 ? "<li>running jobs not reported" : "<li>no workers", out);
        }
        fputs("</li>", out);
        put_memory_fact(out, fleet, census);
        reply_rollout(json_object_get(fleet, "rollout"), restart);
        html_print(out, "<li><b>generation %lld</b>%s%s</li></ul>", page_integer(fleet, "generation"),
                   restart[0] != '\0' ? ", " : "", restart);
}

static void put_notes(FILE *out, const json_t *fleet)
{
        const json_t *culprits;
        char template[REPLY_TEMPLATE_MAX], scaling[REPLY_SCALING_MAX], span[FORMAT_MAX];
        char trial[REPLY_TRIAL_MAX];

        page_note(out, "waits", reply_string(fleet, "waits_for"));
        page_note(out, "trial", reply_trial(fleet, trial));
        page_note(out, "growth", reply_string(json_object_get(fleet, "growth"), "text"));
        page_note(out, "template", reply_template(json_object_get(fleet, "template"), template));
        page_note(out, "scaling", reply_scaling(json_object_get(fleet, "scaling"), scaling));
        json_foreach_in(culprits, fleet, "culprits")
                html_print(out, "<p class=\"note\">%s ago: %s</p>",
                           reply_seconds(culprits, "age_seconds", span), reply_string(culprits, "text"));
}

static void put_name(FILE *out, const json_t *fleet, const json_t *instance, bool several)
{
        const char *state = reply_string(fleet, "state");
        char span[FORMAT_MAX];

        fputs("<div class=\"head\"><div class=\"name\">", out);
        page_sign(out, page_is_current(instance) ? page_fleet_level(instance, fleet) : PAGE_UNKNOWN);
        html_print(out, "<h3>%s</h3> <span class=\"kind\">%s", reply_string(fleet, "name"),
                   reply_string(fleet, "framework"));
        if (state[0] != '\0' && strcmp(state, "running") != 0)
                html_print(out, ", %s", state);
        if (!page_is_current(instance))
                html_print(out, ", as of %s ago", reply_seconds(instance, "age_seconds", span));
        if (several)
                html_print(out, ", %s", reply_string(instance, "name"));
        fputs("</span></div>", out);
}

static void put_fleet(FILE *out, const json_t *fleet, const json_t *instance, bool several, bool small)
{
        struct census census = take_census(fleet);
        size_t seen = MIN(census.all - census.settled, UNFOLDED_MAX);

        html_print(out,
                   "<section class=\"fleet\" data-key=\"%s %s\" data-instance=\"%s\" data-fleet=\"%s\" "
                   "data-threshold=\"%lld\" data-target=\"%lld\">",
                   reply_string(instance, "socket"), reply_string(fleet, "name"),
                   reply_string(instance, "name"), reply_string(fleet, "name"),
                   page_integer(fleet, "memory_threshold_bytes"), page_integer(fleet, "target"));
        put_name(out, fleet, instance, several);
        put_facts(out, fleet, &census);
        fputs("</div>", out);
        put_notes(out, fleet);
        if (seen > 0)
                put_workers(out, fleet, 0, seen);
        put_folded(out, fleet, &census, small);
        fputs("</section>", out);
}

static size_t count_workers(const struct page *page)
{
        const json_t *instance, *fleet;
        size_t n = 0;

        page_foreach_fleet(page, instance, fleet)
                n += json_array_size(json_object_get(fleet, "workers"));
        return n;
}

void page_fleets(FILE *out, const struct page *page)
{
        bool several = json_array_size(page->instances) > 1, small = count_workers(page) <= SMALL_MAX;
        const json_t *instance, *fleet;
        size_t n = 0;

        page_section(out, "fleets", "Fleets");
        page_foreach_fleet(page, instance, fleet) {
                put_fleet(out, fleet, instance, several, small);
                n++;
        }
        if (n == 0)
                fputs("<p class=\"none\">No fleets.</p>", out);
        fputs("</section>", out);
}
