/* SPDX-License-Identifier: MIT */
/* The file that holds the ledger, mapped into memory. */
#include "io/ledger_file.h"
#include "base/fd.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

/* sqmgr never makes a larger file. */
#define BYTES_MAX ((off_t)1 << 28)

/* The ledger, and a new one that is about to replace the ledger. */
#define MAPPINGS_MAX 2

static struct mapping {
        char *memory; /* NULL: unused */
        size_t bytes;
        int fd;
        const char *path;
        volatile sig_atomic_t lost;
} mappings[MAPPINGS_MAX];

static struct sigaction previous;

static struct mapping *find(const void *address)
{
        FOREACH_ELEMENT(mapping, mappings)
                if (mapping->memory && (const char *)address >= mapping->memory &&
                    (const char *)address < mapping->memory + mapping->bytes)
                        return mapping;
        return NULL;
}

/* Async-signal-safe, like everything that the handler calls. */
static bool replace(const struct mapping *mapping)
{
        size_t done = 0;
        ssize_t n;
        char *memory = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
                return false;
        /* Bytes that cannot be read are zero: free slots. */
        while (done < mapping->bytes &&
               (n = pread(mapping->fd, memory + done, mapping->bytes - done, (off_t)done)) > 0)
                done += (size_t)n;
        return mremap(memory, mapping->bytes, mapping->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                      mapping->memory) != MAP_FAILED;
}

/* Keeps this process alive if a store into the mapped file of the ledger fails. The kernel then raises
 * SIGBUS: the file was truncated, or the disk is full and its file system copies on write. The handler
 * replaces the mapping by memory without a file, copies what can still be read, and removes the file: the
 * next sqmgr must not trust the file. Any other SIGBUS ends the process as before. */
static void on_fault(int signo, siginfo_t *info, void *context _unused_)
{
        int error = errno;
        struct mapping *mapping = info->si_code > 0 ? find(info->si_addr) : NULL;

        if (mapping && !mapping->lost && replace(mapping)) {
                mapping->lost = 1;
                (void)unlink(mapping->path);
        } else {
                /* Restore the previous action. A failed store runs again and ends the process; a signal from
                 * another process is raised again. */
                (void)sigaction(signo, &previous, NULL);
                if (info->si_code <= 0)
                        (void)raise(signo);
        }
        errno = error;
}

int ledger_file_guard(void)
{
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

        sigemptyset(&action.sa_mask);
        return sigaction(SIGBUS, &action, &previous) < 0 ? -errno : 0;
}

/* Guards a mapping of the file at path. fd and path must stay valid until guard_remove(). At most two
 * mappings can be guarded at a time. */
static void guard_add(void *memory, size_t bytes, int fd, const char *path)
{
        FOREACH_ELEMENT(mapping, mappings) {
                if (mapping->memory)
                        continue;
                *mapping = (struct mapping){.memory = memory, .bytes = bytes, .fd = fd, .path = path};
                return;
        }
        assert(false);
}

/* Call before the mapping is undone or moved. A mapping that is not guarded is accepted. */
static void guard_remove(const void *memory)
{
        struct mapping *mapping = find(memory);

        if (mapping)
                *mapping = (struct mapping){0};
}

/* Returns true if the mapping was replaced. */
static bool guard_is_lost(const void *memory)
{
        const struct mapping *mapping = find(memory);

        return mapping && mapping->lost;
}

/* Allocates disk space: a store into a page without space loses the file (see on_fault()). Never shrinks the
 * file. */
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
        guard_add(file->ledger.header, file->mapped, fd, file->path);
        return 0;
}

bool ledger_file_is_lost(const struct ledger_file *file)
{
        return guard_is_lost(file->ledger.header);
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
                guard_remove(file->ledger.header);
                guard_add(memory, bytes, file->fd, file->path);
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
                guard_remove(file->ledger.header);
                (void)munmap(file->ledger.header, file->mapped);
        }
        close_fd(file->fd);
        free(file->path);
        *file = LEDGER_FILE_INIT;
}
