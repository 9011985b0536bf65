/* SPDX-License-Identifier: MIT */
/* Decodes the text of INFO. Pure. */
#pragma once

#include "model/redis_facts.h"

/* Sets has_info and what INFO tells. */
void redis_info_take(const char *text, struct redis_facts *facts);
