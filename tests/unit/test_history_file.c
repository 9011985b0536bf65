/* SPDX-License-Identifier: MIT */
/* The file of the history: what may be lost by a crash, a full disk, a torn write, or a file that replaces
 * it. */
#include "golden.h"
#include "unit.h"
#include "web/history_file.h"
#include "wire/json.h"
#include <math.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NOON (1800000000 * USEC_PER_SEC)

static char dir[64], path[128], why[HISTORY_FILE_WHY_MAX];
static struct history *history;
static struct history_file *file;

/* The write of that number is the last, and only a part of it comes to the file; 0: none is. */
static unsigned last_write, n_writes;
static size_t last_size;

static bool disk_is_full, room_is_unknown;

/* They stand in for the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t length)
{
        if (disk_is_full || room_is_unknown) {
                errno = room_is_unknown ? EOPNOTSUPP : ENOSPC;
                return -1;
        }
        return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
        if (disk_is_full) {
                errno = ENOSPC;
                return -1;
        }
        n_writes++;
        if (n_writes != last_write)
                return syscall(SYS_pwrite64, fd, bytes, size, offset);
        if (MIN(size, last_size) > 0)
                (void)syscall(SYS_pwrite64, fd, bytes, MIN(size, last_size), offset);
        (void)kill(getpid(), SIGKILL);
        return -1;
}

static void setup(void)
{
        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/history", dir);
        history = NULL;
        file = NULL;
        last_write = n_writes = 0;
        disk_is_full = room_is_unknown = false;
}

static void shut(void)
{
        file = history_file_close(file);
        free(history);
        history = NULL;
}

static void teardown(void)
{
        shut();
        unit_remove_tree(dir);
}

/* For children, too, whom no assertion may interrupt. */
static int reopen(void)
{
        shut();
        why[0] = '\0';
        history = history_new();
        return history ? history_file_open(path, history, &file, why) : -ENOMEM;
}

static void add(usec_t at, const char *fleet, double value)
{
        const struct history_sample sample = {"a.sock", fleet, value, value, value, value};

        history_add(history, at, &sample, 1);
}

static void save(void)
{
        ck_assert_int_eq(history_file_save(file, history, why), HISTORY_FILE_AS_BEFORE);
}

/* The value so many slots before now, or NAN. */
static double value(const char *name, usec_t now, size_t before)
{
        _cleanup_json_ json_t *seen = history_json(history, HISTORY_HOUR, now);
        const json_t *fleet;
        size_t i;

        ck_assert_ptr_nonnull(seen);
        json_array_foreach(json_object_get(seen, "fleets"), i, fleet)
        {
                const json_t *number = json_array_get(json_object_get(fleet, "busy"), 719 - before);

                if (strcmp(json_string_value(json_object_get(fleet, "name")), name) == 0)
                        return json_is_null(number) ? NAN : json_number_value(number);
        }
        return NAN;
}

static off_t file_size(void)
{
        struct stat status;

        ck_assert_int_eq(stat(path, &status), 0);
        return status.st_size;
}

TEST(is_read_again)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        ck_assert_int_eq(file_size(), HISTORY_BYTES);
        add(NOON, "web", 3);
        add(NOON, "mail", 4);
        history_mark(history, NOON, "a.sock", "web", "crash", "it crashed");
        save();
        _cleanup_json_ json_t *before = history_json(history, HISTORY_DAY, NOON);
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        _cleanup_json_ json_t *after = history_json(history, HISTORY_DAY, NOON);
        ck_assert(json_equal(before, after));
        ck_assert_int_eq(file_size(), HISTORY_BYTES);
        /* The history continues where it was. */
        add(NOON, "web", 5);
        ck_assert_double_eq(value("web", NOON, 0), 4);
}

TEST(one_that_gave_way_is_no_damage)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        for (unsigned i = 0; i <= HISTORY_FLEETS; i++) {
                char name[16];

                snprintf(name, sizeof(name), "f%u", i);
                add(NOON + i * 15 * USEC_PER_MIN, name, i);
        }
        usec_t now = NOON + HISTORY_FLEETS * 15 * USEC_PER_MIN;
        save();
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        ck_assert_double_eq(value("f64", now, 0), 64);
        ck_assert_double_nan(value("f0", now, 0));
        /* The same one gives way next, though nobody told so since. */
        add(now + 30 * USEC_PER_MIN, "f65", 1);
        ck_assert_double_eq(value("f64", now, 0), 64);
        save();
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
}

