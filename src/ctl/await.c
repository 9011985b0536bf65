/* SPDX-License-Identifier: MIT */
/* Waits for a rollout over many hosts: what happens is shown meanwhile. It is asked for each second, of
 * whichever sqmgr answers here then. */
#include "ctl/await.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/grouped.h"
#include "ctl/hosts.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include "wire/reply_hosts.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ASK_USEC USEC_PER_SEC
/* An answer is waited for no longer: the next one may come at once. */
#define ANSWER_USEC (30 * USEC_PER_SEC)
/* For how long an sqmgr that is away is awaited, and a Redis that tells nothing of the rollout. */
#define AWAY_USEC   (30 * USEC_PER_SEC)
#define UNTOLD_USEC (5 * USEC_PER_MIN)
/* So often an older rollout is told of before ours is lost: what is told may be a second old. */
#define OLDER_MAX 4

struct await {
        struct ctl *ctl;
        const char *fleet;
        long long epoch;
        bool drained;       /* is what is waited for */
        bool live;          /* there is a picture on the terminal */
        json_t *reply;      /* the last one that told of the rollout, or NULL */
        char why[512];      /* why there is no newer one; "": there is */
        usec_t untold_from; /* 0: it is told of */
        bool away;          /* sqmgr is */
        unsigned older;     /* how often in a row an older rollout was told of */
        char trouble[512];  /* that was said last */
        bool waits_told;    /* why this host begins no turn yet */
};

static json_t *rollout_of(const struct await *await)
{
        return grouped_only(await->reply);
}

static json_t *by_name(const json_t *rollout)
{
        json_t *names = json_object(), *host;
        size_t i;

        json_array_foreach(json_object_get(rollout, "hosts"), i, host)
                json_object_set(names, reply_string(host, "host"), host);
        return names;
}

static void print_host(const json_t *rollout, const json_t *host, enum reply_host_state before)
{
        struct reply_hosts count = reply_hosts_count(rollout);
        enum reply_host_state state = reply_host_state(host);
        const char *name = reply_string(host, "host");
        char at[SAY_STAMP_MAX], why[REPLY_HOST_WHY_MAX];

        say_stamp(at);
        reply_host_why(rollout, host, why);
        switch (state) {
        case REPLY_HOST_ROLLING:
                say_line("%s%s: %s its turn", at, name,
                         before == REPLY_HOST_LOST ? "goes on with" : "begins");
                return;
        case REPLY_HOST_DONE:
                say_line("%s%s: done, %zu of %zu host%s%s%s", at, name, count.n[REPLY_HOST_DONE], count.all,
                         count.all == 1 ? "" : "s", why[0] != '\0' ? "; " : "", why);
                return;
        case REPLY_HOST_FAILED:
        case REPLY_HOST_LOST:
                say_line("%s%s: %s%s%s", at, name, reply_host_state_name(state), why[0] != '\0' ? ": " : "",
                         why);
                return;
        default:
                say_line("%s%s: waits for its turn again", at, name);
        }
}

/* before: the same host, NULL where it was not there. */
static void print_change(const json_t *rollout, const json_t *host, const json_t *before)
{
        enum reply_host_state state = reply_host_state(host),
                              old = before ? reply_host_state(before) : REPLY_HOST_WAITING;
        const char *progress = reply_string(host, "progress");
        char at[SAY_STAMP_MAX];

        if (state != old)
                print_host(rollout, host, old);
        else if (state == REPLY_HOST_ROLLING && strcmp(progress, reply_string(before, "progress")) != 0)
                say_line("%s%s: %s", say_stamp(at), reply_string(host, "host"), progress);
}

static void print_changes(const json_t *rollout, const json_t *last)
{
        _cleanup_json_ json_t *before = by_name(last);
        const json_t *host;
        size_t i;

        json_array_foreach(json_object_get(rollout, "hosts"), i, host)
                print_change(rollout, host, json_object_get(before, reply_string(host, "host")));
}

static void print_beginning(const struct await *await, const json_t *rollout, const json_t *last)
{
        char title[REPLY_HOSTS_MAX], more[REPLY_HOSTS_MAX], at[SAY_STAMP_MAX];
        size_t n = json_array_size(json_object_get(rollout, "hosts"));

        screen_release();
        say_line("%s%s: %s%s, %zu host%s, %s", say_stamp(at), await->fleet, last ? "starts over: " : "",
                 reply_hosts_title(rollout, title), n, n == 1 ? "" : "s", reply_hosts_details(rollout, more));
}

/* Why this host takes no part, once. */
static void print_trouble(struct await *await, const char *trouble)
{
        if (trouble[0] != '\0' && strncmp(trouble, await->trouble, sizeof(await->trouble) - 1) != 0)
                say_error(CTL_DONE, "%s", trouble);
        snprintf(await->trouble, sizeof(await->trouble), "%s", trouble);
}

