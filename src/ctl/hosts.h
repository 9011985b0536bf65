/* SPDX-License-Identifier: MIT */
/* Shows rollouts over many hosts: how far each is, and a line for each host. No I/O, no clock. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"

/* What GetRollouts tells. Where view->rows says how much room there is, hosts for which there is none are
 * counted, those first that wait or are done. Returns CTL_DONE or an exit code. */
int hosts_render(FILE *out, json_t *reply, const struct view *view);