/* Checks that the file is refused for the reason in this section of tests/golden/history, with the path as
 * "FILE". */
static void refuses(const char *section)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_REFUSED);
        ck_assert_ptr_null(file);
        golden_expect_with("history", section, why, path, "FILE");
        /* The history continues in memory. */
        add(NOON, "web", 3);
        ck_assert_double_eq(value("web", NOON, 0), 3);
}

TEST(refuses_what_is_no_file_of_its_own)
{
        char other[160];

        ck_assert_int_eq(mkfifo(path, 0600), 0);
        refuses("a FIFO");
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(symlink("/dev/null", path), 0);
        refuses("a symbolic link");
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        refuses("a directory");
        ck_assert_int_eq(rmdir(path), 0);
        unit_write_file(dir, "history", "");
        ck_assert_int_eq(chmod(path, 0622), 0);
        refuses("mode 0622");
        ck_assert_int_eq(chmod(path, 0600), 0);
        snprintf(other, sizeof(other), "%s.other", path);
        ck_assert_int_eq(link(path, other), 0);
        refuses("another link");
        ck_assert_int_eq(unlink(other), 0);
        if (geteuid() == 0) {
                ck_assert_int_eq(chown(path, 1, 1), 0);
                refuses("another user's");
                ck_assert_int_eq(chown(path, 0, 0), 0);
        }
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
}

TEST(leaves_a_file_that_is_something_else)
{
        static const char thesis[] = "a thesis, and no history";
        char text[64] = "";

        unit_write_file(dir, "history", thesis);
        refuses("another kind of file");
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(read(fd, text, sizeof(text)), sizeof(thesis) - 1);
        close(fd);
        ck_assert_str_eq(text, thesis);
}

TEST(two_do_not_share_one)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        struct history_file *first = TAKE_PTR(file);
        refuses("a file in use");
        (void)history_file_close(first);
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
}

static void put(off_t offset, const void *bytes, size_t size)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, bytes, size, offset), (ssize_t)size);
        close(fd);
}

TEST(one_of_another_version_begins_anew_and_says_so)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        add(NOON, "web", 3);
        save();
        shut();
        put(8, "\x02", 1);
        ck_assert_int_eq(reopen(), HISTORY_FILE_ANEW);
        golden_expect_with("history", "another version", why, path, "FILE");
        ck_assert_double_nan(value("web", NOON, 0));
        add(NOON, "web", 4);
        save();
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        ck_assert_double_eq(value("web", NOON, 0), 4);
}

TEST(what_is_cut_short_is_read_as_far_as_it_goes)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        add(NOON, "web", 3);
        save();
        shut();
        /* In the middle of the rings of the second fleet. */
        ck_assert_int_eq(truncate(path, (off_t)HISTORY_BYTES / 32), 0);
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        ck_assert_double_eq(value("web", NOON, 0), 3);
        ck_assert_int_eq(file_size(), HISTORY_BYTES);
        shut();
        /* Made, and then it died. */
        for (off_t size = 0; size <= (off_t)HISTORY_BYTES; size += (off_t)HISTORY_BYTES) {
                ck_assert_int_eq(truncate(path, 0), 0);
                ck_assert_int_eq(truncate(path, size), 0);
                ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
                shut();
        }
}

/* As a page that came to the disk in part, or a disk that forgets. */
TEST(no_byte_of_it_is_believed_that_changed)
{
        struct {
                size_t offset, size;
                _Alignas(8) uint8_t bytes[512];
        } records[8];
        const struct history_change *changes;

        history = history_new();
        ck_assert_ptr_nonnull(history);
        add(NOON, "web", 3);
        history_mark(history, NOON, "a.sock", "web", "crash", "it crashed");
        size_t n = history_changes(history, &changes);
        ck_assert_uint_eq(n, 5);
        for (size_t i = 0; i < n; i++) {
                records[i].offset = changes[i].offset;
                records[i].size = changes[i].size;
                memcpy(records[i].bytes, history_bytes(history) + changes[i].offset, changes[i].size);
        }
        ck_assert_uint_eq(history_adopt(history), 0);
        for (size_t i = 0; i < n; i++)
                for (size_t at = 0; at < records[i].size; at++) {
                        for (size_t j = 0; j < n; j++)
                                memcpy(history_bytes(history) + records[j].offset, records[j].bytes,
                                       records[j].size);
                        history_bytes(history)[records[i].offset + at] ^= (uint8_t)(1 << at % 8);
                        ck_assert_uint_eq(history_adopt(history), 1);
                        double is = value("web", NOON, 0);
                        ck_assert(isnan(is) || is == 3);
                }
}

