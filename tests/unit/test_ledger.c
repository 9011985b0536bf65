/* SPDX-License-Identifier: MIT */
/* The ledger: who decides on a start, which orders the next sqmgr knows, and the file that holds it. */
/* promises: P1 P4 */
#include "base/fd.h"
#include "frameworks/plain/plain.h"
#include "frameworks/sidekiq/format.h"
#include "io/ledger_file.h"
#include "model/fleet.h"
#include "unit.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define BOOT  "0f3c"
#define NOW   ((usec_t)2000)
#define SLOTS 4

static char dir[32], path[64];
static struct ledger_file file;
static const struct ledger_start start = {
        .fleet = "web", .index = 3, .generation = 2, .started_at = 1000, .started_for = REASON_RESTART};

static const struct ledger_start running = {.pid = 50,
                                            .start = 7,
                                            .fleet = "web",
                                            .index = 3,
                                            .generation = 2,
                                            .started_at = 1000,
                                            .started_for = REASON_RESTART};

/* Returns the number of its slot. */
static unsigned add(const struct ledger_start *started)
{
        unsigned number = ledger_put(&file.ledger, started);

        ck_assert_uint_ne(number, 0);
        return number;
}

static enum ledger_file_outcome open_file(size_t n_slots)
{
        const char *why = "";

        file = LEDGER_FILE_INIT;
        int outcome = ledger_file_open(&file, path, BOOT, n_slots, &why);
        ck_assert_int_ge(outcome, 0);
        return outcome;
}

/* Opens the file as the next sqmgr does. */
static void reopen(void)
{
        ledger_file_close(&file);
        ck_assert_int_eq(open_file(SLOTS), LEDGER_FILE_KEPT);
}

static void setup(void)
{
        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/starts", dir);
        ck_assert_int_eq(open_file(SLOTS), LEDGER_FILE_NEW);
        ledger_take_over(&file.ledger);
}

static void teardown(void)
{
        ledger_file_close(&file);
        unit_remove_tree(dir);
}

/* What the next sqmgr reads. */
static size_t read_starts(struct ledger_start *ret)
{
        struct ledger_starts starts;

        ck_assert_int_eq(ledger_read(&file.ledger, NOW, &starts), 0);
        size_t n = starts.n;
        if (n > 0)
                *ret = starts.list[0];
        ledger_starts_free(&starts);
        return n;
}

TEST(a_start_is_known_once_it_is_claimed)
{
        struct ledger_start found;
        unsigned number = ledger_put(&file.ledger, &start);
        struct ledger_claim claim = ledger_claim_of(&file.ledger, number);

        ck_assert_uint_ne(number, 0);
        ck_assert(ledger_claim(&claim, 50, 7));
        /* Parent and child both claim it, and nobody else can. */
        ck_assert(ledger_claim(&claim, 50, 7));
        ck_assert(!ledger_claim(&claim, 51, 7));
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, 50);
        ck_assert_uint_eq(found.start, 7);
        ck_assert_str_eq(found.fleet, "web");
        ck_assert_uint_eq(found.index, 3);
        ck_assert_uint_eq(found.generation, 2);
        ck_assert_uint_eq(found.started_at, 1000);
        ck_assert_uint_eq(found.started_for, REASON_RESTART);
        ledger_end(&file.ledger, number);
        ck_assert_uint_eq(read_starts(&found), 0);
}

TEST(a_start_that_is_not_claimed_before_the_next_sqmgr_is_void)
{
        struct ledger_start found;
        unsigned late = ledger_put(&file.ledger, &start);
        struct ledger_claim claim = ledger_claim_of(&file.ledger, late);

        ledger_take_over(&file.ledger);
        ck_assert(!ledger_claim(&claim, 50, 7));
        /* Its slot may be another start's by then. */
        for (unsigned i = 0; i < SLOTS; i++)
                ck_assert_uint_ne(ledger_put(&file.ledger, &start), 0);
        uint64_t unknown = claim.slot->start;
        ck_assert(!ledger_claim(&claim, 50, 7));
        ck_assert_uint_eq(read_starts(&found), 0);
        /* Nor does it store its start time, which would be another process's. */
        ck_assert(claim.slot->start == unknown);
}

