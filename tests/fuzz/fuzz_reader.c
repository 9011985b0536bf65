/* SPDX-License-Identifier: MIT */
/* What a Redis says to a reader, which is asked everything that sqmgr asks. Whatever that is: each query has
 * one answer, which sqmgr takes. The first byte says which framework it is. */
#include "frameworks/redis_format.h"
#include "io/message_socket.h"
#include "peer.h"
#include "queries/answer.h"
#include "queries/configuration.h"
#include "reader/server.h"
#include "redis_phrases.h"
#include "settings/settings.h"

#define QUERIES 64

/* What each kind is asked with. */
static const struct {
        uint64_t numbers[QUERY_NUMBERS];
        const char *texts[8];
} questions[_QUERY_KIND_MAX] = {
        [QUERY_HEARTBEAT] = {{1, 1}, {IDENTITY}},
        [QUERY_WORK_LIST] = {{0}, {IDENTITY}},
        [QUERY_SCAN] = {{1}, {"0", "host"}},
        [QUERY_QUEUES] = {{0}, {"q"}},
        [QUERY_JOBS] = {{1}, {IDENTITY}},
        [QUERY_REQUEUE] = {{0, 1, 2, USEC_PER_SEC}, {IDENTITY, "t1", ENTRY, "was killed"}},
        [QUERY_SHARE] = {{60, 1}, {"g", "here", "1 8 1 2 0"}},
        [QUERY_ROLLOUT] = {{0}, {"g", "tick", "here", "instance", "0", "", "see", ""}},
        [QUERY_GLANCE] = {{0}, {"g"}},
};

static struct reader_server *server;
static struct message_socket *asker;
static enum query_kind asked[1 + QUERIES]; /* by the id of the query */
static bool answered[1 + QUERIES];
static uint64_t n_asked;

static void on_message(const uint8_t *bytes, size_t n, void *userdata _unused_)
{
        struct codec_reader message = {.at = bytes, .left = n};
        struct reader_report report;
        struct answer answer;

        if (codec_read_number(&message, 0, _READER_MESSAGE_MAX) == READER_STATE) {
                fuzz_check(reader_report_read(&message, &report) == 0);
                return;
        }
        uint64_t id = answer_read_id(&message);
        fuzz_check(!message.wrong && id <= n_asked && !answered[id]);
        answered[id] = true;
        fuzz_check(answer_read(&message, asked[id], &answer) == 0);
        answer_clear(&answer);
}

static void on_end(int error _unused_, void *userdata _unused_)
{
        fuzz_check(!asker);
}

static void on_server_end(void *userdata _unused_)
{
        fuzz_check(!server);
}

static void send_message(struct codec_writer *writer)
{
        fuzz_check(message_socket_send(asker, writer->bytes, writer->size) == 0);
        free(writer->bytes);
}

static void ask(enum query_kind kind)
{
        struct codec_writer writer = {0};
        struct field texts[ELEMENTSOF(questions[0].texts)];
        struct query query = {.kind = kind, .texts = texts};

        if (n_asked == QUERIES || kind >= _QUERY_KIND_MAX || kind == QUERY_CONFIGURE)
                return;
        memcpy(query.numbers, questions[kind].numbers, sizeof(query.numbers));
        for (; query.n_texts < ELEMENTSOF(texts) && questions[kind].texts[query.n_texts]; query.n_texts++)
                texts[query.n_texts] = (struct field)QUERY_TEXT(questions[kind].texts[query.n_texts]);
        asked[++n_asked] = kind;
        query_write(&writer, n_asked, &query);
        send_message(&writer);
}

static void begin(unsigned framework)
{
        static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_end};
        static const struct message_socket_limits limits = {.receive = ANSWER_BYTES_MAX,
                                                            .send = QUERY_BYTES_MAX};
        static const struct reader_server_ops server_ops = {.on_end = on_server_end};
        static const struct redis_settings settings = {.url = (char *)"redis://127.0.0.1:6379/2",
                                                       .connect_timeout = USEC_PER_HOUR,
                                                       .command_timeout = USEC_PER_HOUR};
        struct reader_configuration configuration;
        struct codec_writer writer = {0};
        int fds[2];

        while (!redis_format_of(framework))
                framework = framework > 0 ? framework - 1 : 8;
        peer_begin();
        n_asked = 0;
        memset(answered, 0, sizeof(answered));
        asked[0] = QUERY_CONFIGURE;
        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        fuzz_check(reader_server_new(event, fds[0], -1, &server_ops, NULL, &server) == 0);
        fuzz_check(message_socket_new(event, fds[1], &limits, &ops, NULL, &asker) == 0);
        fuzz_check(reader_configuration_make(&settings, NULL, framework, &configuration) == 0);
        reader_configuration_write(&writer, &configuration);
        send_message(&writer);
        reader_configuration_clear(&configuration);
        peer_run();
}

/* A Redis that has left ends all queries. */
static void end(void)
{
        peer_hang_up();
        peer_run();
        for (size_t i = 0; i <= n_asked; i++)
                fuzz_check(answered[i]);
        server = reader_server_free(server);
        asker = message_socket_free(asker);
        peer_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};

        begin(input_byte(&input));
        while (input.left > 0) {
                int action = peer_step(&input, phrases, ELEMENTSOF(phrases));

                if (action == 0)
                        peer_hang_up();
                else if (action > 0)
                        ask((enum query_kind)(action - 1));
        }
        end();
        return 0;
}
