/* SPDX-License-Identifier: MIT */
/* Which fleet with a rollout_group is meant, and what its group tells. */
#include "ctl/grouped.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/usage.h"
#include <string.h>

json_t *grouped_only(json_t *reply)
{
        return json_array_get(json_object_get(reply, "rollouts"), 0);
}

int grouped_send(struct ctl *ctl, const char *fleet)
{
        return client_send(ctl, "GetRollouts", json_pack("{s:[s]}", "fleets", fleet), false);
}

int grouped_tell_none(void)
{
        return say_error(CTL_FAILED,
                         "no fleet here has a 'rollout_group', which the hosts that are restarted together "
                         "share: sqmgr-rollout(7) says how it is set");
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

int grouped_find_fleet(struct ctl *ctl, char **ret)
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
                return grouped_tell_none();
        if (json_array_size(names) > 1)
                return say_error(CTL_USAGE,
                                 "name the fleet that is meant, of those with a 'rollout_group' %s",
                                 reply_names(names, text));
        *ret = strdup(json_string_value(json_array_get(names, 0)));
        return *ret ? CTL_DONE : say_error(CTL_FAILED, "there is too little memory");
}
