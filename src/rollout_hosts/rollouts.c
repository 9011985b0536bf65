/* SPDX-License-Identifier: MIT */
/* Handles GetRollouts. */
#include "rollout_hosts/rollouts.h"
#include "base/argv.h"
#include "daemon/api/handler.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/world.h"
#include "rollout_hosts/group.h"
#include "rollout_hosts/group_orders.h"
#include <stdio.h>
#include <string.h>

/* A younger view is shown without calling Redis. */
#define AGE_USEC USEC_PER_SEC

/* A call of GetRollouts that waits for Redis. */
struct rollout_call {
        struct control *control;
        struct groups *groups; /* NULL: the call is for no fleet with a group */
        struct call *call;
        char **fleets; /* owned: fleet names */
        usec_t since;  /* older views are not used */
        struct rollout_call *next;
};

static double seconds(usec_t usec)
{
        return (double)(usec / USEC_PER_MSEC) / 1000.0;
}

static json_t *render_counts(const struct rollout_counts *counts)
{
        return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)counts->total, "replaced",
                         (json_int_t)counts->replaced, "draining", (json_int_t)counts->draining, "failed",
                         (json_int_t)counts->failed);
}

/* Counts the hosts of the rollout as those of a fleet are counted. */
static struct rollout_counts count_hosts(const struct group_view *view)
{
        struct rollout_counts counts = {0};

        for (size_t i = 0; i < view->n_hosts; i++) {
                const struct rollout_host *host = &view->hosts[i];

                counts.total += host->lease != HOST_LEASE_NONE;
                counts.replaced += host->lease == HOST_LEASE_DONE;
                counts.draining += host->lease == HOST_LEASE_DONE && rollout_host_drains(host);
                counts.failed += host->lease == HOST_LEASE_FAILED || host->lease == HOST_LEASE_LOST;
        }
        return counts;
}

static json_t *render_host(const struct rollout_host *host, const char *here)
{
        bool progresses = host->lease == HOST_LEASE_ROLLING || host->lease == HOST_LEASE_WAITING;
        bool bad = host->lease == HOST_LEASE_FAILED || host->lease == HOST_LEASE_LOST;

        return json_pack(
                "{s:o, s:s, s:f, s:f, s:o, s:b, s:o, s:b, s:o}", "host", varlink_text(host->name), "state",
                host_lease_name(host->lease), "seconds", seconds(host->state_usec), "seen_seconds",
                seconds(host->seen_usec), "progress", varlink_text(progresses ? host->text : ""), "drained",
                (int)(host->lease == HOST_LEASE_DONE && !rollout_host_drains(host)), "error",
                varlink_text(bad ? host->text : ""), "here", (int)(strcmp(host->name, here) == 0), "counts",
                host->lease != HOST_LEASE_WAITING && host->counts_known ? render_counts(&host->counts)
                                                                        : json_null());
}

static int compare_hosts(const void *left, const void *right)
{
        const struct rollout_host *a = left, *b = right;

        return strcmp(a->name, b->name);
}

