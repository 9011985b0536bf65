/* SPDX-License-Identifier: MIT */
/* GetRollouts; its handler is declared in daemon/api/handler.h. */
#pragma once

#include "base/usec.h"

/* Answers the waiting calls of GetRollouts. Called after each pass of the loop. self is the struct groups. */
void rollouts_answer(void *self, usec_t now);
