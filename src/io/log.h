/* SPDX-License-Identifier: MIT */
/* The log: the journal if stderr leads there, otherwise lines on stderr. */
#pragma once

#include "base/macro.h"
#include <syslog.h>

struct event;
struct quoted; /* wire/quoted.h */

/* Sets the least urgent level that is logged, LOG_ERR to LOG_DEBUG. */
void log_set_level(int level);

/* Returns true if stderr leads to the journal, and so log entries do. */
bool log_is_journal(void);

/* Returns the destination of workers' output: "inherit", "journal" or a path. setting: the fleet's `log`;
 * NULL: not set. Then it is the journal if stderr leads there: a file in $LOGS_DIRECTORY if sqmgr could not
 * read log tails from the journal. */
const char *log_of_workers(const char *setting);

/* Logs one sentence of at most 2047 bytes; a longer one is truncated. %m is the errno at the call. Never
 * waits for stderr, and at most 100 ms for the journal. If neither accepts the entry, the entry is lost; a
 * later one reports the number of lost entries. */
void log_write(int level, const char *format, ...) _printf_(2, 3);

/* As log_write(), with text from elsewhere: on further lines, or in the journal in a field of its own. quoted
 * may be NULL. */
void log_quoted(int level, const struct quoted *quoted, const char *format, ...) _printf_(3, 4);

/* Logs an event as log_write() does. In the journal, the entry has the fields of the event. */
void log_event(const struct event *event);

#define log_error(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
