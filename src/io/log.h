/* SPDX-License-Identifier: MIT */
/* The log: the journal where stderr leads there, else lines on stderr. */
#pragma once

#include "base/macro.h"
#include <stdbool.h>
#include <syslog.h>

struct event;

/* level: LOG_ERR .. LOG_DEBUG; less urgent entries are dropped from now on. */
void log_set_level(int level);

/* Entries go to the journal: stderr leads there. */
bool log_is_journal(void);

/* One sentence. %m is the errno of the call. */
void log_write(int level, const char *format, ...) _printf_(2, 3);

/* An event, with its fields where the journal takes it. */
void log_event(const struct event *event);

#define log_error(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
