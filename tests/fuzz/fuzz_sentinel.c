/* SPDX-License-Identifier: MIT */
/* Fuzzes the replies of a Sentinel. Whatever they are, a master is named only with host and port, and each
 * request gets one answer. */
#include "peer.h"
#include "redis/sentinel.h"
#include "settings/settings.h"

static const char *const phrases[] = {
        "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$37\r\nmymaster 10.0.0.1 6379 10.0.0.2 63800\r\n",
        "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$9\r\nmymaster \r\n",
        "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n:1\r\n",
        "*2\r\n$1\r\nh\r\n$5\r\n65536\r\n",
        "*2\r\n",
        "$1\r\nh\r\n",
        "$4\r\n6379\r\n",
        "+OK\r\n",
        "+PONG\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "-NOAUTH Authentication required.\r\n",
        "*2\r\n$3\r\nh\x1b[\r\n$4\r\n6379\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-ERR unknown command\r\n",
        ">3\r\n+message\r\n+switch-master\r\n+x\r\n",
};

static unsigned n_answers;

static void on_master(const char *host, unsigned port, void *userdata _unused_)
{
        fuzz_check(*host && port > 0 && port <= 65535);
        for (; *host; host++)
                fuzz_check(*host > ' ' && *host <= '~');
        n_answers++;
}

static void on_none(const struct error_report *why, void *userdata _unused_)
{
        fuzz_check(why->text[0] != '\0');
        n_answers++;
}

static void act(struct sentinel *sentinel, int action)
{
        switch (action) {
        case 0:
                peer_hang_up();
                peer_run();
                break;
        case 1:
                sentinel_distrust(sentinel);
                break;
        case 2:
                sentinel_locate(sentinel);
                break;
        default:
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct sentinel_ops ops = {.on_master = on_master, .on_none = on_none};
        struct input input = {data, size};
        struct redis_settings settings = {
                .sentinels = (char *)"127.0.0.1, [::1]:26380",
                .master_name = (char *)"mymaster",
                .sentinel_password = input_byte(&input) % 2 == 1 ? (char *)"secret" : NULL,
                .timeout = USEC_PER_HOUR,
        };
        struct sentinel *sentinel = NULL;

        peer_begin();
        fuzz_check(sentinel_new(event, &settings, NULL, &ops, NULL, &sentinel) == 0);
        n_answers = 0;
        sentinel_locate(sentinel);
        peer_run();
        while (input.left > 0)
                act(sentinel, peer_step(&input, phrases, ELEMENTSOF(phrases)));
        peer_run();
        /* Both Sentinels close the connection: none is left. */
        if (n_answers == 0) {
                for (unsigned i = 0; i < 2; i++) {
                        peer_hang_up();
                        peer_run();
                }
                fuzz_check(n_answers > 0);
        }
        sentinel_free(sentinel);
        peer_end();
        return 0;
}
