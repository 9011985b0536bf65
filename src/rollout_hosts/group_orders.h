/* SPDX-License-Identifier: MIT */
/* Orders to a group that are given on this host: RestartEverywhere, AbortEverywhere, ForgetHost. Their
 * handlers are declared by daemon/api/handler.h. */
#pragma once

struct call;
struct fleet;

/* Answers the call with an error: the fleet is in no group. */
void group_refuse_none(struct call *call, const struct fleet *fleet);
