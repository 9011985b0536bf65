/* SPDX-License-Identifier: MIT */
/* The log: lines on stderr, with the priority before them where systemd reads it. */
#pragma once

#include "base/macro.h"
#include <syslog.h>

/* One sentence; level: LOG_ERR .. LOG_INFO. Control characters of it become '?'. What nobody reads is lost: a
 * full pipe does not block. */
void log_write(int level, const char *format, ...) _printf_(2, 3);

#define log_error(...)   log_write(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__)
