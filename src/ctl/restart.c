/* SPDX-License-Identifier: MIT */
/* The commands `restart` and `rollback`: show the progress that sqmgr reports. */
#include "base/parse.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/follow.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "wire/reply.h"
#include <stdio.h>
#include <string.h>

struct restart {
        usec_t begun_at;
        bool rollback;
        bool followed; /* the connection was lost; a new sqmgr process may answer */
};

/* Returns true if an event already reports how the worker ended. */
static bool is_reported(json_t *events, json_t *change)
{
        json_t *event;

        json_foreach(event, events)
                if (reply_is(event, "event", "crashed") &&
                    reply_is(event, "worker", reply_string(change, "id")) &&
                    reply_integer(event, "pid") == reply_integer(change, "pid"))
                        return true;
        return false;
}

static void print_change(json_t *change, json_t *events)
{
        const char *state = reply_string(change, "state"), *reason = reply_string(change, "reason");

        if (strcmp(state, "gone") == 0 && is_reported(events, change))
                return;
        output_line("%s%s %s%s%s (pid %lld, generation %lld)", output_stamp(), reply_string(change, "id"),
                    strcmp(state, "gone") == 0 ? "is gone" : state, reason[0] != '\0' ? ": " : "", reason,
                    reply_integer(change, "pid"), reply_integer(change, "generation"));
}

/* Returns text: "" if no old worker is finishing jobs. */
#define DRAINS_MAX 48
static const char *drains_text(json_t *fleet, char text[static DRAINS_MAX])
{
        long long draining = reply_integer(fleet, "draining");

        text[0] = '\0';
        if (draining > 0)
                snprintf(text, DRAINS_MAX, ", %lld draining", draining);
        return text;
}

static void print_numbers(json_t *fleet)
{
        long long total = reply_integer(fleet, "total");
        const char *waits_for = reply_string(fleet, "waits_for");
        char drains[DRAINS_MAX];

        output_line("%s%s: %lld of %lld worker%s replaced%s%s%s", output_stamp(), reply_string(fleet, "name"),
                    reply_integer(fleet, "replaced"), total, plural(total), drains_text(fleet, drains),
                    waits_for[0] != '\0' ? "; " : "", waits_for);
}

/* The fleet of that name in a reply. Returns NULL if reply has none. */
static json_t *find_fleet(json_t *reply, const char *name)
{
        json_t *fleet;

        json_foreach_in(fleet, reply, "fleets")
                if (reply_is(fleet, "name", name))
                        return fleet;
        return NULL;
}

/* The generation that a fleet has left for an earlier one; 0: none. */
static long long left_generation(json_t *fleet)
{
        return reply_integer(fleet, "rolled_back");
}

/* at: a time stamp, or "". */
static void print_started(json_t *fleet, const char *at)
{
        long long total = reply_integer(fleet, "total"), superseded = reply_integer(fleet, "superseded");
        const char *waits_for = reply_string(fleet, "waits_for");

        if (left_generation(fleet) > 0) {
                output_line("%s%s: returns from generation %lld to %lld, %lld worker%s to replace%s%s", at,
                            reply_string(fleet, "name"), left_generation(fleet),
                            reply_integer(fleet, "generation"), total, plural(total),
                            waits_for[0] != '\0' ? "; " : "", waits_for);
                return;
        }
        if (superseded > 0)
                output_line("%s%s: replaces the running restart to generation %lld", at,
                            reply_string(fleet, "name"), superseded);
        output_line("%s%s: restart to generation %lld, %lld worker%s to replace%s%s", at,
                    reply_string(fleet, "name"), reply_integer(fleet, "generation"), total, plural(total),
                    waits_for[0] != '\0' ? "; " : "", waits_for);
}

/* Returns true if the fleet's restart is not the one in the previous reply. The client checks this itself
 * because the previous reply may belong to another connection. */
static bool has_begun(json_t *fleet, json_t *old)
{
        return !old || reply_integer(fleet, "generation") != reply_integer(old, "generation");
}

