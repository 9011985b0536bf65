/* SPDX-License-Identifier: MIT */
/* Reports to sqmgr what this worker is doing, in a status file: see sqmgr-heartbeat(7). Copy this file and
 * sqmgr_heartbeat.c into a program of any kind, and link it with -pthread. The fleet needs
 * `framework = native` and `heartbeat = file`.
 *
 *         sqmgr_heartbeat_start("mailer", 4);    before the first thread is started
 *         while (sqmgr_heartbeat_take()) {       in each thread; false once the worker is quieted
 *                 fetch a job, if there is one, and run it;
 *                 sqmgr_heartbeat_done();
 *         }
 *         sqmgr_heartbeat_finish();              when all threads have ended: waits for the stop signal
 *
 * TSTP quiets the worker, TERM asks it to exit. A fetch must end within a few seconds: a longer one delays
 * both.
 */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Catches the signals and starts the thread that writes heartbeats. tag: shown to people, may be NULL.
 * concurrency: the number of jobs that can run at once; 0: not known. Without SQMGR_STATUS_DIR, no file is
 * written; all else is the same. Call once. Returns 0, or a negative errno value with nothing changed. */
int sqmgr_heartbeat_start(const char *tag, unsigned concurrency);

/* Counts one more job. Returns false if the worker is quieted: then do not fetch a job. Call from any
 * thread. */
bool sqmgr_heartbeat_take(void);

/* The job that was counted is done, or there was none to fetch. Call from any thread. */
void sqmgr_heartbeat_done(void);

/* Waits until the worker is asked to stop, and removes the file. Then exit with status 0. */
void sqmgr_heartbeat_finish(void);

#ifdef __cplusplus
}
#endif