/* Check's processes: a claim is made in a child, over the memory that both share. */
TEST(a_child_claims_its_start)
{
        struct ledger_start found;
        struct ledger_claim claim = ledger_claim_of(&file.ledger, ledger_put(&file.ledger, &start));
        pid_t pid = unit_fork();

        if (pid == 0)
                _exit(ledger_claim(&claim, getpid(), 9) ? 0 : 1);
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, pid);
}

TEST(slots_run_out_and_more_are_made)
{
        for (unsigned i = 0; i < SLOTS; i++)
                ck_assert_uint_ne(ledger_put(&file.ledger, &start), 0);
        ck_assert_uint_eq(ledger_put(&file.ledger, &start), 0);
        ck_assert_int_eq(ledger_file_grow(&file, 1000), 0);
        ck_assert_uint_eq(ledger_put(&file.ledger, &start), SLOTS + 1);
        struct stat status;
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_size, (off_t)ledger_bytes(1000));
        ck_assert_int_ge(status.st_blocks * 512, status.st_size);
        /* Nobody has a slot of number 0, and nothing comes of it. */
        ledger_end(&file.ledger, 0);
        ck_assert_ptr_null(ledger_claim_of(&file.ledger, 0).slot);
        ck_assert(ledger_claim(&(struct ledger_claim){0}, 1, 1));
}

TEST(the_next_sqmgr_learns_that_a_process_has_no_slot)
{
        ledger_set_gap(&file.ledger, LEDGER_GAP_SEARCH, false);
        ledger_take_over(&file.ledger);
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
        ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, true);
        ck_assert(ledger_has_gap(&file.ledger, LEDGER_GAP_SLOT));
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
        /* The next sqmgr has slots for its own processes, and searches for the others. */
        ledger_take_over(&file.ledger);
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SLOT));
        ck_assert(ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
}

TEST(a_new_ledger_is_trusted_once_a_search_has_ended)
{
        for (unsigned i = 0; i < 2; i++) {
                ck_assert(ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
                /* A process that has no slot for a while changes nothing. */
                ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SLOT));
                ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, true);
                ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, false);
                reopen();
                ledger_take_over(&file.ledger);
        }
        ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, true);
        ledger_set_gap(&file.ledger, LEDGER_GAP_SEARCH, false);
        ck_assert(ledger_has_gap(&file.ledger, LEDGER_GAP_SLOT));
        ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, false);
        reopen();
        ledger_take_over(&file.ledger);
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
}

static struct fleet_settings fleet_settings = {.name = (char[]){"web"}};
static struct fleet fleet = {.settings = &fleet_settings};

static const struct worker active = {
        .fleet = &fleet,
        .index = 3,
        .generation = 2,
        .process = {.pid = 50, .start = 7, .heartbeat_pid = 60, .heartbeat_start = 8},
        .spawned_at = 1000,
        .state = WORKER_ACTIVE,
        .state_at = 1100,
};

enum { SENT = 1, REFUSED = 0, UNKNOWN = -1 };

/* Records an order, and its outcome unless that is UNKNOWN. */
static void give_order(unsigned number, struct worker *worker, enum action_kind kind, usec_t at, int outcome)
{
        const struct action action = {
                .kind = kind, .fleet = &fleet, .worker = worker, .reason = REASON_MEMORY};

        ledger_ask(&file.ledger, number, &action, at);
        if (outcome != UNKNOWN)
                ledger_answer(&file.ledger, number, &action, outcome == SENT);
}

/* Returns a worker as the state has it, with the order that came after. */
static struct worker settle(const struct traits *traits, enum action_kind kind, int outcome)
{
        struct worker worker = active, known = active;
        struct ledger_start found, started = ledger_start_of(&worker);

