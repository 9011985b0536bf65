/* SPDX-License-Identifier: MIT */
/* Rollouts over the hosts of a group: the command `rollout`, and restart and abort with --everywhere. Waiting
 * polls the local sqmgr each second, also after it was restarted. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/follow.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "ctl/watch.h"
#include "wire/reply_hosts.h"
#include <stdio.h>
#include <string.h>

/* Timeout of one call. The wait continues with the next call. */
#define ANSWER_USEC (30 * USEC_PER_SEC)
/* How long the wait continues while sqmgr cannot report the rollout. */
#define UNREPORTED_USEC (5 * USEC_PER_MIN)
/* After this many replies in a row with an older rollout, ours is lost. A single reply may be a second
 * old. */
#define OLDER_MAX 4

struct await {
        struct follow follow; /* follow.reply is the last reply that reported the rollout */
        const char *fleet;
        long long epoch;
        usec_t timeout;
        usec_t unreported_from; /* 0: the last reply reported the rollout */
        unsigned older;         /* replies in a row with an older rollout */
        char trouble[512];      /* the problem printed last */
        bool waits_reported;    /* the reason why this host does not start yet was printed */
};

/* The rollout in a reply for one fleet. Returns NULL if there is none. */
static json_t *only_rollout(json_t *reply)
{
        return json_array_get(json_object_get(reply, "rollouts"), 0);
}

static json_t *rollout_of(const struct await *await)
{
        return only_rollout(await->follow.reply);
}

static json_t *by_name(const json_t *rollout)
{
        json_t *names = json_object(), *host;

        json_foreach_in(host, rollout, "hosts")
                json_object_set(names, reply_string(host, "host"), host);
        return names;
}

static void print_host(const json_t *rollout, const json_t *host, enum reply_host_state before)
{
        struct reply_hosts count = reply_hosts_count(rollout);
        enum reply_host_state state = reply_host_state(host);
        const char *name = reply_string(host, "host");
        const char *at = output_stamp();
        char why[REPLY_HOST_WHY_MAX];

        reply_host_why(rollout, host, why);
        switch (state) {
        case REPLY_HOST_ROLLING:
                output_line("%s%s: %s", at, name, before == REPLY_HOST_LOST ? "rolling again" : "rolling");
                return;
        case REPLY_HOST_DONE:
                output_line("%s%s: done, %zu of %zu host%s%s%s", at, name, count.n[REPLY_HOST_DONE],
                            count.all, count.all == 1 ? "" : "s", why[0] != '\0' ? "; " : "", why);
                return;
        case REPLY_HOST_FAILED:
        case REPLY_HOST_LOST:
                output_line("%s%s: %s%s%s", at, name, reply_host_state_name(state),
                            why[0] != '\0' ? ": " : "", why);
                return;
        default:
                output_line("%s%s: waiting again", at, name);
        }
}

/* before: the same host in the previous reply; NULL if it was missing. */
static void print_change(const json_t *rollout, const json_t *host, const json_t *before)
{
        enum reply_host_state state = reply_host_state(host),
                              old = before ? reply_host_state(before) : REPLY_HOST_WAITING;
        const char *progress = reply_string(host, "progress");

        if (state != old)
                print_host(rollout, host, old);
        else if (state == REPLY_HOST_ROLLING && strcmp(progress, reply_string(before, "progress")) != 0)
                output_line("%s%s: %s", output_stamp(), reply_string(host, "host"), progress);
}

static void print_changes(const json_t *rollout, const json_t *last)
{
        _cleanup_json_ json_t *before = by_name(last);
        const json_t *host;

        json_foreach_in(host, rollout, "hosts")
                print_change(rollout, host, json_object_get(before, reply_string(host, "host")));
}

static void print_beginning(const struct await *await, const json_t *rollout, const json_t *last)
{
        char title[REPLY_HOSTS_MAX], more[REPLY_HOSTS_MAX];
        size_t n = json_array_size(json_object_get(rollout, "hosts"));

        screen_release();
        output_line("%s%s: %s%s, %zu host%s, %s", output_stamp(), await->fleet, last ? "restarted: " : "",
                    reply_hosts_title(rollout, title), n, n == 1 ? "" : "s",
                    reply_hosts_details(rollout, more));
}

/* Prints a problem of this host, unless it is the one printed last. */
static void print_trouble(struct await *await, const char *trouble)
{
        if (trouble[0] != '\0' && strncmp(trouble, await->trouble, sizeof(await->trouble) - 1) != 0)
                output_error(CTL_DONE, "%s", trouble);
        snprintf(await->trouble, sizeof(await->trouble), "%s", trouble);
}

