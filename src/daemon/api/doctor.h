/* SPDX-License-Identifier: MIT */
/* Collects what model/findings.h judges, and answers with that. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/run/keep.h"

/* Answers the call once the surroundings have been checked. keeper must outlive the connections to Redis. */
void doctor_request(const struct keeper *keeper, struct call *call);