        fleet_settings.traits = traits;
        unsigned number = add(&started);
        give_order(number, &worker, kind, 1200, outcome);
        /* The first heartbeat is not in the state yet. */
        known.process.heartbeat_pid = 0;
        ck_assert_uint_eq(read_starts(&found), 1);
        ledger_settle(&found, traits, &known);
        ledger_end(&file.ledger, number);
        return known;
}

TEST_LOOP(an_order_that_was_sent_is_not_repeated, 2)
{
        const struct traits *traits = _i == 0 ? &sidekiq_traits : &plain_traits;
        struct worker known = settle(traits, ACTION_QUIET, SENT);

        ck_assert_int_eq(known.state, WORKER_QUIET);
        ck_assert_int_eq(known.reason, REASON_MEMORY);
        ck_assert_uint_eq(known.orders.quiet_at, 1200);
        ck_assert_uint_eq(known.state_at, 1200);
        ck_assert(!known.orders.unconfirmed);
        ck_assert_int_eq(known.process.heartbeat_pid, 60);
        known = settle(traits, ACTION_STOP, SENT);
        ck_assert_int_eq(known.state, WORKER_STOPPING);
        ck_assert_uint_eq(known.orders.stop_at, 1200);
        ck_assert(!known.orders.group_signaled);
}

/* The ledger was lost and the state had the orders; then the state is lost. */
TEST_LOOP(a_worker_that_is_recorded_again_keeps_its_orders, 2)
{
        const struct traits *traits = _i == 0 ? &sidekiq_traits : &plain_traits;
        enum action_kind kinds[] = {ACTION_QUIET, ACTION_STOP};

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                for (int outcome = _i == 0 ? SENT : UNKNOWN; outcome <= SENT; outcome += 2) {
                        struct worker lost = settle(traits, kinds[i], outcome);
                        struct ledger_start found, again = ledger_start_of(&lost);
                        struct worker known = {.fleet = &fleet, .state = WORKER_ACTIVE, .state_at = 1000};
                        unsigned number = ledger_put(&file.ledger, &again);

                        ck_assert_uint_eq(read_starts(&found), 1);
                        ledger_settle(&found, traits, &known);
                        ledger_end(&file.ledger, number);
                        ck_assert_int_eq(known.state, lost.state);
                        ck_assert_int_eq(known.reason, REASON_MEMORY);
                        ck_assert_uint_eq(known.orders.quiet_at, lost.orders.quiet_at);
                        ck_assert_uint_eq(known.orders.stop_at, lost.orders.stop_at);
                        ck_assert_int_eq(known.orders.unconfirmed, lost.orders.unconfirmed);
                        ck_assert_int_eq(known.process.heartbeat_pid, 60);
                        ck_assert_uint_eq(known.process.heartbeat_start, 8);
                }
}

TEST(an_order_that_may_not_have_been_sent_is_repeated_where_that_does_no_harm)
{
        ck_assert_int_eq(settle(&sidekiq_traits, ACTION_QUIET, UNKNOWN).state, WORKER_ACTIVE);
        ck_assert_int_eq(settle(&sidekiq_traits, ACTION_STOP, UNKNOWN).state, WORKER_ACTIVE);
        struct worker known = settle(&plain_traits, ACTION_QUIET, UNKNOWN);
        ck_assert_int_eq(known.state, WORKER_QUIET);
        ck_assert(known.orders.unconfirmed);
}

/* Deadlines count from the signal that was sent. */
TEST(the_time_of_an_order_that_was_not_sent_does_not_count)
{
        struct worker worker = active;
        struct ledger_start found;

        fleet_settings.traits = &sidekiq_traits;
        unsigned number = add(&running);
        give_order(number, &worker, ACTION_STOP, 1200, UNKNOWN);
        give_order(number, &worker, ACTION_STOP, 1500, SENT);
        /* And not from one that follows. */
        give_order(number, &worker, ACTION_STOP, 1600, REFUSED);
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_uint_eq(found.asked_at[LEDGER_STOP], 1500);
        ck_assert(found.sent[LEDGER_STOP]);
}

