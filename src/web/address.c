/* SPDX-License-Identifier: MIT */
/* Listen addresses, and the host names that a request may use. No I/O. */
#include "web/address.h"
#include "base/parse.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNIX_PREFIX "unix:"

static int fail(const char **ret_error, const char *error)
{
        *ret_error = error;
        return -EINVAL;
}

static int parse_path(const char *path, struct address *ret, const char **ret_error)
{
        size_t length = strlen(path);

        if (path[0] != '/')
                return fail(ret_error, "give a path that begins with '/'");
        if (length >= sizeof(ret->path.sun_path))
                return fail(ret_error, "the path is too long: use at most 107 bytes");
        *ret = (struct address){.size = sizeof(ret->path)};
        ret->path.sun_family = AF_UNIX;
        memcpy(ret->path.sun_path, path, length + 1);
        return 0;
}

int address_parse(const char *text, struct address *ret, const char **ret_error)
{
        static const char form[] = "write it as 127.0.0.1:" ADDRESS_PORT ", [::1]:" ADDRESS_PORT
                                   " or unix:/run/sqmgr-web/web.sock";
        char host[INET6_ADDRSTRLEN];
        const char *port = ADDRESS_PORT;
        uint64_t number;

        if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
                return parse_path(text + strlen(UNIX_PREFIX), ret, ret_error);
        bool is_v6 = text[0] == '[';
        text += is_v6;
        size_t length = strcspn(text, is_v6 ? "]" : ":");
        const char *rest = text + length;
        if (length >= sizeof(host) || (is_v6 && *rest++ != ']') || (*rest != ':' && *rest != '\0'))
                return fail(ret_error, form);
        if (*rest == ':')
                port = rest + 1;
        if (parse_unsigned(port, 1, UINT16_MAX, &number) < 0)
                return fail(ret_error, "give a port from 1 to 65535");
        memcpy(host, text, length);
        host[length] = '\0';
        *ret = (struct address){.size = is_v6 ? sizeof(ret->v6) : sizeof(ret->v4)};
        if (is_v6) {
                ret->v6.sin6_family = AF_INET6;
                ret->v6.sin6_port = htons((uint16_t)number);
        } else {
                ret->v4.sin_family = AF_INET;
                ret->v4.sin_port = htons((uint16_t)number);
        }
        if (inet_pton(ret->any.sa_family, host, is_v6 ? (void *)&ret->v6.sin6_addr : &ret->v4.sin_addr) != 1)
                return fail(ret_error, form);
        return 0;
}

const char *address_format_host(const struct address *address, char *text, size_t size)
{
        char host[INET6_ADDRSTRLEN];

        text[0] = '\0';
        if (address->any.sa_family == AF_INET &&
            inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host)))
                snprintf(text, size, "%s", host);
        if (address->any.sa_family == AF_INET6 &&
            inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host)))
                snprintf(text, size, "[%s]", host);
        return text;
}

const char *address_format(const struct address *address, char *text, size_t size)
{
        char host[ADDRESS_TEXT_MAX];

        if (address->any.sa_family == AF_UNIX)
                snprintf(text, size, UNIX_PREFIX "%s", address->path.sun_path);
        else
                snprintf(text, size, "%s:%u", address_format_host(address, host, sizeof(host)),
                         ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port
                                                                 : address->v6.sin6_port));
        return text;
}

bool address_is_local(const struct address *address)
{
        const struct in6_addr *v6 = &address->v6.sin6_addr;

        switch (address->any.sa_family) {
        case AF_UNIX:
                return true;
        case AF_INET:
                return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
        case AF_INET6:
                return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
        default:
                return false;
        }
}

bool address_host_is(const char *header, const char *host)
{
        size_t length = header[0] == '[' ? strcspn(header, "]") + 1 : strcspn(header, ":");
        uint64_t port;

        /* The closing bracket is missing. */
        if (length > strlen(header))
                return false;
        if (length != strlen(host) || strncasecmp(header, host, length) != 0)
                return false;
        return header[length] == '\0' ||
               (header[length] == ':' && parse_unsigned(header + length + 1, 1, UINT16_MAX, &port) == 0);
}
