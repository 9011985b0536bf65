/* SPDX-License-Identifier: MIT */
/* Tests of the daemon's turn and of what keeps the state (daemon/runtime/wakeup.h,
 * daemon/takeover/persist.h). */
/* promises: P4 */
#include "continuity/state.h"
#include "daemon/takeover/search.h"
#include "daemon/workers/start_record.h"
#include "observe/observe.h"
#include "runtime_folder.h"
#include <sys/file.h>

static char path[64];

static void setup_fleet(const char *framework)
{
        char text[256];

        runtime_folder_open();
        snprintf(path, sizeof(path), "%s/state", dir);
        snprintf(text, sizeof(text),
                 "[sqmgr]\nstate_file=%s\n" RUNTIME_REDIS
                 "[fleet:web]\ncommand=/bin/sleep 1000\nframework=%s\n",
                 path, framework);
        runtime_start(text);
        state_load_boot_id(runtime.boot_id);
}

static void setup(void)
{
        setup_fleet("sidekiq");
}

/* Reads the state; to be freed. NULL: there is none. */
static struct state *read_state(void)
{
        struct state *state = NULL;
        char why[256];

        int r = state_load(path, runtime.boot_id, clock_now(CLOCK_MONOTONIC), &state, why, sizeof(why));
        ck_assert_msg(r == STATEFILE_READ || r == STATEFILE_MISSING, "%s", why);
        return state;
}

TEST(the_state_names_the_worker)
{
        const struct worker *worker = runtime_start_worker();
        char hosts[MATCH_HOSTS_TEXT_MAX];

        ck_assert(persist_save(&runtime, clock_now(CLOCK_MONOTONIC)));
        struct state *state = read_state();
        ck_assert_ptr_nonnull(state);
        ck_assert_uint_eq(state->n_fleets, 1);
        ck_assert_uint_eq(state->fleets[0].n_workers, 1);
        ck_assert_int_eq(state->fleets[0].workers[0].worker.process.pid, worker->process.pid);
        ck_assert_uint_eq(state->fleets[0].workers[0].worker.process.start, worker->process.start);
        /* It has not beaten: under which name of this host it will. */
        snprintf(hosts, sizeof(hosts), "%s ", runtime.links.host_name);
        ck_assert_str_eq(state->fleets[0].workers[0].identity, hosts);
        state_free(state);
}

TEST(what_is_still_looked_for_is_left_to_the_next_sqmgr_to_find)
{
        struct fleet *fleet = runtime_world->fleets[0];

        /* What is not known at all is not told of as if there were nothing. */
        observe_hold(fleet, true, true);
        ck_assert(persist_save(&runtime, clock_now(CLOCK_MONOTONIC)));
        struct state *state = read_state();
        ck_assert_uint_eq(state->n_fleets, 0);
        state_free(state);
}

