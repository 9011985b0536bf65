/* SPDX-License-Identifier: MIT */
/* The overall state in one sentence, and the findings. */
#include "web/html.h"
#include "web/page_parts.h"

/* More findings would hide the first of them. */
#define SHOWN_MAX 12
/* A headline of more bytes is set smaller. */
#define LONG 60

static const char *const level_names[] = {
        [PAGE_UNKNOWN] = "unknown", [PAGE_OK] = "ok", [PAGE_ATTENTION] = "attention", [PAGE_ACT] = "act"};
static_assert(ELEMENTSOF(level_names) == _PAGE_LEVEL_MAX, "a name for each level");

/* Icons of the same shapes for the browser tab. */
static const char *const icons[] = {
        [PAGE_UNKNOWN] = "data:,",
        [PAGE_OK] = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
                    "%3Ccircle cx='12' cy='12' r='11' fill='%231f7a46'/%3E%3C/svg%3E",
        [PAGE_ATTENTION] =
                "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
                "%3Cpath d='M12 1.5L23.5 22H.5z' fill='%23c07d10'/%3E%3C/svg%3E",
        [PAGE_ACT] = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
                     "%3Crect x='1' y='1' width='22' height='22' rx='3' fill='%23c2362b'/%3E%3C/svg%3E",
};
DEFINE_ENUM_NAMES(page_icon, enum page_level, _PAGE_LEVEL_MAX, icons)

enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX])
{
        unsigned n[_PAGE_LEVEL_MAX] = {0};
        enum page_level level = PAGE_OK;
        const json_t *finding, *worst = NULL;

        if (json_array_size(page->instances) == 0) {
                snprintf(text, PAGE_HEADLINE_MAX,
                         "No instance of sqmgr was found. Start one with 'systemctl enable --now "
                         "sqmgr@USER'.");
                return PAGE_ATTENTION;
        }
        json_foreach(finding, page->findings) {
                enum page_level its_level = page_problem_level(finding);

                n[its_level]++;
                if (its_level > level) {
                        level = its_level;
                        worst = finding;
                }
        }
        if (level == PAGE_OK)
                snprintf(text, PAGE_HEADLINE_MAX, "Healthy.");
        else if (n[level] == 1)
                snprintf(text, PAGE_HEADLINE_MAX, "%.*s.", PAGE_HEADLINE_MAX - 3,
                         reply_string(worst, "summary"));
        else if (level == PAGE_ATTENTION || n[PAGE_ATTENTION] == 0)
                snprintf(text, PAGE_HEADLINE_MAX, "%u %s.", n[level],
                         level == PAGE_ACT ? "errors" : "warnings");
        else
                snprintf(text, PAGE_HEADLINE_MAX, "%u errors, %u warning%s.", n[level], n[PAGE_ATTENTION],
                         plural(n[PAGE_ATTENTION]));
        return level;
}

static void put_finding(FILE *out, const json_t *finding, bool is_headline)
{
        usec_t since = reply_usec(finding, "since");
        const char *text = reply_string(finding, "text");
        char time[PAGE_TIME_MAX];

        /* A time rather than an age: an age would grow and could move the text below. */
        if (since > 0)
                text = PAGE_TIME(since, "since %Y-%m-%d %H:%M:%S UTC", time);
        fputs(is_headline ? "<li class=\"single\">" : "<li>", out);
        if (!is_headline) {
                page_sign(out, page_problem_level(finding));
                html_print(out, "<h2>%s</h2>", reply_string(finding, "summary"));
        }
        if (text[0] != '\0')
                html_print(out, "<p class=\"text\">%s</p>", text);
        page_remedy(out, reply_string(finding, "remedy"), reply_string(finding, "command"));
        fputs("</li>", out);
}

