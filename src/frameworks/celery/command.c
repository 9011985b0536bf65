/* SPDX-License-Identifier: MIT */
/* Options of `celery worker`; see the header. Tried with Celery 5.2, or reported for it. */
#include "frameworks/celery/command.h"
#include <stddef.h>

#define DETACHES ", so the process that sqmgr starts exits at once"
#define ONE_NAME                                                                                             \
        ", which gives all workers of the fleet one name: Celery's remote control cannot tell them apart"
#define NAMED "Remove the option: sqmgr names workers"
#define BEAT                                                                                                 \
        ", so each worker runs a scheduler: periodic tasks run once for each worker, and twice at a restart"
#define BEAT_REMEDY                                                                                          \
        "Remove the option, and give the scheduler a fleet of its own: 'framework = plain', 'command = "     \
        "celery -A APP beat', 'active_process_count = 1', 'restart_surge = 0'"

const struct command_flaw celery_command_flaws[] = {
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
