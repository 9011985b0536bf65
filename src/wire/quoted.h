/* SPDX-License-Identifier: MIT */
/* Text from elsewhere: log tails, errors of exec, what applications and Redis reply. Such text may hold
 * secrets, and viewers are not sent it. The type ensures that: a struct quoted is no string, so no sentence
 * contains its bytes, and in a message it is a member "quoted" alone. tests/check-layers lists the callers
 * that may read the bytes. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

#define QUOTED_MAX 1024

struct quoted {
        char quoted_bytes[QUOTED_MAX]; /* printable, lines separated by newlines; "": nothing is quoted */
};

/* Copies text, truncated to fit and made printable. NULL: nothing is quoted. */
void quoted_set(struct quoted *quoted, const char *text);
/* Appends the other text as further lines. */
void quoted_append(struct quoted *quoted, const struct quoted *more);
/* Terminates the text and makes it printable. Call after bytes from elsewhere were read into the struct. */
void quoted_clean(struct quoted *quoted);
bool quoted_is_empty(const struct quoted *quoted);
bool quoted_equal(const struct quoted *a, const struct quoted *b);
/* Returns true if the text contains this text. */
bool quoted_contains(const struct quoted *quoted, const char *text);

/* Returns the text, borrowed from quoted. Only for destinations that viewers do not see: logs and
 * terminals. */
const char *quoted_reveal(const struct quoted *quoted);

/* Sets the member "quoted" of the object: a string, or null if nothing is quoted. Returns object, or NULL
 * when memory is short; takes NULL. */
json_t *quoted_put(json_t *object, const struct quoted *quoted);
/* Removes all members "quoted" from a message for a viewer. */
void quoted_drop(json_t *message);

/* Why something failed: a sentence of our own, and what the other side said. */
struct error_report {
        char text[512]; /* printable; "": no error */
        struct quoted quoted;
};

/* Sets the sentence, and quotes what the other side said, or nothing (NULL). */
#define error_report_set(report, ...) error_report_quote(report, NULL, __VA_ARGS__)
void error_report_quote(struct error_report *report, const char *said, const char *format, ...)
        _printf_(3, 4);
bool error_report_equal(const struct error_report *a, const struct error_report *b);
