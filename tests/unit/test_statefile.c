/* SPDX-License-Identifier: MIT */
/* The state's file: what was written is read again, and what others can have made is refused by name. */
/* promises: P4 */
#include "continuity/state.h"
#include "daemon/takeover/persist.h"
#include "golden.h"
#include "io/listen.h"
#include "unit.h"
#include "world.h"
#include <fcntl.h>
#include <sys/wait.h>

#define BOOT "the-boot"

static struct test_world t;
static char dir[64], path[128], beside[160], why[512];
static uint8_t *bytes;
static size_t size;
static struct state *state;

static void setup(void)
{
        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/state", dir);
        snprintf(beside, sizeof(beside), "%s.new", path);
        why[0] = '\0';
        state = NULL;
        test_world_open(&t, 2);
        test_spawn_ready(&t);
        const struct state_source source = {.world = t.world, .boot_id = BOOT, .now = t.now};
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
}

static void teardown(void)
{
        state_free(state);
        free(bytes);
        test_world_close(&t);
        unit_remove_tree(dir);
}

static int read_it(void)
{
        return state_load(path, BOOT, t.now, &state, why, sizeof(why));
}

static void put(const void *data, size_t length, mode_t mode)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, data, length), (ssize_t)length);
        ck_assert_int_eq(fchmod(fd, mode), 0);
        close(fd);
}

/* For the reason of that section of tests/golden/state, the path as "FILE". */
static void refuses(int outcome, const char *section)
{
        ck_assert_int_eq(read_it(), outcome);
        ck_assert_ptr_null(state);
        golden_expect_with("state", section, why, path, "FILE");
}

TEST(reads_what_was_written)
{
        struct stat status;

        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0600);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
        ck_assert_uint_eq(state->n_fleets, 1);
        ck_assert_uint_eq(state->fleets[0].n_workers, 1);
        ck_assert_str_eq(why, "");
}

TEST(is_for_its_owner_alone_whatever_the_umask_and_the_mode_of_the_one_before)
{
        static const mode_t masks[] = {0777, 0, 0};
        struct stat status;

        for (size_t i = 0; i < ELEMENTSOF(masks); i++) {
                mode_t before = umask(masks[i]);
                int r = statefile_write(path, bytes, size);

                umask(before);
                ck_assert_int_eq(r, 0);
                ck_assert_int_eq(stat(path, &status), 0);
                ck_assert_uint_eq(status.st_mode & 07777, 0600);
                ck_assert_int_eq(read_it(), STATEFILE_READ);
                state = state_free(state);
                ck_assert_int_eq(chmod(path, 0644), 0);
        }
}

TEST(reports_of_a_missing_file)
{
        refuses(STATEFILE_MISSING, "missing");
}

TEST(refuses_a_symbolic_link_and_replaces_it_without_following)
{
        char target[128], text[32] = "";

        snprintf(target, sizeof(target), "%s/target", dir);
        unit_write_file(dir, "target", "mine");
        ck_assert_int_eq(symlink(target, path), 0);
        refuses(STATEFILE_LOST, "symbolic link");
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
        FILE *file = fopen(target, "re");
        ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
        fclose(file);
        ck_assert_str_eq(text, "mine");
}

TEST(does_not_write_through_a_link_in_the_temporary_file_s_place)
{
        char target[128];

        snprintf(target, sizeof(target), "%s/target", dir);
        ck_assert_int_eq(symlink(target, beside), 0);
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_int_eq(access(target, F_OK), -1);
        ck_assert_int_eq(access(beside, F_OK), -1);
}

TEST(refuses_what_is_no_regular_file_and_what_others_may_write)
{
        ck_assert_int_eq(mkdir(path, 0700), 0);
        refuses(STATEFILE_LOST, "a directory");
        ck_assert_int_eq(rmdir(path), 0);
        /* Nobody will ever write into this one. */
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        refuses(STATEFILE_LOST, "a FIFO");
        ck_assert_int_eq(unlink(path), 0);
        put(bytes, size, 0602);
        refuses(STATEFILE_LOST, "mode 0602");
        put(bytes, size, 0620);
        refuses(STATEFILE_LOST, "mode 0620");
        put(bytes, size, 0644);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
}

TEST(refuses_the_file_of_another_user)
{
        put(bytes, size, 0600);
        if (geteuid() != 0) {
                fprintf(stderr, "skipped: only root can give a file away\n");
                return;
        }
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        refuses(STATEFILE_LOST, "another user's");
}

