/* SPDX-License-Identifier: MIT */
/* Collects the facts for advice/problem_rules.h and advice/doctor_rules.h, and answers GetDiagnosis. */
#pragma once

#include "advice/problem_rules.h"
#include "daemon/api/api_server.h"
#include "daemon/api/config_check.h"
#include "daemon/takeover/persist.h"

/* Parts of the daemon whose facts are judged. All must outlive the calls. */
struct problem_source {
        const struct persist *persist;
        struct config_check *config;
        const char *instance; /* see problem_command() */
};

/* Storage for the facts. Their strings stay valid until the next iteration of the loop. */
#define PROBLEM_REDIS_MAX 64
struct problem_storage {
        struct problem_facts facts;
        struct problem_redis redis[PROBLEM_REDIS_MAX];
        struct problem_process unknown[UNKNOWN_MAX];
};
/* Costs some system calls: to be called when somebody asks, not in each pass. */
void problems_collect(const struct problem_source *source, struct problem_storage *ret, usec_t now);

/* Returns how many descriptors sqmgr needs if all workers run that its fleets may have. */
uint64_t problems_files_needed(const struct world *world);

/* Answers the call once each Redis has answered or failed. source must outlive the connections to Redis. */
void doctor_request(const struct problem_source *source, struct call *call);
