/* SPDX-License-Identifier: MIT */
/* Rollouts over many hosts: the hosts that share a rollout_group are restarted one after another, by a script
 * in their Redis. script_rules is that script, reply_rules decodes its answers, group_rules decides what this
 * host does; call asks Redis, group carries out what is decided, group_orders handles orders, and rollouts
 * shows all hosts. A fleet without rollout_group costs nothing. */
#pragma once

#include "daemon/runtime/subsystem.h"

/* Its self is a struct groups; see group.h. */
extern const struct subsystem rollout_hosts_subsystem;
