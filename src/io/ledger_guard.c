/* SPDX-License-Identifier: MIT */
/* The handler of SIGBUS. */
#include "io/ledger_guard.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

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

int ledger_guard_install(void)
{
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

        sigemptyset(&action.sa_mask);
        return sigaction(SIGBUS, &action, &previous) < 0 ? -errno : 0;
}

void ledger_guard_add(void *memory, size_t bytes, int fd, const char *path)
{
        FOREACH_ELEMENT(mapping, mappings) {
                if (mapping->memory)
                        continue;
                *mapping = (struct mapping){.memory = memory, .bytes = bytes, .fd = fd, .path = path};
                return;
        }
        assert(false);
}

void ledger_guard_remove(const void *memory)
{
        struct mapping *mapping = find(memory);

        if (mapping)
                *mapping = (struct mapping){0};
}

bool ledger_guard_is_lost(const void *memory)
{
        const struct mapping *mapping = find(memory);

        return mapping && mapping->lost;
}
