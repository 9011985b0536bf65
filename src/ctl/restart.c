/* SPDX-License-Identifier: MIT */
/* The command `restart`, and the progress of those that are waited for. */
#include "base/parse.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/everywhere.h"
#include "ctl/exit.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include "ctl/usage.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Has one of the events told how it ended? */
static bool is_told(json_t *events, json_t *change)
{
        json_t *event;
        size_t i;

        json_array_foreach(events, i, event)
        {
                if (strcmp(reply_string(event, "event"), "crashed") == 0 &&
                    strcmp(reply_string(event, "worker"), reply_string(change, "id")) == 0 &&
                    reply_integer(event, "pid") == reply_integer(change, "pid"))
                        return true;
        }
        return false;
}

static void print_change(json_t *change, json_t *events)
{
        const char *state = reply_string(change, "state"), *reason = reply_string(change, "reason");
        char at[SAY_STAMP_MAX];

        if (strcmp(state, "gone") == 0 && is_told(events, change))
                return;
        say_line("%s%s %s%s%s (pid %lld, generation %lld)", say_stamp(at), reply_string(change, "id"),
                 strcmp(state, "gone") == 0 ? "is gone" : state, reason[0] != '\0' ? ": " : "", reason,
                 reply_integer(change, "pid"), reply_integer(change, "generation"));
}

static const char *plural(long long count)
{
        return count == 1 ? "" : "s";
}

static void print_numbers(json_t *fleet)
{
        long long total = reply_integer(fleet, "total"), draining = reply_integer(fleet, "draining");
        const char *waits_for = reply_string(fleet, "waits_for");
        char at[SAY_STAMP_MAX], drains[48] = "";

        if (draining > 0)
                snprintf(drains, sizeof(drains), ", %lld draining", draining);
        say_line("%s%s: %lld of %lld worker%s replaced%s%s%s", say_stamp(at), reply_string(fleet, "name"),
                 reply_integer(fleet, "replaced"), total, plural(total), drains,
                 waits_for[0] != '\0' ? "; " : "", waits_for);
}

/* The fleet of the same name in the reply before, or NULL. */
static json_t *find_fleet(json_t *reply, const char *name)
{
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                if (strcmp(reply_string(fleet, "name"), name) == 0)
                        return fleet;
        }
        return NULL;
}

/* at: a stamp, or "". */
static void print_started(json_t *fleet, const char *at)
{
        long long total = reply_integer(fleet, "total"), superseded = reply_integer(fleet, "superseded");
        const char *waits_for = reply_string(fleet, "waits_for");

        if (superseded > 0)
                say_line("%s%s: starts over, the restart to generation %lld was still running", at,
                         reply_string(fleet, "name"), superseded);
        say_line("%s%s: restart to generation %lld, %lld worker%s to replace%s%s", at,
                 reply_string(fleet, "name"), reply_integer(fleet, "generation"), total, plural(total),
                 waits_for[0] != '\0' ? "; " : "", waits_for);
}

static bool is_same_generation(json_t *a, json_t *b)
{
        return reply_integer(a, "generation") == reply_integer(b, "generation");
}

/* That a restart begins, or begins anew, is told in either view: the reply before may be of another
 * connection. */
static void print_beginnings(json_t *reply, json_t *before)
{
        char at[SAY_STAMP_MAX];
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                json_t *old = find_fleet(before, reply_string(fleet, "name"));
                long long total = reply_integer(fleet, "total");

                if (strcmp(reply_string(fleet, "state"), "running") != 0 ||
                    (old && is_same_generation(fleet, old)))
                        continue;
                screen_release();
                if (!old)
                        print_started(fleet, say_stamp(at));
                else
                        say_line("%s%s: starts over: restart to generation %lld, %lld worker%s to replace",
                                 say_stamp(at), reply_string(fleet, "name"),
                                 reply_integer(fleet, "generation"), total, plural(total));
        }
}

