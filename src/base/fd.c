/* SPDX-License-Identifier: MIT */
/* File descriptors: read small files, write whole buffers, send a descriptor, close ranges. */
#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

ssize_t fd_read_start(int fd, char *text, size_t size)
{
        size_t length = 0;

        while (length < size - 1) {
                ssize_t n = TEMP_FAILURE_RETRY(pread(fd, text + length, size - 1 - length, (off_t)length));
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
                        if (!ARRAY_RESIZE(text, wanted))
                                return -ENOMEM;
                        allocated = wanted;
                }
                ssize_t n = TEMP_FAILURE_RETRY(read(fd, text + length, allocated - length - 1));
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
                ssize_t n = TEMP_FAILURE_RETRY(write(fd, rest, size));
                if (n < 0)
                        return -errno;
                rest += n;
                size -= (size_t)n;
        }
        return 0;
}

int fd_memory(const char *name, const void *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC);
        int r = fd < 0 ? -errno : fd_write_all(fd, data, size);

        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

int fd_send(int fd, const void *data, size_t size, int passed, int flags)
{
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec part = {.iov_base = (void *)data, .iov_len = size};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

        if (passed >= 0) {
                header.msg_control = &control;
                header.msg_controllen = sizeof(control);
                struct cmsghdr *item = CMSG_FIRSTHDR(&header);
                item->cmsg_level = SOL_SOCKET;
                item->cmsg_type = SCM_RIGHTS;
                item->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(item), &passed, sizeof(int));
        }
        return TEMP_FAILURE_RETRY(sendmsg(fd, &header, flags | MSG_NOSIGNAL)) < 0 ? -errno : 0;
}

ssize_t fd_receive(int fd, void *data, size_t size, int *ret_passed, int flags)
{
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = {.iov_base = data, .iov_len = size};
        struct msghdr header = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };

        *ret_passed = -1;
        ssize_t n = TEMP_FAILURE_RETRY(recvmsg(fd, &header, flags | MSG_CMSG_CLOEXEC));
        if (n < 0)
                return -errno;
        struct cmsghdr *item = CMSG_FIRSTHDR(&header);
        if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS &&
            item->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_passed, CMSG_DATA(item), sizeof(int));
        return n;
}

int fd_connect(const char *path, int flags, usec_t send_timeout)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct timeval limit = {.tv_sec = (time_t)(send_timeout / USEC_PER_SEC),
                                .tv_usec = (suseconds_t)(send_timeout % USEC_PER_SEC)};

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
        if (fd < 0)
                return -errno;
        /* A timeout of 0 would mean no timeout. */
        limit.tv_usec += send_timeout == 0;
        if (send_timeout != USEC_INFINITY)
                (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int fd_open_standard(int flags)
{
        int fd;

        do {
                fd = open("/dev/null", flags);
                if (fd < 0)
                        return -errno;
        } while (fd <= STDERR_FILENO);
        close_fd(fd);
        return 0;
}

int fd_close_at_exec(unsigned first)
{
        if (close_range(first, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0)
                return 0;

        /* The kernel is too old, or a seccomp filter rejects the call. */
        _cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
        if (!dir)
                return -errno;
        for (const struct dirent *entry; (entry = readdir(dir));) {
                char *end;
                unsigned long fd = strtoul(entry->d_name, &end, 10);

                if (end != entry->d_name && fd >= first)
                        (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
        }
        return 0;
}

int fd_type(int fd, mode_t *ret_type, uint64_t *ret_bytes)
{
        struct statx status;

        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &status) < 0)
                return -errno;
        *ret_type = status.stx_mode & S_IFMT;
        if (ret_bytes)
                *ret_bytes = status.stx_size;
        return 0;
}