/* Prints waits_for only once: the remaining time in the sentence changes with each reply. */
static void print_waiting(struct await *await, const char *waits_for)
{

        if (waits_for[0] == '\0' || await->waits_reported)
                return;
        output_line("%s%s: %s", output_stamp(), await->fleet, waits_for);
        await->waits_reported = true;
}

/* A copy without the members that change as time passes. */
static json_t *without_times(const json_t *rollout)
{
        json_t *copy = json_deep_copy(rollout), *host;

        json_object_del(copy, "age_seconds");
        json_object_del(copy, "left_seconds");
        json_object_del(copy, "waits_for");
        json_foreach_in(host, copy, "hosts") {
                json_object_del(host, "seconds");
                json_object_del(host, "seen_seconds");
        }
        return copy;
}

static void print_json_change(json_t *rollout, const json_t *last)
{
        _cleanup_json_ json_t *now = without_times(rollout), *before = last ? without_times(last) : NULL;

        if (!last || !json_equal(now, before))
                output_print_json(rollout);
}

static void show(struct await *await, json_t *rollout)
{
        json_t *last = rollout_of(await);
        bool begins = !last || reply_integer(last, "epoch") != reply_integer(rollout, "epoch");

        if (await->follow.ctl->json) {
                print_json_change(rollout, last);
                return;
        }
        if (begins)
                print_beginning(await, rollout, last);
        if (!await->follow.live) {
                print_changes(rollout, begins ? NULL : last);
                print_waiting(await, reply_string(rollout, "waits_for"));
        }
        print_trouble(await, reply_string(rollout, "trouble"));
        fflush(stdout);
}

static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct follow *follow = userdata;

        (void)hosts_render(out, follow->reply, view);
}

static int give_up(const struct await *await, int code, const char *what, const char *why)
{
        return output_error(code,
                            "%s: %s rollout %lld (reason: %s). The rollout continues; to see it, run "
                            "'sqmgrctl rollout %s'",
                            await->fleet, what, await->epoch, why, await->fleet);
}

static int report_timeout(const struct await *await)
{
        char span[FORMAT_MAX];

        return output_error(
                CTL_TIMEOUT,
                "rollout %lld did not end within %s and continues. To see it, run 'sqmgrctl rollout %s'",
                await->epoch, format_duration(await->timeout, span, sizeof(span)), await->fleet);
}

/* sqmgr answers but does not know the state of the rollout, for the reason `why`. Returns CTL_DONE to keep
 * waiting. */
static int retry_or_fail(struct await *await, const char *why)
{
        usec_t now = client_now();

        if (await->unreported_from == 0) {
                await->unreported_from = now;
                print_trouble(await, why);
        }
        if (usec_sub(now, await->unreported_from) >= UNREPORTED_USEC)
                return give_up(await, CTL_FAILED, "no status for 5min of", why);
        return now >= await->follow.until ? report_timeout(await) : CTL_DONE;
}

/* The reply does not report the rollout. Returns CTL_DONE to keep waiting. */
static int rollout_missing(struct await *await, const json_t *rollout)
{
        const char *trouble = reply_string(rollout, "trouble");

        if (trouble[0] != '\0')
                return retry_or_fail(await, trouble);
        if (++await->older >= OLDER_MAX)
                return output_error(
                        CTL_FAILED,
                        "%s: Redis has lost rollout %lld. Run 'sqmgrctl restart %s --everywhere' again",
                        await->fleet, await->epoch, await->fleet);
        return client_now() >= await->follow.until ? report_timeout(await) : CTL_DONE;
}

/* Returns true if the reply reports our rollout or a later one. Without Redis, sqmgr reports no hosts, only
 * the rollout that it remembers. */
static bool is_reported(const struct await *await, const json_t *rollout)
{
        return reply_integer(rollout, "epoch") >= await->epoch &&
               (json_array_size(json_object_get(rollout, "hosts")) > 0 ||
                (reply_hosts_is_begun(rollout) && reply_string(rollout, "trouble")[0] == '\0'));
}

static bool is_ended(const struct await *await)
{
        const json_t *rollout = rollout_of(await);

        if (!rollout || reply_is(rollout, "state", "running"))
                return false;
        return !reply_is(rollout, "state", "done") || await->follow.ctl->wait != CTL_WAIT_DRAINED ||
               reply_hosts_count(rollout).draining == 0;
}