/* test_state.c changes and cuts each byte. */
TEST(refuses_what_is_no_state_by_name)
{
        put("", 0, 0600);
        refuses(STATEFILE_LOST, "cut short");
        put(bytes, size - 1, 0600);
        refuses(STATEFILE_LOST, "cut short");
        put("[fleet:default]\n", 16, 0600);
        refuses(STATEFILE_LOST, "damaged");
        bytes[size - 1] ^= 0x40;
        put(bytes, size, 0600);
        refuses(STATEFILE_LOST, "damaged");
        bytes[8] = 99;
        put(bytes, size, 0600);
        refuses(STATEFILE_LOST, "later version");
        ck_assert_int_eq(truncate(path, (off_t)STATE_BYTES_MAX + 1), 0);
        refuses(STATEFILE_LOST, "too large");
}

TEST(leaves_the_old_file_where_the_new_one_cannot_be_written)
{
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_int_eq(mkdir(beside, 0700), 0);
        ck_assert_int_lt(statefile_write(path, bytes, size - 1), 0);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
}

/* A later start, with descriptors, can read it: it is not lost. */
TEST(is_not_lost_for_want_of_a_descriptor)
{
        struct rlimit before;

        put(bytes, size, 0600);
        unit_leave_descriptors(0, &before);
        int r = read_it();
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_int_eq(r, -EMFILE);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
}

static ino_t inode(const char *name)
{
        struct stat status;

        ck_assert_int_eq(stat(name, &status), 0);
        return status.st_ino;
}

/* Its room is there though the disk is full. */
TEST(keeps_the_room_of_the_one_before)
{
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ino_t first = inode(beside), second = inode(path);
        ck_assert_uint_ne(first, second);
        /* A longer one was there before. */
        put("", 0, 0600);
        ck_assert_int_eq(truncate(beside, (off_t)(3 * size)), 0);
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_uint_eq(inode(path), first);
        ck_assert_uint_eq(inode(beside), second);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
}

TEST(keeps_room_for_twice_as_many)
{
        static const uint8_t large[100000];
        struct stat status;

        for (unsigned i = 0; i < 4; i++) {
                ck_assert_int_eq(statefile_write(path, large, i < 2 ? sizeof(large) / 4 : sizeof(large)), 0);
                ck_assert_int_eq(stat(path, &status), 0);
                ck_assert_uint_eq((size_t)status.st_size, i < 2 ? sizeof(large) / 4 : sizeof(large));
                ck_assert_uint_ge((size_t)status.st_blocks * 512, (size_t)status.st_size * 2);
        }
}

TEST(keeps_that_room_for_want_of_a_descriptor)
{
        struct rlimit before;
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ino_t room = inode(beside);
        unit_leave_descriptors(0, &before);
        int r = statefile_write(path, bytes, size);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_int_eq(r, -EMFILE);
        ck_assert_uint_eq(inode(beside), room);
}

TEST(writes_into_no_file_beside_that_others_can_have_open)
{
        char other[160];

        snprintf(other, sizeof(other), "%s/other", dir);
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ino_t writable = inode(beside);
        ck_assert_int_eq(chmod(beside, 0602), 0);
        ck_assert_int_eq(link(beside, other), 0);
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_uint_ne(inode(path), writable);
        ck_assert_int_eq(unlink(other), 0);
        ino_t linked = inode(beside);
        ck_assert_int_eq(link(beside, other), 0);
        ck_assert_int_eq(statefile_write(path, bytes, size), 0);
        ck_assert_uint_ne(inode(path), linked);
        ck_assert_uint_eq(inode(other), linked);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
}

