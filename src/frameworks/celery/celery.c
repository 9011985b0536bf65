/* SPDX-License-Identifier: MIT */
/* Celery workers, which load a shim. */
#include "frameworks/celery/celery.h"
#include "base/usec.h"
#include "frameworks/celery/command.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include "settings/traits.h"
#include <signal.h>

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
        .command_flaws = celery_command_flaws,
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
