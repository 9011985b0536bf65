/* SPDX-License-Identifier: MIT */
/* Listen addresses, and the host names that a request may use. No I/O. */
#pragma once

#include "base/macro.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_PORT "7433"

struct address {
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
                struct sockaddr_un path;
        };
        socklen_t size;
};

#define ADDRESS_TEXT_MAX 160

/* Parses `127.0.0.1:7433`, `[::1]:7433` or `unix:/path`. Without a port, 7433 is the default. Returns 0, or
 * -EINVAL with *ret_error set to a constant sentence. */
int address_parse(const char *text, struct address *ret, const char **ret_error);

/* Writes the address in the form that address_parse() reads. Returns text, which should have ADDRESS_TEXT_MAX
 * bytes. */
const char *address_format(const struct address *address, char *text, size_t size);
/* Writes only the address, as in a Host header: `127.0.0.1`, `[::1]`, or "" for a path. Returns text. */
const char *address_format_host(const struct address *address, char *text, size_t size);

/* Returns true if only this machine can reach the address. */
bool address_is_local(const struct address *address);

/* Returns true if the value of a Host header names that host. Port and case are ignored. */
bool address_host_is(const char *header, const char *host);
