/* SPDX-License-Identifier: MIT */
/* Tests of io/host.h against made-up /proc and control groups. */
#include "io/host.h"
#include "unit.h"

#include <stdio.h>

#define MEMINFO "MemTotal:        1000 kB\nMemFree:           10 kB\nMemAvailable:     800 kB\nCached: 5 kB\n"
#define KIB(n)  ((uint64_t)(n)*1024)

struct file {
        const char *path, *text; /* below a root; text NULL: the end of the list */
};

static const struct {
        const char *what;
        struct file files[10];
        uint64_t total, available;
} machines[] = {
        {"no control group", {{"proc/meminfo", MEMINFO}}, KIB(1000), KIB(800)},
        {"a limit below what is available",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/app.slice/sqmgr.service\n"},
          {"cgroup/app.slice/sqmgr.service/memory.max", "512000\n"},
          {"cgroup/app.slice/sqmgr.service/memory.current", "409600\n"},
          {"cgroup/app.slice/sqmgr.service/memory.stat", "anon 1\nactive_file 7\ninactive_file 102400\n"}},
         KIB(500),
         KIB(200)},
        {"no limit",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/sqmgr.service\n"},
          {"cgroup/sqmgr.service/memory.max", "max\n"},
          {"cgroup/sqmgr.service/memory.current", "409600\n"}},
         KIB(1000),
         KIB(800)},
        {"a limit of the group above",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/a/b\n"},
          {"cgroup/a/b/memory.max", "max\n"},
          {"cgroup/a/memory.max", "614400\n"},
          {"cgroup/a/memory.current", "102400\n"}},
         KIB(600),
         KIB(500)},
        {"more used than allowed",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/a\n"},
          {"cgroup/a/memory.max", "1024\n"},
          {"cgroup/a/memory.current", "2048\n"},
          {"cgroup/a/memory.stat", "inactive_file 512\n"}},
         KIB(1),
         0},
        {"a container that sees its group as the root",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/docker/0123\n"},
          {"cgroup/memory.max", "512000\n"},
          {"cgroup/memory.current", "512\n"}},
         KIB(500),
         512000 - 512},
        {"a group outside of the namespace",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/../../other\n"},
          {"proc/memory.max", "1\n"},
          {"cgroup/memory.max", "102400\n"},
          {"cgroup/memory.current", "0\n"}},
         KIB(100),
         KIB(100)},
        {"version 1 beside version 2",
         {{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/app\n0::/v2\n"},
          {"cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
          {"cgroup/memory/memory.usage_in_bytes", "900000\n"},
          {"cgroup/memory/app/memory.limit_in_bytes", "307200\n"},
          {"cgroup/memory/app/memory.usage_in_bytes", "204800\n"},
          {"cgroup/memory/app/memory.stat", "inactive_file 1\ntotal_inactive_file 51200\n"},
          {"cgroup/v2/memory.max", "1\n"}},
         KIB(300),
         KIB(150)},
        {"a limit whose usage cannot be read",
         {{"proc/meminfo", MEMINFO}, {"proc/self/cgroup", "0::/a\n"}, {"cgroup/a/memory.max", "512000\n"}},
         KIB(500),
         KIB(800)},
};

TEST_LOOP(takes_the_smaller_of_machine_and_control_groups, ELEMENTSOF(machines))
{
        char dir[] = "/tmp/test_host.XXXXXX", proc[64], cgroup[64];
        struct proc_host *host = NULL;
        uint64_t total = 1, available = 1;

        ck_assert_ptr_nonnull(mkdtemp(dir));
        for (const struct file *file = machines[_i].files; file->path; file++)
                unit_write_file(dir, file->path, file->text);
        snprintf(proc, sizeof(proc), "%s/proc", dir);
        snprintf(cgroup, sizeof(cgroup), "%s/cgroup", dir);
        int opened = proc_host_open(proc, cgroup, &host);
        int read_total = host ? proc_total_memory_bytes(host, &total) : -1;
        int read_available = host ? proc_available_memory_bytes(host, &available) : -1;
        proc_host_close(host);
        unit_remove_tree(dir);

        ck_assert_msg(opened == 0 && read_total == 0 && read_available == 0, "%s", machines[_i].what);
        ck_assert_msg(total == machines[_i].total, "%s: total %ju", machines[_i].what, (uintmax_t)total);
        ck_assert_msg(available == machines[_i].available, "%s: available %ju", machines[_i].what,
                      (uintmax_t)available);
}

TEST(reads_this_machine)
{
        struct proc_host *host;
        uint64_t total, available;

        ck_assert_int_eq(proc_host_open(NULL, NULL, &host), 0);
        ck_assert_int_eq(proc_total_memory_bytes(host, &total), 0);
        ck_assert_int_eq(proc_available_memory_bytes(host, &available), 0);
        proc_host_close(host);
        ck_assert_uint_gt(available, 0);
        ck_assert_uint_ge(total, available);
}

static int oom_kills_of(const char *vmstat, uint64_t *ret)
{
        char dir[] = "/tmp/test_host.XXXXXX";
        struct proc_host *host = NULL;

        ck_assert_ptr_nonnull(mkdtemp(dir));
        unit_write_file(dir, "meminfo", MEMINFO);
        if (vmstat)
                unit_write_file(dir, "vmstat", vmstat);
        int r = proc_host_open(dir, dir, &host);
        if (r == 0)
                r = proc_oom_kills(host, ret);
        proc_host_close(host);
        unit_remove_tree(dir);
        return r;
}

TEST(counts_what_the_oom_killer_ended_where_the_kernel_does)
{
        uint64_t kills = 7;

        ck_assert_int_eq(oom_kills_of("nr_free_pages 10\noom_kill 3\noom_kill_more 4\n", &kills), 0);
        ck_assert_uint_eq(kills, 3);
        ck_assert_int_eq(oom_kills_of("nr_free_pages 10\n", &kills), -ENODATA);
        ck_assert_int_eq(oom_kills_of("oom_kill many\n", &kills), -ENODATA);
        ck_assert_int_eq(oom_kills_of(NULL, &kills), -ENODATA);
        ck_assert_uint_eq(kills, 3);
}

TEST(says_that_meminfo_is_missing)
{
        struct proc_host *host = NULL;

        ck_assert_int_eq(proc_host_open("/dev/null", NULL, &host), -ENOTDIR);
        ck_assert_ptr_null(host);
}

TEST_MAIN("host")