TEST(damage_is_reported_and_put_right)
{
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        add(NOON, "web", 3);
        add(NOON + 5 * USEC_PER_SEC, "web", 4);
        save();
        shut();
        const char garbage[] = "XXXXXXXX";
        put((off_t)HISTORY_BYTES - 96, garbage, 8);
        ck_assert_int_eq(reopen(), HISTORY_FILE_DAMAGED);
        golden_expect_with("history", "one damaged value", why, path, "FILE");
        ck_assert_double_eq(value("web", NOON, 0), 3);
        save();
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
}

TEST_LOOP(a_disk_without_room_is_reported_once_and_nothing_is_lost, 2)
{
        room_is_unknown = _i == 1;
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        disk_is_full = true;
        add(NOON, "web", 3);
        ck_assert_int_eq(history_file_save(file, history, why), HISTORY_FILE_FAILS);
        golden_expect_with("history", "no room", why, path, "FILE");
        for (unsigned i = 1; i < 600; i++) {
                add(NOON + i * 5 * USEC_PER_SEC, "web", i);
                save();
        }
        usec_t now = NOON + 599 * 5 * USEC_PER_SEC;
        ck_assert_double_eq(value("web", now, 0), 599);
        disk_is_full = false;
        ck_assert_int_eq(history_file_save(file, history, why), HISTORY_FILE_WORKS);
        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        ck_assert_double_eq(value("web", now, 0), 599);
        ck_assert_double_eq(value("web", now, 599), 3);
}

TEST(its_room_is_taken_so_that_a_disk_may_fill_later)
{
        struct stat status;

        ck_assert_int_eq(reopen(), HISTORY_FILE_READ);
        save();
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_ge(status.st_blocks * 512, (off_t)HISTORY_BYTES);
}

/* Runs f in a process of its own, until it is killed or has ended. */
static int run_child(void (*f)(unsigned n), unsigned n)
{
        int status;
        pid_t child = unit_fork();

        if (child == 0) {
                f(n);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        return status;
}

/* A fleet that is new, one that takes another's place, and marks, in one save after others. */
static void child_write(unsigned at)
{
        if (reopen() != HISTORY_FILE_READ)
                _exit(1);
        for (unsigned i = 0; i < 3; i++) {
                add(NOON + i * 5 * USEC_PER_SEC, "web", i + 1);
                if (i == 1)
                        add(NOON + i * 5 * USEC_PER_SEC, "mail", i + 1);
                history_mark(history, NOON, "a.sock", "web", "crash", "it crashed");
                if (i == 2) {
                        n_writes = 0;
                        last_write = at;
                }
                (void)history_file_save(file, history, why);
        }
}

TEST(killed_at_any_write_it_loses_no_more_than_that)
{
        static const size_t sizes[] = {0, 1, 17, 1000};
        unsigned n_killed = 0;

        for (unsigned at = 1; at < 10; at++)
                for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                        last_size = sizes[i];
                        int status = run_child(child_write, at);

                        n_killed += WIFSIGNALED(status);
                        int r = reopen();
                        ck_assert_msg(r == HISTORY_FILE_READ || r == HISTORY_FILE_DAMAGED, "%d %s", r, why);
                        usec_t now = NOON + 10 * USEC_PER_SEC;
                        ck_assert_double_eq(value("web", now, 2), 1);
                        ck_assert_double_eq(value("web", now, 1), 2);
                        ck_assert_double_eq(value("mail", now, 1), 2);
                        double is = value("web", now, 0);
                        ck_assert(isnan(is) || is == 3);
                        shut();
                        ck_assert_int_eq(unlink(path), 0);
                }
        /* A child writes four times: three slots and a mark. */
        ck_assert_uint_eq(n_killed, 4 * ELEMENTSOF(sizes));
}

TEST_MAIN("history_file", .each = {setup, teardown})
