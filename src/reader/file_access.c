/* SPDX-License-Identifier: MIT */
/* Landlock by bare system calls: the C library has no functions for it. See the header. */
#include "reader/file_access.h"
#include "base/macro.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>

/* As <linux/landlock.h> of a recent kernel has it. An older kernel accepts the size if the rest is 0. */
struct ruleset {
        uint64_t files, network, scoped;
};
#define FILES_TRUNCATE (1ULL << 14)
#define FILES_DEVICES  (1ULL << 15)
#define FILES_READ     (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FILES_WRITE                                                                                          \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define NETWORK_BIND_TCP        (1ULL << 0)
#define SCOPED_ABSTRACT_SOCKETS (1ULL << 0)
#define SCOPED_SIGNALS          (1ULL << 1)

/* Folders only: a rule for a file does not cover the file that replaces it. */
static const char *const readable[] = {
        "/etc", /* hosts, resolv.conf, nsswitch.conf, gai.conf, ssl */
        "/usr", /* certificates that /etc/ssl leads to; modules */
        "/lib",
        "/lib64",
        /* Targets of /etc/resolv.conf. */
        "/run/systemd/resolve",
        "/run/NetworkManager",
        "/run/resolvconf",
        "/run/connman",
};

static int make_ruleset(int version)
{
        struct ruleset ruleset = {.files = LANDLOCK_ACCESS_FS_REFER - 1};

        if (version >= 2)
                ruleset.files |= LANDLOCK_ACCESS_FS_REFER;
        if (version >= 3)
                ruleset.files |= FILES_TRUNCATE;
        if (version >= 4)
                ruleset.network = NETWORK_BIND_TCP;
        if (version >= 5)
                ruleset.files |= FILES_DEVICES;
        if (version >= 6)
                ruleset.scoped = SCOPED_ABSTRACT_SOCKETS | SCOPED_SIGNALS;
        int fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
        return fd < 0 ? -errno : fd;
}

static int allow(int ruleset, const char *path, uint64_t access)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

        if (fd < 0)
                return errno == ENOENT || errno == EACCES ? 0 : -errno;
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int file_access_restrict(const char *folder)
{
        int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        /* Not built in, not enabled, or refused by a container's own filter. */
        if (version < 0)
                return 0;
        _cleanup_close_ int ruleset = make_ruleset(version);
        if (ruleset < 0)
                return ruleset;
        FOREACH_ELEMENT(path, readable) {
                int r = allow(ruleset, *path, FILES_READ);
                if (r < 0)
                        return r;
        }
        if (folder) {
                int r = allow(ruleset, folder,
                              FILES_READ | FILES_WRITE | (version >= 3 ? FILES_TRUNCATE : 0));
                if (r < 0)
                        return r;
        }
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