static void print_progress(json_t *reply, json_t *before)
{
        json_t *change, *fleet, *event, *events = json_object_get(reply, "events");
        char at[SAY_STAMP_MAX];
        size_t i;

        json_array_foreach(events, i, event) say_line("%s%s: %s", say_stamp(at), reply_string(event, "level"),
                                                      reply_string(event, "text"));
        json_array_foreach(json_object_get(reply, "changes"), i, change) print_change(change, events);
        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                json_t *old = find_fleet(before, reply_string(fleet, "name"));

                if (strcmp(reply_string(fleet, "state"), "running") != 0 || !old ||
                    !is_same_generation(fleet, old))
                        continue;
                /* An older sqmgr does not tell. */
                if (!json_is_false(json_object_get(fleet, "moved")))
                        print_numbers(fleet);
        }
        fflush(stdout);
}

/* The live view of a terminal: of each fleet a bar, and its workers as `status` has them. It is painted with
 * each reply, and one comes each second. */
struct live {
        bool on;
        usec_t begun_at;
        json_t *reply; /* while it is painted */
};

/* The bar gives way to what stands beside it. */
#define BAR_COLUMNS     30
#define BAR_COLUMNS_MIN 5

static void render_bar(FILE *out, json_t *fleet, usec_t elapsed, const struct view *view)
{
        long long total = reply_integer(fleet, "total"), replaced = reply_integer(fleet, "replaced");
        long long draining = reply_integer(fleet, "draining");
        char before[128], behind[128], drains[48] = "", span[FORMAT_MAX];

        snprintf(before, sizeof(before), "%s: generation %lld [", reply_string(fleet, "name"),
                 reply_integer(fleet, "generation"));
        if (draining > 0)
                snprintf(drains, sizeof(drains), ", %lld draining", draining);
        snprintf(behind, sizeof(behind), "] %lld/%lld replaced%s, %s", replaced, total, drains,
                 format_duration(elapsed - elapsed % USEC_PER_SEC, span, sizeof(span)));
        int room = view->columns - text_width(before) - text_width(behind);
        int columns = MAX(MIN(room, BAR_COLUMNS), BAR_COLUMNS_MIN);
        int full = total > 0 ? (int)(columns * MIN(replaced, total) / total) : columns;
        fputs(before, out);
        for (int i = 0; i < columns; i++)
                fputc(i < full ? '#' : '-', out);
        fprintf(out, "%s\n", behind);
}

static void live_draw(FILE *out, const struct view *view, void *userdata)
{
        const struct live *live = userdata;
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(live->reply, "fleets"), i, fleet)
        {
                render_bar(out, fleet, usec_sub(client_now(), live->begun_at), view);
                if (reply_string(fleet, "waits_for")[0] != '\0') {
                        fputs("  ", out);
                        text_print_wrapped(out, reply_string(fleet, "waits_for"), 2, 2, view->columns);
                }
                (void)render_workers(out, json_object_get(fleet, "workers"),
                                     reply_integer(fleet, "memory_threshold_bytes"), view);
        }
}

static void live_update(struct live *live, json_t *reply)
{
        if (!live->on || !reply)
                return;
        live->reply = reply;
        screen_draw(live_draw, live);
}

static void live_end(struct live *live)
{
        screen_leave();
        live->on = false;
}

static int tell_halt(json_t *fleet)
{
        const char *name = reply_string(fleet, "name"), *error = reply_string(fleet, "error");
        bool any_old = reply_integer(fleet, "outdated") > 0;
        _cleanup_free_ char *text = isatty(STDERR_FILENO) ? strdup(error) : NULL;

        return say_error(
                CTL_FAILED,
                "%s: restart halted, %s; mend what is wrong, then run 'sqmgrctl restart %s' again: %s", name,
                any_old ? "the old workers go on" : "there are no old workers to go on", name,
                text ? reply_show_last_lines(text) : error);
}

