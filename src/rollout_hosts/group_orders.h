/* SPDX-License-Identifier: MIT */
/* Orders to a group that are given on this host: RestartEverywhere, AbortEverywhere, ForgetHost. Their
 * handlers are declared in daemon/api/handler.h. */
#pragma once

struct call;
struct fleet;

/* Answers the call with an error: the fleet has no group. */
void group_refuse_none(struct call *call, const struct fleet *fleet);
