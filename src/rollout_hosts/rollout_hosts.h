/* SPDX-License-Identifier: MIT */
/* Rollouts of a group: the hosts that share a rollout_group restart one after another, coordinated by a
 * script in their Redis. A fleet without rollout_group costs nothing.
 *
 * script_rules: the script.
 * reply_rules: decodes its replies.
 * signature_rules, hmac: the signatures of orders.
 * group_rules: decides what this host does.
 * call: calls the script.
 * group: carries out the decisions.
 * group_orders: handles orders.
 * rollouts: shows all hosts. */
#pragma once

#include "daemon/runtime/subsystem.h"

/* self is a struct groups; see group.h. */
extern const struct subsystem rollout_hosts_subsystem;
