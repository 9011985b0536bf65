/* SPDX-License-Identifier: MIT */
/* The client of a database, with a helper that the test plays: one that dies, is silent, floods, or sends
 * what no helper sends. */
/* promises: P5 P8 */
#include "base/fd.h"
#include "database/messages.h"
#include "database_driver.h"
#include <sys/socket.h>

#define URL  "sqlite3:/srv/queue.sqlite3"
#define TICK (50 * USEC_PER_MSEC)

/* The helper: the last one that was started. */
static struct {
        int fd;
        unsigned starts, stops;
        int refuses; /* what start() returns */
        void (*ended)(const char *how, void *userdata);
        void *userdata;
        uint8_t received[65536];
        size_t n_received, n_taken; /* of received: bytes, and those of messages taken */
} peer;

static int peer_start(struct database_starter *starter _unused_, enum database_engine engine,
                      void (*ended)(const char *how, void *userdata), void *userdata,
                      struct database_helper **ret, int *ret_fd)
{
        int fds[2];

        ck_assert_int_eq(engine, DATABASE_SQLITE);
        peer.starts++;
        if (peer.refuses < 0)
                return peer.refuses;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        close_fd(peer.fd);
        peer.fd = fds[1];
        peer.ended = ended;
        peer.userdata = userdata;
        *ret = (struct database_helper *)&peer;
        *ret_fd = fds[0];
        return 0;
}

static void peer_stop(struct database_helper *helper)
{
        ck_assert_ptr_eq(helper, &peer);
        peer.stops++;
}

static void setup(void)
{
        setup_alone();
        memset(&peer, 0, sizeof(peer));
        peer.fd = -1;
        helpers.starter = (struct database_starter){.start = peer_start, .stop = peer_stop};
}

static void teardown(void)
{
        teardown_alone();
        close_fd(peer.fd);
}

