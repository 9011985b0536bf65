/* SPDX-License-Identifier: MIT */
/* GetRollouts, whose handler is declared by daemon/api/handler.h. */
#pragma once

#include "base/usec.h"

/* After each pass: answers the calls that wait. self is the struct groups. */
void rollouts_answer(void *self, usec_t now);
