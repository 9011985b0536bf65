/* SPDX-License-Identifier: MIT */
/* Tests of servers/server.h with a backend that is the test: when answers and states are delivered, and that
 * the server may be freed within each. */
/* promises: P5 P8 */
#include "loop.h"
#include "servers/server.h"

#define ASKS_MAX 8

static struct reader *reader;
static struct ask *held[ASKS_MAX]; /* by the backend */
static size_t n_held;
static bool answers_at_once; /* the backend answers within its call */
static int begin_error;
static unsigned ends, cancels;
static size_t scanned; /* identities of the last answer */
static struct answer answered[ASKS_MAX];
static size_t n_answered;
static enum reader_state states[ASKS_MAX];
static size_t n_states;
static bool frees_in_callback, asks_in_callback;
static const struct reader *decoded[ASKS_MAX];
static size_t n_decoded;

static char *url_text(const struct reader_options *options)
{
        return strdup(options->url);
}

static int begin(struct reader *server _unused_, const struct reader_options *options _unused_,
                 struct error_report *error, void **ret)
{
        if (begin_error < 0 && begin_error != -ENOMEM)
                error_report_set(error, "no such\nserver");
        *ret = held;
        return begin_error;
}

/* An answer that owns memory. */
static void give(struct ask *ask)
{
        struct answer answer = {.scan = {.list = calloc(1, sizeof(struct answer_identity)), .n = 1}};

        ck_assert_ptr_nonnull(answer.scan.list);
        answer.scan.list[0].identity = strdup("host:1");
        ask_done(ask, &answer);
}

/* Ends all asks, which is over once the backend has ended each. */
static void end(void *backend)
{
        ck_assert_ptr_eq(backend, held);
        ends++;
        for (size_t n = n_held; n_held > 0; n--)
                ask_fail_errno(held[--n_held], -ENOTCONN);
}

static void ask_backend_for(void *backend, struct ask *ask)
{
        ck_assert_ptr_eq(ask_backend(ask), backend);
        ck_assert_uint_lt(n_held, ASKS_MAX);
        if (answers_at_once)
                give(ask);
        else
                held[n_held++] = ask;
}

static usec_t rtt_usec(const void *backend _unused_)
{
        return 77;
}

static const struct reader_backend fake_backend = {
        .url_text = url_text, .begin = begin, .end = end, .ask = ask_backend_for, .rtt_usec = rtt_usec};

static void on_state(struct reader *server, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        ck_assert_uint_lt(n_states, ASKS_MAX);
        ck_assert(!error || error == reader_error(server));
        states[n_states++] = state;
        if (frees_in_callback)
                reader = reader_free(server);
}

static void on_decoding(const struct reader *server, void *userdata)
{
        ck_assert_ptr_eq(userdata, decoded);
        ck_assert_uint_lt(n_decoded, ASKS_MAX);
        decoded[n_decoded++] = server;
}

static void make(void)
{
        const struct reader_options options = {
                .backend = &fake_backend,
                .url = "redis://there",
                .on_state = on_state,
                .decoding = on_decoding,
                .decoding_userdata = decoded,
        };

        ck_assert_int_eq(reader_new(event, &options, &reader), 0);
}

static void report(enum reader_state state, const char *error)
{
        struct reader_report now = {.state = state, .connections = 1};

        error_report_set(&now.error, "%s", error);
        reader_report_state(reader, &now);
}

static void setup(void)
{
        ck_assert_int_eq(sd_event_new(&event), 0);
        n_held = n_answered = n_states = n_decoded = ends = cancels = 0;
        answers_at_once = frees_in_callback = asks_in_callback = false;
        begin_error = 0;
        make();
        report(READER_STATE_CONNECTED, "");
}

static void teardown(void)
{
        reader = reader_free(reader);
        event = sd_event_unref(event);
}

static int send_query(void *userdata);

static void take(struct answer *answer, void *userdata)
{
        ck_assert_uint_lt(n_answered, ASKS_MAX);
        ck_assert_int_eq(answer->kind, QUERY_SCAN);
        scanned = answer->status == ANSWER_OK ? answer->scan.n : 0;
        answered[n_answered] = *answer;
        n_answered++;
        if (asks_in_callback && n_answered < 3)
                ck_assert_int_eq(send_query(userdata), 0);
        if (frees_in_callback)
                reader = reader_free(reader);
}

static int send_query(void *userdata)
{
        char cursor[] = "12";
        const struct field texts[] = {QUERY_TEXT(cursor), {.text = NULL}};
        const struct query query = {.kind = QUERY_SCAN, .numbers = {5}, .texts = texts, .n_texts = 2};
        int r = reader_ask(reader, &query, take, userdata);

        memset(cursor, 'x', sizeof(cursor));
        return r;
}

static void send_queries(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                ck_assert_int_eq(send_query(&held[i]), 0);
}

static void run_once(void)
{
        ck_assert_int_ge(sd_event_run(event, 0), 0);
}

TEST(a_query_is_copied)
{
        send_queries(1);
        const struct query *query = ask_query(held[0]);
        ck_assert_int_eq(query->kind, QUERY_SCAN);
        ck_assert_uint_eq(query->numbers[0], 5);
        ck_assert_uint_eq(query->n_texts, 2);
        ck_assert_str_eq(query_text(query, 0), "12");
        ck_assert_str_eq(query_text(query, 1), "");
        ck_assert_str_eq(query_text(query, 2), "");
}

TEST(an_answer_is_delivered_once_it_is_there)
{
        send_queries(2);
        ck_assert_uint_eq(n_answered, 0);
        give(held[1]);
        ck_assert_uint_eq(n_answered, 1);
        ck_assert_uint_eq(scanned, 1);
        n_held = 1;
        for (unsigned i = 0; i < 5; i++)
                run_once();
        ck_assert_uint_eq(n_answered, 1);
}