static json_t *render_hosts(const struct group_view *view, const char *here)
{
        _cleanup_json_ json_t *list = json_array();

        if (view->n_hosts > 0)
                qsort(view->hosts, view->n_hosts, sizeof(*view->hosts), compare_hosts);
        for (size_t i = 0; i < view->n_hosts; i++)
                if (view->hosts[i].lease != HOST_LEASE_NONE &&
                    json_array_append_new(list, render_host(&view->hosts[i], here)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

/* Returns the names in `left`, each preceded by a blank, as a list. */
static json_t *render_left(const char *left)
{
        _cleanup_json_ json_t *list = json_array();
        char text[ROLLOUT_TEXT_MAX + 1], *rest = text;

        snprintf(text, sizeof(text), "%s", left);
        for (const char *name; (name = strsep(&rest, " "));)
                if (name[0] != '\0' && json_array_append_new(list, varlink_text(name)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

static bool is_answered(struct host_group *group, usec_t now)
{
        return group_reader(group, now) && group->error.text[0] == '\0';
}

/* Returns the last view, or an empty one if Redis does not answer and the last view has no rollout: there may
 * be one now. */
static const struct group_view *view_of(struct host_group *group, usec_t now)
{
        static const struct group_view nothing;

        return group->view.rollout.state == GROUP_NONE && !is_answered(group, now) ? &nothing : &group->view;
}

/* Returns the rollout of the view; without a view, the one that this host knows. */
static struct rollout_reply rollout_of(const struct host_group *group, const struct group_view *view)
{
        const struct rollout_group *rule = &group->rule;
        struct rollout_reply rollout = {.number = rule->number, .state = rule->state};

        return view->hosts ? view->rollout : rollout;
}

static json_t *render_group(struct host_group *group, usec_t now)
{
        const struct group_view *view = view_of(group, now);
        struct rollout_reply rollout = rollout_of(group, view);
        const char *here = links_host_name(&group->groups->persist->runtime->links);
        char pause[GROUP_ERROR_MAX] = "", waits_for[GROUP_ERROR_MAX + 16] = "";
        struct error_report trouble;

        if (group_trouble(group, &trouble)->text[0] == '\0')
                rollout_group_pause_text(&group->rule, now, pause, sizeof(pause));
        if (pause[0] != '\0')
                snprintf(waits_for, sizeof(waits_for), "this host %s", pause);
        if (view->hosts)
                rollout.age_usec += usec_sub(now, view->at);
        usec_t left = rollout.state == GROUP_RUNNING
                              ? rollout_reply_left_usec(&rollout, view->hosts, view->n_hosts)
                              : USEC_INFINITY;
        struct rollout_counts counts = count_hosts(view);
        json_t *object = json_pack(
                "{s:o, s:o, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "fleet",
                varlink_text(group->fleet->settings->name), "group", varlink_text(group->name), "epoch",
                (json_int_t)rollout.number, "release", varlink_text(rollout.release), "state",
                group_state_name(rollout.state), "error", varlink_text(rollout.error), "age_seconds",
                rollout.number > 0 && view->hosts ? json_real(seconds(rollout.age_usec)) : json_null(),
                "left_seconds", left != USEC_INFINITY ? json_real(seconds(left)) : json_null(),
                "hosts_at_once", varlink_text(rollout.asked), "began_by", varlink_text(rollout.by), "trouble",
                varlink_text(trouble.text), "waits_for", varlink_text(waits_for), "left",
                render_left(rollout.left), "hosts", render_hosts(view, here), "counts",
                view->hosts ? render_counts(&counts) : json_null());
        return quoted_put(object, &trouble.quoted);
}

/* Returns the group of the fleet with this name; NULL: no group any more. */
static struct host_group *group_of(const struct control *control, const char *name)
{
        const struct fleet *fleet = world_fleet(control->host.world, name);

        return fleet ? fleet->group : NULL;
}

static json_t *render(const struct rollout_call *asker, usec_t now)
{
        _cleanup_json_ json_t *list = json_array();

        for (char **name = asker->fleets; *name; name++) {
                struct host_group *group = group_of(asker->control, *name);

                if (group && json_array_append_new(list, render_group(group, now)) < 0)
                        return NULL;
        }
        return json_pack("{s:O}", "rollouts", list);
}

static void on_shown(const struct rollout_answer *answer, void *userdata)
{
        struct host_group *group = userdata;
        struct group_view view = {.at = clock_now(CLOCK_MONOTONIC)};

        if (!group_answered(group))
                return;
        group->shows = false;
        group->view.at = view.at;
        wakeup_arm(group->groups->persist->runtime->wakeup);
        group->error = answer->error ? *answer->error : (struct error_report){0};
        if (!answer->reply)
                return;
        const size_t n = (answer->n - _ROLLOUT_REPLY_MAX) / ROLLOUT_HOST_WORDS;
        view.rollout = *answer->reply;
        view.hosts = calloc(n + 1, sizeof(*view.hosts));
        if (!view.hosts)
                return;
        for (size_t i = 0; i < n; i++) {
                int r = rollout_reply_host(answer->words, answer->n, i, &view.hosts[view.n_hosts]);

                if (r == -ENOENT)
                        break;
                view.n_hosts += r == 0;
        }
        free(group->view.hosts);
        group->view = view;
}

/* Returns true if each view is young enough or unavailable. Calls the script for the other views; the
 * answer arms the wakeup of the loop, which runs this again. */
static bool is_known(const struct rollout_call *asker, usec_t now)
{
        static const char *const words[] = {"show", NULL};
        bool known = true;

        for (char **name = asker->fleets; *name; name++) {
                struct host_group *group = group_of(asker->control, *name);

                if (!group || !group_reader(group, now) || group->view.at >= asker->since)
                        continue;
                known = false;
                if (!group->shows)
                        group->shows = group_call(group, NULL, words, on_shown, group) == 0;
        }
        return known;
}

static void rollout_call_free(struct rollout_call *asker)
{
        argv_free(asker->fleets);
        free(asker);
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        struct rollout_call *asker = userdata;

        LIST_UNLINK(asker->groups->calls, asker);
        rollout_call_free(asker);
}

static void answer(struct rollout_call *asker, usec_t now)
{
        if (!is_known(asker, now))
                return;
        if (asker->groups)
                LIST_UNLINK(asker->groups->calls, asker);
        server_reply(asker->call, render(asker, now), false);
        rollout_call_free(asker);
}

void rollouts_answer(void *self, usec_t now)
{
        const struct groups *groups = self;
        struct rollout_call *next;

        for (struct rollout_call *asker = groups->calls; asker; asker = next) {
                next = asker->next;
                answer(asker, now);
        }
}

/* Creates a call for the named fleets that have a group. Returns NULL if the call was answered with an
 * error. */
static struct rollout_call *rollout_call_new(struct call *call, const struct handler_fleets *list)
{
        struct rollout_call *asker = calloc(1, sizeof(*asker));
        size_t n = 0;

        if (!asker || !(asker->fleets = calloc(list->n_fleets + 1, sizeof(*asker->fleets)))) {
                free(asker);
                server_reply(call, NULL, false);
                return NULL;
        }
        for (size_t i = 0; i < list->n_fleets; i++) {
                const char *name = list->fleets[i]->settings->name;

                if (list->fleets[i]->group) {
                        asker->groups = list->fleets[i]->group->groups;
                        asker->fleets[n] = strdup(name);
                        if (asker->fleets[n++])
                                continue;
                        server_reply(call, NULL, false);
                } else if (list->all) {
                        continue;
                } else {
                        group_refuse_none(call, list->fleets[i]);
                }
                rollout_call_free(asker);
                return NULL;
        }
        return asker;
}

void handle_get_rollouts(struct control *control, struct call *call, json_t *parameters, usec_t now)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        struct rollout_call *asker = rollout_call_new(call, &list);
        if (!asker)
                return;
        asker->control = control;
        asker->call = call;
        asker->since = usec_sub(now, AGE_USEC);
        if (asker->groups) {
                asker->next = asker->groups->calls;
                asker->groups->calls = asker;
                server_keep(call, on_cancelled, asker);
        }
        answer(asker, now);
}
