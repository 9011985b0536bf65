/* SPDX-License-Identifier: MIT */
/* The log: the journal if stderr leads there, otherwise lines on stderr. */
#pragma once

#include "base/macro.h"
#include <stdbool.h>
#include <syslog.h>

struct event;
struct quoted; /* wire/quoted.h */

/* Sets the least urgent level that is logged, LOG_ERR to LOG_DEBUG. */
void log_set_level(int level);

/* Returns true if stderr leads to the journal, and so log entries do. */
bool log_is_journal(void);

/* Returns the destination of workers' output: "inherit", "journal" or a path. setting: the fleet's `log`;
 * NULL: not set. */
const char *log_of_workers(const char *setting);

/* Logs one sentence. %m is the errno at the call. */
void log_write(int level, const char *format, ...) _printf_(2, 3);

/* Logs a sentence with text from elsewhere, which follows on lines of its own, or in the journal in a field
 * of its own. quoted may be NULL. */
void log_quoted(int level, const struct quoted *quoted, const char *format, ...) _printf_(3, 4);

/* Logs an event. In the journal, with its fields. */
void log_event(const struct event *event);

#define log_error(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
