/* SPDX-License-Identifier: MIT */
/* The flight recorder: its file, its ring, and what it does if it cannot write. */
#include "base/fd.h"
#include "daemon/runtime/subsystem.h"
#include "daemon/takeover/persist.h"
#include "decide/plan.h"
#include "frameworks/table.h"
#include "record/recorder.h"
#include "record/replay_rules.h"
#include "settings/value.h"
#include "world.h"

#define WORKERS 40

static const struct settings_surroundings surroundings = {.frameworks = framework_traits};
static struct runtime runtime;
static struct persist persist;
static struct plan plan;
static char folder[32], state_file[64], path[80];
static void *recorder;

TEST_WORLD(WORKERS)
{
        /* The tests may share a process. */
        snprintf(folder, sizeof(folder), "/tmp/sqmgr-recorder.XXXXXX");
        ck_assert(mkdtemp(folder));
        snprintf(state_file, sizeof(state_file), "%s/state", folder);
        snprintf(path, sizeof(path), "%s.record", state_file);
        t.settings.state_file = state_file;
        t.settings.record = 1 << 20;
        runtime = (struct runtime){.world = t.world};
        persist = (struct persist){.runtime = &runtime};
        test_settle(&t);
        ck_assert_int_eq(recorder_subsystem.begin(&persist, &recorder), 0);
        recorder_subsystem.join(recorder);
}

static void teardown_recorder(void)
{
        recorder_subsystem.end(recorder);
        plan_free(&plan);
        plan = (struct plan){0};
        t.settings.state_file = NULL;
        teardown();
}

static void passes(unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                test_tick(&t, 1);
                recorder_subsystem.planning(recorder, t.now);
                ck_assert_int_eq(plan_make(&plan, t.world, t.now), 0);
                recorder_subsystem.planned(recorder, &plan, t.now);
        }
}

/* Replays the file. Returns the number of its passes, or -errno. */
static int replay_file(unsigned *ret_segments)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *bytes = NULL;
        struct replay *replay = NULL;
        struct replay_step step;
        char why[REPLAY_WHY_MAX];
        size_t size;
        int n = 0;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fd_read_whole(fd, (size_t)1 << 30, &bytes, &size), 0);
        int r = replay_new((const uint8_t *)bytes, size, &surroundings, &replay, why);
        *ret_segments = 0;
        while (r >= 0 && (r = replay_next(replay, &step, why)) > 0) {
                ck_assert(step.same);
                *ret_segments += step.begins;
                n++;
        }
        replay_free(replay);
        return r < 0 ? r : n;
}

/* Begins a segment. */
static void change_settings(void)
{
        t.fleet_settings.scale_down_after += USEC_PER_SEC;
        recorder_subsystem.join(recorder);
}

static off_t file_size(void)
{
        struct stat status;

        return lstat(path, &status) < 0 ? -1 : status.st_size;
}

TEST(a_ring_keeps_the_newest_segments)
{
        unsigned segments;

        passes(100);
        ck_assert_int_eq(replay_file(&segments), 100);
        ck_assert_uint_eq(segments, 1);
        passes(2000);
        int n = replay_file(&segments);
        ck_assert_int_gt(n, 200);
        ck_assert_int_lt(n, 2100);
        ck_assert_uint_eq(segments, RECORD_SLOTS);
        ck_assert_int_le(file_size(), 1 << 20);
}

/* Each pass is small, and makes the replay visit 500 workers. */
TEST(a_segment_ends_before_its_replay_costs_too_much)
{
        unsigned segments;

        t.fleet_settings.active_process_count = 500;
        while (t.fleet->n_workers < 500)
                (void)test_spawn(&t);
        for (unsigned i = 0; i < 3000; i++) {
                recorder_subsystem.planning(recorder, t.now);
                ck_assert_int_eq(plan_make(&plan, t.world, t.now), 0);
                recorder_subsystem.planned(recorder, &plan, t.now);
        }
        ck_assert_int_eq(replay_file(&segments), 3000);
        ck_assert_uint_gt(segments, 1);
        ck_assert_uint_lt(segments, RECORD_SLOTS);
}

TEST(the_next_sqmgr_continues_the_ring)
{
        unsigned segments;

        passes(10);
        recorder_subsystem.end(recorder);
        ck_assert_int_eq(recorder_subsystem.begin(&persist, &recorder), 0);
        recorder_subsystem.join(recorder);
        passes(10);
        ck_assert_int_eq(replay_file(&segments), 20);
        ck_assert_uint_eq(segments, 2);
}

TEST(changed_settings_begin_a_segment_and_another_size_a_file)
{
        unsigned segments;

        passes(10);
        /* Nothing that is recorded has changed. */
        recorder_subsystem.join(recorder);
        passes(10);
        ck_assert_int_eq(replay_file(&segments), 20);
        ck_assert_uint_eq(segments, 1);
        change_settings();
        passes(10);
        ck_assert_int_eq(replay_file(&segments), 30);
        ck_assert_uint_eq(segments, 2);
        t.settings.record = 2 << 20;
        recorder_subsystem.join(recorder);
        passes(5);
        ck_assert_int_eq(replay_file(&segments), 5);
        t.settings.record = 0;
        recorder_subsystem.join(recorder);
        passes(5);
        ck_assert_int_eq(replay_file(&segments), 5);
}

