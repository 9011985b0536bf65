/* SPDX-License-Identifier: MIT */
/* The command `restart`, and the progress of those that are waited for. */
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static void print_time(void)
{
        time_t now = time(NULL);
        struct tm local;
        char text[16];

        if (localtime_r(&now, &local) && strftime(text, sizeof(text), "%H:%M:%S", &local) > 0)
                printf("%s ", text);
}

static void print_change(json_t *change)
{
        const char *state = ctl_string(change, "state"), *reason = ctl_string(change, "reason");

        print_time();
        printf("%s %s", ctl_string(change, "id"), strcmp(state, "gone") == 0 ? "is gone" : state);
        if (reason[0] != '\0')
                printf(": %s", reason);
        printf(" (pid %lld, generation %lld)\n", ctl_integer(change, "pid"),
               ctl_integer(change, "generation"));
}

static const char *plural(long long count)
{
        return count == 1 ? "" : "s";
}

static void print_numbers(json_t *fleet)
{
        long long total = ctl_integer(fleet, "total"), draining = ctl_integer(fleet, "draining");
        const char *waits_for = ctl_string(fleet, "waits_for");

        printf("%s: %lld of %lld worker%s replaced", ctl_string(fleet, "name"),
               ctl_integer(fleet, "replaced"), total, plural(total));
        if (draining > 0)
                printf(", %lld draining", draining);
        if (waits_for[0] != '\0')
                printf("; %s", waits_for);
        putchar('\n');
}

/* The fleet of the same name in the reply before, or NULL. */
static json_t *find_fleet(json_t *reply, const char *name)
{
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                if (strcmp(ctl_string(fleet, "name"), name) == 0)
                        return fleet;
        }
        return NULL;
}

static void print_started(json_t *fleet)
{
        long long total = ctl_integer(fleet, "total");

        printf("%s: restart to generation %lld, %lld worker%s to replace\n", ctl_string(fleet, "name"),
               ctl_integer(fleet, "generation"), total, plural(total));
}

static bool is_same(json_t *a, json_t *b, const char *key)
{
        return json_equal(json_object_get(a, key), json_object_get(b, key));
}

static void print_progress(json_t *reply, json_t *before)
{
        json_t *change, *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "changes"), i, change) print_change(change);
        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                json_t *old = find_fleet(before, ctl_string(fleet, "name"));

                if (strcmp(ctl_string(fleet, "state"), "running") != 0)
                        continue;
                if (!old || !is_same(fleet, old, "generation")) {
                        print_time();
                        print_started(fleet);
                } else if (!is_same(fleet, old, "replaced") || !is_same(fleet, old, "draining") ||
                           (!is_same(fleet, old, "waits_for") && ctl_string(fleet, "waits_for")[0] != '\0')) {
                        print_time();
                        print_numbers(fleet);
                }
        }
        fflush(stdout);
}

/* Says how the restart of one fleet ended, or that it began. */
static int print_outcome(json_t *fleet, bool waited, bool drained)
{
        const char *name = ctl_string(fleet, "name"), *state = ctl_string(fleet, "state");
        const char *error = ctl_string(fleet, "error");
        long long total = ctl_integer(fleet, "total");

        if (strcmp(state, "stopped") == 0) {
                printf("%s: is stopped, so nothing was restarted: 'sqmgrctl start %s' brings it back\n", name,
                       name);
                return CTL_DONE;
        }
        if (strcmp(state, "running") == 0 && !waited) {
                print_started(fleet);
                return CTL_DONE;
        }
        if (strcmp(state, "halted") == 0)
                return ctl_error(CTL_FAILED, "%s: restart halted, the old workers go on: %s", name, error);
        if (strcmp(state, "aborted") == 0)
                return ctl_error(CTL_FAILED, "%s: restart aborted: %s", name, error);
        printf("%s: restart done, generation %lld is in force: %lld worker%s replaced%s\n", name,
               ctl_integer(fleet, "generation"), total, plural(total), drained ? " and gone" : "");
        return CTL_DONE;
}

static int finish(struct ctl *ctl, json_t *reply)
{
        int code = CTL_DONE;
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                const char *state = ctl_string(fleet, "state");
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
                json_t *old = find_fleet(before, ctl_string(fleet, "name"));

                if (!old || (strcmp(ctl_string(fleet, "state"), "none") != 0 &&
                             ctl_integer(fleet, "generation") >= ctl_integer(old, "generation")))
                        continue;
                return ctl_error(
                        CTL_FAILED,
                        "%s: sqmgr has lost its state, and the restart to generation %lld with it: start "
                        "it again",
                        ctl_string(fleet, "name"), ctl_integer(old, "generation"));
        }
        return CTL_DONE;
}

/* The connection was lost: goes on with the fleets of the last reply. One that was stopped when it began has
 * nothing to be followed; first: that is yet to be told. */
static int follow(struct ctl *ctl, json_t *last, const char *wait, bool first)
{
        _cleanup_json_ json_t *names = json_array();
        json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(last, "fleets"), i, fleet)
        {
                if (strcmp(ctl_string(fleet, "state"), "stopped") != 0)
                        json_array_append(names, json_object_get(fleet, "name"));
                else if (first && !ctl->json)
                        print_outcome(fleet, true, false);
        }
        return client_send_again(ctl, "Follow", json_pack("{s:O, s:s}", "fleets", names, "wait", wait), true);
}

int command_restart(struct ctl *ctl)
{
        static const char *const waits[] = {
                [CTL_WAIT_NONE] = NULL,
                [CTL_WAIT_REPLACED] = "replaced",
                [CTL_WAIT_DRAINED] = "drained",
        };
        bool wait = ctl->wait != CTL_WAIT_NONE, continues = true, followed = false;
        _cleanup_json_ json_t *before = NULL;
        int r = client_send(ctl, "Restart",
                            json_pack("{s:o, s:s?}", "fleets", ctl_fleets(ctl), "wait", waits[ctl->wait]),
                            wait);

        if (r != CTL_DONE)
                return r;
        while (continues) {
                struct varlink_reply reply;

                r = client_receive(ctl, &reply);
                if (r == CTL_LOST && !before)
                        return client_tell_lost(ctl);
                if (r == CTL_LOST) {
                        r = follow(ctl, before, waits[ctl->wait], !followed);
                        if (r != CTL_DONE)
                                return r;
                        followed = true;
                        continue;
                }
                /* A fleet that is gone from the settings meanwhile is no wrong usage. */
                if (r != CTL_DONE)
                        return followed && r == CTL_USAGE ? CTL_FAILED : r;
                if (ctl->json)
                        ctl_print_json(reply.parameters);
                else if (wait)
                        print_progress(reply.parameters, before);
                r = check_known(reply.parameters, before);
                continues = reply.continues && r == CTL_DONE;
                json_decref(before);
                before = json_incref(reply.parameters);
                varlink_reply_free(&reply);
        }
        return r != CTL_DONE ? r : finish(ctl, before);
}