/* The time that it names passes: so once. */
static void print_waiting(struct await *await, const char *waits_for)
{
        char at[SAY_STAMP_MAX];

        if (waits_for[0] == '\0' || await->waits_told)
                return;
        say_line("%s%s: %s", say_stamp(at), await->fleet, waits_for);
        await->waits_told = true;
}

/* A copy of what does not change as time passes. */
static json_t *without_times(const json_t *rollout)
{
        json_t *copy = json_deep_copy(rollout), *host;
        size_t i;

        json_object_del(copy, "age_seconds");
        json_object_del(copy, "left_seconds");
        json_object_del(copy, "waits_for");
        json_array_foreach(json_object_get(copy, "hosts"), i, host)
        {
                json_object_del(host, "seconds");
                json_object_del(host, "seen_seconds");
        }
        return copy;
}

static void print_json(json_t *rollout, const json_t *last)
{
        _cleanup_json_ json_t *now = without_times(rollout), *before = last ? without_times(last) : NULL;

        if (!last || !json_equal(now, before))
                reply_print_json(rollout);
}

static void show(struct await *await, json_t *rollout)
{
        json_t *last = rollout_of(await);
        bool begins = !last || reply_integer(last, "epoch") != reply_integer(rollout, "epoch");

        if (await->ctl->json) {
                print_json(rollout, last);
                return;
        }
        if (begins)
                print_beginning(await, rollout, last);
        if (!await->live) {
                print_changes(rollout, begins ? NULL : last);
                print_waiting(await, reply_string(rollout, "waits_for"));
        }
        print_trouble(await, reply_string(rollout, "trouble"));
        fflush(stdout);
}

static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct await *await = userdata;

        (void)hosts_render(out, await->reply, view);
}

static int give_up(const struct await *await, int code, const char *what, const char *why)
{
        return say_error(code, "%s: %s rollout %lld, which goes on: see 'sqmgrctl rollout %s' then: %s",
                         await->fleet, what, await->epoch, await->fleet, why);
}

/* It is not told how the rollout goes. away: sqmgr does not answer. Returns CTL_DONE where that is waited
 * for. */
static int bear(struct await *await, bool away)
{
        usec_t now = client_now();

        if (await->untold_from == 0 || away != await->away) {
                await->untold_from = now;
                await->away = away;
                if (away)
                        say_error(CTL_DONE,
                                  "the connection to sqmgr is lost, the rollout goes on: trying for 30s to "
                                  "connect again");
                else
                        print_trouble(await, await->why);
        }
        if (usec_sub(now, await->untold_from) < (away ? AWAY_USEC : UNTOLD_USEC))
                return CTL_DONE;
        return away ? give_up(await, CTL_CONNECT, "sqmgr does not come back to tell of", await->why)
                    : give_up(await, CTL_FAILED, "for 5min nothing has been told of", await->why);
}

/* The rollout is not among what Redis has. Returns CTL_DONE where it may yet be told of. */
static int miss(struct await *await, const json_t *rollout)
{
        const char *trouble = reply_string(rollout, "trouble");

        if (trouble[0] != '\0') {
                snprintf(await->why, sizeof(await->why), "%s", trouble);
                return bear(await, false);
        }
        if (++await->older < OLDER_MAX)
                return CTL_DONE;
        return say_error(CTL_FAILED,
                         "%s: Redis has lost rollout %lld: run 'sqmgrctl restart %s --everywhere' again",
                         await->fleet, await->epoch, await->fleet);
}

static int ask(struct await *await, usec_t until, json_t **ret)
{
        struct ctl *ctl = await->ctl;

        ctl->timeout = MIN(usec_sub(until, client_now()), ANSWER_USEC);
        await->why[0] = '\0';
        say_errors_to(await->why, sizeof(await->why));
        int r = grouped_get(ctl, await->fleet, ret);
        say_errors_to(NULL, 0);
        client_close(ctl);
        return r;
}

/* An sqmgr without Redis tells of no host, and of what it remembers alone. */
static bool is_told(const struct await *await, const json_t *rollout)
{
        return reply_integer(rollout, "epoch") >= await->epoch &&
               (json_array_size(json_object_get(rollout, "hosts")) > 0 ||
                (reply_hosts_is_begun(rollout) && reply_string(rollout, "trouble")[0] == '\0'));
}