static int report_end(struct follow *follow)
{
        const struct await *await = follow->userdata;
        const json_t *rollout = rollout_of(await);
        const char *state = reply_string(rollout, "state"), *error = reply_string(rollout, "error");
        struct reply_hosts count = reply_hosts_count(rollout);
        char left[REPLY_HOSTS_MAX];

        if (reply_is(rollout, "state", "halted"))
                return output_error(CTL_FAILED,
                                    "%s: rollout %lld halted with %zu of %zu hosts done; the others keep "
                                    "their workers (reason: %s). "
                                    "Fix the release, then run 'sqmgrctl restart %s --everywhere'",
                                    await->fleet, await->epoch, count.n[REPLY_HOST_DONE], count.all, error,
                                    await->fleet);
        if (strcmp(state, "done") != 0)
                return output_error(CTL_FAILED, "%s: rollout %lld aborted with %zu of %zu hosts done%s%s%s",
                                    await->fleet, await->epoch, count.n[REPLY_HOST_DONE], count.all,
                                    error[0] != '\0' ? " (reason: " : "", error, error[0] != '\0' ? ")" : "");
        if (await->follow.ctl->json)
                return CTL_DONE;
        output_line("%s: rollout %lld done: %zu host%s restarted%s", await->fleet, await->epoch,
                    count.n[REPLY_HOST_DONE], count.n[REPLY_HOST_DONE] == 1 ? "" : "s",
                    follow->ctl->wait == CTL_WAIT_DRAINED ? "; their old workers are gone"
                    : count.draining > 0                  ? "; old workers still draining"
                                                          : "");
        if (reply_hosts_left(rollout, left)[0] != '\0')
                output_error(CTL_DONE, "%s: %s", await->fleet, left);
        return CTL_DONE;
}

static int send_call(struct follow *follow)
{
        const struct await *await = follow->userdata;
        struct ctl *ctl = follow->ctl;
        usec_t now = client_now();

        ctl->timeout = MIN(usec_sub(follow->until, now), ANSWER_USEC);
        int r = client_send(ctl, "GetRollouts", json_pack("{s:[s]}", "fleets", await->fleet), false);
        /* The deadline is for one call, also after a reconnect. */
        ctl->deadline = usec_add(now, ctl->timeout);
        return r;
}

static int take_reply(struct follow *follow, json_t *reply)
{
        struct await *await = follow->userdata;
        json_t *rollout = only_rollout(reply);

        if (!is_reported(await, rollout))
                return rollout_missing(await, rollout);
        await->unreported_from = 0;
        await->older = 0;
        show(await, rollout);
        await->epoch = reply_integer(rollout, "epoch");
        follow_keep(follow, reply);
        follow->ended = is_ended(await);
        return !follow->ended && client_now() >= follow->until ? report_timeout(await) : CTL_DONE;
}

static int fail(struct follow *follow, int code)
{
        struct await *await = follow->userdata;
        bool late = client_now() >= follow->until;

        if (late && code == CTL_TIMEOUT)
                return report_timeout(await);
        if (code == CTL_CONNECT || code == CTL_TIMEOUT || code == CTL_LOST) {
                await->unreported_from = 0;
                if (follow_away(follow) == CTL_DONE)
                        return CTL_DONE;
                return late ? report_timeout(await)
                            : give_up(await, CTL_CONNECT, "sqmgr is unreachable; no status of", follow->why);
        }
        if (code == CTL_FAILED && follow->reply)
                return retry_or_fail(await, follow->why);
        return output_error(code == CTL_USAGE && follow->reply ? CTL_FAILED : code, "%s", follow->why);
}

/* epoch: number of the rollout that was started. Returns CTL_DONE if all hosts are done, or an exit code. */
static int await_rollout(struct ctl *ctl, const char *fleet, long long epoch)
{
        struct await await = {.follow = {.ctl = ctl,
                                         .userdata = &await,
                                         .send = send_call,
                                         .take = take_reply,
                                         .fail = fail,
                                         .draw = draw,
                                         .end = report_end,
                                         .what = "rollout",
                                         .detached = "detached; the rollout continues. To follow it, run "
                                                     "'sqmgrctl rollout --watch'; to end it, "
                                                     "'sqmgrctl abort --everywhere'",
                                         .each_second = true,
                                         .quiet = true,
                                         .live = !ctl->json && screen_is_there(),
                                         .until = usec_add(client_now(), ctl->timeout)},
                              .fleet = fleet,
                              .epoch = epoch,
                              .timeout = ctl->timeout};

        return follow_run(&await.follow);
}

static int report_none(void)
{
        return output_error(
                CTL_FAILED,
                "no fleet of this host has a 'rollout_group'. To restart several hosts, set it as in "
                "sqmgr-rollout(7)");
}

