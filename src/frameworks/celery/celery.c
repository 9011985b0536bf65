/* SPDX-License-Identifier: MIT */
/* Celery workers, which load a shim. */
#include "frameworks/celery/celery.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include <signal.h>

/* Options of `celery worker` that sqmgr cannot work with. Tried with Celery 5.2, or reported for it. */
#define DETACHES ", so the process that sqmgr starts exits at once"
#define ONE_NAME                                                                                             \
        ", which gives all workers of the fleet one name: Celery's remote control cannot tell them apart"
#define NAMED "Remove the option: sqmgr names workers"
#define BEAT                                                                                                 \
        ", so each worker runs a scheduler: periodic tasks run once for each worker, and twice at a restart"
#define BEAT_REMEDY                                                                                          \
        "Remove the option, and give the scheduler a fleet of its own: 'framework = plain', 'command = "     \
        "celery -A APP beat', 'active_process_count = 1', 'restart_surge = 0'"

static const struct command_flaw command_flaws[] = {
        {{"-B"}, false, BEAT, BEAT_REMEDY, {NULL}},
        {{"--beat"}, false, BEAT, BEAT_REMEDY, {NULL}},
        {{"-n"}, false, ONE_NAME, NAMED, {NULL}},
        {{"--hostname"}, false, ONE_NAME, NAMED, {NULL}},
        {{"-D"}, true, DETACHES, "Remove the option", {NULL}},
        {{"--detach"}, true, DETACHES, "Remove the option", {NULL}},
        {{"--pidfile"}, true, ", so a second worker refuses to start", "Remove the option", {NULL}},
        /* github.com/celery/celery/issues/7266 and 4809. */
        {{"--autoscale"},
         false,
         ", which ends processes of the pool that have a task",
         "Use '-c', and let sqmgr choose the number of workers",
         {NULL}},
        {{"--max-memory-per-child"},
         false,
         ", which may leave a pool without processes",
         "Remove the option: memory_threshold replaces the whole worker",
         {NULL}},
        {.text = NULL},
};

/* Celery's command line imports the entry points that it finds in the path. */
static const struct shim celery_shim = {
        .file = "python/sqmgr_celery.py",
        .variable = "PYTHONPATH",
        .separator = ':',
        .missed = "'python -E', a PEX file, or an image without the folder",
        .line = {"import sys; sys.path.append('", "/python'); import sqmgr_celery"},
};

const struct traits celery_traits = {
        .name = "celery",
        .title = "Celery",
        .id = 6,
        .memory_of_tree = true,
        .heartbeat = HEARTBEAT_FILE,
        .reports_busy = true,
        .counts_outcomes = true,
        .reports_queues = true,
        .latency_estimated = true,
        .sent_usec = 5 * USEC_PER_SEC,
        .stale_usec = 30 * USEC_PER_SEC,
        .shim = &celery_shim,
        .command_flaws = command_flaws,
        .name_variable = "CELERY_WORKER_HOSTNAME",
        .name_suffix = "@%h",
        .subcommand = "worker",
        .url_variable = "CELERY_BROKER_URL",
        .oldest_version = 5,
};

const struct framework celery_framework = {
        .traits = &celery_traits,
        .quiet_signal = SIGTSTP,
        .stop_signal = SIGTERM,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