TEST(a_state_that_cannot_be_written_is_tried_again)
{
        unit_remove_tree(dir);
        persist_save_now(&runtime, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(runtime.save_error, -ENOENT);
        ck_assert(runtime_wakeup.pass.unsaved);
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        persist_save_now(&runtime, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(runtime.save_error, 0);
        ck_assert(!runtime_wakeup.pass.unsaved);
        struct state *state = read_state();
        ck_assert_ptr_nonnull(state);
        state_free(state);
}

static char orders_path[80];
static int lock_fd; /* of the file that is written, as a disk that hangs */

static void setup_orders(void)
{
        setup();
        snprintf(orders_path, sizeof(orders_path), "%s/orders", dir);
        runtime.orders = (struct order_writer){.runtime = &runtime, .path = strdup(orders_path)};
        lock_fd = -1;
}

static void teardown_orders(void)
{
        close_fd(lock_fd);
        order_writer_end(&runtime.orders);
        runtime_folder_close();
}

static void lock(void)
{
        char beside[96];

        snprintf(beside, sizeof(beside), "%s.lock", orders_path);
        lock_fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(lock_fd, 0);
        ck_assert_int_eq(flock(lock_fd, LOCK_EX), 0);
}

static bool writes(void)
{
        exits_reap(&runtime);
        return runtime.orders.child.pid != 0;
}

/* Returns the order of the fleet that the next boot would have; -1: no orders were written. */
static int next_boot_orders(void)
{
        struct state *state = NULL;
        char why[256];

        if (state_load(orders_path, "another", USEC_PER_HOUR, &state, why, sizeof(why)) != STATEFILE_READ)
                return -1;
        int order = (int)state->fleets[0].order;
        state_free(state);
        return order;
}

/* Orders, and saves as each handler of a control call does. */
static void order(enum fleet_order order)
{
        runtime_world->fleets[0]->order = order;
        ck_assert(persist_save(&runtime, clock_now(CLOCK_MONOTONIC)));
}

TEST_FIXTURE(setup_orders, teardown_orders)

TEST(orders_are_written_when_they_change_and_once)
{
        order(ORDER_QUIET);
        ck_assert(runtime.orders.child.pid != 0);
        run_until(!writes());
        ck_assert_int_eq(next_boot_orders(), ORDER_QUIET);
        order(ORDER_QUIET);
        ck_assert_int_eq(runtime.orders.child.pid, 0);
        order(ORDER_STOP);
        run_until(!writes());
        ck_assert_int_eq(next_boot_orders(), ORDER_STOP);
        ck_assert_ptr_null(order_writer_why(&runtime.orders));
}

TEST(of_the_orders_that_a_slow_disk_delays_the_newest_are_written)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        lock();
        order(ORDER_QUIET);
        order(ORDER_RUN);
        order(ORDER_STOP);
        ck_assert(writes());
        ck_assert_ptr_null(order_writer_why(&runtime.orders));
        order_writer_poll(&runtime.orders, now + USEC_PER_MIN);
        ck_assert_str_eq(order_writer_why(&runtime.orders), "the disk does not respond");
        ck_assert_uint_eq(runtime.orders.since, now + USEC_PER_MIN);
        ck_assert_int_eq(next_boot_orders(), -1);
        lock_fd = close_fd(lock_fd);
        run_until(next_boot_orders() == ORDER_STOP || !writes());
        run_until(!writes());
        ck_assert_int_eq(next_boot_orders(), ORDER_STOP);
        ck_assert_ptr_null(order_writer_why(&runtime.orders));
}

TEST(a_writer_that_is_killed_is_no_failure_and_is_replaced)
{
        lock();
        order(ORDER_STOP);
        order_writer_kill(&runtime.orders);
        run_until(!writes());
        ck_assert_ptr_null(order_writer_why(&runtime.orders));
        lock_fd = close_fd(lock_fd);
        order_writer_poll(&runtime.orders, clock_now(CLOCK_MONOTONIC));
        run_until(!writes());
        ck_assert_int_eq(next_boot_orders(), ORDER_STOP);
}

TEST(the_last_orders_are_written_after_sqmgr_has_ended_behind_a_slow_disk)
{
        lock();
        order(ORDER_QUIET);
        runtime_world->fleets[0]->order = ORDER_STOP;
        order_writer_finish(&runtime.orders, clock_now(CLOCK_MONOTONIC));
        order_writer_end(&runtime.orders);
        ck_assert_int_eq(next_boot_orders(), -1);
        lock_fd = close_fd(lock_fd);
        run_until(next_boot_orders() == ORDER_STOP);
}

TEST(orders_that_cannot_be_written_are_tried_again)
{
        unit_write_file(dir, "file", "");
        free(runtime.orders.path);
        ck_assert_int_gt(asprintf(&runtime.orders.path, "%s/file/orders", dir), 0);
        order(ORDER_QUIET);
        for (unsigned i = 0; i < 2; i++) {
                run_until(!writes());
                ck_assert_str_eq(order_writer_why(&runtime.orders), "Not a directory");
                /* Not at once. */
                order_writer_save(&runtime.orders, clock_now(CLOCK_MONOTONIC));
                ck_assert_int_eq(runtime.orders.child.pid, 0);
                order_writer_poll(&runtime.orders, clock_now(CLOCK_MONOTONIC));
                ck_assert(runtime.orders.child.pid != 0);
        }
        run_until(!writes());
        free(runtime.orders.path);
        runtime.orders.path = strdup(orders_path);
        order_writer_poll(&runtime.orders, clock_now(CLOCK_MONOTONIC));
        run_until(!writes());
        ck_assert_int_eq(next_boot_orders(), ORDER_QUIET);
        ck_assert_ptr_null(order_writer_why(&runtime.orders));
}

static char ledger_path[72];

static void setup_ledger(void)
{
        setup();
        snprintf(ledger_path, sizeof(ledger_path), "%s.starts", path);
        runtime.ledger = LEDGER_FILE_INIT;
        ck_assert_int_eq(start_record_open(&runtime), 0);
}

static void teardown_ledger(void)
{
        start_record_close(&runtime);
        runtime_folder_close();
}

/* Returns how many starts the next sqmgr would read; *ret: one of them. */
static size_t next_sqmgr_reads(struct ledger_start *ret)
{
        struct ledger_file next = LEDGER_FILE_INIT;
        struct ledger_starts starts;
        const char *why = "";

        ck_assert_int_eq(ledger_file_open(&next, ledger_path, runtime.boot_id, 1, &why), LEDGER_FILE_KEPT);
        ck_assert_int_eq(ledger_read(&next.ledger, clock_now(CLOCK_MONOTONIC), &starts), 0);
        size_t n = starts.n;
        if (n > 0)
                *ret = starts.list[0];
        ledger_starts_free(&starts);
        ledger_file_close(&next);
        return n;
}

TEST_FIXTURE(setup_ledger, teardown_ledger)

TEST_LOOP(a_ledger_that_was_deleted_or_replaced_is_made_again, 2)
{
        const struct worker *worker = runtime_start_worker();
        struct ledger_start found;

        ck_assert_int_eq(unlink(ledger_path), 0);
        if (_i == 1)
                unit_write_file(dir, "state.starts", "something else");
        start_record_keep(&runtime);
        ck_assert(!runtime_world->ledger_volatile);
        ck_assert_uint_eq(next_sqmgr_reads(&found), 1);
        ck_assert_int_eq(found.pid, worker->process.pid);
        ck_assert_uint_eq(found.start, worker->process.start);
        /* The worker has its slot there. */
        ledger_end(&runtime.ledger.ledger, worker->handle->record);
        ck_assert_uint_eq(next_sqmgr_reads(&found), 0);
}

TEST(a_ledger_that_is_in_place_stays)
{
        ino_t inode = runtime.ledger.inode;

        start_record_keep(&runtime);
        ck_assert_uint_eq(runtime.ledger.inode, inode);
}

/* Fills all slots, as the ledger of other workers. Returns one of them. */
static unsigned fill_ledger(void)
{
        const struct ledger_start other = {.fleet = "other", .index = 1};
        unsigned number, last = 0;

        while ((number = ledger_put(&runtime.ledger.ledger, &other)) != 0)
                last = number;
        return last;
}

/* A signal to a worker without a slot would not be known to the next sqmgr. */
TEST_LOOP(while_a_worker_has_no_slot_the_ledger_counts_as_volatile, 2)
{
        const struct ledger *ledger = &runtime.ledger.ledger;
        struct rlimit before, limit;
        unsigned other = fill_ledger();

        /* The file cannot grow. */
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = (struct rlimit){.rlim_cur = runtime.ledger.mapped, .rlim_max = before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const struct worker *worker = runtime_start_worker();
        assert(worker && worker->handle);
        ck_assert_uint_eq(worker->handle->record, 0);
        ck_assert(runtime_world->ledger_volatile);
        start_record_keep(&runtime);
        ck_assert_uint_eq(worker->handle->record, 0);
        ck_assert(runtime_world->ledger_volatile);
        ck_assert(ledger_has_gap(ledger, LEDGER_GAP_SLOT));

        if (_i == 0)
                ledger_end(&runtime.ledger.ledger, other);
        else
                ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        start_record_keep(&runtime);
        ck_assert_uint_ne(worker->handle->record, 0);
        ck_assert(!runtime_world->ledger_volatile);
        ck_assert(!ledger_has_gap(ledger, LEDGER_GAP_SLOT));
        if (_i == 0)
                ck_assert_uint_eq(worker->handle->record, other);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(while_a_deleted_ledger_cannot_be_made_again_it_ends_with_sqmgr)
{
        const struct worker *worker = runtime_start_worker();
        struct ledger_start found;

        ck_assert_int_eq(unlink(ledger_path), 0);
        ck_assert_int_eq(mkdir(ledger_path, 0700), 0);
        start_record_keep(&runtime);
        ck_assert(runtime_world->ledger_volatile);
        ck_assert_int_eq(rmdir(ledger_path), 0);
        start_record_keep(&runtime);
        ck_assert(!runtime_world->ledger_volatile);
        ck_assert_uint_eq(next_sqmgr_reads(&found), 1);
        ck_assert_int_eq(found.pid, worker->process.pid);
}

/* The first search is cut off before it has seen a process. */
int __wrap_search_run_first(struct search *search, unsigned slices, usec_t now);

int __wrap_search_run_first(struct search *search _unused_, unsigned slices _unused_, usec_t now _unused_)
{
        return SEARCH_GOES_ON;
}

static void setup_search(void)
{
        setup_fleet("rq");
        runtime.ledger = LEDGER_FILE_INIT;
        ck_assert_int_eq(start_record_open(&runtime), 0);
}

static void teardown_search(void)
{
        runtime.search = adopt_free(runtime.search);
        teardown_ledger();
}

TEST_FIXTURE(setup_search, teardown_search)

/* As a new sqmgr, whose workers have another instance than those of other tests. */
static void adopt(void)
{
        start_record_close(&runtime);
        runtime.search = adopt_free(runtime.search);
        strcpy(runtime.instance, "fedcba9876543210");
        ck_assert_int_eq(adopt_begin(&runtime, runtime_settings, clock_now(CLOCK_MONOTONIC)), 0);
}

TEST(a_search_that_did_not_end_is_made_again_by_the_next_sqmgr)
{
        for (unsigned i = 0; i < 3; i++) {
                adopt();
                ck_assert_ptr_nonnull(runtime.search);
                start_record_keep(&runtime);
                ck_assert(ledger_has_gap(&runtime.ledger.ledger, LEDGER_GAP_SEARCH));
                ck_assert(!runtime_world->ledger_volatile);
        }
        run_until(!runtime.search);
        ck_assert(!ledger_has_gap(&runtime.ledger.ledger, LEDGER_GAP_SEARCH));
        adopt();
        ck_assert_ptr_null(runtime.search);
        ck_assert(!ledger_has_gap(&runtime.ledger.ledger, LEDGER_GAP_SEARCH));
}

/* The sqmgr before was killed as it sent the signal. */
TEST(an_adopted_worker_whose_stop_signal_may_be_lost_is_reported)
{
        struct fleet *fleet = runtime_world->fleets[0];
        struct worker *worker = runtime_start_worker();

        assert(worker);
        worker->orders.unconfirmed = true;
        worker->orders.quiet_at = worker->spawned_at;
        worker->state = WORKER_QUIET;
        ck_assert(persist_save(&runtime, clock_now(CLOCK_MONOTONIC)));
        process_free(TAKE_PTR(worker->handle));
        observe_unadopted(worker);
        ck_assert_uint_eq(fleet->totals.events[EVENT_STOP_UNCONFIRMED], 0);
        adopt();
        ck_assert_uint_eq(fleet->n_workers, 2);
        ck_assert(fleet->workers[1]->orders.unconfirmed);
        ck_assert_uint_eq(fleet->totals.events[EVENT_STOP_UNCONFIRMED], 1);
}

TEST(a_start_that_says_what_cannot_be_has_its_process_searched_for)
{
        const struct ledger_start impossible = {.fleet = "web", .pid = 50, .start = 7};

        ledger_set_gap(&runtime.ledger.ledger, LEDGER_GAP_SEARCH, false);
        ck_assert_uint_ne(ledger_put(&runtime.ledger.ledger, &impossible), 0);
        adopt();
        ck_assert_ptr_nonnull(runtime.search);
        ck_assert(ledger_has_gap(&runtime.ledger.ledger, LEDGER_GAP_SEARCH));
}

static struct wakeup wakeup;
static unsigned turns, poll_items;

static void count(bool timer, void *userdata)
{
        ck_assert_ptr_eq(userdata, &wakeup);
        turns++;
        poll_items += timer;
}

/* The first comes by itself, and asks for looks. */
static void setup_turn(void)
{
        turns = poll_items = 0;
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(wakeup_open(&wakeup, event, NULL, count, &wakeup), 0);
        run_until(poll_items == 1);
        while (sd_event_run(event, 0) > 0)
                ;
        turns = poll_items = 0;
}

static void teardown_turn(void)
{
        wakeup_close(&wakeup);
        event = sd_event_unref(event);
}

TEST_FIXTURE(setup_turn, teardown_turn)

TEST(what_is_observed_has_one_turn_follow)
{
        uint64_t serial = wakeup.pass.serial;

        wakeup_arm(&wakeup);
        wakeup_arm(&wakeup);
        wakeup_changed(&wakeup);
        ck_assert(wakeup.pass.unsaved);
        /* The next reply of the status is another. */
        ck_assert_uint_ne(wakeup.pass.serial, serial);
        run_until(turns > 0);
        ck_assert_int_eq(sd_event_run(event, 0), 0);
        ck_assert_uint_eq(turns, 1);
        ck_assert_uint_eq(poll_items, 0);
}

TEST(the_timer_goes_off_once)
{
        usec_t at = clock_now(CLOCK_MONOTONIC) + 20 * USEC_PER_MSEC;

        wakeup_at(&wakeup, at);
        run_until(poll_items > 0);
        ck_assert_uint_ge(clock_now(CLOCK_MONOTONIC), at);
        ck_assert_int_eq(sd_event_run(event, 0), 0);
        ck_assert_uint_eq(turns, 1);
}

TEST_MAIN("keep", .each = {setup, runtime_folder_close}, .timeout_seconds = 120)
