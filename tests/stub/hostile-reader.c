/* SPDX-License-Identifier: MIT */
/* A hostile replacement of sqmgr-reader, which lies or breaks the protocol. Its pid decides how. */
#include "io/message_socket.h"
#include "servers/answer.h"
#include "servers/configuration.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum manner {
        MANNER_LIES,    /* answers within all bounds, at random */
        MANNER_IDLE,    /* reports each worker as quiet and idle */
        MANNER_GARBAGE, /* messages of random bytes */
        MANNER_FLOOD,   /* reports without end */
        MANNER_SILENT,  /* answers nothing */
        MANNER_TWICE,   /* each answer twice */
        _MANNER_MAX,
};

static enum manner manner;
static struct message_socket *message_socket;
static uint64_t beat;
static unsigned framework; /* traits.id */

static uint64_t chance(uint64_t n)
{
        return (uint64_t)random() % n;
}

static void send_message(struct codec_writer *writer)
{
        if (!writer->failed)
                (void)message_socket_send(message_socket, writer->bytes, writer->size);
        free(writer->bytes);
}

static void report(void)
{
        struct reader_report connected = {.state = READER_STATE_CONNECTED, .connections = 1};
        struct codec_writer writer = {0};

        reader_report_write(&writer, &connected);
        send_message(&writer);
}

static void send_garbage(void)
{
        struct codec_writer writer = {0};
        size_t n = chance(3000);

        for (size_t i = 0; i < n / 8; i++)
                codec_write_number(&writer, chance(3) ? chance(4) : (uint64_t)random() << 33);
        send_message(&writer);
}

/* Returns the end of an identity, as the framework writes it. */
static const char *identity_end(void)
{
        switch (framework) {
        case 8: /* Solid Queue */
                return "12";
        case 9: /* GoodJob */
                return "01234567-89ab-cdef-0123-456789abcdef";
        default:
                return "0123456789ab";
        }
}

static void take_configuration(const struct query *query)
{
        struct reader_configuration configuration;

        if (reader_configuration_read(query, &configuration) < 0)
                _exit(1);
        framework = configuration.framework;
        reader_configuration_clear(&configuration);
}

static void lie_of_heartbeat(struct heartbeat *heartbeat)
{
        bool idle = manner == MANNER_IDLE;
        uint64_t failed = chance(1000001);

        *heartbeat = (struct heartbeat){
                .sent_usec = 1795238801500000 + ++beat * USEC_PER_SEC,
                .busy = idle ? 0 : (unsigned)chance(1000001),
                .concurrency = (unsigned)chance(1000001),
                .quiet = idle || chance(2),
                .rss_bytes = chance(3) * (UINT64_C(1) << 49),
                .quiet_signal = (int)chance(65),
                .stop_signal = (int)chance(65),
                /* Refused of a framework that counts no outcomes. */
                .outcomes = {.known = framework == 0,
                             .processed = failed + chance(1000001),
                             .failed = failed,
                             .class = "Lie",
                             .class_failed = failed},
        };
}

static void answer_query(uint64_t id, const struct query *query)
{
        struct answer answer = {.kind = query->kind};
        struct codec_writer writer = {0};

        switch (query->kind) {
        case QUERY_HEARTBEAT:
                answer.heartbeat.found = true;
                lie_of_heartbeat(&answer.heartbeat.heartbeat);
                break;
        case QUERY_WORK_LIST:
                answer.work_list = (struct answer_work_list){.known = true, .empty = true};
                break;
        case QUERY_SCAN: {
                static struct answer_identity list[2000];
                static char identities[ELEMENTSOF(list)][96];
                const char *host = query_text(query, 1);

                for (size_t i = 0; i < ELEMENTSOF(list); i++) {
                        snprintf(identities[i], sizeof(identities[i]), "%.30s:%u:%s", host, (unsigned)i + 1,
                                 identity_end());
                        list[i] = (struct answer_identity){.identity = identities[i],
                                                           .host_len = strnlen(host, 30),
                                                           .pid = (pid_t)i + 1};
                }
                answer.scan = (struct answer_scan){.list = list, .n = ELEMENTSOF(list)};
                if (chance(2))
                        strcpy(answer.scan.cursor, "12345");
                break;
        }
        case QUERY_PING:
        case QUERY_CONFIGURE:
                break;
        default:
                answer.status = ANSWER_REFUSED;
                memset(answer.error.text, 'x', sizeof(answer.error.text) - 1);
                memset(answer.error.quoted.quoted_bytes, 'y', QUOTED_MAX - 1);
                break;
        }
        answer_write(&writer, id, &answer);
        send_message(&writer);
}

static void on_message(const uint8_t *bytes, size_t n, void *userdata _unused_)
{
        struct query_read read;

        if (query_read(bytes, n, &read) < 0)
                _exit(1);
        if (read.query.kind == QUERY_CONFIGURE) {
                take_configuration(&read.query);
                answer_query(read.id, &read.query);
                report();
        } else if (manner != MANNER_SILENT) {
                answer_query(read.id, &read.query);
                if (manner == MANNER_TWICE)
                        answer_query(read.id, &read.query);
                if (manner == MANNER_GARBAGE && chance(10) == 0)
                        send_garbage();
        }
        query_read_clear(&read);
}

static void on_end(int error _unused_, void *userdata _unused_)
{
        _exit(0);
}

static int on_flood(sd_event_source *source _unused_, void *userdata _unused_)
{
        for (unsigned i = 0; i < 100; i++)
                report();
        return 0;
}

int main(void)
{
        static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_end};
        static const struct message_socket_limits limits = {.receive = QUERY_BYTES_MAX,
                                                            .send = 64 * 1024 * 1024};
        sd_event_source *flood = NULL;
        sd_event *event = NULL;

        srandom((unsigned)getpid());
        manner = (enum manner)(getpid() % _MANNER_MAX);
        (void)signal(SIGPIPE, SIG_IGN);
        if (sd_event_new(&event) < 0 ||
            message_socket_new(event, STDIN_FILENO, &limits, &ops, NULL, &message_socket) < 0)
                return 1;
        if (manner == MANNER_FLOOD && sd_event_add_defer(event, &flood, on_flood, NULL) >= 0)
                (void)sd_event_source_set_enabled(flood, SD_EVENT_ON);
        return sd_event_loop(event) < 0;
}
