/* SPDX-License-Identifier: MIT */
/* Traits and identities of Celery workers; see the header. */
#include "frameworks/celery/celery.h"
#include "base/macro.h"
#include "base/usec.h"
#include "frameworks/celery/command.h"
#include "frameworks/celery/node_name.h"
#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include "settings/traits.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct traits celery_traits = {
        .name = "celery",
        .title = "Celery",
        .id = 6,
        .quiet_by_query = true,
        .uncaught_is_stop = true,
        .silent_at_stop = true,
        .has_work_list = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .reports_queues = true,
        .latency_estimated = true,
        .sent_usec = 2 * USEC_PER_SEC,
        .stale_usec = 7 * USEC_PER_SEC,
        .command_flaws = celery_command_flaws,
        .unheard_remedy =
                "Give sqmgr the server, database and global_keyprefix (namespace) of the application's "
                "broker; leave fanout_prefix, event_exchange and heartbeats at their defaults",
        .name_variable = "CELERY_WORKER_HOSTNAME",
        .name_suffix = "@%h",
        .subcommand = "worker",
        .url_variable = "CELERY_BROKER_URL",
        .oldest_version = 5,
};

char *celery_identity_make(const char *node, pid_t pid, int *ret_error)
{
        const char *host = celery_node_host(node);
        char *identity;

        *ret_error = -EINVAL;
        if (!host || !decode_is_host(host, strlen(host)))
                return NULL;
        *ret_error = -ENOMEM;
        return asprintf(&identity, "%s:%d:%s", host, (int)pid, node) < 0 ? NULL : identity;
}

const char *celery_identity_node(const char *identity)
{
        return strchr(strchr(identity, ':') + 1, ':') + 1;
}

bool celery_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        char node[CELERY_NAME_MAX + 1];
        size_t host_len;
        pid_t pid;

        const char *rest = decode_host_pid(text, len, &host_len, &pid);
        size_t rest_len = rest ? (size_t)(text + len - rest) : 0;
        if (!rest || rest_len >= sizeof(node) || memchr(rest, '\0', rest_len))
                return false;
        memcpy(node, rest, rest_len);
        node[rest_len] = '\0';
        const char *host = celery_node_host(node);
        if (!host || strlen(host) != host_len || memcmp(host, text, host_len) != 0)
                return false;
        *ret_host_len = host_len;
        *ret_pid = pid;
        return true;
}

const struct framework celery_framework = {
        .traits = &celery_traits,
        .stop_signal = SIGTERM,
        .identity_parse = celery_identity_parse,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
