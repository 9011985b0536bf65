/* SPDX-License-Identifier: MIT */
/* Which file of the kernel reports memory pressure, and how; with substitutes, and with the kernel's own
 * file. */
#include "io/psi.h"
#include "model/pressure.h"
#include "unit.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define SOME(avg10) "some avg10=" avg10 " avg60=1.00 avg300=0.50 total=7\nfull avg10=0.00\n"

struct file {
        const char *path, *text; /* text NULL: the end of the list */
};

static const struct {
        const char *what;
        struct file files[4];
        unsigned avg10; /* 0: there is none */
} machines[] = {
        {"the machine's alone", {{"proc/pressure/memory", SOME("1.00")}}, 100},
        {"our group's before the machine's",
         {{"proc/pressure/memory", SOME("1.00")},
          {"proc/self/cgroup", "0::/app.slice/sqmgr.service\n"},
          {"cgroup/app.slice/sqmgr.service/memory.pressure", SOME("2.00")}},
         200},
        {"a mixed hierarchy",
         {{"proc/pressure/memory", SOME("1.00")},
          {"proc/self/cgroup", "4:memory:/x\n0::/sqmgr.service\n"},
          {"cgroup/unified/sqmgr.service/memory.pressure", SOME("3.00")}},
         300},
        {"a container that sees its group as the root",
         {{"proc/pressure/memory", SOME("1.00")},
          {"proc/self/cgroup", "0::/docker/0123\n"},
          {"cgroup/memory.pressure", SOME("4.00")}},
         400},
        {"a group outside of the namespace",
         {{"proc/pressure/memory", SOME("1.00")},
          {"proc/self/cgroup", "0::/../other\n"},
          {"other/memory.pressure", SOME("5.00")}},
         100},
        {"the first hierarchy, which has none",
         {{"proc/pressure/memory", SOME("1.00")}, {"proc/self/cgroup", "4:memory:/x\n"}},
         100},
        {"a kernel without", {{"proc/self/cgroup", "0::/\n"}}, 0},
};

TEST_LOOP(our_own_groups_file_comes_first, (int)ELEMENTSOF(machines))
{
        char dir[] = "/tmp/test_psi.XXXXXX", proc[64], cgroup[64], text[256];
        struct pressure_reading reading = {0};
        struct psi *psi = NULL;
        bool parsed = false;

        ck_assert_ptr_nonnull(mkdtemp(dir));
        for (const struct file *file = machines[_i].files; file->path; file++)
                unit_write_file(dir, file->path, file->text);
        snprintf(proc, sizeof(proc), "%s/proc", dir);
        snprintf(cgroup, sizeof(cgroup), "%s/cgroup", dir);
        int r = psi_open(proc, cgroup, 20, &psi), fd = psi ? psi_trigger_fd(psi) : -1;
        if (psi)
                parsed = psi_read(psi, text, sizeof(text)) > 0 && pressure_parse(text, &reading);
        psi_close(psi);
        unit_remove_tree(dir);

        ck_assert_msg(r == (machines[_i].avg10 > 0 ? 0 : -ENOENT), "%s: %d", machines[_i].what, r);
        ck_assert_msg(parsed == (r == 0), "%s: not as it was written", machines[_i].what);
        ck_assert_msg(reading.avg10 == machines[_i].avg10, "%s: %u", machines[_i].what, reading.avg10);
        ck_assert_int_eq(fd, -1);
}

TEST(the_kernels_own_reports_where_it_may)
{
        struct pressure_reading reading;
        struct psi *psi = NULL;
        char text[256];

        if (psi_open(NULL, NULL, 20, &psi) == 0) {
                ck_assert_int_gt(psi_read(psi, text, sizeof(text)), 0);
                ck_assert(pressure_parse(text, &reading));
                struct pollfd poller = {.fd = psi_trigger_fd(psi), .events = POLLPRI};
                /* Whatever there is at once is no error: that would wake us for ever. */
                if (poller.fd >= 0 && poll(&poller, 1, 0) > 0)
                        ck_assert_int_eq(poller.revents & (POLLERR | POLLNVAL), 0);
        }
        psi_close(psi);
}

TEST_MAIN("psi")
