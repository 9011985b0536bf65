/* SPDX-License-Identifier: MIT */
/* Takes apart what sqmgr answers. */
#pragma once

#include "base/usec.h"
#include "wire/varlink.h"

/* The member of that name: "" or 0 where there is none. */
const char *reply_string(json_t *object, const char *key);
long long reply_integer(json_t *object, const char *key);
bool reply_is_true(json_t *object, const char *key);
/* The same of seconds: microseconds. */
usec_t reply_usec(json_t *object, const char *key);
/* The same of seconds, in words without parts of seconds, in text, which has FORMAT_MAX bytes and is
 * returned. */
const char *reply_seconds(json_t *object, const char *key, char *text);
/* The same of what is left: what is not over is a second at least. */
const char *reply_seconds_left(json_t *object, const char *key, char *text);

/* The strings of a list as a phrase: there are 'a', 'b'. Returns text. */
#define REPLY_NAMES_MAX 512
const char *reply_names(json_t *names, char text[static REPLY_NAMES_MAX]);

/* A sentence with the worker's last lines that it quotes each on a line of its own, for a terminal: spoils
 * text, and returns it. */
char *reply_show_last_lines(char *text);

/* Prints one JSON object on a line of its own. */
void reply_print_json(json_t *json);
