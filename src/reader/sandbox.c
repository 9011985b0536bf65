/* SPDX-License-Identifier: MIT */
/* Sets the limits of the process, and drops its rights in the right order; see the header. */
#include "reader/sandbox.h"
#include "base/macro.h"
#include "reader/file_access.h"
#include "reader/name_services.h"
#include "reader/syscall_filter.h"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The largest reply (io/reply_limit.h) is in memory up to three times: in the buffer of hiredis, as hiredis
 * objects, and in the answer to sqmgr. That takes 96 MiB, and 26 MiB for 262,144 objects. The remaining
 * memory is for decoded JSON, TLS, and threads that still wait for a name server, with 8 MiB of stack
 * each. */
#define DATA_MAX_BYTES ((rlim_t)256 << 20)
/* Bounds the memory that RLIMIT_DATA does not count: libraries, reserved malloc arenas (64 MiB per thread),
 * and page tables of read-only memory. */
#define ADDRESSES_MAX_BYTES ((rlim_t)1 << 30)
/* Four sockets for each lookup that still waits, besides those of the reader. */
#define DESCRIPTORS_MAX 64
/* Limits the threads of all readers together, since the kernel counts per user. Without the limit, a reader
 * could start threads until its control group, which it shares with the workers, is full. */
#define TASKS_MAX 4096

struct limit {
        int resource;
        rlim_t value;
};

/* A limit that is lower already stays. */
static int lower(const struct limit *limit)
{
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t)limit->resource, &now) < 0)
                return -errno;
        now.rlim_max = MIN(now.rlim_max, limit->value);
        now.rlim_cur = MIN(now.rlim_cur, limit->value);
        return setrlimit((__rlimit_resource_t)limit->resource, &now) < 0 ? -errno : 0;
}

/* Returns true if our user runs only readers, so that the task limit affects nothing else. An sqmgr without
 * root runs readers as its own user, who also runs the workers. A reader with a fleet's user has that user's
 * groups, and one with a user of its own has none (privileged/reader_start.h). */
static bool has_own_user(void)
{
        char path[32];
        struct stat parent;

        if (getgroups(0, NULL) != 0)
                return false;
        snprintf(path, sizeof(path), "/proc/%d", (int)getppid());
        return stat(path, &parent) < 0 || parent.st_uid != getuid();
}

static int apply_limits(void)
{
        static const struct limit limits[] = {
                {RLIMIT_DATA, DATA_MAX_BYTES},
                {RLIMIT_AS, ADDRESSES_MAX_BYTES},
                {RLIMIT_NOFILE, DESCRIPTORS_MAX},
                {RLIMIT_CORE, 0},
        };
        static const struct limit tasks = {RLIMIT_NPROC, TASKS_MAX};

        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        FOREACH_ELEMENT(limit, limits) {
                int r = lower(limit);
                if (r < 0)
                        return r;
        }
        return has_own_user() ? lower(&tasks) : 0;
}

/* Returns true if the process has a second thread, which would keep all rights. /proc/self/task has two
 * links, plus one per thread. Without /proc, returns false. */
static bool has_threads(void)
{
        struct stat tasks;

        return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3;
}

static int enter(const struct sandbox_needs *needs)
{
        static const struct limit file_size = {RLIMIT_FSIZE, 0};
        struct sandbox_needs all = *needs;
        bool services_need_unix_sockets = false;
        int r = 0;

        if (has_threads())
                return -EBUSY;
        /* Standard error may be a file: at the file size limit, lose a log line rather than the process. */
        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
                return -errno;
        if (needs->network)
                r = name_services_load("/etc/nsswitch.conf", &services_need_unix_sockets);
        all.unix_sockets |= services_need_unix_sockets;
        if (r == 0 && !needs->folder)
                r = lower(&file_size);
        if (r == 0)
                r = file_access_restrict(needs->folder);
        return r < 0 ? r : syscall_filter_install(&all);
}

/* gcc defines __SANITIZE_ADDRESS__; clang has __has_feature() instead. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

bool sandbox_is_off(void)
{
#ifdef __SANITIZE_ADDRESS__
        return true;
#else
        return false;
#endif
}

int sandbox_limits(void)
{
        return sandbox_is_off() ? 0 : apply_limits();
}

int sandbox_enter(const struct sandbox_needs *needs)
{
        return sandbox_is_off() ? 0 : enter(needs);
}
