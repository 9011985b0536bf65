/* SPDX-License-Identifier: MIT */
/* Checks the answer of a reader against the rules of its framework; see the header. */
#include "frameworks/answer_check.h"
#include <string.h>

static bool is_signal(const struct framework *framework, int signo, bool stops)
{
        return signo == 0 || (framework->signal_is_permitted && framework->signal_is_permitted(signo, stops));
}

static bool is_heartbeat(const struct framework *framework, const struct answer_heartbeat *answer)
{
        const struct heartbeat *heartbeat = &answer->heartbeat;

        return (heartbeat->start == 0 || framework->reports_start) &&
               (heartbeat->born_usec == 0 || framework->reports_birth) &&
               (!answer->info ||
                (framework->queue_names && (answer->info->born_usec == 0 || framework->reports_birth))) &&
               (!heartbeat->outcomes.known || framework->traits->counts_outcomes) &&
               (!framework->traits->title_completes || (heartbeat->busy == 0 && !heartbeat->quiet)) &&
               is_signal(framework, heartbeat->quiet_signal, false) &&
               is_signal(framework, heartbeat->stop_signal, true);
}

static bool is_identity(const struct framework *framework, const struct answer_identity *identity,
                        const char *host)
{
        size_t host_len;
        pid_t pid;

        return framework->identity_parse(identity->identity, strlen(identity->identity), &host_len, &pid) &&
               host_len == identity->host_len && pid == identity->pid &&
               (!host || (strlen(host) == host_len && memcmp(host, identity->identity, host_len) == 0));
}

bool answer_check(const struct framework *framework, const struct answer *answer, const char *host)
{
        if (answer->status != ANSWER_OK)
                return true;
        if (answer->kind == QUERY_HEARTBEAT)
                return is_heartbeat(framework, &answer->heartbeat);
        if (answer->kind != QUERY_SCAN)
                return true;
        for (size_t i = 0; i < answer->scan.n; i++)
                if (!is_identity(framework, &answer->scan.list[i], host))
                        return false;
        return true;
}