/* The state has the first order, and that the process which got it has ended. The next order goes to the one
 * that followed, or to all of the command's: none of them has sent a heartbeat. */
TEST_LOOP(an_order_to_a_process_that_was_not_asked_is_recorded, 6)
{
        bool sent = _i % 2 == 0, group = _i < 2, quiet = _i >= 4;
        struct worker worker = active;
        struct worker known = {.fleet = &fleet, .state = WORKER_STOPPING, .state_at = 1200};
        struct ledger_start found, started = ledger_start_of(&worker);

        fleet_settings.traits = &plain_traits;
        unsigned number = add(&started);
        give_order(number, &worker, ACTION_STOP, 1200, SENT);
        ck_assert_uint_eq(read_starts(&found), 1);
        ledger_settle(&found, &plain_traits, &known);
        ck_assert_int_eq(known.process.heartbeat_pid, 0);
        worker.process.heartbeat_pid = group ? 0 : 61;
        worker.process.heartbeat_start = group ? 0 : 9;
        give_order(number, &worker, quiet ? ACTION_QUIET : ACTION_STOP, 1500, sent ? SENT : UNKNOWN);
        ck_assert_uint_eq(read_starts(&found), 1);
        ledger_settle(&found, &plain_traits, &known);
        ck_assert_int_eq(known.state, quiet ? WORKER_QUIET : WORKER_STOPPING);
        ck_assert_uint_eq(quiet ? known.orders.quiet_at : known.orders.stop_at, 1500);
        ck_assert_int_eq(known.orders.unconfirmed, !sent);
        ck_assert_int_eq(known.orders.group_signaled, group);
        ck_assert_int_eq(known.heartbeat.seen, !group);
        ck_assert_int_eq(known.process.heartbeat_pid, group ? 0 : 61);
        ck_assert_uint_eq(known.process.heartbeat_start, group ? 0 : 9);
}

/* A worker was asked to exit, and another process of its command accepts jobs. The state is lost. */
TEST_LOOP(a_stop_signal_to_the_process_before_is_none_to_the_next, 2)
{
        struct worker worker = active;
        struct worker known = {.fleet = &fleet, .state = WORKER_ACTIVE};
        struct ledger_start found, started = ledger_start_of(&worker);

        fleet_settings.traits = &sidekiq_traits;
        unsigned number = add(&started);
        give_order(number, &worker, ACTION_STOP, 1200, SENT);
        worker.process.heartbeat_pid = 61;
        worker.process.heartbeat_start = 9;
        give_order(number, &worker, ACTION_QUIET, 1500, _i == 1 ? SENT : UNKNOWN);
        ck_assert_uint_eq(read_starts(&found), 1);
        ledger_settle(&found, &sidekiq_traits, &known);
        ck_assert_int_eq(known.state, _i == 1 ? WORKER_QUIET : WORKER_ACTIVE);
        ck_assert_uint_eq(known.orders.stop_at, 0);
}

TEST(an_order_that_was_refused_is_none)
{
        ck_assert_int_eq(settle(&plain_traits, ACTION_QUIET, REFUSED).state, WORKER_ACTIVE);
        ck_assert_int_eq(settle(&plain_traits, ACTION_STOP, REFUSED).state, WORKER_ACTIVE);
}

TEST(a_state_that_is_later_than_the_order_knows_better)
{
        struct ledger_start of = start;
        struct worker known = {.state = WORKER_ACTIVE, .state_at = 1300};

        of.asked_at[LEDGER_QUIET] = 1200;
        of.sent[LEDGER_QUIET] = true;
        ledger_settle(&of, &plain_traits, &known);
        ck_assert_int_eq(known.state, WORKER_ACTIVE);
        known = (struct worker){.state = WORKER_STOPPING, .state_at = 1100};
        ledger_settle(&of, &plain_traits, &known);
        ck_assert_int_eq(known.state, WORKER_STOPPING);
}

