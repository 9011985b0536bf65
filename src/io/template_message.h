/* SPDX-License-Identifier: MIT */
/* The messages of templates and of the workers that they fork, as privileged/template_socket.h receives them.
 * The text is controlled by the fleet's user. */
#pragma once

#include "base/macro.h"
#include "wire/quoted.h"
#include <sys/types.h>

#define TEMPLATE_MESSAGE_MAX 4096

struct template_message {
        char text[TEMPLATE_MESSAGE_MAX + 1]; /* a NUL follows the last word */
        size_t length;
        pid_t pid; /* the sender's pid in our namespace; 0: not visible */
        uid_t uid;
};

/* The properties that a ready template reports. */
struct template_ready {
        struct quoted unsafe;  /* the first reasons why the template cannot be forked; empty: none */
        struct quoted threads; /* threads that a fork leaves behind, separated by ", "; empty: none */
};

/* Returns true if the first word of the message is word. */
bool template_message_is(const struct template_message *message, const char *word);
/* Parses a "ready" message. Returns false if the message is another one or has an unknown version. */
bool template_message_ready(const struct template_message *message, struct template_ready *ret);
/* Parses an "error" message. ret_errno is positive, or 0 if it is not a number. Returns false if the
 * message is another one. */
bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text);
