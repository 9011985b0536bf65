/* SPDX-License-Identifier: MIT */
/* What sqmgr answers, as a terminal shows it. */
#pragma once

#include "wire/reply.h"
#include "wire/varlink.h"

/* The strings of a list as a phrase: there are 'a', 'b'. Returns text. */
#define REPLY_NAMES_MAX 512
const char *reply_names(json_t *names, char text[static REPLY_NAMES_MAX]);

/* A sentence with the worker's last lines that it quotes each on a line of its own, for a terminal: spoils
 * text, and returns it. */
char *reply_show_last_lines(char *text);

/* Prints one JSON object on a line of its own. */
void reply_print_json(json_t *json);
