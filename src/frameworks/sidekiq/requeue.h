/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue, in one script: it is done once, however many try. */
#pragma once

#include "io/redis.h"
#include "model/rescue.h"

/* error: NULL, or why it is not known what became of the job: it may be asked again. Called once, never from
 * within requeue_job(). */
typedef void (*requeue_fn)(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata);

/* Takes the job, which stands in the work list of identity, to where rescue_jobs and rescue_limit of settings
 * say; where it is only to be told of it stays there. why: how its process ended. realtime: now, by the wall
 * clock. Returns 0; -ENOTCONN or -ENOMEM: done is not called. */
int requeue_job(struct redis *redis, const char *namespace, const char *identity, const struct job *job,
                const struct fleet_settings *settings, const char *why, usec_t realtime, requeue_fn done,
                void *userdata);