static void print_beginning(json_t *fleet, json_t *old)
{
        long long total = reply_integer(fleet, "total");

        screen_release();
        if (!old)
                print_started(fleet, output_stamp());
        else
                output_line("%s%s: new restart to generation %lld, %lld worker%s to replace", output_stamp(),
                            reply_string(fleet, "name"), reply_integer(fleet, "generation"), total,
                            plural(total));
}

/* live: print only the beginnings; the picture shows the progress. */
static void print_progress(json_t *reply, json_t *before, bool live)
{
        json_t *fleets = json_object_get(reply, "fleets"), *fleet, *change, *event;
        json_t *events = json_object_get(reply, "events");
        char quoting[REPLY_QUOTING_MAX];

        json_foreach(fleet, fleets) {
                json_t *old = find_fleet(before, reply_string(fleet, "name"));

                if (reply_is(fleet, "state", "running") && has_begun(fleet, old))
                        print_beginning(fleet, old);
        }
        if (live)
                return;
        json_foreach(event, events)
                output_line("%s%s: %s", output_stamp(), reply_string(event, "level"),
                            reply_quoting(event, reply_string(event, "text"), quoting));
        json_foreach_in(change, reply, "changes")
                print_change(change, events);
        json_foreach(fleet, fleets) {
                if (reply_is(fleet, "state", "running") && reply_is_true(fleet, "moved") &&
                    !has_begun(fleet, find_fleet(before, reply_string(fleet, "name"))))
                        print_numbers(fleet);
        }
        fflush(stdout);
}

/* The bar shrinks to make room for the text around it. */
#define BAR_COLUMNS     30
#define BAR_COLUMNS_MIN 5

static void print_bar(FILE *out, json_t *fleet, usec_t elapsed, const struct view *view)
{
        long long total = reply_integer(fleet, "total"), replaced = reply_integer(fleet, "replaced");
        char before[128], behind[128], bar[RENDER_BAR_MAX], drains[DRAINS_MAX], span[FORMAT_MAX];

        snprintf(before, sizeof(before), "%s: generation %lld ", reply_string(fleet, "name"),
                 reply_integer(fleet, "generation"));
        snprintf(behind, sizeof(behind), " %lld/%lld replaced%s, %s", replaced, total,
                 drains_text(fleet, drains),
                 format_duration(elapsed - elapsed % USEC_PER_SEC, span, sizeof(span)));
        int space = view->columns - text_width(before) - text_width(behind) - 2;
        int columns = MAX(MIN(space, BAR_COLUMNS), BAR_COLUMNS_MIN);
        int full = total > 0 ? (int)((double)columns * (double)MAX(MIN(replaced, total), 0) / (double)total)
                             : columns;
        fprintf(out, "%s%s%s\n", before, render_bar(bar, full, columns), behind);
}

/* Returns true for a fleet that the order has no effect on: it was stopped or quieted, or cannot return. */
static bool is_kept(json_t *fleet)
{
        return reply_is(fleet, "state", "stopped") || reply_is(fleet, "state", "quiet") ||
               reply_is(fleet, "state", "not_in_memory");
}

/* For each fleet: a bar, and its workers as in `status`. */
static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct follow *follow = userdata;
        const struct restart *restart = follow->userdata;
        json_t *fleet;

        json_foreach_in(fleet, follow->reply, "fleets") {
                if (is_kept(fleet))
                        continue;
                print_bar(out, fleet, usec_sub(client_now(), restart->begun_at), view);
                render_text(out, reply_string(fleet, "waits_for"), "", view);
                (void)render_workers(out, json_object_get(fleet, "workers"),
                                     reply_integer(fleet, "memory_threshold_bytes"), view);
        }
}

static int report_halt(json_t *fleet)
{
        const char *name = reply_string(fleet, "name");
        bool any_old = reply_integer(fleet, "outdated") > 0 || reply_integer(fleet, "rolled_back") > 0;
        char error[REPLY_QUOTING_MAX];

        return output_error(
                CTL_FAILED,
                "%s: restart halted; %s. Fix the release, then run 'sqmgrctl restart %s'. Reason: %s", name,
                any_old ? "old workers keep running" : "no old workers are left", name,
                reply_quoting(fleet, reply_string(fleet, "error"), error));
}

