/* SPDX-License-Identifier: MIT */
/* Exit codes, and sentences for people, on a terminal broken between words. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

/* How sqmgrctl and each of its steps end. */
enum ctl_exit {
        /* These are no exit codes, and were not told. */
        CTL_OLDER = -3, /* sqmgr refuses the parameter that the call can do without, see struct ctl */
        CTL_WOKEN = -2, /* a signal or a key came before the reply */
        CTL_LOST = -1,  /* the connection ended before the reply */
        CTL_DONE = 0,
        CTL_FAILED = 1,     /* the operation failed */
        CTL_USAGE = 2,      /* an unknown fleet or worker included */
        CTL_CONNECT = 3,    /* no sqmgr answers */
        CTL_PERMISSION = 4, /* not permitted */
        CTL_TIMEOUT = 5,    /* the operation goes on */
};

/* Prints a sentence on standard output. */
void output_line(const char *format, ...) _printf_(1, 2);
/* Prints `sqmgrctl: ` and the sentence to stderr, or where output_errors_to() wants it. Returns code. */
#define output_error(...) output_error_as(NULL, __VA_ARGS__)
/* The same; word: the code of the error as JSON, NULL: that of the exit code. */
int output_error_as(const char *word, int code, const char *format, ...) _printf_(3, 4);
/* From now on errors, those that end a command, are printed as JSON on standard output, too. */
void output_json(void);
/* What sqmgr refuses, and further lines on it, a list of strings or NULL. Returns CTL_FAILED. */
int output_refusal(const char *reason, json_t *details);
/* From now on only the last error is kept, in text, which has size bytes; NULL: they are printed again. What
 * has the code CTL_DONE is no error, and is printed. */
void output_errors_to(char *text, size_t size);

/* "12:34:56 ", the time of day. Valid until the next call. */
const char *output_stamp(void);

/* The strings of a list as a phrase: there are 'a', 'b'. Valid until the next call. */
const char *output_names(json_t *names);

/* A sentence with the worker's last lines that it quotes each on a line of its own, for a terminal: spoils
 * text, and returns it. */
char *output_log_tail(char *text);

/* Prints one JSON object on a line of its own. */
void output_print_json(json_t *json);