TEST(a_start_is_taken_by_its_worker_once)
{
        struct ledger_start found;
        struct ledger_starts starts;
        struct worker other = {.index = 3, .spawned_at = 1001}, right = {.index = 3, .spawned_at = 1000};

        add(&running);
        ck_assert_int_eq(ledger_read(&file.ledger, NOW, &starts), 0);
        ck_assert(!ledger_starts_take(&file.ledger, &starts, "web", &other, &found));
        ck_assert(!ledger_starts_take(&file.ledger, &starts, "mail", &right, &found));
        ck_assert(ledger_starts_take(&file.ledger, &starts, "web", &right, &found));
        ck_assert_int_eq(found.pid, 50);
        ck_assert(!ledger_starts_take(&file.ledger, &starts, "web", &right, &found));
        ledger_starts_free(&starts);
}

/* A later version, which keeps its ledger elsewhere, has given the process another place. */
TEST(a_record_from_before_a_downgrade_is_dropped)
{
        struct ledger_start found;
        struct ledger_starts starts;
        const struct worker moved = {.index = 4, .spawned_at = 1000, .process.pid = 50, .process.start = 7};

        add(&running);
        ck_assert_int_eq(ledger_read(&file.ledger, NOW, &starts), 0);
        ck_assert(!ledger_starts_take(&file.ledger, &starts, "web", &moved, &found));
        ck_assert_uint_eq(starts.n, 0);
        ledger_starts_free(&starts);
        ck_assert_uint_eq(read_starts(&found), 0);
}

TEST(the_file_outlives_sqmgr)
{
        struct ledger_start found;

        add(&running);
        ledger_file_close(&file);
        ck_assert_int_eq(open_file(2 * SLOTS), LEDGER_FILE_KEPT);
        ck_assert_uint_eq(file.ledger.n_slots, 2 * SLOTS);
        ck_assert(file.ledger.durable);
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, 50);
}

