/* SPDX-License-Identifier: MIT */
/* Fuzzes the replies of a Redis, from the login on. Whatever they are, each command ends once, and no reply
 * exceeds the bounds. */
#include "peer.h"
#include "redis/redis.h"
#include "redis/reply_limit.h"
#include "redis_phrases.h"

#define QUESTIONS 64

static struct redis_settings settings = {.url = (char *)"redis://127.0.0.1:6379/2", .timeout = USEC_PER_HOUR};
static struct redis *redis;
static unsigned asked, answered[QUESTIONS];

/* Returns the number of elements of a reply, including itself. */
static size_t reply_size(const redisReply *reply)
{
        size_t n = 1;

        if (reply->type == REDIS_REPLY_STRING)
                fuzz_check(reply->len <= REPLY_LIMIT_BYTES_MAX && reply->str[reply->len] == '\0');
        if (reply->type != REDIS_REPLY_ARRAY)
                return n;
        for (size_t i = 0; i < reply->elements; i++)
                n += reply_size(reply->element[i]);
        return n;
}

static void on_reply(struct redis *from, const redisReply *reply, void *userdata)
{
        unsigned *n = userdata;

        fuzz_check(from == redis && *n == 0);
        (*n)++;
        if (reply)
                fuzz_check(reply_size(reply) <= REPLY_LIMIT_ELEMENTS_MAX + 1);
}

static void on_state(struct redis *from _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        fuzz_check((state >= READER_STATE_DOWN) == !!error);
        for (const char *c = error ? error->text : NULL; c && *c; c++)
                fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void ask(void)
{
        static const char *const argv[] = {"HGETALL", "x"};

        if (asked == QUESTIONS)
                return;
        answered[asked] = 0;
        int r = asked % 2 == 0
                        ? redis_command(redis, on_reply, &answered[asked], ELEMENTSOF(argv), argv, NULL)
                        : redis_command_forbiddable(redis, on_reply, &answered[asked], ELEMENTSOF(argv), argv,
                                                    NULL);
        fuzz_check(r == 0 || r == -ENOTCONN);
        asked += r == 0;
}

static void act(int action)
{
        if (action == 0)
                ask();
        else if (action == 5)
                peer_hang_up();
}

static void begin(bool with_password)
{
        peer_begin();
        settings.password = with_password ? (char *)"secret" : NULL;
        asked = 0;
        fuzz_check(redis_new(event, &settings, NULL, on_state, NULL, &redis) == 0);
        peer_run();
}

static void end(void)
{
        redis_free(redis);
        for (unsigned i = 0; i < asked; i++)
                fuzz_check(answered[i] == 1);
        redis = NULL;
        peer_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};

        begin(input_byte(&input) % 2 == 1);
        while (input.left > 0)
                act(peer_step(&input, phrases, ELEMENTSOF(phrases)));
        peer_run();
        end();
        return 0;
}
