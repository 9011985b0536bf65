/* SPDX-License-Identifier: MIT */
/* The commands that show replies until something has ended: `status` and `events`, once or continuously,
 * `restart` and `rollback` until sqmgr has carried them out. By one call with many replies, or by the same
 * call each second; after the connection was lost they reconnect. */
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "wire/reply.h"
#include <poll.h>
#include <signal.h>

#define REPEAT_USEC USEC_PER_SEC
/* Maximum time and interval of reconnect attempts. */
#define AWAY_USEC  (30 * USEC_PER_SEC)
#define RETRY_USEC (250 * USEC_PER_MSEC)

struct follow {
        struct ctl *ctl;
        /* Sends the call by client_send(). */
        int (*send)(struct follow *follow);
        /* Shows a reply, keeps it by keep(), and sets ended if the wait is over. */
        int (*take)(struct follow *follow, json_t *reply);
        /* Called instead of take() when no reply came. CTL_LOST was not printed yet. Returns CTL_DONE to
         * repeat the call. */
        int (*fail)(struct follow *follow, int code);
        /* If live: paints the last reply. userdata is the struct follow. */
        void (*draw)(FILE *out, const struct view *view, void *userdata);
        int (*end)(struct follow *follow); /* prints the outcome; may be NULL */
        const char *what;     /* name of the operation that continues without us, "restart"; NULL: none */
        const char *detached; /* printed when a signal ends the wait; NULL: a signal is the normal end */
        bool each_second;     /* repeat the call; else one call has all replies */
        bool live; /* paint the last reply; each second: on the whole terminal, where `q` quits, and errors
                    * are kept in why */
        bool rollback;

        bool ended;
        bool lost; /* the connection was lost; of events: since the last reply */
        usec_t begun_at;
        usec_t next_at; /* earliest time of the next call */
        double last_at; /* time of the last printed event */
        json_t *reply;  /* the last reply, owned; may be NULL */
        char why[512];  /* why reply is not current; "": it is */
};

/* Replaces the last reply by a new reference to reply. */
static void keep(struct follow *follow, json_t *reply)
{
        json_decref(follow->reply);
        follow->reply = json_incref(reply);
}

/* Called by fail() for a lost connection: prints that once. Returns CTL_DONE while there is time to
 * reconnect, then CTL_LOST. */
static int await_reconnect(struct follow *follow)
{
        struct ctl *ctl = follow->ctl;
        char span[FORMAT_MAX + 8] = "";
        usec_t now = client_now();

        follow->lost = true;
        if (ctl->again_until == 0) {
                ctl->again_until =
                        follow->what ? MIN(usec_add(now, AWAY_USEC), ctl->deadline) : ctl->deadline;
                if (ctl->again_until != USEC_INFINITY) {
                        memcpy(span, " for ", 6);
                        format_duration(usec_sub(ctl->again_until, now), span + 5, FORMAT_MAX);
                }
                if (follow->what)
                        output_error(CTL_LOST, "connection to sqmgr lost; the %s continues; reconnecting%s",
                                     follow->what, span);
                else
                        output_error(CTL_LOST, "connection to sqmgr lost; reconnecting%s", span);
        }
        /* Delay the first attempt, too: a peer that accepts and closes at once must not cause a busy loop. */
        follow->next_at = usec_add(now, RETRY_USEC);
        return now < ctl->again_until ? CTL_DONE : CTL_LOST;
}

static void redraw(struct follow *follow)
{
        if (!follow->live || !follow->reply)
                return;
        screen_enter(follow->each_second);
        screen_draw(follow->draw, follow);
}

/* Returns true if `q` was pressed. */
static bool take_keys(struct ctl *ctl)
{
        char keys[64];
        struct pollfd poll_fd = {.fd = ctl->key_fd, .events = POLLIN};

        if (ctl->key_fd < 0 || poll(&poll_fd, 1, 0) <= 0)
                return false;
        ssize_t n = read(ctl->key_fd, keys, sizeof(keys));
        if (n <= 0) {
                ctl->key_fd = -1;
                return false;
        }
        return memchr(keys, 'q', (size_t)n) || memchr(keys, 'Q', (size_t)n);
}

