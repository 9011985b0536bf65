/* SPDX-License-Identifier: MIT */
/* What is quoted of a log: its end, and no more than fits. */
#include "base/fd.h"
#include "io/log_tail.h"
#include "io/proc.h"
#include "unit.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define HUNDRED                                                                                              \
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
        "aa"

static const struct {
        const char *text;
        uint64_t start;
        size_t size;
        const char *lines;
} tails[] = {
        {"", 0, 801, ""},
        {"old\n", 4, 801, ""},
        {"old\nnew\n", 4, 801, "new"},
        {"1\n2\n3\n4\n5\n6\n7\n", 0, 801, "3\n4\n5\n6\n7"},
        {"1\n2\n3\n4\n5\n6\n7 unfinished", 0, 801, "3\n4\n5\n6\n7 unfinished"},
        {"one\r\n\n\n", 0, 801, "one"},
        {"cut off by rotation\n", 1000, 801, "cut off by rotation"},
        {"\033[31mred\033[0m \xff \xc3\xbc\n", 0, 801, "red ? \xc3\xbc"},
        {"\033[1;34mINFO \033[0m x\n\033[1m  indented\033[0m\n", 0, 801, "INFO  x"},
        {"whole line\nlast\n", 0, 6, "last"},
        {"whole line\nlast\n", 0, 5, "last"},
        {"whole line\nlast\n", 0, 4, "ast"},
        {"one very long line\n", 0, 6, " line"},
        {"app.rb:1:in `require': no such gem (LoadError)\n\tfrom a\n\tfrom b\n\tfrom c\n\tfrom d\n\tfrom e\n",
         0, 801, "app.rb:1:in `require': no such gem (LoadError)"},
        {"no database.yml\n/a.rb:1:in `<top (required)>'\n<internal:/b.rb>:136:in `require'\n"
         "/c.rb:4:in 'Kernel#load'\r\n/d e.rb:5:in `f'\n",
         0, 801, "no database.yml\n/a.rb:1:in `<top (required)>'\n/d e.rb:5:in `f'"},
        {"/a.rb:1:in `b'\n/a.rb:2:in `c': it 'd' (E)\n/a.rb:3:in `d'\n", 0, 801,
         "/a.rb:1:in `b'\n/a.rb:2:in `c': it 'd' (E)\n/a.rb:3:in `d'"},
        {"/a.rb:1:in `b'\nx:in `f'\nx:1:in `\nx:1:in g'\n:in `h'\n", 0, 801,
         "/a.rb:1:in `b'\nx:in `f'\nx:1:in `\nx:1:in g'\n:in `h'"},
        {"/a.rb:1:in `b'\nx:1:in 'y'z'\nx:1:in ", 0, 801, "/a.rb:1:in `b'\nx:1:in 'y'z'\nx:1:in "},
        {"Traceback:\n  File x\nImportError: y\n", 0, 801, "Traceback:\nImportError: y"},
        {" all\n indented\n", 0, 801, " all\n indented"},
        {"x\n", 0, 1, ""},
        /* What is repeated is folded, and does not push out what differs. */
        {"a\nb\nb\nb\n", 0, 801, "a\nb (repeated 3 times)"},
        {"first\na\nb\na\nb\nc\nd\nd\nd\nd\n", 0, 801,
         "first\na (repeated 2 times)\nb (repeated 2 times)\nc\nd (repeated 4 times)"},
        {"a\n\n\r\nb\r\n", 0, 801, "a\nb"},
        {"aaaa\naaaa\n", 0, 5, "aaaa"},
        /* Of a shared log, the lines that name the process 7, or 9 below it. */
        {"pid=7 tid=x INFO: mine\npid=8 tid=y INFO: theirs\nno database.yml\npid=9 tid=z mine\n", 0, 801,
         "pid=7 tid=x INFO: mine\npid=9 tid=z mine"},
        {"{\"ts\":\"t\",\"pid\":8,\"tid\":\"y\"}\n{\"ts\":\"t\",\"pid\":7,\"tid\":\"y\"}\n", 0, 801,
         "{\"ts\":\"t\",\"pid\":7,\"tid\":\"y\"}"},
        {"pid=8 tid=y INFO: theirs\n", 0, 801, ""},
        {"Error: Cannot find module '/a/sqmgr-bullmq.cjs'\nError: no pid, Cannot find module '/a/b.js'\n}\n",
         0, 801, "Error: Cannot find module '/a/sqmgr-bullmq.cjs'"},
        {"port taken by pid=7\npid=7x tid=\npid= tid=\n", 0, 801, ""},
        {"dropped\ncut" HUNDRED HUNDRED HUNDRED HUNDRED "\n" HUNDRED HUNDRED HUNDRED HUNDRED "\n", 0, 801,
         HUNDRED HUNDRED HUNDRED HUNDRED},
};

TEST_LOOP(reads_last_lines, ELEMENTSOF(tails))
{
        char lines[LOG_TAIL_MAX_BYTES + 1];

        const pid_t pids[] = {7, strstr(tails[_i].text, "pid") ? 9 : LOG_TAIL_ANY_PID};
        int fd = memfd_create("log", MFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fd_write_all(fd, tails[_i].text, strlen(tails[_i].text)), 0);
        ck_assert_int_eq(log_tail_read(fd, tails[_i].start, pids, lines, tails[_i].size), 0);
        ck_assert_str_eq(lines, tails[_i].lines);
        close(fd);
}

TEST(what_is_no_regular_file_has_no_last_lines)
{
        char lines[16] = "unset";
        int ends[2];

        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        ck_assert_int_eq(fd_write_all(ends[1], "line\n", 5), 0);
        ck_assert_int_eq(log_tail_read(ends[0], 0, (pid_t[2]){0}, lines, sizeof(lines)), 0);
        ck_assert_str_eq(lines, "");
        close(ends[0]);
        close(ends[1]);
        ck_assert_int_eq(log_tail_read(-1, 0, (pid_t[2]){0}, lines, sizeof(lines)), -EBADF);
}

TEST_MAIN("last_lines")