static void put_findings(FILE *out, const struct page *page)
{
        size_t n = json_array_size(page->findings), n_serious = 0, shown = 0;
        const json_t *finding;

        if (n == 0)
                return;
        json_foreach(finding, page->findings)
                n_serious += page_problem_level(finding) > PAGE_OK;
        fputs("<ul class=\"findings\">", out);
        /* Notices are listed, too, although they do not change the headline. The headline is the title of a
         * single error or warning. */
        for (int level = PAGE_ACT; level >= PAGE_OK; level--)
                json_foreach(finding, page->findings)
                        if ((int)page_problem_level(finding) == level && shown++ < SHOWN_MAX)
                                put_finding(out, finding, n_serious == 1 && level > PAGE_OK);
        if (n > SHOWN_MAX)
                html_print(out, "<li>and %zu more</li>", n - SHOWN_MAX);
        fputs("</ul>", out);
}

/* Sums over all instances. */
struct sum {
        size_t fleets;
        size_t short_fleets;
        size_t running, halted; /* restarts */
        long long active; /* per fleet at most its target, so that a surplus does not hide a lack elsewhere */
        long long surplus; /* active beyond the targets */
        long long target, busy;
};

static void add_fleet(struct sum *sum, const json_t *fleet)
{
        const json_t *worker, *rollout = json_object_get(fleet, "rollout");
        long long active = page_integer(fleet, "active"), target = page_integer(fleet, "target");

        sum->fleets++;
        sum->short_fleets += active < target;
        sum->active += MIN(active, target);
        sum->surplus += MAX(0, active - target);
        sum->target += target;
        sum->running += reply_is(rollout, "state", "running");
        sum->halted += reply_is(rollout, "state", "halted");
        json_foreach_in(worker, fleet, "workers")
                sum->busy += page_integer(worker, "busy");
}

static void put_restarts(FILE *out, size_t n, const char *state)
{
        if (n > 0)
                html_print(out, ", %zu restart%s %s", n, plural(n), state);
}

static void put_sum(FILE *out, const struct page *page)
{
        struct sum sum = {0};
        bool heard = true;
        const json_t *instance, *fleet;

        json_foreach(instance, page->instances)
                heard &= page_is_current(instance);
        page_foreach_fleet(page, instance, fleet)
                add_fleet(&sum, fleet);
        if (sum.fleets == 0)
                return;
        html_print(out, "<p class=\"sum\">%lld of %lld workers active in %zu fleet%s", sum.active, sum.target,
                   sum.fleets, plural(sum.fleets));
        if (sum.short_fleets > 0)
                html_print(out, " (%zu short of workers)", sum.short_fleets);
        if (sum.surplus > 0)
                html_print(out, ", %lld more than needed", sum.surplus);
        html_print(out, ", %lld job%s running", sum.busy, plural(sum.busy));
        put_restarts(out, sum.running, "running");
        put_restarts(out, sum.halted, "halted");
        fputs(heard ? "</p>" : "; as of the last answer</p>", out);
}

void page_verdict(FILE *out, const struct page *page)
{
        char headline[PAGE_HEADLINE_MAX], iso[PAGE_TIME_MAX], clock[PAGE_TIME_MAX];
        enum page_level level = page_headline(page, headline);

        html_print(out,
                   "<header id=\"verdict\" class=\"%s\" data-title=\"%s - sqmgr%s%s\" data-icon=\"%s\"><div "
                   "class=\"inner\">",
                   level_names[level], headline, page->host[0] != '\0' ? " on " : "", page->host,
                   icons[level]);
        html_print(
                out,
                "<p class=\"asof\"><span class=\"brand\">sqmgr%s%s</span> <span id=\"asof\">as of "
                "<time datetime=\"%s\">%s</time> UTC</span><strong id=\"lost\" role=\"status\"></strong></p>",
                page->host[0] != '\0' ? " on " : "", page->host, PAGE_TIME(page->now, PAGE_TIME_ISO, iso),
                PAGE_TIME(page->now, PAGE_TIME_CLOCK, clock));
        fputs("<div class=\"headline\" role=\"status\">", out);
        page_sign(out, level);
        html_print(out, "<h1 class=\"%s\">%s</h1></div>", strlen(headline) > LONG ? "long" : "", headline);
        put_sum(out, page);
        put_findings(out, page);
        fputs("</div></header>", out);
}