/* Returns CTL_WOKEN if a signal or a key came first. */
static int get_reply(struct follow *follow, struct varlink_reply *ret)
{
        struct ctl *ctl = follow->ctl;
        usec_t now = client_now();
        int r = CTL_DONE;

        if (now < follow->next_at && client_wait(ctl, follow->next_at - now) != CTL_DONE)
                return CTL_WOKEN;
        if (follow->live && follow->each_second && follow->reply) {
                if (ctl->again_until == 0)
                        follow->why[0] = '\0';
                output_errors_to(follow->why, sizeof(follow->why));
        }
        if (ctl->fd < 0)
                r = follow->send(follow);
        if (r == CTL_DONE)
                r = client_receive(ctl, ret);
        if (r == CTL_LOST && follow->each_second && ctl->again_until == 0)
                r = client_report_lost(ctl);
        output_errors_to(NULL, 0);
        return r;
}

static int step(struct follow *follow)
{
        struct varlink_reply reply = {0};
        struct ctl *ctl = follow->ctl;
        int r = get_reply(follow, &reply);

        follow->ended = take_keys(ctl) || ctl->signal != 0;
        if (r == CTL_WOKEN || follow->ended) {
                varlink_reply_free(&reply);
                if (!follow->ended)
                        redraw(follow);
                return CTL_DONE;
        }
        bool again = r != CTL_DONE || !reply.continues;
        if (again) {
                client_close(ctl);
                follow->next_at = follow->each_second ? usec_add(client_now(), REPEAT_USEC) : 0;
        }
        if (r != CTL_DONE) {
                r = follow->fail(follow, r);
                if (r == CTL_DONE && follow->each_second)
                        redraw(follow);
                return r;
        }
        follow->ended = again && !follow->each_second;
        r = follow->take(follow, reply.parameters);
        varlink_reply_free(&reply);
        if (r == CTL_DONE)
                redraw(follow);
        return r;
}

/* Runs until the wait is over. The first call may have been sent already. Returns an exit code and releases
 * the last reply. */
static int run(struct follow *follow)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
        struct ctl *ctl = follow->ctl;
        int r = CTL_DONE;

        /* Without a live picture only SIGINT needs handling: nothing on the terminal must be restored. */
        if (follow->live || follow->detached)
                r = client_catch_signals(ctl, signals, follow->live ? ELEMENTSOF(signals) : 1);
        if (follow->live && follow->each_second && isatty(STDIN_FILENO))
                ctl->key_fd = STDIN_FILENO;
        redraw(follow);
        while (r == CTL_DONE && !follow->ended)
                r = step(follow);
        screen_leave();
        if (ctl->signal != 0 && (follow->detached || !follow->reply))
                r = client_detach(ctl, follow->detached);
        else if (r == CTL_DONE && follow->end)
                r = follow->end(follow);
        json_decref(follow->reply);
        return r;
}

static void draw_status(FILE *out, const struct view *view, void *userdata)
{
        const struct follow *follow = userdata;

        /* Omit the heading if there is little room. */
        if (!view->brief)
                fprintf(out, "%.8s, updated each second; %s quits\n", output_stamp(),
                        isatty(STDIN_FILENO) ? "q" : "Ctrl-C");
        if (follow->why[0] != '\0') {
                fputs(view->colour ? RENDER_RED : "", out);
                text_print_wrapped(out, follow->why, 0, 2, view->columns);
                fprintf(out, "%sState of that time; reconnecting. q quits.\n\n",
                        view->colour ? RENDER_PLAIN : "");
        }
        (void)render_status(out, follow->reply, view);
}

static int send_status(struct follow *follow)
{
        return client_send(follow->ctl, "GetStatus", json_pack("{s:o}", "fleets", client_fleets(follow->ctl)),
                           false);
}

/* A live picture stays, with the reason why it is not current. */
static int fail_status(struct follow *follow, int code)
{
        return follow->live && follow->reply ? CTL_DONE : code;
}

static int take_status(struct follow *follow, json_t *reply)
{
        const struct ctl *ctl = follow->ctl;
        struct view view = screen_view();
        int r = CTL_DONE;

        if (follow->reply && !follow->live && !ctl_has(ctl, OPTION_JSON))
                putchar('\n');
        keep(follow, reply);
        if (!follow->live) {
                if (!ctl_has(ctl, OPTION_JSON))
                        r = render_status(stdout, reply, &view);
                else
                        output_print_json(reply);
                fflush(stdout);
        }
        follow->ended = !ctl_has(ctl, OPTION_WATCH) || ferror(stdout);
        return r;
}

