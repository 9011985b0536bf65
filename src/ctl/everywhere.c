/* SPDX-License-Identifier: MIT */
/* Orders to all hosts of a group, and which group is meant. */
#include "ctl/everywhere.h"
#include "ctl/await.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/usage.h"
#include <string.h>

#define ORDER_USEC (30 * USEC_PER_SEC)

json_t *everywhere_only(json_t *reply)
{
        return json_array_get(json_object_get(reply, "rollouts"), 0);
}

int everywhere_get(struct ctl *ctl, const char *fleet, json_t **ret)
{
        json_t *fleets = fleet ? json_pack("[s]", fleet) : json_null();

        if (!fleets)
                return say_error(CTL_USAGE, "an argument is not UTF-8 text");
        return client_call(ctl, "GetRollouts", json_pack("{s:o}", "fleets", fleets), ret);
}

/* The fleets of status that have a group. */
static json_t *fleets_with_group(json_t *status)
{
        json_t *names = json_array(), *fleet;
        size_t i;

        json_array_foreach(json_object_get(status, "fleets"), i, fleet)
        {
                if (json_is_string(json_object_get(fleet, "rollout_group")))
                        json_array_append(names, json_object_get(fleet, "name"));
        }
        return names;
}

int everywhere_find_fleet(struct ctl *ctl, char **ret)
{
        _cleanup_json_ json_t *status = NULL;
        char text[REPLY_NAMES_MAX];

        if (ctl->n_arguments > 1)
                return usage_error(ctl->command, "one fleet is restarted everywhere at a time");
        if (ctl->n_arguments == 1) {
                *ret = strdup(ctl->arguments[0]);
                return *ret ? CTL_DONE : say_error(CTL_FAILED, "there is too little memory");
        }
        int r = client_call(ctl, "GetStatus", json_pack("{s:n}", "fleets"), &status);
        client_close(ctl);
        if (r != CTL_DONE)
                return r;
        _cleanup_json_ json_t *names = fleets_with_group(status);
        if (json_array_size(names) == 0)
                return everywhere_tell_none();
        if (json_array_size(names) > 1)
                return say_error(CTL_USAGE,
                                 "name the fleet that is meant, of those with a 'rollout_group' %s",
                                 reply_names(names, text));
        *ret = strdup(json_string_value(json_array_get(names, 0)));
        return *ret ? CTL_DONE : say_error(CTL_FAILED, "there is too little memory");
}

int everywhere_tell_none(void)
{
        return say_error(CTL_FAILED,
                         "no fleet here has a 'rollout_group', which the hosts that are restarted together "
                         "share: sqmgr-rollout(7) says how it is set");
}

/* The order itself is answered at once, however long its end is waited for. */
static int begin(struct ctl *ctl, const char *fleet, json_t **ret)
{
        enum ctl_wait wait = ctl->wait;
        usec_t timeout = ctl->timeout;

        ctl->wait = CTL_WAIT_NONE;
        ctl->timeout = MIN(timeout, ORDER_USEC);
        int r = client_call(ctl, "RestartEverywhere",
                            json_pack("{s:s, s:s?}", "fleet", fleet, "release", ctl->release), ret);
        ctl->wait = wait;
        ctl->timeout = timeout;
        client_close(ctl);
        return r;
}

int everywhere_restart(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = everywhere_find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = begin(ctl, fleet, &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl->wait != CTL_WAIT_NONE)
                return await_rollout(ctl, fleet, reply_integer(reply, "epoch"));
        if (ctl->json)
                reply_print_json(reply);
        else
                say_line("%s: rollout %lld over the hosts of group '%s' has begun: 'sqmgrctl rollout %s "
                         "--watch' "
                         "shows it",
                         fleet, reply_integer(reply, "epoch"), reply_string(reply, "group"), fleet);
        return CTL_DONE;
}

int everywhere_abort(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = everywhere_find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = client_ask(ctl, "AbortEverywhere", json_pack("{s:s}", "fleet", fleet), &reply);
        if (r != CTL_DONE || !reply)
                return r;
        if (reply_is_true(reply, "aborted"))
                say_line("%s: the rollout is ended on all hosts, no further old worker is quieted", fleet);
        else
                say_line("%s: no rollout over many hosts is in progress", fleet);
        return CTL_DONE;
}
