/* SPDX-License-Identifier: MIT */
/* Talks to sqmgr over its socket. What returns an exit code (ctl/output.h) has told on stderr what is not
 * CTL_DONE. */
#pragma once

#include "ctl/ctl.h"

/* CLOCK_MONOTONIC, in microseconds. */
usec_t client_now(void);

/* Sets ctl->socket, once. Returns false where memory is short. */
bool client_find_socket(struct ctl *ctl);

/* Connects and sends a call; takes over the reference to parameters. Where ctl->again_until is set a failed
 * connection is CTL_LOST, with ctl->connect_error. */
int client_send(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* Waits for the next reply: *ret is to be freed by varlink_reply_free(). May return CTL_LOST, CTL_WOKEN or
 * CTL_OLDER. */
int client_receive(struct ctl *ctl, struct varlink_reply *ret);
/* Tells of a CTL_LOST. */
int client_report_lost(const struct ctl *ctl);
/* Sends a call and waits for its reply: *ret is a new reference to the parameters. */
int client_call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
/* The fleets named as arguments, as the methods want them. */
json_t *client_fleets(const struct ctl *ctl);
void client_close(struct ctl *ctl);
/* From now on these signals wake: SIGTSTP stops and goes on, SIGWINCH does no more than that, the others ask
 * for an end. */
int client_catch_signals(struct ctl *ctl, const int *signals, size_t n_signals);
/* Prints the sentence, unless it is NULL, and ends as the signal that came would have ended us, so that a
 * script that called us sees it.
 */
int client_detach(const struct ctl *ctl, const char *sentence);
/* Closes the connection and waits so long. Returns CTL_DONE, or CTL_WOKEN where a signal or a key came. */
int client_wait(struct ctl *ctl, usec_t usec);
