/* SPDX-License-Identifier: MIT */
/* A listening socket: TCP, or Unix at a path. */
#include "web/listen.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The user and the group of sqmgr-web may connect. */
#define SOCKET_MODE 0660

/* Removes a socket on which no process listens. Returns 0 or -errno. */
static int clear_path(const struct address *address)
{
        const char *path = address->path.sun_path;
        struct stat status;

        if (lstat(path, &status) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(status.st_mode))
                return -EEXIST;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, &address->any, address->size) == 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int open_socket(const struct address *address)
{
        const int one = 1;
        int family = address->any.sa_family, r = family == AF_UNIX ? clear_path(address) : 0;

        if (r < 0)
                return r;
        _cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* Connections of an earlier sqmgr-web may still occupy the port. */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
        mode_t mask = umask(0777 & ~SOCKET_MODE);
        r = bind(fd, &address->any, address->size) < 0 || listen(fd, SOMAXCONN) < 0 ? -errno : 0;
        (void)umask(mask);
        return r < 0 ? r : TAKE_FD(fd);
}

int web_listener_open(struct web_listener *listener, const struct address *address, char *error,
                      size_t error_size)
{
        char text[ADDRESS_TEXT_MAX];
        int fd = open_socket(address);

        if (fd < 0) {
                snprintf(error, error_size, "cannot listen on %s: %s",
                         address_format(address, text, sizeof(text)), strerrordesc_np(-fd));
                return fd;
        }
        *listener = (struct web_listener){.fd = fd, .address = *address};
        return 0;
}

void web_listener_close(struct web_listener *listener)
{
        sd_event_source_disable_unref(listener->io);
        close_fd(listener->fd);
        if (listener->address.any.sa_family == AF_UNIX)
                (void)unlink(listener->address.path.sun_path);
}