int ctl_status(struct ctl *ctl)
{
        struct follow follow = {.ctl = ctl,
                                .send = send_status,
                                .take = take_status,
                                .fail = fail_status,
                                .draw = draw_status,
                                .each_second = true,
                                .live = ctl_has(ctl, OPTION_WATCH) && !ctl_has(ctl, OPTION_JSON) &&
                                        screen_is_there()};

        return run(&follow);
}

static int send_events(struct follow *follow)
{
        struct ctl *ctl = follow->ctl;
        bool worker = ctl->n_arguments > 0 && strchr(ctl->arguments[0], '/');
        json_t *parameters = worker ? json_pack("{s:s}", "worker", ctl->arguments[0])
                                    : json_pack("{s:o}", "fleets", client_fleets(ctl));

        return client_send(ctl, "GetEvents", parameters, ctl_has(ctl, OPTION_FOLLOW));
}

/* After a reconnect, a new sqmgr process does not have the earlier events. The same process sends them again,
 * so events that were printed already are skipped. */
static int take_events(struct follow *follow, json_t *reply)
{
        json_t *events = json_object_get(reply, "events"), *event;
        struct view view = screen_view();
        double after = follow->lost ? follow->last_at : 0;
        size_t i, first = 0, n = json_array_size(events);

        follow->lost = false;
        if (follow->ctl->lines < n && after == 0)
                first = n - (size_t)follow->ctl->lines;
        json_array_foreach(events, i, event)
        {
                double at = json_number_value(json_object_get(event, "at"));

                if (i < first || at <= after)
                        continue;
                follow->last_at = MAX(follow->last_at, at);
                if (ctl_has(follow->ctl, OPTION_JSON))
                        output_print_json(event);
                else
                        render_event(stdout, event, &view);
        }
        fflush(stdout);
        return CTL_DONE;
}

static int fail_events(struct follow *follow, int code)
{
        struct ctl *ctl = follow->ctl;

        if (code != CTL_LOST)
                return code;
        if (!ctl_has(ctl, OPTION_FOLLOW) || ferror(stdout))
                return client_report_lost(ctl);
        if (await_reconnect(follow) == CTL_DONE)
                return CTL_DONE;
        return output_error(CTL_CONNECT, "cannot reconnect to '%s': %s", ctl->socket,
                            strerrordesc_np(ctl->connect_error));
}

int ctl_events(struct ctl *ctl)
{
        struct follow follow = {.ctl = ctl, .send = send_events, .take = take_events, .fail = fail_events};

        return run(&follow);
}

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

/* at: a time stamp, or "". */
static void print_started(json_t *fleet, const char *at)
{
        const char *name = reply_string(fleet, "name"), *waits_for = reply_string(fleet, "waits_for");
        long long total = reply_integer(fleet, "total"), superseded = reply_integer(fleet, "superseded");
        long long generation = reply_integer(fleet, "generation"), left = reply_integer(fleet, "rolled_back");
        const char *and = waits_for[0] != '\0' ? "; " : "";

        if (left > 0) {
                output_line("%s%s: returns from generation %lld to %lld, %lld worker%s to replace%s%s", at,
                            name, left, generation, total, plural(total), and, waits_for);
                return;
        }
        if (superseded > 0)
                output_line("%s%s: replaces the running restart to generation %lld", at, name, superseded);
        output_line("%s%s: restart to generation %lld, %lld worker%s to replace%s%s", at, name, generation,
                    total, plural(total), and, waits_for);
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
        char before[128], behind[128], drains[DRAINS_MAX], span[FORMAT_MAX];

        snprintf(before, sizeof(before), "%s: generation %lld ", reply_string(fleet, "name"),
                 reply_integer(fleet, "generation"));
        snprintf(behind, sizeof(behind), " %lld/%lld replaced%s, %s", replaced, total,
                 drains_text(fleet, drains),
                 format_duration(elapsed - elapsed % USEC_PER_SEC, span, sizeof(span)));
        int space = view->columns - text_width(before) - text_width(behind) - 2;
        int columns = MAX(MIN(space, BAR_COLUMNS), BAR_COLUMNS_MIN);
        int full = total > 0 ? (int)((double)columns * (double)MAX(MIN(replaced, total), 0) / (double)total)
                             : columns;
        fprintf(out, "%s[%.*s%.*s]%s\n", before, full, "##############################", columns - full,
                "------------------------------", behind);
}

