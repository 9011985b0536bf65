/* SPDX-License-Identifier: MIT */
/* Collects facts for advice/doctor_rules.h and answers GetDiagnosis with the findings. */
#pragma once

#include "daemon/api/problems.h"
#include "daemon/api/server.h"

/* Answers the call once each Redis has answered or failed. source must outlive the connections to Redis. */
void doctor_request(const struct problem_source *source, struct call *call);