static void write_at(off_t at, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        ck_assert_int_eq(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

TEST_LOOP(a_file_of_another_boot_or_that_is_spoilt_is_made_anew, 7)
{
        struct stat before, after;
        char other[64];

        ck_assert_uint_ne(ledger_put(&file.ledger, &start), 0);
        ledger_file_close(&file);
        ck_assert_int_eq(stat(path, &before), 0);
        snprintf(other, sizeof(other), "%s/other", dir);
        switch (_i) {
        case 0:
                write_at(0, "x");
                break;
        case 1:
                write_at(24, "1");
                break;
        case 2:
                ck_assert_int_eq(truncate(path, 200), 0);
                break;
        case 3:
                ck_assert_int_eq(chmod(path, 0622), 0);
                break;
        case 4:
                ck_assert_int_eq(link(path, other), 0);
                break;
        case 5:
                ck_assert_int_eq(rename(path, other), 0);
                ck_assert_int_eq(symlink(other, path), 0);
                break;
        default:
                ck_assert_int_eq(unlink(path), 0);
        }
        ck_assert_int_eq(open_file(SLOTS), LEDGER_FILE_NEW);
        ck_assert(file.ledger.durable);
        ck_assert_int_eq(lstat(path, &after), 0);
        ck_assert(S_ISREG(after.st_mode) && (after.st_mode & 0777) == 0600);
        struct ledger_start found;
        ck_assert_uint_eq(read_starts(&found), 0);
}

/* The ledger is there, and a start that cannot read it must not make another. */
TEST(without_descriptors_the_file_is_left_alone)
{
        struct ledger_start found;
        struct rlimit before;
        const char *why = "";

        add(&running);
        ledger_file_close(&file);
        unit_leave_descriptors(0, &before);
        ck_assert_int_eq(ledger_file_open(&file, path, BOOT, SLOTS, &why), -EMFILE);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_int_eq(open_file(SLOTS), LEDGER_FILE_KEPT);
        ck_assert_uint_eq(read_starts(&found), 1);
}

/* Numbers that cannot be do no harm, and their slots are free again. */
TEST(what_a_slot_cannot_say_is_dropped)
{
        struct ledger_start found;
        struct ledger_start bad[] = {running, running, running, running, running, running};

        bad[0].pid = -1;
        bad[1].start = 0;
        bad[2].index = 0;
        bad[3].generation = UINT64_MAX;
        bad[4].started_at = NOW + 1;
        memset(bad[5].fleet, 'x', sizeof(bad[5].fleet));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                ledger_set_gap(&file.ledger, LEDGER_GAP_SEARCH, false);
                add(&bad[i]);
                ck_assert_uint_eq(read_starts(&found), 0);
                /* The process may run: the next search has to find it. */
                ck_assert(ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
        }
}

TEST(slots_without_a_process_are_no_cause_for_a_search)
{
        struct ledger_start found;

        ledger_set_gap(&file.ledger, LEDGER_GAP_SEARCH, false);
        ck_assert_uint_ne(ledger_put(&file.ledger, &start), 0);
        ledger_take_over(&file.ledger);
        ck_assert_uint_eq(read_starts(&found), 0);
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
}

TEST(reasons_of_a_later_version_are_read_as_none)
{
        struct ledger_start found, later = running;

        later.started_for = later.reason = _REASON_MAX;
        ledger_set_gap(&file.ledger, LEDGER_GAP_SEARCH, false);
        add(&later);
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, 50);
        ck_assert_uint_eq(found.started_for, REASON_NONE);
        ck_assert_uint_eq(found.reason, REASON_NONE);
        ck_assert(!ledger_has_gap(&file.ledger, LEDGER_GAP_SEARCH));
}

TEST(without_a_file_the_ledger_ends_with_sqmgr_until_one_can_be_made)
{
        const char *why = "";
        struct ledger_start found;

        ledger_file_close(&file);
        unit_remove_tree(dir);
        ck_assert_int_eq(ledger_file_open(&file, path, BOOT, SLOTS, &why), LEDGER_FILE_NONE);
        ck_assert_str_eq(why, strerror(ENOENT));
        ck_assert(!file.ledger.durable);
        for (unsigned i = 0; i < SLOTS; i++)
                add(&running);
        ck_assert_int_eq(ledger_file_grow(&file, 2 * SLOTS), 0);
        ck_assert_int_eq(ledger_file_make_durable(&file, path), -ENOENT);
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        ck_assert_int_eq(ledger_file_make_durable(&file, path), 0);
        ck_assert(file.ledger.durable);
        reopen();
        ck_assert_uint_eq(read_starts(&found), SLOTS);
}

/* The child has the memory of the deleted file. Its parent has claimed the start there. */
TEST(a_child_knows_its_start_after_the_file_was_made_again)
{
        struct ledger_start found;
        struct ledger_claim claim = ledger_claim_of(&file.ledger, ledger_put(&file.ledger, &start));
        int gate[2], status;

        ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
        pid_t pid = unit_fork();
        if (pid == 0) {
                char byte;

                (void)close(gate[1]);
                ssize_t n = read(gate[0], &byte, 1);
                _exit(n == 0 && ledger_claim(&claim, getpid(), 9) && !ledger_file_is_in_place(&file) ? 0 : 1);
        }
        ck_assert(ledger_claim(&claim, pid, 9));
        ck_assert_int_eq(unlink(path), 0);
        ck_assert(!ledger_file_is_in_place(&file));
        ck_assert_int_eq(ledger_file_make_durable(&file, path), 0);
        ck_assert(ledger_file_is_in_place(&file));
        close_fd(gate[0]);
        close_fd(gate[1]);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        /* The new file has later records, too. */
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, pid);
        ck_assert_uint_ne(ledger_put(&file.ledger, &found), 0);
        reopen();
        ck_assert_uint_eq(read_starts(&found), 2);
}

/* A store into a page that the file does not have raises SIGBUS, as one on a full disk that copies on write.
 */
static void lose_file(void)
{
        ck_assert_int_eq(ledger_file_guard(), 0);
        ck_assert_int_eq(truncate(path, 0), 0);
        ledger_set_gap(&file.ledger, LEDGER_GAP_SLOT, true);
}