TEST(without_the_setting_nothing_is_written)
{
        t.settings.record = 0;
        recorder_subsystem.join(recorder);
        passes(5);
        ck_assert_int_eq(file_size(), -1);
}

/* kill -9 between the bytes and the header that makes them valid. */
TEST(bytes_that_no_header_names_do_no_harm)
{
        unsigned segments;

        passes(10);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "garbage", 7, (1 << 20) / RECORD_SLOTS - 7), 7);
        ck_assert_int_eq(replay_file(&segments), 10);
}

TEST(a_file_of_somebody_else_is_left_alone)
{
        char other[80];

        snprintf(other, sizeof(other), "%s/other", folder);
        close_fd(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        for (int i = 0; i < 4; i++) {
                (void)unlink(path);
                ck_assert_int_eq(i == 0   ? symlink(other, path)
                                 : i == 1 ? link(other, path)
                                 : i == 2 ? mkfifo(path, 0600)
                                          : mknod(path, S_IFREG | 0644, 0),
                                 0);
                recorder_subsystem.join(recorder);
                passes(2);
                struct stat status;
                ck_assert_int_eq(stat(other, &status), 0);
                ck_assert_int_eq(status.st_size, 0);
        }
        /* Once the file is gone, a reload records again. */
        ck_assert_int_eq(unlink(path), 0);
        recorder_subsystem.join(recorder);
        passes(2);
        unsigned segments;
        ck_assert_int_eq(replay_file(&segments), 2);
        ck_assert_int_eq(file_size(), 1 << 20);
}

TEST(a_foreign_file_is_begun_anew)
{
        unsigned segments;
        _cleanup_close_ int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        ck_assert_int_eq(write(fd, "no record of passes, but something of ours; longer than a header", 64),
                         64);
        passes(3);
        ck_assert_int_eq(replay_file(&segments), 3);
}

TEST(a_full_disk_stops_the_record_and_nothing_else)
{
        const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
        const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        unsigned segments;

        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        passes(100);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
        /* After a minute it tries again. */
        t.now += 61 * USEC_PER_SEC;
        passes(5);
        ck_assert_int_ge(replay_file(&segments), 5);
}

TEST(a_deleted_moved_or_truncated_file_is_made_again)
{
        char moved[90];
        unsigned segments;

        snprintf(moved, sizeof(moved), "%s.moved", path);
        for (int i = 0; i < 3; i++) {
                passes(10);
                recorder_subsystem.poll(recorder, t.now);
                passes(10);
                ck_assert_int_eq(replay_file(&segments), 20);
                ck_assert_uint_eq(segments, 1);
                ck_assert_int_eq(i == 0 ? unlink(path) : i == 1 ? rename(path, moved) : truncate(path, 0), 0);
                recorder_subsystem.poll(recorder, t.now);
        }
}

/* Another sqmgr holds the lock for a while, and writes into the ring. */
TEST(a_lost_lock_ends_the_segment)
{
        void *other, *own = recorder;
        unsigned segments;

        passes(10);
        persist.locked_out = true;
        passes(10);
        persist.locked_out = false;
        ck_assert_int_eq(recorder_subsystem.begin(&persist, &other), 0);
        recorder_subsystem.join(other);
        recorder = other;
        passes(10);
        recorder_subsystem.end(other);
        recorder = own;
        passes(10);
        ck_assert_int_eq(replay_file(&segments), 30);
        ck_assert_uint_eq(segments, 3);
}

/* The header of a slot can be written, but no pass. */
TEST(a_disk_that_stays_full_costs_one_segment_only)
{
        const struct rlimit limit = {.rlim_cur = (1 << 20) / RECORD_SLOTS + 4096, .rlim_max = RLIM_INFINITY};
        const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        unsigned segments;

        passes(10);
        for (unsigned i = 0; i < RECORD_SLOTS - 1; i++) {
                change_settings();
                passes(10);
        }
        ck_assert_int_eq(replay_file(&segments), 10 * RECORD_SLOTS);
        change_settings();
        passes(10); /* slot 0 */
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        change_settings();
        for (unsigned i = 0; i < 3; i++) {
                t.now += 61 * USEC_PER_SEC;
                passes(2); /* slot 1 */
        }
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
        ck_assert_int_eq(replay_file(&segments), 10 * (RECORD_SLOTS - 1));
        t.now += 61 * USEC_PER_SEC;
        passes(5);
        ck_assert_int_eq(replay_file(&segments), 10 * (RECORD_SLOTS - 1) + 5);
        ck_assert_uint_eq(segments, RECORD_SLOTS);
}

TEST_MAIN("recorder", .each = {setup, teardown_recorder})