/* Returns true for a fleet that the order has no effect on: it was stopped or quieted, or cannot return. */
static bool is_kept(json_t *fleet)
{
        return reply_is(fleet, "state", "stopped") || reply_is(fleet, "state", "quiet") ||
               reply_is(fleet, "state", "not_in_memory");
}

/* For each fleet: a bar, and its workers as in `status`. */
static void draw_restart(FILE *out, const struct view *view, void *userdata)
{
        const struct follow *follow = userdata;
        json_t *fleet;

        json_foreach_in(fleet, follow->reply, "fleets") {
                if (is_kept(fleet))
                        continue;
                print_bar(out, fleet, usec_sub(client_now(), follow->begun_at), view);
                render_text(out, reply_string(fleet, "waits_for"), "", view);
                (void)render_workers(out, json_object_get(fleet, "workers"),
                                     reply_integer(fleet, "memory_threshold_bytes"), view);
        }
}

/* Both sentences are no error, so that a deployment continues, but visible in its log. */
static int report_kept(json_t *fleet)
{
        const char *name = reply_string(fleet, "name"), *ordered = reply_string(fleet, "state_text");
        const char *blank = ordered[0] != '\0' ? " " : "";

        if (reply_is(fleet, "state", "not_in_memory"))
                return client_report_not_in_memory(json_object_get(fleet, "not_in_memory"), CTL_DONE);
        if (reply_is(fleet, "state", "quiet"))
                return output_error(
                        CTL_DONE,
                        "%s: quieted%s%s; not restarted. To restart it and accept jobs again, run "
                        "'sqmgrctl restart %s --resume'",
                        name, blank, ordered, name);
        return output_error(CTL_DONE, "%s: stopped%s%s; not restarted. To start it, run 'sqmgrctl start %s'",
                            name, blank, ordered, name);
}

static int report_failure(json_t *fleet, const char *what)
{
        const char *name = reply_string(fleet, "name");
        char error[REPLY_QUOTING_MAX];

        reply_quoting(fleet, reply_string(fleet, "error"), error);
        if (reply_is(fleet, "state", "aborted"))
                return output_error(CTL_FAILED, "%s: %s aborted: %s", name, what, error);
        if (reply_integer(fleet, "outdated") > 0 || reply_integer(fleet, "rolled_back") > 0)
                return output_error(CTL_FAILED,
                                    "%s: restart halted; old workers keep running. Fix the release, then run "
                                    "'sqmgrctl restart %s'. Reason: %s",
                                    name, name, error);
        return output_error(CTL_FAILED,
                            "%s: restart halted; no old workers are left. Fix the release, then run "
                            "'sqmgrctl restart %s'. Reason: %s",
                            name, name, error);
}

static void report_done(json_t *fleet, bool rollback, bool drained)
{
        const char *name = reply_string(fleet, "name");
        long long total = reply_integer(fleet, "total"), generation = reply_integer(fleet, "generation");
        char drains[DRAINS_MAX];
        const char *old = drained ? " and gone" : drains_text(fleet, drains);

        if (rollback)
                output_line(
                        "%s: rolled back from generation %lld to %lld, %lld worker%s replaced%s. New workers "
                        "come from the template in memory until the next restart",
                        name, reply_integer(fleet, "rolled_back"), generation, total, plural(total), old);
        else if (total == 0)
                output_line("%s: restart done; no worker was running, later ones start with generation %lld",
                            name, generation);
        else
                output_line("%s: restart done; generation %lld is current, %lld worker%s replaced%s", name,
                            generation, total, plural(total), old);
}

static bool has_failed(json_t *fleet)
{
        return reply_is(fleet, "state", "halted") || reply_is(fleet, "state", "aborted");
}

