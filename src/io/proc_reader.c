/* SPDX-License-Identifier: MIT */
/* The program sqmgr-proc-reader and its users; see the header. */
#include "io/proc_reader.h"
#include "base/macro.h"
#include "io/own_program.h"
#include "io/proc_question.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NOGROUP 65534

void proc_reader_user_of(const struct proc *proc, uid_t uid, struct proc_reader_user *ret)
{
        *ret = (struct proc_reader_user){.uid = uid, .gid = NOGROUP};
        if (proc_groups(proc, uid, &ret->gid, ret->groups, ELEMENTSOF(ret->groups), &ret->n_groups) == 0)
                ret->since = proc_start_time(proc);
}

bool proc_reader_has_groups(const struct proc_reader_user *a, const struct proc_reader_user *b)
{
        return a->gid == b->gid && a->n_groups == b->n_groups &&
               memcmp(a->groups, b->groups, a->n_groups * sizeof(a->groups[0])) == 0;
}

int proc_reader_open_program(void)
{
        int r = own_program_open(PROC_READER_NAME, PROC_READER);

        if (r >= 0)
                return r;
        int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
        return fd < 0 ? r : fd;
}