/* Says how the restart of one fleet ended, or that it began. */
static int print_outcome(json_t *fleet, bool waited, bool drained)
{
        const char *name = reply_string(fleet, "name"), *state = reply_string(fleet, "state");
        const char *error = reply_string(fleet, "error");
        long long total = reply_integer(fleet, "total"), draining = reply_integer(fleet, "draining");
        char drains[48] = "";

        if (strcmp(state, "stopped") == 0) {
                const char *ordered = reply_string(fleet, "state_text");

                /* A deployment goes on, but whoever reads its log is to see it. */
                return say_error(
                        CTL_DONE,
                        "%s: stopped%s%s, so nothing was restarted: 'sqmgrctl start %s' brings it back", name,
                        ordered[0] != '\0' ? " " : "", ordered, name);
        }
        if (strcmp(state, "running") == 0 && !waited) {
                print_started(fleet, "");
                return CTL_DONE;
        }
        if (strcmp(state, "halted") == 0)
                return tell_halt(fleet);
        if (strcmp(state, "aborted") == 0)
                return say_error(CTL_FAILED, "%s: restart aborted: %s", name, error);
        if (draining > 0)
                snprintf(drains, sizeof(drains), ", %lld draining", draining);
        say_line("%s: restart done, generation %lld is in force: %lld worker%s replaced%s", name,
                 reply_integer(fleet, "generation"), total, plural(total), drained ? " and gone" : drains);
        return CTL_DONE;
}

static int finish(struct ctl *ctl, json_t *reply)
{
        int code = CTL_DONE;
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                const char *state = reply_string(fleet, "state");
                int r = CTL_DONE;

                if (!ctl->json)
                        r = print_outcome(fleet, ctl->wait != CTL_WAIT_NONE, ctl->wait == CTL_WAIT_DRAINED);
                else if (strcmp(state, "halted") == 0 || strcmp(state, "aborted") == 0)
                        r = CTL_FAILED;
                code = MAX(code, r);
        }
        return code;
}

/* The state of sqmgr was lost with it: then it knows nothing of this restart. */
static int check_known(json_t *reply, json_t *before)
{
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                json_t *old = find_fleet(before, reply_string(fleet, "name"));

                if (!old || (strcmp(reply_string(fleet, "state"), "none") != 0 &&
                             reply_integer(fleet, "generation") >= reply_integer(old, "generation")))
                        continue;
                return say_error(
                        CTL_FAILED,
                        "%s: sqmgr has lost its state, and the restart to generation %lld with it: start "
                        "it again",
                        reply_string(fleet, "name"), reply_integer(old, "generation"));
        }
        return CTL_DONE;
}

/* What Restart and Follow are called with; takes over the reference to fleets. */
static json_t *call_parameters(struct ctl *ctl, const struct live *live, json_t *fleets)
{
        static const char *const waits[] = {
                [CTL_WAIT_NONE] = NULL,
                [CTL_WAIT_REPLACED] = "replaced",
                [CTL_WAIT_DRAINED] = "drained",
        };
        json_t *parameters = json_pack("{s:o, s:s?}", "fleets", fleets, "wait", waits[ctl->wait]);

        ctl->newer = live->on ? "workers" : NULL;
        if (live->on)
                json_object_set_new(parameters, "workers", json_true());
        return parameters;
}

/* The connection was lost: goes on with the fleets of the last reply. One that was stopped when it began has
 * nothing to be followed; first: that is yet to be told. */
static int follow(struct ctl *ctl, const struct live *live, json_t *last, bool first)
{
        _cleanup_json_ json_t *names = json_array();
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(last, "fleets"), i, fleet)
        {
                if (strcmp(reply_string(fleet, "state"), "stopped") != 0)
                        json_array_append(names, json_object_get(fleet, "name"));
                else if (first && !ctl->json)
                        print_outcome(fleet, true, false);
        }
        return client_send_again(ctl, "Follow", call_parameters(ctl, live, TAKE_PTR(names)), true);
}