/* The names of the fleets in status with a rollout group. */
static json_t *fleets_with_group(json_t *status)
{
        json_t *names = json_array(), *fleet;

        json_foreach_in(fleet, status, "fleets")
                if (json_is_string(json_object_get(fleet, "rollout_group")))
                        json_array_append(names, json_object_get(fleet, "name"));
        return names;
}

/* Finds the fleet named on the command line, or the only one with a rollout_group. The caller frees *ret. */
static int find_fleet(struct ctl *ctl, char **ret)
{
        _cleanup_json_ json_t *status = NULL;

        if (ctl->n_arguments > 1)
                return usage_error(ctl->command, "--everywhere takes one fleet");
        if (ctl->n_arguments == 1) {
                *ret = strdup(ctl->arguments[0]);
                return *ret ? CTL_DONE : output_error(CTL_FAILED, "not enough memory");
        }
        int r = client_call(ctl, "GetStatus", json_pack("{s:n}", "fleets"), &status);
        client_close(ctl);
        if (r != CTL_DONE)
                return r;
        _cleanup_json_ json_t *names = fleets_with_group(status);
        if (json_array_size(names) == 0)
                return report_none();
        if (json_array_size(names) > 1)
                return output_error(CTL_USAGE, "give one of the fleets with a 'rollout_group'; %s",
                                    output_names(names));
        *ret = strdup(json_string_value(json_array_get(names, 0)));
        return *ret ? CTL_DONE : output_error(CTL_FAILED, "not enough memory");
}

/* The call is answered at once, so it has a short timeout of its own. */
static int begin(const struct ctl *ctl, const char *fleet, json_t **ret)
{
        struct ctl order = *ctl;

        order.wait = CTL_WAIT_NONE;
        order.timeout = MIN(ctl->timeout, ANSWER_USEC);
        int r = client_call(&order, "RestartEverywhere",
                            json_pack("{s:s, s:s?}", "fleet", fleet, "release", ctl->release), ret);
        client_close(&order);
        return r;
}

int group_rollout_restart(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = begin(ctl, fleet, &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl->wait != CTL_WAIT_NONE)
                return await_rollout(ctl, fleet, reply_integer(reply, "epoch"));
        if (ctl->json)
                output_print_json(reply);
        else
                output_line("%s: rollout %lld of group '%s' started. To follow it, run 'sqmgrctl rollout %s "
                            "--watch'",
                            fleet, reply_integer(reply, "epoch"), reply_string(reply, "group"), fleet);
        return CTL_DONE;
}

static int abort_everywhere(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = client_call(ctl, "AbortEverywhere", json_pack("{s:s}", "fleet", fleet), &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl->json)
                output_print_json(reply);
        else if (reply_is_true(reply, "aborted"))
                output_line("%s: rollout aborted on all hosts; remaining old workers keep running", fleet);
        else
                output_line("%s: no rollout in progress", fleet);
        return CTL_DONE;
}

int ctl_abort(struct ctl *ctl)
{
        return ctl->everywhere ? abort_everywhere(ctl) : ctl_call(ctl);
}

static int check(json_t *reply)
{
        return json_array_size(json_object_get(reply, "rollouts")) > 0 ? CTL_DONE : report_none();
}

static int print_json(json_t *reply)
{
        json_t *rollouts = json_object_get(reply, "rollouts"), *rollout;
        _cleanup_json_ json_t *names = json_array();

        json_foreach(rollout, rollouts)
                json_array_append(names, json_object_get(rollout, "fleet"));
        if (json_array_size(rollouts) > 1)
                return output_error(CTL_USAGE, "--json takes one fleet with a 'rollout_group'; %s",
                                    output_names(names));
        output_print_json(json_array_get(rollouts, 0));
        return CTL_DONE;
}

int ctl_rollout(struct ctl *ctl)
{
        bool forgets = ctl->n_arguments > 0 && strcmp(ctl->arguments[0], "forget") == 0;

        if (forgets && ctl->watch)
                return usage_error(ctl->command, "--watch cannot be used with forget");
        if (forgets && ctl->n_arguments == 3)
                return ctl_call(ctl);
        if (forgets)
                return usage_error(ctl->command, "forget takes a fleet and a host");
        if (ctl->n_arguments > 1)
                return usage_error(ctl->command, "too many arguments");
        return watch_show(ctl, (struct watch_view){.method = "GetRollouts",
                                                   .render = hosts_render,
                                                   .print_json = print_json,
                                                   .check = check});
}
