/* SPDX-License-Identifier: MIT */
/* The log: lines on stderr. Under systemd each line starts with its priority. */
#pragma once

#include "base/macro.h"
#include <syslog.h>

/* Writes one sentence. level: LOG_ERR, LOG_WARNING or LOG_INFO. Control characters become '?'. The line is
 * lost if stderr is a full pipe: logging never blocks. */
void log_message(int level, const char *format, ...) _printf_(2, 3);

#define log_error(...)   log_message(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_message(LOG_INFO, __VA_ARGS__)