static int call_restart(struct ctl *ctl, const struct live *live)
{
        return client_send(ctl, "Restart", call_parameters(ctl, live, client_fleets(ctl)),
                           ctl->wait != CTL_WAIT_NONE);
}

/* An sqmgr that is older than we, as between an upgrade and its re-exec, tells no workers: what it tells is
 * shown line by line. It has not begun anything; where a restart was followed, CTL_LOST. */
static int call_older(struct ctl *ctl, struct live *live, json_t *last)
{
        live_end(live);
        client_close(ctl);
        return last ? CTL_LOST : call_restart(ctl, live);
}

static int live_begin(struct live *live, struct ctl *ctl)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};

        live->begun_at = client_now();
        /* Elsewhere there is nothing to put in order at the others. */
        int r = client_catch_signals(ctl, signals, live->on ? ELEMENTSOF(signals) : 1);
        if (r == CTL_DONE && live->on)
                screen_enter(false);
        return r;
}

/* What the next reply says, and what became of it: *before is the reply before, and takes its place. */
static int take_reply(struct ctl *ctl, struct live *live, struct varlink_reply *reply, json_t **before)
{
        if (ctl->json)
                reply_print_json(reply->parameters);
        else if (ctl->wait != CTL_WAIT_NONE) {
                print_beginnings(reply->parameters, *before);
                if (!live->on)
                        print_progress(reply->parameters, *before);
        }
        int r = check_known(reply->parameters, *before);
        json_decref(*before);
        *before = json_incref(reply->parameters);
        varlink_reply_free(reply);
        return r;
}

/* Follows the restart to its end; *before is the last reply. */
static int wait_for_end(struct ctl *ctl, struct live *live, json_t **before)
{
        bool continues = true, followed = false, lost = false;
        struct varlink_reply reply;

        while (continues) {
                int r = lost ? follow(ctl, live, *before, !followed) : client_receive(ctl, &reply);

                if (ctl->signal != 0)
                        return CTL_WOKEN;
                if (r == CTL_WOKEN) {
                        live_update(live, *before);
                        continue;
                }
                if (r == CTL_OLDER) {
                        r = call_older(ctl, live, *before);
                        if (r == CTL_DONE)
                                continue;
                }
                if (r == CTL_LOST && !*before)
                        return client_tell_lost(ctl);
                if (r != CTL_DONE && r != CTL_LOST)
                        /* A fleet that is gone from the settings meanwhile is no wrong usage. */
                        return followed && r == CTL_USAGE ? CTL_FAILED : r;
                followed = followed || lost;
                if (lost || r == CTL_LOST) {
                        lost = r == CTL_LOST;
                        continue;
                }
                continues = reply.continues;
                r = take_reply(ctl, live, &reply, before);
                if (r != CTL_DONE)
                        return r;
                live_update(live, *before);
        }
        return CTL_DONE;
}

static int restart_here(struct ctl *ctl)
{
        bool wait = ctl->wait != CTL_WAIT_NONE;
        struct live live = {.on = wait && !ctl->json && screen_is_there()};
        _cleanup_json_ json_t *before = NULL;
        int r = call_restart(ctl, &live);

        if (r == CTL_DONE && wait)
                r = live_begin(&live, ctl);
        if (r == CTL_DONE)
                r = wait_for_end(ctl, &live, &before);
        live_end(&live);
        if (ctl->signal != 0)
                return client_detach(ctl,
                                     "detached, the restart goes on: 'sqmgrctl status --watch' shows it, "
                                     "'sqmgrctl abort' ends it");
        return r != CTL_DONE ? r : finish(ctl, before);
}

int ctl_restart(struct ctl *ctl)
{
        if (ctl->release && !ctl->everywhere)
                return usage_error(ctl->command, "--release goes with --everywhere");
        return ctl->everywhere ? everywhere_restart(ctl) : restart_here(ctl);
}