static void peer_raw(const void *bytes, size_t n)
{
        while (send(peer.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                ck_assert_int_eq(errno, EAGAIN);
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
}

/* Sends the message in pieces of this size; 0: in one. Frees it. */
static void peer_send(struct codec_writer *writer, size_t piece)
{
        size_t n = writer->size + sizeof(uint32_t);
        _cleanup_free_ uint8_t *bytes = malloc(n);

        ck_assert(bytes && !writer->failed);
        codec_put_bytes(bytes, sizeof(uint32_t), writer->size);
        if (writer->size > 0)
                memcpy(bytes + sizeof(uint32_t), writer->bytes, writer->size);
        free(writer->bytes);
        piece = piece > 0 ? piece : 65536;
        for (size_t at = 0; at < n; at += piece)
                peer_raw(bytes + at, MIN(piece, n - at));
}

/* Receives the next message of the client. Returns its kind. */
static enum database_message peer_receive(struct codec_reader *ret)
{
        if (peer.n_taken == peer.n_received) {
                ssize_t n = -1;

                run_until((n = recv(peer.fd, peer.received, sizeof(peer.received), MSG_DONTWAIT)) > 0);
                peer.n_received = (size_t)n;
                peer.n_taken = 0;
        }
        const uint8_t *message = peer.received + peer.n_taken;
        size_t length = codec_get_bytes(message, sizeof(uint32_t));
        *ret = (struct codec_reader){.at = message + sizeof(uint32_t), .left = length};
        peer.n_taken += sizeof(uint32_t) + length;
        ck_assert_uint_le(peer.n_taken, peer.n_received);
        return (enum database_message)codec_read_number(ret, 0, _DATABASE_MESSAGE_MAX);
}

static void peer_report(enum database_state state, uint64_t connections, const char *error)
{
        struct database_report report = {.state = state, .connections = connections};
        struct codec_writer writer = {0};

        error_report_set(&report.error, "%s", error);
        database_report_write(&writer, &report);
        peer_send(&writer, 0);
}

static void peer_row(size_t statement, const char *value, size_t length, size_t piece)
{
        const struct field field = {.text = value, .len = length};
        struct codec_writer writer = {0};

        codec_write_number(&writer, DATABASE_ROW);
        codec_write_number(&writer, statement);
        codec_write_number(&writer, 1);
        database_value_write(&writer, &field);
        peer_send(&writer, piece);
}

static void peer_end(enum database_result result, const char *error, size_t piece)
{
        struct database_end end = {.result = result, .rtt_usec = 7};
        struct codec_writer writer = {0};

        error_report_set(&end.error, "%s", error);
        database_end_write(&writer, &end);
        peer_send(&writer, piece);
}

static void start(usec_t timeout)
{
        unsigned before = peer.starts;

        open_url(URL, timeout);
        run_until(peer.starts > before);
}

static void start_up(usec_t timeout)
{
        start(timeout);
        peer_report(DATABASE_CONNECTED, 1, "");
        run_until(is_up());
}

static const struct database_statement two[] = {{.sql = "one"}, {.sql = "two"}};

TEST(the_helper_gets_settings_and_batches)
{
        const char *const parameters[] = {"", NULL, "x"};
        const struct database_statement statements[] = {
                {.sql = "one"}, {.sql = "two", .parameters = parameters, .n = ELEMENTSOF(parameters)}};
        struct codec_reader message;

        start(PATIENCE);
        ck_assert_int_eq(peer_receive(&message), DATABASE_SETTINGS);
        ck_assert_uint_eq(codec_read_number(&message, 0, UINT64_MAX), PATIENCE);
        ck_assert_str_eq(database_value_read(&message).text, URL);
        ck_assert_str_eq(database_value_read(&message).text, "SELECT id, name FROM t LIMIT 1");
        ck_assert(!message.wrong && message.left == 0);
        peer_report(DATABASE_CONNECTING, 0, "");
        peer_report(DATABASE_CONNECTED, 1, "");
        run_until(is_up());
        ck_assert_uint_eq(states[DATABASE_CONNECTING], 0);
        begin(statements, ELEMENTSOF(statements), true);
        ck_assert_int_eq(peer_receive(&message), DATABASE_BATCH);
        ck_assert_uint_eq(codec_read_number(&message, 0, 1), true);
        ck_assert_uint_eq(codec_read_number(&message, 0, 9), 2);
        ck_assert_uint_eq(codec_read_number(&message, 0, 9), 0);
        ck_assert_str_eq(database_value_read(&message).text, "one");
        ck_assert_uint_eq(codec_read_number(&message, 0, 9), 3);
        ck_assert_str_eq(database_value_read(&message).text, "two");
        ck_assert_str_eq(database_value_read(&message).text, "");
        ck_assert_ptr_null(database_value_read(&message).text);
        ck_assert_str_eq(database_value_read(&message).text, "x");
        ck_assert(!message.wrong && message.left == 0);
        ck_assert_int_eq(database_run(database, two, 2, false, &batch_ops, NULL), -EBUSY);
        peer_end(DATABASE_DONE, "", 0);
        run_until(got.done == 1);
        ck_assert_uint_eq(database_rtt_usec(database), 7);
}

TEST_LOOP(replies_may_arrive_in_pieces, 3)
{
        static const size_t pieces[] = {1, 3, 100};

        start_up(PATIENCE);
        begin(two, 2, false);
        peer_row(1, "abc", 3, pieces[_i]);
        peer_row(0, NULL, 0, pieces[_i]);
        peer_row(1, "a\0c", 3, pieces[_i]);
        peer_end(DATABASE_REFUSED, "no\033", pieces[_i]);
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_REFUSED);
        ck_assert_str_eq(got.error.text, "no?");
        ck_assert_str_eq(got.text, "1:abc;0:NULL;1:a;");
        ck_assert_uint_eq(got.bytes, 6);
        ck_assert_uint_eq(states[DATABASE_DOWN], 0);
}

TEST(a_wakeup_takes_a_bounded_part_of_what_has_arrived)
{
        static char value[60000];

        start_up(PATIENCE);
        begin(two, 2, false);
        for (unsigned i = 0; i < 3; i++)
                peer_row(0, value, sizeof(value), 0);
        ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_uint_le(got.rows, 1);
        run_until(got.rows == 3);
}

TEST(a_helper_that_dies_is_started_again_and_why_is_shown_until_the_next_connects)
{
        start(PATIENCE);
        peer.fd = close_fd(peer.fd);
        peer.ended("exited with status 1", peer.userdata);
        ck_assert_str_eq(why.text, "sqmgr-sqlite exited with status 1");
        ck_assert_uint_eq(peer.stops, 0);
        run_until(peer.starts == 2);
        peer_report(DATABASE_CONNECTING, 0, "");
        peer_report(DATABASE_CONNECTED, 1, "");
        run_until(is_up());
        ck_assert_uint_eq(states[DATABASE_DOWN], 1);
        ck_assert_uint_eq(states[DATABASE_CONNECTED], 1);
        ck_assert_ptr_null(database_error(database));
}

TEST(a_batch_is_lost_with_its_helper_and_counts_of_connections_go_on)
{
        start_up(PATIENCE);
        begin(two, 2, true);
        peer_row(0, "x", 1, 0);
        peer.fd = close_fd(peer.fd);
        got.repeats = false;
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_str_eq(got.text, "0:x;");
        ck_assert_int_eq(database_run(database, two, 2, false, &batch_ops, NULL), -ENOTCONN);
        peer.ended("was killed", peer.userdata);
        run_until(peer.starts == 2);
        peer_report(DATABASE_CONNECTED, 1, "");
        run_until(is_up());
        ck_assert_uint_eq(database_connection_count(database), 2);
        ck_assert_uint_eq(got.done, 1);
        /* A helper that closes its socket and does not end is killed. */
        peer.fd = close_fd(peer.fd);
        run_until(peer.stops == 1);
        ck_assert_str_eq(why.text, "sqmgr-sqlite closed its connection to sqmgr and was ended");
}

TEST(a_helper_that_cannot_be_started_is_explained)
{
        static const struct {
                int error;
                const char *text;
        } cases[] = {
                {-ENOENT, "the program sqmgr-sqlite is missing; install the package sqmgr-sqlite"},
                {-EBUSY, "killed helpers sqmgr-sqlite do not end; check whether the file system of the "
                         "database responds"},
                {-EAGAIN, "cannot start sqmgr-sqlite: Resource temporarily unavailable"},
        };

        FOREACH_ELEMENT(i, cases) {
                unsigned before = states[DATABASE_DOWN];

                peer.refuses = i->error;
                open_url(URL, PATIENCE);
                run_until(states[DATABASE_DOWN] > before);
                ck_assert_str_eq(why.text, i->text);
                database = database_free(database);
        }
}

/* Before the first report, later, and in a batch that the helper does not read. */
TEST_LOOP(a_silent_helper_is_killed, 3)
{
        start(TICK);
        if (_i == 1)
                peer_report(DATABASE_DOWN, 0, "down");
        if (_i == 2) {
                peer_report(DATABASE_CONNECTED, 1, "");
                run_until(is_up());
                run("SELECT", false);
                ck_assert_int_eq(got.result, DATABASE_LOST);
        }
        run_until(peer.stops == 1);
        ck_assert_str_eq(why.text, "sqmgr-sqlite did not answer and was ended");
}

/* Answers for longer than silence is borne. */
TEST(a_helper_that_answers_pings_may_take_its_time_to_connect)
{
        struct codec_reader message;

        start(TICK);
        ck_assert_int_eq(peer_receive(&message), DATABASE_SETTINGS);
        peer_report(DATABASE_CONNECTING, 0, "");
        for (unsigned i = 0; i < 15; i++) {
                ck_assert_int_eq(peer_receive(&message), DATABASE_PING);
                peer_report(DATABASE_CONNECTING, 0, "");
        }
        ck_assert_uint_eq(peer.stops, 0);
        ck_assert_int_eq(database_state(database), DATABASE_CONNECTING);
}

/* Messages that are invalid while a batch of two statements runs. */
static void write_invalid(struct codec_writer *writer, int i)
{
        struct database_report report = {.state = DATABASE_CONNECTED};
        struct database_end end = {.result = DATABASE_DONE};
        const struct field value = {.text = "abc", .len = 3};

        switch (i) {
        case 0: /* no kind */
                break;
        case 1:
        case 2: /* of the other direction, and unknown */
                codec_write_number(writer, i == 1 ? DATABASE_PING : _DATABASE_MESSAGE_MAX);
                break;
        case 3:
        case 4: /* values out of range */
                report.state = i == 3 ? _DATABASE_STATE_MAX : DATABASE_CONNECTED;
                database_report_write(writer, &report);
                if (i == 4)
                        codec_write_number(writer, 0);
                break;
        case 5:
        case 6:
        case 7:
        case 8:
        case 9:
                end.result = i == 5 ? _DATABASE_RESULT_MAX : i == 6 ? DATABASE_LOST : DATABASE_DONE;
                end.rtt_usec = i == 7 ? USEC_PER_DAY + 1 : 0;
                error_report_set(&end.error, "%s", i == 8 ? "error" : "");
                database_end_write(writer, &end);
                if (i == 9)
                        writer->size--;
                break;
        default:
                codec_write_number(writer, DATABASE_ROW);
                codec_write_number(writer, i == 10 ? 2 : 1);
                codec_write_number(writer, i == 11 ? DATABASE_COLUMNS_MAX + 1 : i == 12 ? 2 : 1);
                for (unsigned k = 0; k < (i == 11 ? DATABASE_COLUMNS_MAX + 1 : 1); k++)
                        database_value_write(writer, &value);
                if (i == 13)
                        writer->bytes[writer->size - 1] = 'd';
                if (i == 14)
                        codec_put_bytes(writer->bytes + 24, sizeof(uint32_t), UINT32_MAX - 1);
                if (i == 15)
                        codec_write_number(writer, 0);
        }
}

TEST_LOOP(an_invalid_message_ends_the_helper, 16)
{
        struct codec_writer writer = {0};

        start_up(PATIENCE);
        begin(two, 2, false);
        write_invalid(&writer, _i);
        peer_send(&writer, 0);
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_str_eq(got.error.text, "sqmgr-sqlite sent an invalid message and was ended");
        ck_assert_uint_eq(states[DATABASE_DOWN], 1);
        ck_assert_uint_eq(peer.stops, 1);
        ck_assert_uint_eq(got.rows, 0);
}

TEST_LOOP(what_belongs_to_a_batch_is_invalid_without_one, 4)
{
        start_up(PATIENCE);
        if (_i >= 2) {
                begin(two, 2, false);
                peer_end(DATABASE_DONE, "", 0);
                run_until(got.done == 1);
        }
        if (_i % 2 == 0)
                peer_row(0, "x", 1, 0);
        else
                peer_end(DATABASE_DONE, "", 0);
        run_until(peer.stops == 1);
        ck_assert_uint_eq(got.rows, 0);
        ck_assert_uint_eq(got.done, _i >= 2);
}

TEST(a_message_over_the_bound_and_a_flood_of_reports_are_invalid)
{
        uint8_t length[sizeof(uint32_t)];

        start_up(PATIENCE);
        codec_put_bytes(length, sizeof(length), DATABASE_REPLY_MAX + 1);
        peer_raw(length, sizeof(length));
        run_until(peer.stops == 1);
        run_until(peer.starts == 2);
        for (unsigned i = 0; i < 200 && peer.stops == 1; i++) {
                peer_report(DATABASE_DOWN, i, "down");
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
        run_until(peer.stops == 2);
        ck_assert_str_eq(why.text, "sqmgr-sqlite sent an invalid message and was ended");
}

TEST_LOOP(rows_and_bytes_of_a_batch_are_bounded, 2)
{
        static char value[1 << 20];
        size_t length = _i == 0 ? 0 : sizeof(value), n = _i == 0 ? DATABASE_ROWS_MAX : 32;

        start_up(PATIENCE);
        for (unsigned pass = 0; pass < 2; pass++) {
                unsigned before = got.done;

                begin(two, 2, false);
                for (size_t i = 0; i < n + pass; i++)
                        peer_row(0, value, length, 0);
                if (pass == 0)
                        peer_end(DATABASE_DONE, "", 0);
                run_until(got.done > before);
                ck_assert_uint_eq(got.rows, n);
                ck_assert_int_eq(got.result, pass == 0 ? DATABASE_DONE : DATABASE_LOST);
        }
        ck_assert_str_eq(got.error.text, "the database sent more rows or bytes than a batch may have");
        ck_assert_uint_eq(peer.stops, 1);
}

TEST(rows_that_cannot_be_used_end_the_batch)
{
        start_up(PATIENCE);
        got.stop = -E2BIG;
        begin(two, 2, false);
        peer_row(0, "x", 1, 0);
        peer_row(0, "x", 1, 0);
        run_until(got.done == 1);
        ck_assert_int_eq(got.result, DATABASE_LOST);
        ck_assert_uint_eq(got.rows, 1);
        ck_assert_str_eq(got.error.text, "the rows of the database cannot be used: Argument list too long");
        ck_assert_uint_eq(peer.stops, 1);
}

TEST(the_object_may_be_freed_by_a_row_and_the_next_batch_begin_in_done)
{
        start_up(PATIENCE);
        got.repeats = true;
        begin(two, 2, false);
        peer_end(DATABASE_DONE, "", 0);
        run_until(got.done == 1);
        peer_row(0, "again", 5, 0);
        peer_end(DATABASE_DONE, "", 0);
        run_until(got.done == 2);
        ck_assert_str_eq(got.text, "0:again;");
        got.frees = true;
        begin(two, 2, false);
        peer_row(0, "x", 1, 0);
        peer_row(0, "x", 1, 0);
        run_until(got.done == 3);
        ck_assert_ptr_null(database);
        ck_assert_uint_eq(got.rows, 1);
        ck_assert_uint_eq(peer.stops, 1);
}

TEST_MAIN("database_client", .each = {setup, teardown}, .timeout_seconds = 120)
