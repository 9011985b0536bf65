/* SPDX-License-Identifier: MIT */
/* The probe as sqmgr knows it. */
#include "probe.h"
#include "settings/traits.h"
#include <stdio.h>
#include <string.h>

const struct traits probe_traits = {
        .name = "probe",
        .title = "Probe",
        .id = 1000,
        .quiet_is_stop = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .stale_usec = 10 * USEC_PER_SEC,
};

bool probe_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        const char *colon = memrchr(text, ':', len);
        int pid;

        if (!colon || sscanf(colon + 1, "%d", &pid) != 1 || pid <= 0)
                return false;
        *ret_host_len = (size_t)(colon - text);
        *ret_pid = pid;
        return true;
}
