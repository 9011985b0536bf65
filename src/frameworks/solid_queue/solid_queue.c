/* SPDX-License-Identifier: MIT */
/* Traits and identities of Solid Queue; see the header. From reading Solid Queue 1.5. */
#include "frameworks/solid_queue/solid_queue.h"
#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include <signal.h>

/* lib/solid_queue/cli.rb and configuration.rb: the mode is 'fork' by default. */
static const struct command_flaw command_flaws[] = {
        {.unless = {"--mode async", "--mode=async", "SOLID_QUEUE_SUPERVISOR_MODE=async"},
         .text = "lacks '--mode async': a supervisor that forks its workers cannot be supervised",
         .remedy = "Add '--mode async', or SOLID_QUEUE_SUPERVISOR_MODE=async to 'environment'"},
        {.text = NULL},
};

const struct traits solid_queue_traits = {
        .name = "solid_queue",
        .title = "Solid Queue",
        .id = 8,
        .stand_in = true,
        /* TERM begins the drain, which nothing takes back. A worker that takes a job then runs the job. */
        .quiet_is_stop = true,
        .quiet_is_hidden = true,
        .has_work_list = true,
        .can_rescue = true,
        .jobs_stay = true,
        .drain_remedy =
                "Set config.solid_queue.shutdown_timeout = 12.hours in the application (default: 5 s)",
        .reports_busy = true,
        .jobs_are_current = true,
        .reports_queues = true,
        .records_workers = true,
        .can_preload = true,
        .heartbeat = HEARTBEAT_DATABASE,
        /* process_heartbeat_interval and process_alive_threshold. */
        .sent_usec = 60 * USEC_PER_SEC,
        .stale_usec = 5 * USEC_PER_MIN,
        .command_flaws = command_flaws,
        .unheard_remedy =
                "Give sqmgr the database of the application's queue in database_url, and have the command "
                "run in '--mode async'",
        .program = "bin/jobs",
        .url_variable = "DATABASE_URL",
        .oldest_version = 1,
};

static bool is_id(const char *text, size_t len)
{
        unsigned long long id;

        return decode_count(text, len, ULLONG_MAX, &id) && id > 0;
}

bool solid_queue_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        return decode_identity(text, len, is_id, ret_host_len, ret_pid);
}

const struct framework solid_queue_framework = {
        .traits = &solid_queue_traits,
        .stop_signal = SIGTERM,
        .identity_parse = solid_queue_identity_parse,
        .member_nsec = 2000,
        .reports_birth = true,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