TEST(synced_it_is_the_same_file_and_makes_its_directory_if_that_is_wanted)
{
        struct stat status;
        char above[160];

        snprintf(path, sizeof(path), "%s/a/b/orders", dir);
        snprintf(above, sizeof(above), "%s/a", dir);
        ck_assert_int_eq(statefile_write_synced(path, false, bytes, size), -ENOENT);
        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(statefile_write_synced(path, true, bytes, size), 0);
        ck_assert_int_eq(read_it(), STATEFILE_READ);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0600);
        ck_assert_int_eq(stat(above, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0755);
        strcat(above, "/b");
        ck_assert_int_eq(stat(above, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0700);
        /* A file is in the place of the directory. */
        strcat(path, "/orders");
        ck_assert_int_eq(statefile_write_synced(path, true, bytes, size), -ENOTDIR);
}

/* Each writes what begins with its number. */
TEST(those_that_write_one_file_go_one_after_the_other)
{
        enum { WRITERS = 4, ROUNDS = 200 };
        static uint8_t large[20000];
        pid_t pids[WRITERS];

        for (uint8_t i = 0; i < WRITERS; i++)
                if ((pids[i] = fork()) == 0) {
                        memset(large, i, sizeof(large));
                        for (unsigned round = 0; round < ROUNDS; round++)
                                if (statefile_write_synced(path, false, large, sizeof(large) - i) < 0)
                                        _exit(1);
                        _exit(0);
                }
        for (unsigned i = 0; i < WRITERS; i++) {
                int status;

                ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
                ck_assert_int_eq(status, 0);
                _cleanup_free_ char *text = NULL;
                size_t length = 0;
                ck_assert_int_eq(statefile_read(path, &text, &length, why, sizeof(why)), STATEFILE_READ);
                ck_assert_uint_eq(length, sizeof(large) - (size_t)text[0]);
                ck_assert_mem_eq(text, text + 1, length - 1);
        }
}

TEST(names_the_boot)
{
        char boot_id[BOOT_ID_MAX];

        ck_assert_uint_eq(strlen(state_load_boot_id(boot_id)), 36);
}

/* Returns the path of the file of that name in the folder, after writing text to it if not NULL. */
static const char *file(const char *name, const char *text)
{
        static char paths[4][160];
        static unsigned n;
        char *at = paths[n++ % ELEMENTSOF(paths)];

        snprintf(at, sizeof(paths[0]), "%s/%s", dir, name);
        if (text)
                ck_assert_int_eq(statefile_write(at, (const uint8_t *)text, strlen(text)), 0);
        return at;
}

static bool holds(const char *name, const char *text)
{
        _cleanup_free_ char *found = NULL;
        size_t length = 0;

        return statefile_read(file(name, NULL), &found, &length, why, sizeof(why)) == STATEFILE_READ &&
               length == strlen(text) && memcmp(found, text, length) == 0;
}

static bool exists(const char *name)
{
        return access(file(name, NULL), F_OK) == 0;
}

static int follow(const char *name)
{
        char link[160], old[PATH_MAX];

        snprintf(link, sizeof(link), "%s/socket.state", dir);
        return statefile_follow(link, file(name, NULL), old);
}

TEST(a_state_is_read_once_from_the_path_of_the_last_sqmgr)
{
        ck_assert_int_eq(follow("state"), 0);
        file("state", "first");
        file("state.starts", "ledger");
        ck_assert_int_eq(follow("state"), 0);
        ck_assert(holds("state", "first"));

        /* A state left at the new path is older. */
        file("other", "stale");
        file("other.starts", "stale");
        ck_assert_int_eq(follow("other"), 1);
        ck_assert(holds("other", "first") && holds("other.starts", "ledger"));
        ck_assert(!exists("state") && !exists("state.starts"));

        /* A ledger that is lost is not replaced by a stale one. */
        ck_assert_int_eq(unlink(file("other.starts", NULL)), 0);
        file("state.starts", "stale");
        ck_assert_int_eq(follow("state"), 1);
        ck_assert(holds("state", "first") && !exists("state.starts"));

        ck_assert_int_eq(unlink(path), 0);
        file("third", "kept");
        ck_assert_int_eq(follow("third"), 0);
        ck_assert(holds("third", "kept"));
}

TEST(a_state_that_another_sqmgr_holds_or_may_have_written_is_not_moved)
{
        char error[512];
        int lock_fd = -1, ready[2];

        ck_assert_int_eq(follow("state"), 0);
        file("state", "first");
        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                if (listener_lock(path, &lock_fd, error, sizeof(error)) == 0)
                        (void)!write(ready[1], "", 1);
                pause();
        }
        ck_assert_int_eq(read(ready[0], error, 1), 1);
        ck_assert_int_eq(follow("other"), -EBUSY);
        ck_assert(holds("state", "first") && !exists("other"));
        unit_kill(pid);
        close(ready[0]);
        close(ready[1]);

        /* The link leads to the new path all the same: its state is the newer one from now on. */
        file("other", "newer");
        ck_assert_int_eq(follow("other"), 0);
        ck_assert(holds("other", "newer"));

        ck_assert_int_eq(chmod(file("other", NULL), 0666), 0);
        ck_assert_int_eq(follow("state"), -EPERM);
        ck_assert(holds("state", "first"));
}

TEST_MAIN("statefile", .each = {setup, teardown})
