/* SPDX-License-Identifier: MIT */
/* Carries out the calls of the control interface: checks what they ask for, records it in the model, replies.
 */
#pragma once

#include "daemon/api/handler.h"

/* Returns 0 with *ret to be freed by control_free(), or -ENOMEM. The host is copied. */
int control_new(const struct control_host *host, struct control **ret);
/* After server_free(), which cancels the calls that are kept here. Returns NULL. */
struct control *control_free(struct control *control);

/* The server's handler; userdata is the control. */
void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata);

/* Tells those who wait what has moved. After each plan, before fleet_reap() or after it. */
void control_tick(struct control *control, usec_t now);
