/* SPDX-License-Identifier: MIT */
/* Carries out the calls of the control interface: checks the parameters, records orders in the model,
 * replies. */
#pragma once

#include "daemon/api/handler.h"

/* Returns 0 with *ret, to be freed with control_free(), or -ENOMEM. Copies *host. */
int control_new(const struct control_host *host, struct control **ret);
/* Call after server_free(), which cancels the calls that are kept here. Returns NULL. */
struct control *control_free(struct control *control);

/* Handler for server_options.handle; userdata is the struct control. */
void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata);

/* Sends pending replies to clients that wait or follow. Call after each plan, before or after
 * fleet_reap(). */
void control_tick(struct control *control, usec_t now);
