/* SPDX-License-Identifier: MIT */
/* Descriptors: reads small files and writes whole buffers. */
#include "base/fd.h"

#include <fcntl.h>

ssize_t fd_read_start(int fd, char *text, size_t size)
{
        size_t length = 0;

        while (length < size - 1) {
                ssize_t n = pread(fd, text + length, size - 1 - length, (off_t)length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t)n;
        }
        text[length] = '\0';
        return (ssize_t)length;
}

ssize_t fd_read_file(int dir_fd, const char *path, char *text, size_t size)
{
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        return fd_read_start(fd, text, size);
}

int fd_read_whole(int fd, size_t max_bytes, char **ret, size_t *ret_length)
{
        _cleanup_free_ char *text = NULL;
        size_t length = 0, allocated = 0;

        for (;;) {
                if (allocated - length < 2) {
                        size_t wanted = MAX((size_t)4096, allocated * 2);
                        char *larger = realloc(text, wanted);
                        if (!larger)
                                return -ENOMEM;
                        text = larger;
                        allocated = wanted;
                }
                ssize_t n = read(fd, text + length, allocated - length - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t)n;
                if (length > max_bytes)
                        return -EFBIG;
        }
        text[length] = '\0';
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

int fd_write_all(int fd, const void *data, size_t size)
{
        const char *rest = data;

        while (size > 0) {
                ssize_t n = write(fd, rest, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                rest += n;
                size -= (size_t)n;
        }
        return 0;
}
