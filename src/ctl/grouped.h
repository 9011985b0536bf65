/* SPDX-License-Identifier: MIT */
/* Which fleet with a rollout_group is meant, and what its group tells. What returns an int returns CTL_DONE
 * or an exit code, and has told on stderr what is not CTL_DONE. */
#pragma once

#include "ctl/ctl.h"

/* The fleet that the command line names, or the only one with a rollout_group: *ret is to be freed. */
int grouped_find_fleet(struct ctl *ctl, char **ret);
/* Tells that no fleet has a group. */
int grouped_tell_none(void);
/* Sends GetRollouts of that fleet. */
int grouped_send(struct ctl *ctl, const char *fleet);
/* Of a reply to that for one fleet. Returns NULL where it is none. */
json_t *grouped_only(json_t *reply);
