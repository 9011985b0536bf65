/* SPDX-License-Identifier: MIT */
/* sqmgr-web's connection to an sqmgr: one that answers, one that does not, and what is none. */
#include "golden.h"
#include "unit.h"
#include "web/instance_client.h"
#include <sys/socket.h>
#include <sys/un.h>

static const struct instance_client_limits limits = {
        .reply_bytes = 1000,
        .answer_usec = USEC_PER_HOUR,
        .backoff_min_usec = 1000,
        .backoff_max_usec = 4000,
};

static const struct instance_client_limits brief = {
        .reply_bytes = 1000,
        .answer_usec = 10 * USEC_PER_MSEC,
        .backoff_min_usec = 1000,
        .backoff_max_usec = 4000,
};

static char folder[64];
static struct sockaddr_un address;
static int listener, peer; /* of the sqmgr */
static sd_event *event;
static struct instance_client *instance_client_;
static const char *name; /* of the instance; NULL: not known */
static unsigned answers, losses;
static char answered[256]; /* each question and its answer */
static char lost[512];     /* the last reason */

static json_t *on_parameters(void *userdata _unused_, enum instance_query question)
{
        return question == INSTANCE_QUERY_EVENTS ? json_pack("{s:i}", "after", 7) : NULL;
}

static void on_answered(void *userdata _unused_, enum instance_query question, json_t *answer)
{
        _cleanup_free_ char *text = answer ? json_dumps(answer, JSON_COMPACT) : strdup("refused");
        size_t size = strlen(answered);

        answers++;
        snprintf(answered + size, sizeof(answered) - size, "%d%s ", question, text);
}

static void on_lost(void *userdata _unused_, const char *error)
{
        losses++;
        snprintf(lost, sizeof(lost), "%s", error);
}

static const struct instance_client_ops ops = {
        .parameters = on_parameters, .answered = on_answered, .lost = on_lost};

static void setup(void)
{
        unit_make_folder(folder);
        address = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listener, 5), 0);
        peer = -1;
        answers = losses = 0;
        name = NULL;
        answered[0] = lost[0] = '\0';
        ck_assert_int_ge(sd_event_new(&event), 0);
}

static void teardown(void)
{
        instance_client_free(instance_client_);
        sd_event_unref(event);
        close_fd(peer);
        close_fd(listener);
        unit_remove_tree(folder);
}

static void start(const struct instance_client_limits *with)
{
        ck_assert_int_eq(
                instance_client_new(&instance_client_, event,
                                    (struct instance_address){.path = address.sun_path, .name = name}, with,
                                    &ops, NULL),
                0);
}

static void run(void)
{
        ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
}

/* Lets it come in. */
static void let_in(void)
{
        do {
                run();
                peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        } while (peer < 0);
}

/* The method that is asked next. */
static void expect_question(const char *expected)
{
        char text[256], *dot;
        ssize_t n;

        while ((n = recv(peer, text, sizeof(text) - 1, 0)) < 0)
                run();
        text[n] = '\0';
        ck_assert_uint_eq(strlen(text), (size_t)n - 1);
        dot = strstr(text, "Control.");
        ck_assert_ptr_nonnull(dot);
        ck_assert_msg(strncmp(dot + strlen("Control."), expected, strlen(expected)) == 0, "%s", text);
        if (strcmp(expected, "GetEvents") == 0)
                ck_assert_ptr_nonnull(strstr(text, "\"after\":7"));
}

static void let_in_for(const char *expected)
{
        let_in();
        expect_question(expected);
}

