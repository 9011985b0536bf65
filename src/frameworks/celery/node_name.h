/* SPDX-License-Identifier: MIT */
/* Names of Celery workers, which Celery calls nodes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The longest name of a node, queue or task, and the longest id of a task. */
#define CELERY_NAME_MAX 255

/* Returns true if the text is UTF-8, and with printable has no control characters. */
bool celery_is_utf8(const char *text, size_t len, bool printable);
/* The name of a worker is `NAME@HOST`, printable UTF-8; the host follows the first `@`, and the application
 * can choose it. Returns the host, which points into node; NULL if node is no such name. */
const char *celery_node_host(const char *node);
