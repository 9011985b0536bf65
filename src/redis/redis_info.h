/* SPDX-License-Identifier: MIT */
/* Decodes the text of INFO. Pure. */
#pragma once

#include "model/server_facts.h"

/* Sets has_info and the members that INFO reports. text: the whole reply, NUL-terminated; a missing line
 * counts as 0, no or "". Other members of facts are unchanged. */
void redis_info_take(const char *text, struct redis_facts *facts);
/* Returns the number of that line; 0 if the line is missing, or has no number; UINT64_MAX for larger ones. */
uint64_t redis_info_number(const char *text, const char *name);