/* What is known from now on. Returns CTL_DONE or an exit code. */
static int look(struct await *await, usec_t until)
{
        json_t *reply = NULL;
        int r = ask(await, until, &reply);
        json_t *rollout = grouped_only(reply);

        if (r == CTL_TIMEOUT && client_now() >= until)
                return CTL_DONE;
        if (r == CTL_CONNECT || r == CTL_TIMEOUT)
                return bear(await, true);
        if (r == CTL_WOKEN || (r == CTL_FAILED && await->reply))
                return r == CTL_WOKEN ? CTL_DONE : bear(await, false);
        if (r != CTL_DONE)
                return say_error(r == CTL_USAGE && await->reply ? CTL_FAILED : r, "%s", await->why);
        if (!is_told(await, rollout)) {
                r = miss(await, rollout);
                json_decref(reply);
                return r;
        }
        if (await->untold_from != 0 && await->away)
                say_error(CTL_DONE, "connected again");
        await->untold_from = 0;
        await->older = 0;
        show(await, rollout);
        await->epoch = reply_integer(rollout, "epoch");
        json_decref(await->reply);
        await->reply = reply;
        if (await->live)
                screen_draw(draw, await);
        return CTL_DONE;
}

static bool is_ended(const struct await *await)
{
        const json_t *rollout = rollout_of(await);

        if (!rollout || reply_hosts_is_running(rollout))
                return false;
        return strcmp(reply_string(rollout, "state"), "done") != 0 || !await->drained ||
               reply_hosts_count(rollout).draining == 0;
}

static int tell_end(const struct await *await)
{
        const json_t *rollout = rollout_of(await);
        const char *state = reply_string(rollout, "state"), *error = reply_string(rollout, "error");
        struct reply_hosts count = reply_hosts_count(rollout);
        char left[REPLY_HOSTS_MAX];

        if (reply_hosts_is_halted(rollout))
                return say_error(
                        CTL_FAILED,
                        "%s: rollout %lld has halted with %zu of %zu hosts done, the others keep their "
                        "workers; mend what is wrong, then run 'sqmgrctl restart %s --everywhere' again: %s",
                        await->fleet, await->epoch, count.n[REPLY_HOST_DONE], count.all, await->fleet, error);
        if (strcmp(state, "done") != 0)
                return say_error(CTL_FAILED, "%s: rollout %lld was ended with %zu of %zu hosts done%s%s",
                                 await->fleet, await->epoch, count.n[REPLY_HOST_DONE], count.all,
                                 error[0] != '\0' ? ": " : "", error);
        if (await->ctl->json)
                return CTL_DONE;
        say_line("%s: rollout %lld done: %zu host%s restarted%s", await->fleet, await->epoch,
                 count.n[REPLY_HOST_DONE], count.n[REPLY_HOST_DONE] == 1 ? "" : "s",
                 await->drained       ? ", their old workers are gone"
                 : count.draining > 0 ? ", old workers still finish their jobs"
                                      : "");
        if (reply_hosts_left(rollout, left)[0] != '\0')
                say_error(CTL_DONE, "%s: %s", await->fleet, left);
        return CTL_DONE;
}

static int tell_timeout(const struct await *await, usec_t timeout)
{
        char span[FORMAT_MAX];

        return say_error(CTL_TIMEOUT,
                         "rollout %lld has not ended within %s; it goes on, see 'sqmgrctl rollout %s'",
                         await->epoch, format_duration(timeout, span, sizeof(span)), await->fleet);
}

static int follow(struct await *await, usec_t timeout)
{
        usec_t until = usec_add(client_now(), timeout);

        for (;;) {
                int r = look(await, until);

                if (r != CTL_DONE || await->ctl->signal != 0)
                        return r;
                if (is_ended(await))
                        return CTL_DONE;
                if (client_now() >= until)
                        return tell_timeout(await, timeout);
                (void)client_wait(await->ctl, MIN(ASK_USEC, usec_sub(until, client_now())));
                if (await->ctl->signal != 0)
                        return CTL_DONE;
        }
}

int await_rollout(struct ctl *ctl, const char *fleet, long long epoch)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
        struct await await = {.ctl = ctl,
                              .fleet = fleet,
                              .epoch = epoch,
                              .drained = ctl->wait == CTL_WAIT_DRAINED,
                              .live = !ctl->json && screen_is_there()};
        int r = client_catch_signals(ctl, signals, await.live ? ELEMENTSOF(signals) : 1);

        if (r == CTL_DONE && await.live)
                screen_enter(false);
        if (r == CTL_DONE)
                r = follow(&await, ctl->timeout);
        if (await.live)
                screen_leave();
        if (r == CTL_DONE && ctl->signal == 0)
                r = tell_end(&await);
        json_decref(await.reply);
        if (ctl->signal == 0)
                return r;
        return client_detach(
                ctl, "detached, the rollout goes on: 'sqmgrctl rollout --watch' shows it, 'sqmgrctl abort "
                     "--everywhere' ends it");
}
