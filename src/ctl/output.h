/* SPDX-License-Identifier: MIT */
/* Exit codes and messages. On a terminal, lines are broken between words. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

/* Exit codes of sqmgrctl, also returned by its internal steps. */
enum ctl_exit {
        /* Negative values are no exit codes: nothing was printed yet. */
        CTL_WOKEN = -2, /* a signal or a key came before the reply */
        CTL_LOST = -1,  /* the connection ended before the reply */
        CTL_DONE = 0,
        CTL_FAILED = 1,     /* the operation failed */
        CTL_USAGE = 2,      /* also for an unknown fleet or worker */
        CTL_CONNECT = 3,    /* cannot connect to sqmgr */
        CTL_PERMISSION = 4, /* not permitted */
        CTL_TIMEOUT = 5,    /* the operation continues */
};

/* Prints a sentence to standard output. */
void output_line(const char *format, ...) _printf_(1, 2);
/* Prints `sqmgrctl: ` and the sentence to stderr, or to the buffer of output_errors_to(). Returns code. */
#define output_error(...) output_error_as(NULL, __VA_ARGS__)
/* Like output_error(). word: the error code in JSON; NULL: the default for the exit code. */
int output_error_as(const char *word, int code, const char *format, ...) _printf_(3, 4);
/* From now on output is of the instance of that name: `name` precedes errors and is the member "instance" of
 * each JSON object. */
void output_instance(const char *name);
/* From now on errors with an exit code are also printed as JSON to standard output. */
void output_json(void);
/* Prints why sqmgr refuses a call. details: further lines, a list of strings or NULL. Returns CTL_FAILED. */
int output_refusal(const char *reason, json_t *details);
/* From now on only the last error is kept, in text of size bytes. text NULL: errors are printed again.
 * Messages with code CTL_DONE are always printed. */
void output_errors_to(char *text, size_t size);

/* The local time of day, "12:34:56 ". Valid until the next call. */
const char *output_stamp(void);

/* Returns the list of strings as a phrase: "'a', 'b'". A long list is cut off. Valid until the next call. */
const char *output_names(json_t *names);

/* Prints one JSON object on a line of its own and flushes standard output. */
void output_print_json(json_t *json);
/* The same for an object that is taken over. NULL: memory is short. Returns an exit code. */
int output_json_new(json_t *json);
