/* SPDX-License-Identifier: MIT */
/* The file that holds the ledger, mapped into memory. */
#include "io/ledger_file.h"
#include "base/fd.h"
#include "io/ledger_guard.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* sqmgr never makes a larger file. */
#define BYTES_MAX ((off_t)1 << 28)

/* Allocates disk space: a store into a page without space loses the file (see ledger_guard.h). Never shrinks
 * the file. */
static int reserve(int fd, size_t bytes)
{
        int r;

        do
                r = posix_fallocate(fd, 0, (off_t)bytes);
        while (r == EINTR);
        return -r;
}

static int map(struct ledger_file *file, int fd, size_t bytes)
{
        int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

        if (memory == MAP_FAILED)
                return -errno;
        ledger_file_close(file);
        file->mapped = bytes;
        ledger_attach(&file->ledger, memory, bytes);
        file->ledger.durable = fd >= 0;
        return 0;
}

/* Returns the file's size if it is a ledger of this boot that nobody else can have written, else 0. */
static size_t usable_bytes(int fd, const char *boot_id)
{
        struct ledger_header header;
        struct stat status;

        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
            (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || status.st_nlink != 1 ||
            status.st_size < (off_t)ledger_bytes(1) || status.st_size > BYTES_MAX ||
            pread(fd, &header, sizeof(header), 0) != sizeof(header) || !ledger_is_valid(&header, boot_id))
                return 0;
        return (size_t)status.st_size;
}

/* Takes ownership of fd if all goes well. Returns 0 or -errno. */
static int keep_file(struct ledger_file *file, const char *path, int fd)
{
        struct stat status;

        file->path = strdup(path);
        if (!file->path)
                return -ENOMEM;
        if (fstat(fd, &status) < 0)
                return -errno;
        file->inode = status.st_ino;
        file->fd = fd;
        ledger_guard_add(file->ledger.header, file->mapped, fd, file->path);
        return 0;
}

bool ledger_file_is_lost(const struct ledger_file *file)
{
        return ledger_guard_is_lost(file->ledger.header);
}

bool ledger_file_is_in_place(const struct ledger_file *file)
{
        struct stat status;

        return file->path && !ledger_file_is_lost(file) &&
               (lstat(file->path, &status) == 0 ? status.st_ino == file->inode : errno != ENOENT);
}

/* Maps the ledger that an earlier sqmgr left. Returns 1, 0 if there is none, or -errno. */
static int open_kept(struct ledger_file *file, const char *path, const char *boot_id, size_t n_slots)
{
        int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        _cleanup_close_ int fd = open(path, flags);

        if (fd < 0)
                return is_shortage(-errno) ? -errno : 0;
        size_t bytes = usable_bytes(fd, boot_id);
        if (bytes == 0)
                return 0;
        /* A file with holes has no space for all its slots. */
        int r = reserve(fd, bytes);
        if (r == 0 && bytes < ledger_bytes(n_slots) && reserve(fd, ledger_bytes(n_slots)) == 0)
                bytes = ledger_bytes(n_slots);
        if (r == 0)
                r = map(file, fd, bytes);
        if (r == 0)
                r = keep_file(file, path, fd);
        if (r < 0)
                return r;
        TAKE_FD(fd);
        return 1;
}

/* Makes a new file, of zeros: a child of an earlier sqmgr may still have the old one mapped. */
static int open_new(struct ledger_file *file, const char *path, size_t n_slots)
{
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        _cleanup_close_ int fd =
                open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
        if (fd < 0)
                return -errno;
        int r = reserve(fd, ledger_bytes(n_slots));
        if (r == 0)
                r = map(file, fd, ledger_bytes(n_slots));
        if (r < 0) {
                (void)unlink(path);
                return r;
        }
        r = keep_file(file, path, fd);
        if (r == 0)
                TAKE_FD(fd);
        return r;
}

int ledger_file_open(struct ledger_file *file, const char *path, const char *boot_id, size_t n_slots,
                     const char **ret_why)
{
        int r = open_kept(file, path, boot_id, n_slots);

        if (r > 0)
                return LEDGER_FILE_KEPT;
        if (r == 0)
                r = open_new(file, path, n_slots);
        if (r == 0) {
                ledger_format(file->ledger.header, boot_id);
                return LEDGER_FILE_NEW;
        }
        /* The contents are not lost: a later start can read the file. */
        if (is_shortage(r))
                return r;
        *ret_why = strerrordesc_np(-r);
        r = map(file, -1, ledger_bytes(n_slots));
        if (r < 0)
                return r;
        ledger_format(file->ledger.header, boot_id);
        return LEDGER_FILE_NONE;
}

int ledger_file_grow(struct ledger_file *file, size_t n_slots)
{
        size_t bytes = ledger_bytes(n_slots);

        if (bytes <= file->mapped)
                return 0;
        if (ledger_file_is_lost(file))
                return -EIO;
        int r = file->fd >= 0 ? reserve(file->fd, bytes) : 0;
        if (r < 0)
                return r;
        /* Shared memory without a file cannot grow, so it is copied. The caller ensures that all starts were
         * claimed. */
        void *memory = file->fd >= 0
                               ? mremap(file->ledger.header, file->mapped, bytes, MREMAP_MAYMOVE)
                               : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return -errno;
        if (file->fd < 0) {
                memcpy(memory, file->ledger.header, file->mapped);
                (void)munmap(file->ledger.header, file->mapped);
        }
        if (file->fd >= 0) {
                ledger_guard_remove(file->ledger.header);
                ledger_guard_add(memory, bytes, file->fd, file->path);
        }
        file->mapped = bytes;
        ledger_attach(&file->ledger, memory, bytes);
        return 0;
}

int ledger_file_detach(struct ledger_file *file, const char *boot_id)
{
        int r = map(file, -1, file->mapped);

        if (r == 0)
                ledger_format(file->ledger.header, boot_id);
        return r;
}

int ledger_file_make_durable(struct ledger_file *file, const char *path)
{
        const struct ledger *ledger = &file->ledger;
        struct ledger_file made = LEDGER_FILE_INIT;
        int r = open_new(&made, path, ledger->n_slots);

        if (r < 0)
                return r;
        assert(made.ledger.header && ledger->header);
        /* The header comes last: until then, the next sqmgr would not take the file for a whole ledger. */
        memcpy(made.ledger.slots, ledger->slots, ledger->n_slots * sizeof(*ledger->slots));
        atomic_thread_fence(memory_order_seq_cst);
        memcpy(made.ledger.header, ledger->header, sizeof(*ledger->header));
        /* The guard has removed the new file. */
        if (ledger_file_is_lost(&made) || ledger_file_is_lost(file)) {
                ledger_file_close(&made);
                return -EIO;
        }
        ledger_file_close(file);
        *file = made;
        return 0;
}

void ledger_file_close(struct ledger_file *file)
{
        if (file->mapped > 0) {
                ledger_guard_remove(file->ledger.header);
                (void)munmap(file->ledger.header, file->mapped);
        }
        close_fd(file->fd);
        free(file->path);
        *file = LEDGER_FILE_INIT;
}
