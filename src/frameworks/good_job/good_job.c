/* SPDX-License-Identifier: MIT */
/* Traits and identities of GoodJob; see the header. From reading GoodJob 4.19. */
#include "frameworks/good_job/good_job.h"
#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include <signal.h>

/* lib/good_job/cli.rb and configuration.rb. */
static const struct command_flaw command_flaws[] = {
        {.options = {"--daemonize"},
         .unless = {"--daemonize=false"},
         .prevents = true,
         .text = ", so the process that sqmgr starts exits at once",
         .remedy = "Remove the option"},
        {.options = {"--shutdown-timeout"},
         .unless = {"--shutdown-timeout=-1", "--shutdown-timeout -1"},
         .text = ", after which a worker that is being replaced interrupts its jobs, which run again",
         .remedy = "Remove the option: without it, a worker waits for its jobs"},
        {.options = {"--idle-timeout"},
         .text = ", so idle workers exit and are started again",
         .remedy = "Remove the option: sqmgr chooses the number of workers"},
        {.text = NULL},
};

const struct traits good_job_traits = {
        .name = "good_job",
        .title = "GoodJob",
        .id = 9,
        .stand_in = true,
        /* TERM begins the drain, which nothing takes back. A worker that takes a job then runs the job. */
        .quiet_is_stop = true,
        .quiet_is_hidden = true,
        .has_work_list = true,
        .reports_busy = true,
        .jobs_are_current = true,
        .reports_queues = true,
        .records_workers = true,
        .can_preload = true,
        .heartbeat = HEARTBEAT_DATABASE,
        .postgresql_only = true,
        /* A process writes its row once the row is 30 s old, with a delay that differs by process, and is
         * dead after 5 min: app/models/good_job/process.rb. */
        .sent_usec = 33 * USEC_PER_SEC,
        .stale_usec = 5 * USEC_PER_MIN,
        .command_flaws = command_flaws,
        .unheard_remedy = "Give sqmgr the database of the application's queue in database_url",
        .subcommand = "start",
        .url_variable = "DATABASE_URL",
        .oldest_version = 4,
};

static bool is_uuid(const char *text, size_t len)
{
        if (len != GOOD_JOB_UUID_LENGTH)
                return false;
        for (size_t i = 0; i < len; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;

                if (dash ? text[i] != '-'
                         : !(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
                        return false;
        }
        return true;
}

bool good_job_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        return decode_identity(text, len, is_uuid, ret_host_len, ret_pid);
}

const struct framework good_job_framework = {
        .traits = &good_job_traits,
        .stop_signal = SIGTERM,
        .identity_parse = good_job_identity_parse,
        .member_nsec = 2000,
        .reports_birth = true,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
