/* SPDX-License-Identifier: MIT */
/* Collects facts for advice/findings.h and answers GetDiagnosis with the findings. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/takeover/persist.h"

/* Access to read_socket, as in struct doctor_machine. */
struct doctor_readers {
        bool may_connect;
        const char *group; /* static */
};

/* Returns how many descriptors sqmgr needs if all workers run that its fleets may have. */
uint64_t doctor_files_needed(const struct world *world);

/* Answers the call once each Redis has answered or failed. persist must outlive the connections to Redis.
 * Copies *readers. */
void doctor_request(const struct persist *persist, const struct doctor_readers *readers, struct call *call);
