/* SPDX-License-Identifier: MIT */
/* Tells sqmgr what this worker is doing, in a status file, by sqmgr-heartbeat(7). To be copied into a program
 * of any kind, with sqmgr_heartbeat.c; linked with -pthread, for a fleet with `framework = native`,
 * `heartbeat = file`.
 *
 *         sqmgr_heartbeat_start("mailer", 4);    before the first thread is started
 *         while (sqmgr_heartbeat_take()) {       in each thread; false once no more jobs are to be taken
 *                 fetch a job, should there be one, and run it;
 *                 sqmgr_heartbeat_done();
 *         }
 *         sqmgr_heartbeat_finish();              when all of them have ended: waits to be told to stop
 *
 * TSTP asks it to take no more jobs, TERM to exit. A fetch lasts some seconds at most, or it holds up both.
 */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Catches the signals and starts the thread that beats. tag, for people, may be NULL; concurrency, how many
 * jobs can run at once, 0 where that is not known. Without SQMGR_STATUS_DIR nothing is written, and all else
 * is the same. Called once. Returns 0, or a negative errno value with nothing changed. */
int sqmgr_heartbeat_start(const char *tag, unsigned concurrency);

/* Counts one job more, unless no more are to be taken: false says that nothing may be fetched. From any
 * thread. */
bool sqmgr_heartbeat_take(void);

/* What was taken is done, or nothing was there to be fetched. From any thread. */
void sqmgr_heartbeat_done(void);

/* Waits until the worker is asked to stop, and removes the file. The next thing to do is to exit with status
 * 0. */
void sqmgr_heartbeat_finish(void);

#ifdef __cplusplus
}
#endif
