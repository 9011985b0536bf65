/* SPDX-License-Identifier: MIT */
/* The program sqmgr-proc-reader and its users; see the header. */
#include "io/proc_reader.h"
#include "io/proc_question.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOGROUP 65534

void proc_reader_user_of(const struct proc *proc, uid_t uid, struct proc_reader_user *ret)
{
        *ret = (struct proc_reader_user){.uid = uid};
        if (proc_groups(proc, &ret->gid, ret->groups, ELEMENTSOF(ret->groups), &ret->n_groups) < 0)
                ret->gid = NOGROUP;
}

int proc_reader_open_program(void)
{
        /* Beside sqmgr in the build folder, and beside the sqmgr that tests build there. */
        static const char *const places[] = {"", "../../"};
        char own[PATH_MAX], path[PATH_MAX + 64];

        int fd = open(PROC_READER, O_PATH | O_CLOEXEC);
        int r = fd < 0 ? -errno : fd;
        ssize_t n = fd < 0 ? readlink("/proc/self/exe", own, sizeof(own)) : -1;
        const char *slash = n > 0 ? memrchr(own, '/', (size_t)n) : NULL;
        for (size_t i = 0; fd < 0 && slash && i < ELEMENTSOF(places); i++) {
                snprintf(path, sizeof(path), "%.*s/%s" PROC_READER_NAME, (int)(slash - own), own, places[i]);
                fd = open(path, O_PATH | O_CLOEXEC);
        }
        if (fd < 0)
                fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
        return fd < 0 ? r : fd;
}
