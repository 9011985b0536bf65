/* SPDX-License-Identifier: MIT */
/* Descriptors: reads small files, writes whole buffers, passes one on, closes in bulk. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <dirent.h>
#include <sys/types.h>

/* Reads fd from its start, whatever its offset, and puts a NUL behind what was read. A file longer than
 * size - 1 bytes is cut there; size must not be 0. Returns the length or -errno. */
ssize_t fd_read_start(int fd, char *text, size_t size);

/* Opens path below dir_fd (or AT_FDCWD), reads it as fd_read_start() does and closes it. */
ssize_t fd_read_file(int dir_fd, const char *path, char *text, size_t size);

/* Reads fd to its end into *ret, NUL-terminated, to be freed. Returns 0, -EFBIG for more than max_bytes, or
 * -errno. */
int fd_read_whole(int fd, size_t max_bytes, char **ret, size_t *ret_length);

/* Writes all of data, however many calls it takes. Returns 0 or -errno: then a part may have been written. */
int fd_write_all(int fd, const void *data, size_t size);

/* Sends data as one message of the socket fd, with the descriptor passed along (-1: none); flags are send()'s
 * and MSG_NOSIGNAL. Returns 0 or -errno. */
int fd_send(int fd, const void *data, size_t size, int passed, int flags);

/* Connects to the Unix socket of that path. flags: SOCK_NONBLOCK, or 0; then connect() and send() wait
 * send_timeout at most, USEC_INFINITY: without an end. Returns a descriptor or -errno, -EAGAIN for a timeout.
 */
int fd_connect(const char *path, int flags, usec_t send_timeout);

/* Opens /dev/null with those flags for each of the descriptors 0 to 2 that is closed: what is opened later
 * would be taken for it. Returns 0 or -errno. */
int fd_open_standard(int flags);

/* Closes the descriptors first to last; at_exec: marks them to be closed when a program is executed. Returns
 * 0 or -errno. */
int fd_close_range(unsigned first, unsigned last, bool at_exec);

/* Is the file on a server, a read of which may take as long as that likes, or a program that plays one
 * (FUSE)? Also where it cannot be found out. */
bool fd_is_remote(int fd);

/* r: -errno. There was no descriptor or no memory to find out with: nothing is known then, and a later try
 * may tell. */
static inline bool is_shortage(int r)
{
        return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

DEFINE_CLEANUP(DIR *, closedir)
#define _cleanup_closedir_ _cleanup_(closedir_pointer)
