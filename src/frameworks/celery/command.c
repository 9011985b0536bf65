/* SPDX-License-Identifier: MIT */
/* Options of `celery worker`; see the header. Tried with Celery 5.2, or reported for it. */
#include "frameworks/celery/command.h"
#include <stddef.h>

#define DETACHES ", so the process that sqmgr starts exits at once"
#define ONE_NAME ", which gives all workers of the fleet one name: requests would reach them all"
#define IS_SOLO  ", so a worker sends no heartbeat while it runs a task"

const struct command_flaw celery_command_flaws[] = {
        /* --without-gossip does no harm, and -E does not help. */
        {{"--without-heartbeat"}, true, ", so workers send no heartbeats", "Remove the option", {NULL}},
        {{"-P", "solo"}, true, IS_SOLO, "Use '-c 1' instead of the pool 'solo'", {NULL}},
        {{"--pool", "solo"}, true, IS_SOLO, "Use '-c 1' instead of the pool 'solo'", {NULL}},
        {{"--pool=solo"}, true, IS_SOLO, "Use '-c 1' instead of the pool 'solo'", {NULL}},
        {{"-n"}, false, ONE_NAME, "Remove the option: sqmgr names workers", {NULL}},
        {{"--hostname"}, false, ONE_NAME, "Remove the option: sqmgr names workers", {NULL}},
        {{"-D"}, true, DETACHES, "Remove the option", {NULL}},
        {{"--detach"}, true, DETACHES, "Remove the option", {NULL}},
        {{"--pidfile"}, true, ", so a second worker refuses to start", "Remove the option", {NULL}},
        /* A worker counts as silent after 7 s. */
        {{"--heartbeat-interval"},
         false,
         ": a longer interval than 2 s makes workers count as silent",
         "Remove the option",
         {NULL}},
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
