/* SPDX-License-Identifier: MIT */
/* Where to listen, and by which names it may be called. No I/O. */
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

/* `127.0.0.1:7433`, `[::1]:7433`, of both without a port that one, or `unix:/path`. Returns 0, or -EINVAL
 * with *ret_error, a constant sentence. */
int address_parse(const char *text, struct address *ret, const char **ret_error);

/* As it is written above. Returns text, which should have ADDRESS_TEXT_MAX bytes. */
const char *address_format(const struct address *address, char *text, size_t size);
/* The address alone, as it stands in a Host header: `127.0.0.1`, `[::1]`, or "" for a path. */
const char *address_format_host(const struct address *address, char *text, size_t size);

/* Can nobody reach it but from this machine? */
bool address_is_local(const struct address *address);

/* Does the value of a Host header name that host? Its port does not count, nor does case. */
bool address_host_is(const char *header, const char *host);