/* Not an error, so that a deployment continues, but visible in its log. */
static int report_kept(json_t *fleet)
{
        const char *name = reply_string(fleet, "name"), *ordered = reply_string(fleet, "state_text");
        bool quiet = reply_is(fleet, "state", "quiet");

        if (reply_is(fleet, "state", "not_in_memory"))
                return client_report_not_in_memory(json_object_get(fleet, "not_in_memory"), CTL_DONE);
        return output_error(CTL_DONE, "%s: %s%s%s; not restarted. To %s, run 'sqmgrctl %s %s%s'", name,
                            quiet ? "quieted" : "stopped", ordered[0] != '\0' ? " " : "", ordered,
                            quiet ? "restart it and accept jobs again" : "start it",
                            quiet ? "restart" : "start", name, quiet ? " --resume" : "");
}

/* Prints how the restart of one fleet ended, or that it began. */
static int print_outcome(json_t *fleet, const struct ctl *ctl, bool rollback)
{
        bool waited = ctl->wait != CTL_WAIT_NONE, drained = ctl->wait == CTL_WAIT_DRAINED;
        const char *name = reply_string(fleet, "name"), *state = reply_string(fleet, "state");
        char drains[DRAINS_MAX], error[REPLY_QUOTING_MAX];
        long long total = reply_integer(fleet, "total");

        if (is_kept(fleet))
                return report_kept(fleet);
        if (reply_is(fleet, "state", "running") && !waited) {
                print_started(fleet, "");
                return CTL_DONE;
        }
        if (strcmp(state, "halted") == 0)
                return report_halt(fleet);
        if (strcmp(state, "aborted") == 0)
                return output_error(CTL_FAILED, "%s: %s aborted: %s", name, rollback ? "rollback" : "restart",
                                    reply_quoting(fleet, reply_string(fleet, "error"), error));
        if (rollback) {
                output_line(
                        "%s: rolled back from generation %lld to %lld, %lld worker%s replaced%s. New workers "
                        "come from the template in memory until the next restart",
                        name, left_generation(fleet), reply_integer(fleet, "generation"), total,
                        plural(total), drained ? " and gone" : drains_text(fleet, drains));
                return CTL_DONE;
        }
        if (total == 0)
                output_line("%s: restart done; no worker was running, later ones start with generation %lld",
                            name, reply_integer(fleet, "generation"));
        else
                output_line("%s: restart done; generation %lld is current, %lld worker%s replaced%s", name,
                            reply_integer(fleet, "generation"), total, plural(total),
                            drained ? " and gone" : drains_text(fleet, drains));
        return CTL_DONE;
}

static int finish(struct follow *follow)
{
        const struct restart *restart = follow->userdata;
        const struct ctl *ctl = follow->ctl;
        int code = CTL_DONE;
        json_t *fleet;

        json_foreach_in(fleet, follow->reply, "fleets") {
                const char *state = reply_string(fleet, "state");
                int r = CTL_DONE;

                if (!ctl->json)
                        r = print_outcome(fleet, ctl, restart->rollback);
                else if (strcmp(state, "halted") == 0 || strcmp(state, "aborted") == 0)
                        r = CTL_FAILED;
                code = MAX(code, r);
        }
        return code;
}

/* Detects that sqmgr lost its state and no longer knows this restart. */
static int check_known(json_t *reply, json_t *before, const char *command)
{
        json_t *fleet;

        json_foreach_in(fleet, reply, "fleets") {
                json_t *old = find_fleet(before, reply_string(fleet, "name"));

                /* Only a rollback leads to an earlier generation. */
                if (!old || left_generation(fleet) > 0 ||
                    (!reply_is(fleet, "state", "none") &&
                     reply_integer(fleet, "generation") >= reply_integer(old, "generation")))
                        continue;
                return output_error(CTL_FAILED,
                                    "%s: sqmgr lost its state, and with it the %s to generation %lld. Run "
                                    "'sqmgrctl %s %s' again",
                                    reply_string(fleet, "name"), command, reply_integer(old, "generation"),
                                    command, reply_string(fleet, "name"));
        }
        return CTL_DONE;
}

