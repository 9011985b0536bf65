/* SPDX-License-Identifier: MIT */
/* The command `rollout`: how a restart over many hosts goes, and that a host is waited for no longer. */
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/grouped.h"
#include "ctl/hosts.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/usage.h"
#include "ctl/watch.h"
#include <string.h>

static int check(json_t *reply)
{
        return json_array_size(json_object_get(reply, "rollouts")) > 0 ? CTL_DONE : grouped_tell_none();
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

int ctl_rollout(struct ctl *ctl)
{
        bool forgets = ctl->n_arguments > 0 && strcmp(ctl->arguments[0], "forget") == 0;

        if (forgets && ctl->watch)
                return usage_error(ctl->command, "--watch does not go with forget");
        if (forgets && ctl->n_arguments == 3)
                return ctl_call(ctl);
        if (forgets)
                return usage_error(ctl->command, "forget wants a fleet and a host");
        if (ctl->n_arguments > 1)
                return usage_error(ctl->command, "there are too many arguments");
        return watch_show(ctl, (struct watched){.method = "GetRollouts",
                                                .render = hosts_render,
                                                .print_json = print_json,
                                                .check = check});
}
