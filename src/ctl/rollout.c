/* SPDX-License-Identifier: MIT */
/* The command `rollout`: how a restart over many hosts goes, and that a host is waited for no longer. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/grouped.h"
#include "ctl/hosts.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/usage.h"
#include "ctl/watch.h"
#include <string.h>

static int get_rollouts(struct ctl *ctl, json_t **ret)
{
        json_t *reply = NULL;
        int r = grouped_get(ctl, ctl->n_arguments > 0 ? ctl->arguments[0] : NULL, &reply);

        if (r == CTL_DONE && json_array_size(json_object_get(reply, "rollouts")) == 0)
                r = grouped_tell_none();
        if (r == CTL_DONE)
                *ret = TAKE_PTR(reply);
        json_decref(reply);
        return r;
}

static int print_json(json_t *reply)
{
        json_t *rollouts = json_object_get(reply, "rollouts"), *rollout;
        _cleanup_json_ json_t *names = json_array();
        char text[REPLY_NAMES_MAX];
        size_t i;

        json_array_foreach(rollouts, i, rollout) json_array_append(names, json_object_get(rollout, "fleet"));
        if (json_array_size(rollouts) > 1)
                return say_error(CTL_USAGE,
                                 "with --json one fleet is told of, of those with a 'rollout_group' %s",
                                 reply_names(names, text));
        reply_print_json(json_array_get(rollouts, 0));
        return CTL_DONE;
}

static int forget(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[1], *host = ctl->arguments[2];
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "ForgetHost", json_pack("{s:s, s:s}", "fleet", fleet, "host", host), &reply);

        if (r == CTL_DONE && reply)
                say_line("%s: %s is waited for no longer; when its sqmgr comes back it takes part again",
                         fleet, host);
        return r;
}

int ctl_rollout(struct ctl *ctl)
{
        static const struct watched rollouts = {
                .get = get_rollouts, .render = hosts_render, .print_json = print_json};
        bool forgets = ctl->n_arguments > 0 && strcmp(ctl->arguments[0], "forget") == 0;

        if (forgets && ctl->watch)
                return usage_error(ctl->command, "--watch does not go with forget");
        if (forgets && ctl->n_arguments == 3)
                return forget(ctl);
        if (forgets)
                return usage_error(ctl->command, "forget wants a fleet and a host");
        if (ctl->n_arguments > 1)
                return usage_error(ctl->command, "there are too many arguments");
        return watch_show(ctl, &rollouts);
}