TEST(an_answer_within_the_request_waits_for_the_loop)
{
        answers_at_once = asks_in_callback = true;
        send_queries(1);
        ck_assert_uint_eq(n_answered, 0);
        run_until(n_answered == 3);
        ck_assert_uint_eq(scanned, 1);
}

TEST(without_a_connection_nothing_is_asked)
{
        report(READER_STATE_DOWN, "gone");
        ck_assert_int_eq(send_query(NULL), -ENOTCONN);
        ck_assert_uint_eq(reader_rtt_usec(reader), 0);
        report(READER_STATE_REFUSING, "full");
        ck_assert_int_eq(send_query(NULL), 0);
        ck_assert_uint_eq(reader_rtt_usec(reader), 77);
}

TEST(a_server_that_is_freed_loses_its_queries)
{
        send_queries(2);
        answers_at_once = true;
        send_queries(1);
        reader = reader_free(reader);
        ck_assert_uint_eq(n_answered, 3);
        ck_assert_uint_eq(ends, 1);
        for (size_t i = 0; i < n_answered; i++) {
                ck_assert_int_eq(answered[i].status, ANSWER_LOST);
                ck_assert_str_eq(answered[i].error.text, "connection lost");
        }
}

static void cancel(struct ask *ask)
{
        ck_assert_ptr_eq(ask, held[0]);
        held[0] = NULL;
        n_held = 0;
        cancels++;
}

TEST(work_beside_the_connection_is_ended)
{
        send_queries(1);
        held[0]->cancel = cancel;
        reader = reader_free(reader);
        ck_assert_uint_eq(cancels, 1);
        ck_assert_uint_eq(n_answered, 1);
}

/* A backend that answers a batch holds further asks while the first answer frees the server. */
TEST(an_answer_may_free_the_server)
{
        struct ask *asks[3];

        send_queries(3);
        memcpy(asks, held, sizeof(asks));
        n_held = 0;
        frees_in_callback = true;
        for (size_t i = 0; i < ELEMENTSOF(asks); i++)
                give(asks[i]);
        ck_assert_uint_eq(n_answered, 3);
        ck_assert_uint_eq(ends, 1);
        ck_assert_int_eq(answered[0].status, ANSWER_OK);
        ck_assert_int_eq(answered[1].status, ANSWER_LOST);
        ck_assert_int_eq(answered[2].status, ANSWER_LOST);
}

TEST(an_answer_from_the_loop_may_free_the_server)
{
        answers_at_once = true;
        send_queries(3);
        frees_in_callback = true;
        run_until(n_answered == 3);
        ck_assert_int_eq(answered[0].status, ANSWER_OK);
        ck_assert_int_eq(answered[2].status, ANSWER_LOST);
        ck_assert_uint_eq(ends, 1);
}

TEST(a_state_is_reported_if_it_changes_and_may_free_the_server)
{
        ck_assert_uint_eq(n_states, 1);
        report(READER_STATE_CONNECTED, "");
        ck_assert_uint_eq(n_states, 1);
        report(READER_STATE_DOWN, "gone");
        report(READER_STATE_DOWN, "gone\x1b[2J");
        ck_assert_uint_eq(n_states, 3);
        ck_assert_str_eq(reader_error(reader)->text, "gone?[2J");
        send_query(NULL);
        frees_in_callback = true;
        report(READER_STATE_CONNECTED, "");
        ck_assert_uint_eq(n_states, 4);
        ck_assert_ptr_null(reader);
        ck_assert_uint_eq(ends, 1);
}

TEST(errors_are_printable)
{
        send_queries(2);
        n_held = 0;
        ask_fail(held[0], ANSWER_REFUSED, "no\n%s", "\x1b");
        ck_assert_int_eq(answered[0].status, ANSWER_REFUSED);
        ck_assert_str_eq(answered[0].error.text, "no??");
        ask_fail_unknown(held[1]);
        ck_assert_int_eq(answered[1].status, ANSWER_REFUSED);
}

TEST(a_server_that_cannot_be_used_is_down)
{
        reader = reader_free(reader);
        n_states = 0;
        begin_error = -EINVAL;
        make();
        ck_assert_int_eq(reader_state(reader), READER_STATE_CONNECTING);
        ck_assert_uint_eq(n_states, 0);
        run_until(n_states == 1);
        ck_assert_int_eq(states[0], READER_STATE_DOWN);
        ck_assert_str_eq(reader_error(reader)->text, "no such?server");
        ck_assert_str_eq(reader_url_text(reader), "redis://there");
        ck_assert_int_eq(send_query(NULL), -ENOTCONN);
}

TEST(forgotten_queries_are_not_called_back)
{
        send_queries(2);
        reader_forget(reader, &held[0]);
        n_held = 0;
        give(held[0]);
        ck_assert_uint_eq(n_answered, 0);
        give(held[1]);
        ck_assert_uint_eq(n_answered, 1);
}

/* The end is reported, too, if the server was freed in between. */
TEST(decoding_is_reported_once_around)
{
        reader_decoding(reader, true);
        reader_decoding(reader, true);
        reader_decoding(reader, false);
        ck_assert_uint_eq(n_decoded, 1);
        ck_assert_ptr_eq(decoded[0], reader);
        reader_decoding(reader, false);
        ck_assert_uint_eq(n_decoded, 2);
        ck_assert_ptr_null(decoded[1]);
        struct reader *server = reader;
        reader_decoding(server, true);
        reader = reader_free(reader);
        reader_decoding(server, false);
        ck_assert_uint_eq(n_decoded, 4);
        ck_assert_ptr_null(decoded[3]);
}

TEST_MAIN("servers", .each = {setup, teardown})
