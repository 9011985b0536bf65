/* SPDX-License-Identifier: MIT */
/* Collects what advice/findings.h judges, and answers with that. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/takeover/persist.h"

/* Who may look by read_socket: as struct doctor_machine has it. */
struct doctor_readers {
        bool may_connect;
        const char *group; /* static */
};

/* Answers the call once the surroundings have been checked. keeper must outlive the connections to Redis. */
void doctor_request(const struct persist *persist, const struct doctor_readers *readers, struct call *call);