/* The fleets to follow after a lost connection: those of the last reply that were restarted. */
static json_t *followed_fleets(json_t *last)
{
        json_t *names = json_array(), *fleet;

        json_foreach_in(fleet, last, "fleets")
                if (!is_kept(fleet))
                        json_array_append(names, json_object_get(fleet, "name"));
        return names;
}

static int send_call(struct follow *follow)
{
        static const char *const waits[] = {
                [CTL_WAIT_NONE] = NULL,
                [CTL_WAIT_REPLACED] = "replaced",
                [CTL_WAIT_DRAINED] = "drained",
        };
        const struct restart *restart = follow->userdata;
        struct ctl *ctl = follow->ctl;
        json_t *parameters =
                json_pack("{s:o, s:s?, s:s*}", "fleets",
                          follow->reply ? followed_fleets(follow->reply) : client_fleets(ctl), "wait",
                          waits[ctl->wait], "release", follow->reply ? NULL : ctl->release);

        if (follow->live)
                json_object_set_new(parameters, "workers", json_true());
        if (ctl->resume && !follow->reply)
                json_object_set_new(parameters, "resume", json_true());
        if (restart->rollback && follow->reply)
                json_object_set_new(parameters, "rollback", json_true());
        return client_send(ctl,
                           follow->reply       ? "Follow"
                           : restart->rollback ? "Rollback"
                                               : "Restart",
                           parameters, ctl->wait != CTL_WAIT_NONE);
}

static int take_reply(struct follow *follow, json_t *reply)
{
        if (follow->ctl->json)
                output_print_json(reply);
        else if (follow->ctl->wait != CTL_WAIT_NONE)
                print_progress(reply, follow->reply, follow->live);
        int r = check_known(reply, follow->reply, follow->what);
        follow_keep(follow, reply);
        return r;
}

/* Called at the first lost connection: fleets that were not restarted are not followed. */
static void print_kept(const struct follow *follow)
{
        json_t *fleet;

        json_foreach_in(fleet, follow->reply, "fleets")
                if (is_kept(fleet) && !follow->ctl->json)
                        (void)report_kept(fleet);
}

static int fail(struct follow *follow, int code)
{
        struct restart *restart = follow->userdata;
        struct ctl *ctl = follow->ctl;

        if (code == CTL_LOST && !follow->reply)
                return client_report_lost(ctl);
        /* If the fleet was removed from the configuration meanwhile, the command line is not wrong. */
        if (code != CTL_LOST)
                return restart->followed && code == CTL_USAGE ? CTL_FAILED : code;
        if (!restart->followed)
                print_kept(follow);
        restart->followed = true;
        if (follow_away(follow) == CTL_DONE)
                return CTL_DONE;
        return output_error(CTL_CONNECT,
                            "cannot reconnect to '%s': %s; the %s continues when sqmgr runs again. To "
                            "follow it then, run 'sqmgrctl status'",
                            ctl->socket, strerrordesc_np(ctl->connect_error), follow->what);
}

static int run(struct ctl *ctl, bool rollback)
{
        bool wait = ctl->wait != CTL_WAIT_NONE;
        struct restart restart = {.begun_at = client_now(), .rollback = rollback};
        struct follow follow = {.ctl = ctl,
                                .userdata = &restart,
                                .send = send_call,
                                .take = take_reply,
                                .fail = fail,
                                .draw = draw,
                                .end = finish,
                                .what = rollback ? "rollback" : "restart",
                                .live = wait && !ctl->json && screen_is_there()};
        int r = send_call(&follow);

        if (r != CTL_DONE)
                return r;
        follow.until = ctl->deadline;
        if (rollback && wait)
                follow.detached =
                        "detached; the rollback continues. To follow it, run 'sqmgrctl status --watch'";
        else if (wait)
                follow.detached =
                        "detached; the restart continues. To follow it, run 'sqmgrctl status --watch'; to "
                        "end it, 'sqmgrctl abort'";
        return follow_run(&follow);
}

int ctl_restart(struct ctl *ctl)
{
        return run(ctl, false);
}

int ctl_rollback(struct ctl *ctl)
{
        return run(ctl, true);
}
