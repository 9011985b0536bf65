/* SPDX-License-Identifier: MIT */
/* File descriptors: read small files, write whole buffers, send a descriptor, close ranges. */
#pragma once

#include "base/macro.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Reads fd from offset 0, whatever its current offset, and appends a NUL. Truncates a file longer than size -
 * 1 bytes; size must not be 0. Returns the length or -errno. */
ssize_t fd_read_start(int fd, char *text, size_t size);

/* Opens path relative to dir_fd (or AT_FDCWD), reads as fd_read_start() does, and closes the file. */
ssize_t fd_read_file(int dir_fd, const char *path, char *text, size_t size);

/* Reads fd to its end into *ret, which is NUL-terminated and owned by the caller. Returns 0, -EFBIG for more
 * than max_bytes, or -errno. */
int fd_read_whole(int fd, size_t max_bytes, char **ret, size_t *ret_length);

/* Writes all of data in as many calls as needed. Returns 0 or -errno. After an error, part of data may have
 * been written. */
int fd_write_all(int fd, const void *data, size_t size);

/* Returns a close-on-exec memory file with these bytes, at offset 0, which the caller closes; or -errno.
 * Unlike a pipe, the file takes all bytes at once, however little its reader reads. */
int fd_memory(const char *name, const void *data, size_t size);

/* Sends data as one message over the socket fd, with the descriptor `passed` attached (-1: none).
 * MSG_NOSIGNAL is added to flags, which are those of send(). Returns 0 or -errno. */
int fd_send(int fd, const void *data, size_t size, int passed, int flags);

/* Receives at most size bytes from the socket fd in one call, and the descriptor attached, which the caller
 * closes: *ret_passed, -1 if there is none. flags are those of recv(). Returns the number of bytes, 0 at the
 * end, or -errno. */
ssize_t fd_receive(int fd, void *data, size_t size, int *ret_passed, int flags);

/* Connects to the Unix stream socket at path. flags is SOCK_NONBLOCK or 0. With 0, connect() and send() wait
 * at most send_timeout; USEC_INFINITY means no limit. Returns a descriptor that the caller owns, or -errno;
 * -EAGAIN for a timeout. */
int fd_connect(const char *path, int flags, usec_t send_timeout);

/* Opens /dev/null with flags for each of the descriptors 0 to 2 that is closed. Otherwise a file opened later
 * would get that number and be used as a standard stream. Returns 0 or -errno. */
int fd_open_standard(int flags);

/* Marks the descriptors from first on close-on-exec. Returns 0 or -errno. */
int fd_close_at_exec(unsigned first);

/* Reads the type of the file (S_IFMT) and its size as the kernel caches them: unlike fstat(), never asks a
 * file server. ret_bytes may be NULL. Returns 0 or -errno. */
int fd_type(int fd, mode_t *ret_type, uint64_t *ret_bytes);

/* Returns true if r (-errno) means that descriptors or memory ran out. The call then proved nothing, and a
 * later attempt may succeed. */
static inline bool is_shortage(int r)
{
        return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* Returns r if r is a shortage, else 0. For reads of a process: any other error means that the process is
 * gone or belongs to another user. */
static inline int none_unless_shortage(int r)
{
        return is_shortage(r) ? r : 0;
}

DEFINE_CLEANUP(DIR *, closedir)
#define _cleanup_closedir_ _cleanup_(closedir_pointer)