static void log_message(const void *bytes, size_t size)
{
        ck_assert_int_eq(send(peer, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void reply(const char *text)
{
        log_message(text, strlen(text) + 1);
}

/* For the reason of that section of tests/golden/instances. */
static void expect_lost(const char *section)
{
        unsigned before = losses;

        while (losses == before)
                run();
        golden_expect_with("instances", section, lost, address.sun_path, "SOCKET");
}

TEST(a_reply_that_has_arrived_counts_after_its_deadline)
{
        start(&brief);
        let_in();
        reply("{\"parameters\":{\"a\":1}}");
        usleep(2 * brief.answer_usec); /* the deadline passes */
        while (answers + losses == 0)
                run();
        ck_assert_uint_eq(losses, 0);
}

TEST(asks_one_after_another)
{
        start(&limits);
        let_in_for("GetStatus");
        instance_client_ask(instance_client_, INSTANCE_QUERY_METRICS);
        instance_client_ask(instance_client_, INSTANCE_QUERY_METRICS);
        instance_client_ask(instance_client_, INSTANCE_QUERY_QUEUES);
        ck_assert(instance_client_awaits(instance_client_, INSTANCE_QUERY_STATUS) &&
                  instance_client_awaits(instance_client_, INSTANCE_QUERY_METRICS));
        ck_assert_int_lt(recv(peer, &(char){0}, 1, 0), 0);
        reply("{\"parameters\":{\"a\":1}}");
        expect_question("GetEvents");
        ck_assert(!instance_client_awaits(instance_client_, INSTANCE_QUERY_STATUS));
        reply("{\"error\":\"org.varlink.service.InvalidParameter\"}");
        expect_question("GetQueues");
        /* In pieces. */
        log_message("{\"parame", 8);
        run();
        reply("ters\":{}}");
        expect_question("GetMetrics");
        reply("{}");
        while (answers < 4)
                run();
        ck_assert_str_eq(answered, "0{\"a\":1} 1refused 2{} 3{} ");
        ck_assert_uint_eq(losses, 0);
        instance_client_ask(instance_client_, INSTANCE_QUERY_STATUS);
        expect_question("GetStatus");
}

TEST(a_query_that_is_due_again_with_each_reply_delays_no_other)
{
        static const char *const expected[] = {"GetStatus", "GetEvents", "GetQueues", "GetMetrics"};

        start(&limits);
        let_in();
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                expect_question(expected[i]);
                instance_client_ask(instance_client_, INSTANCE_QUERY_STATUS);
                instance_client_ask(instance_client_, INSTANCE_QUERY_METRICS);
                instance_client_ask(instance_client_, INSTANCE_QUERY_QUEUES);
                reply("{}");
        }
        expect_question("GetStatus");
}

static const struct {
        const char *bytes;
        size_t size;
} strangers[] = {
#define SAYS(text)                                                                                           \
        {                                                                                                    \
                text, sizeof(text)                                                                           \
        }
        SAYS(""),
        SAYS("garbage"),
        SAYS("[]"),
        SAYS("{\"parameters\":7}"),
        SAYS("{\"error\":7}"),
        SAYS("{\"continues\":true}"),
        SAYS("HTTP/1.1 400 Bad Request\r\n\r\n"),
        SAYS("{}\0{}\0{}"),
        SAYS("\xff\xfe"),
};

TEST_LOOP(leaves_who_speaks_otherwise_and_comes_again, ELEMENTSOF(strangers))
{
        start(&limits);
        let_in_for("GetStatus");
        log_message(strangers[_i].bytes, strangers[_i].size);
        expect_lost("another language");
        ck_assert(!instance_client_awaits(instance_client_, INSTANCE_QUERY_STATUS) &&
                  !instance_client_awaits(instance_client_, INSTANCE_QUERY_EVENTS));
        peer = close_fd(peer);
        let_in_for("GetStatus");
}

/* The socket of one instance may lead to another. */
TEST(leaves_an_instance_of_another_name)
{
        name = "shop";
        start(&limits);
        let_in_for("GetStatus");
        reply("{\"parameters\":{\"instance\":\"mail\\u001b[2J\"}}");
        expect_lost("another instance");
        peer = close_fd(peer);
        let_in_for("GetStatus");
        reply("{\"parameters\":{\"instance\":\"shop\"}}");
        expect_question("GetEvents");
        ck_assert_str_eq(answered, "0{\"instance\":\"shop\"} ");
}

TEST(reports_why_it_is_refused)
{
        start(&limits);
        let_in_for("GetStatus");
        reply("{\"error\":\"org.sqmgr.Control.Refused\",\"parameters\":{\"reason\":\"not permitted\"}}");
        expect_lost("a refusal");
        ck_assert_uint_eq(answers, 0);
        /* A long reason is cut between characters: the documents of sqmgr-web have it. */
        peer = close_fd(peer);
        let_in_for("GetStatus");
        char text[1000] = "{\"error\":\"org.sqmgr.Control.Refused\",\"parameters\":{\"reason\":\"xy";
        for (unsigned i = 0; i < 400; i++)
                strcat(text, "\u00e4");
        reply(strcat(text, "\"}}"));
        while (losses < 2)
                run();
        _cleanup_json_ json_t *document = json_string(lost);
        ck_assert_ptr_nonnull(document);
}

TEST(text_is_printable)
{
        start(&limits);
        let_in_for("GetStatus");
        reply("{\"parameters\":{\"a\":\"x\\u001b[2J\\n\",\"\\u009b\":1,\"b\":[{\"quoted\":\"1\\n2\"}]}}");
        expect_question("GetEvents");
        ck_assert_str_eq(answered, "0{\"a\":\"x?[2J?\",\"b\":[{}]} ");
}

TEST(takes_no_more_than_so_many_bytes)
{
        char bytes[1001];

        memset(bytes, ' ', sizeof(bytes));
        start(&limits);
        let_in_for("GetStatus");
        log_message(bytes, sizeof(bytes));
        expect_lost("a long message");
}

static void reply_with_events(unsigned n)
{
        static char text[16384];
        int size = snprintf(text, sizeof(text), "{\"parameters\":{\"events\":[{}");

        for (unsigned i = 1; i < n; i++)
                size += snprintf(text + size, sizeof(text) - (size_t)size, ",{}");
        snprintf(text + size, sizeof(text) - (size_t)size, "]}}");
        reply(text);
}

/* sqmgr-web asks for metrics only now and then, but after a refusal at once. */
TEST(refused_metrics_are_asked_for_after_connecting)
{
        start(&limits);
        let_in_for("GetStatus");
        instance_client_ask(instance_client_, INSTANCE_QUERY_METRICS);
        reply("{}");
        expect_question("GetEvents");
        reply("{}");
        expect_question("GetQueues");
        reply("{}");
        expect_question("GetMetrics");
        char bytes[1001];
        memset(bytes, ' ', sizeof(bytes));
        log_message(bytes, sizeof(bytes));
        expect_lost("a long message");
        peer = close_fd(peer);
        let_in_for("GetMetrics");
        reply("{}");
        expect_question("GetStatus");
}

/* A good status must not make the instance reachable again while its events are refused. */
TEST(after_a_refused_reply_that_query_comes_first)
{
        struct instance_client_limits larger = limits;

        larger.reply_bytes = 65536;
        start(&larger);
        let_in_for("GetStatus");
        reply("{}");
        expect_question("GetEvents");
        reply_with_events(REPLY_EVENTS_MAX + 1);
        expect_lost("too many events");
        peer = close_fd(peer);
        let_in_for("GetEvents");
        instance_client_ask(instance_client_, INSTANCE_QUERY_STATUS);
        reply_with_events(REPLY_EVENTS_MAX + 1);
        expect_lost("too many events");
        ck_assert_str_eq(answered, "0{} ");
        peer = close_fd(peer);
        let_in_for("GetEvents");
        reply("{}");
        expect_question("GetQueues");
        reply("{}");
        expect_question("GetStatus");
}

/* The first reply of each connection is good. The delay grows nevertheless. */
TEST(one_good_reply_is_not_enough)
{
        struct instance_client_limits slow = limits;
        usec_t before, after;

        slow.backoff_min_usec = 10 * USEC_PER_MSEC;
        slow.backoff_max_usec = 80 * USEC_PER_MSEC;
        start(&slow);
        for (unsigned i = 0; i < 4; i++) {
                let_in_for("GetStatus");
                reply("{}");
                expect_question("GetEvents");
                reply("garbage");
                expect_lost("another language");
                peer = close_fd(peer);
        }
        ck_assert_int_ge(sd_event_now(event, CLOCK_MONOTONIC, &before), 0);
        let_in();
        ck_assert_int_ge(sd_event_now(event, CLOCK_MONOTONIC, &after), 0);
        ck_assert_uint_ge(after - before, 75 * USEC_PER_MSEC);
}

TEST(waits_for_an_answer_so_long)
{
        start(&brief);
        let_in_for("GetStatus");
        expect_lost("no answer");
        peer = close_fd(peer);
        let_in_for("GetStatus");
}

TEST(an_idle_one_waits_for_nothing)
{
        start(&brief);
        let_in_for("GetStatus");
        reply("{}");
        expect_question("GetEvents");
        reply("{}");
        expect_question("GetQueues");
        reply("{}");
        while (answers < 3)
                run();
        /* What was to end it would have come by now. */
        sd_event_source *later;
        ck_assert_int_ge(
                sd_event_add_time_relative(event, &later, CLOCK_MONOTONIC, 50 * USEC_PER_MSEC, 1, NULL, NULL),
                0);
        ck_assert_int_ge(sd_event_loop(event), 0);
        sd_event_source_unref(later);
        ck_assert_uint_eq(losses, 0);
}

TEST(says_why_it_cannot_connect)
{
        listener = close_fd(listener);
        start(&limits);
        expect_lost("nobody listens");
        ck_assert_int_eq(unlink(address.sun_path), 0);
        expect_lost("no socket");
        /* It is never asked then. */
        instance_client_ask(instance_client_, INSTANCE_QUERY_STATUS);
        ck_assert(!instance_client_awaits(instance_client_, INSTANCE_QUERY_STATUS));
        for (unsigned i = 0; i < 5; i++)
                expect_lost("no socket");
}

TEST(notices_that_sqmgr_is_gone_and_back)
{
        start(&limits);
        let_in_for("GetStatus");
        peer = close_fd(peer);
        expect_lost("connection lost");
        let_in_for("GetStatus");
        reply("{\"parameters\":{}}");
        expect_question("GetEvents");
        ck_assert_str_eq(answered, "0{} ");
}

TEST_MAIN("link", .each = {setup, teardown})