TEST(a_ledger_whose_file_cannot_be_written_is_lost_and_made_again)
{
        struct ledger_start found;

        add(&running);
        ck_assert(!ledger_file_is_lost(&file));
        lose_file();
        ck_assert(ledger_file_is_lost(&file));
        ck_assert(!ledger_file_is_in_place(&file));
        /* The next sqmgr must not believe the file. */
        ck_assert_int_eq(access(path, F_OK), -1);
        /* The memory is usable, but cannot grow: its slots do not know the workers. */
        ck_assert_uint_eq(read_starts(&found), 0);
        add(&running);
        ck_assert_int_eq(ledger_file_grow(&file, 1000), -EIO);

        ck_assert_int_eq(ledger_file_detach(&file, BOOT), 0);
        ck_assert(!ledger_file_is_lost(&file));
        ck_assert(!file.ledger.durable);
        ck_assert_uint_eq(file.ledger.n_slots, SLOTS);
        ck_assert_uint_eq(read_starts(&found), 0);
        add(&running);
        ck_assert_int_eq(ledger_file_make_durable(&file, path), 0);
        ck_assert(file.ledger.durable);
        reopen();
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, 50);
}

/* Whoever truncated the file has deleted it, too, before anything was stored. */
TEST(a_ledger_that_cannot_be_read_is_not_made_durable)
{
        ck_assert_int_eq(ledger_file_guard(), 0);
        ck_assert_int_eq(truncate(path, 0), 0);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(ledger_file_make_durable(&file, path), -EIO);
        ck_assert(ledger_file_is_lost(&file));
        ck_assert_int_eq(access(path, F_OK), -1);
}

/* Orders that are younger than the state are not forgotten where the file can still be read. */
TEST(a_lost_ledger_keeps_what_its_file_says)
{
        struct ledger_start found;
        size_t n_slots = 2 * (size_t)sysconf(_SC_PAGESIZE) / ledger_bytes(0);

        add(&running);
        ck_assert_int_eq(ledger_file_grow(&file, n_slots), 0);
        ck_assert_int_eq(ledger_file_guard(), 0);
        ck_assert_int_eq(truncate(path, sysconf(_SC_PAGESIZE)), 0);
        ledger_end(&file.ledger, (unsigned)n_slots);
        ck_assert(ledger_file_is_lost(&file));
        ck_assert(ledger_is_valid(file.ledger.header, BOOT));
        ck_assert_uint_eq(read_starts(&found), 1);
        ck_assert_int_eq(found.pid, 50);
}

static int claim_lost_start(void *claim)
{
        _exit(!ledger_claim(claim, getpid(), 9) && ledger_file_is_lost(&file) ? 0 : 1);
}

/* A child starts in our memory, so the loss is ours, too. The child decides by its parent whether it runs. */
TEST(a_child_survives_a_lost_ledger)
{
        static _Alignas(16) char stack[1 << 16];
        struct ledger_claim claim = ledger_claim_of(&file.ledger, ledger_put(&file.ledger, &start));
        int status;

        ck_assert_int_eq(ledger_file_guard(), 0);
        ck_assert_int_eq(truncate(path, 0), 0);
        pid_t pid = clone(claim_lost_start, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &claim);
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(access(path, F_OK), -1);
        ck_assert(ledger_file_is_lost(&file));
}

/* A fault elsewhere, or a signal that somebody sent, ends the process as without the guard. */
TEST_LOOP(another_sigbus_ends_the_process, 2)
{
        int status;
        pid_t pid = unit_fork();

        if (pid == 0) {
                _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);

                (void)signal(SIGBUS, SIG_DFL);
                if (ledger_file_guard() < 0)
                        _exit(1);
                void *memory = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (memory == MAP_FAILED || truncate(path, 0) < 0)
                        _exit(1);
                if (_i == 0)
                        *(volatile char *)memory = 1;
                else
                        (void)raise(SIGBUS);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(WTERMSIG(status), SIGBUS);
}

TEST_MAIN("ledger", .each = {setup, teardown})