/* Prints how the restart of each fleet ended, or that it began. */
static int finish(struct follow *follow)
{
        const struct ctl *ctl = follow->ctl;
        int code = CTL_DONE;
        json_t *fleet;

        json_foreach_in(fleet, follow->reply, "fleets") {
                if (has_failed(fleet))
                        code = ctl_has(ctl, OPTION_JSON) ? CTL_FAILED : report_failure(fleet, follow->what);
                else if (ctl_has(ctl, OPTION_JSON))
                        continue;
                else if (is_kept(fleet))
                        (void)report_kept(fleet);
                else if (reply_is(fleet, "state", "running") && ctl->wait == CTL_WAIT_NONE)
                        print_started(fleet, "");
                else
                        report_done(fleet, follow->rollback, ctl->wait == CTL_WAIT_DRAINED);
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
                if (!old || reply_integer(fleet, "rolled_back") > 0 ||
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

static int send_restart(struct follow *follow)
{
        static const char *const waits[] = {
                [CTL_WAIT_NONE] = NULL,
                [CTL_WAIT_REPLACED] = "replaced",
                [CTL_WAIT_DRAINED] = "drained",
        };
        struct ctl *ctl = follow->ctl;
        json_t *parameters =
                json_pack("{s:o, s:s?, s:s*}", "fleets",
                          follow->reply ? followed_fleets(follow->reply) : client_fleets(ctl), "wait",
                          waits[ctl->wait], "release", follow->reply ? NULL : ctl->release);

        if (follow->live)
                json_object_set_new(parameters, "workers", json_true());
        if (ctl_has(ctl, OPTION_RESUME) && !follow->reply)
                json_object_set_new(parameters, "resume", json_true());
        if (follow->rollback && follow->reply)
                json_object_set_new(parameters, "rollback", json_true());
        return client_send(ctl,
                           follow->reply      ? "Follow"
                           : follow->rollback ? "Rollback"
                                              : "Restart",
                           parameters, ctl->wait != CTL_WAIT_NONE);
}

static int take_restart(struct follow *follow, json_t *reply)
{
        if (ctl_has(follow->ctl, OPTION_JSON))
                output_print_json(reply);
        else if (follow->ctl->wait != CTL_WAIT_NONE)
                print_progress(reply, follow->reply, follow->live);
        int r = check_known(reply, follow->reply, follow->what);
        keep(follow, reply);
        return r;
}

static int fail_restart(struct follow *follow, int code)
{
        struct ctl *ctl = follow->ctl;
        json_t *fleet;

        if (code == CTL_LOST && !follow->reply)
                return client_report_lost(ctl);
        /* If the fleet was removed from the configuration meanwhile, the command line is not wrong. */
        if (code != CTL_LOST)
                return follow->lost && code == CTL_USAGE ? CTL_FAILED : code;
        /* Fleets that were not restarted are not followed. */
        json_foreach_in(fleet, follow->lost || ctl_has(ctl, OPTION_JSON) ? NULL : follow->reply, "fleets")
                if (is_kept(fleet))
                        (void)report_kept(fleet);
        if (await_reconnect(follow) == CTL_DONE)
                return CTL_DONE;
        return output_error(CTL_CONNECT,
                            "cannot reconnect to '%s': %s; the %s continues when sqmgr runs again. To "
                            "follow it then, run 'sqmgrctl status'",
                            ctl->socket, strerrordesc_np(ctl->connect_error), follow->what);
}

static int restart(struct ctl *ctl, bool rollback)
{
        bool wait = ctl->wait != CTL_WAIT_NONE;
        struct follow follow = {.ctl = ctl,
                                .send = send_restart,
                                .take = take_restart,
                                .fail = fail_restart,
                                .draw = draw_restart,
                                .end = finish,
                                .what = rollback ? "rollback" : "restart",
                                .rollback = rollback,
                                .begun_at = client_now(),
                                .live = wait && !ctl_has(ctl, OPTION_JSON) && screen_is_there()};
        int r = send_restart(&follow);

        if (r != CTL_DONE)
                return r;
        if (rollback && wait)
                follow.detached =
                        "detached; the rollback continues. To follow it, run 'sqmgrctl status --watch'";
        else if (wait)
                follow.detached =
                        "detached; the restart continues. To follow it, run 'sqmgrctl status --watch'; to "
                        "end it, 'sqmgrctl abort'";
        return run(&follow);
}

int ctl_restart(struct ctl *ctl)
{
        return restart(ctl, false);
}

int ctl_rollback(struct ctl *ctl)
{
        return restart(ctl, true);
}
