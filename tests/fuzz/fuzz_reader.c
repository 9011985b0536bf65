/* SPDX-License-Identifier: MIT */
/* Fuzzes the replies of a Redis to a reader, which is asked everything that sqmgr asks. Each query has one
 * answer, which sqmgr takes, and the heartbeats of a worker are of its processes. The first byte chooses the
 * framework. */
#include "frameworks/redis_format.h"
#include "frameworks/server_heartbeats.h"
#include "frameworks/table.h"
#include "model/birth.h"
#include "model/fleet.h"
#include "model/poll_schedule.h"
#include "model/world.h"
#include "reader.h"
#include "redis_phrases.h"

#define PID     77
#define QUERIES 64

/* The texts and numbers of each kind of query. */
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
        [QUERY_RELEASED] = {{0}, {ENTRY}},
};

static const struct settings world_settings = {.check_interval = 5 * USEC_PER_SEC};
static struct fleet_settings fleet_settings;
static struct world world = {.settings = &world_settings};
static struct fleet fleet = {.world = &world, .settings = &fleet_settings};
static struct worker worker;
static struct reader *reader;
static struct heartbeats *heartbeats;
static struct heartbeat_slot *slot;
static bool answered[QUERIES];
static size_t asked;

static void on_answer(struct answer *answer _unused_, void *userdata)
{
        bool *once = userdata;

        fuzz_check(!*once);
        *once = true;
}

static void ask(enum query_kind kind)
{
        struct field texts[ELEMENTSOF(questions[0].texts)];
        struct query query = {.kind = kind, .texts = texts};

        if (asked == QUERIES || kind >= _QUERY_KIND_MAX)
                return;
        memcpy(query.numbers, questions[kind].numbers, sizeof(query.numbers));
        for (; query.n_texts < ELEMENTSOF(texts) && questions[kind].texts[query.n_texts]; query.n_texts++)
                texts[query.n_texts] = (struct field)QUERY_TEXT(questions[kind].texts[query.n_texts]);
        /* Each name of a queue has a NUL behind it. Every other query is about all queues. */
        if (kind == QUERY_QUEUES) {
                texts[0].len++;
                query.n_texts = asked % 2;
        }
        answered[asked] = false;
        if (reader_ask(reader, &query, on_answer, &answered[asked]) == 0)
                asked++;
}

static const char *host_name(void *userdata _unused_)
{
        return "host";
}

static int is_process(pid_t pid, const struct worker *of, void *userdata _unused_)
{
        return pid == PID && of == &worker;
}

static int has_start(pid_t pid, uint64_t start _unused_, void *userdata _unused_)
{
        return pid == PID;
}

static int is_born(pid_t pid, const struct heartbeat *heartbeat, const struct worker *of,
                   void *userdata _unused_)
{
        const struct birth birth = {.born_usec = heartbeat->born_usec, .sent_usec = heartbeat->sent_usec};

        fuzz_check(pid == PID && of == &worker);
        return birth_is_foreign(&birth, &world) ? -EREMOTE : birth_is_own(&birth, &world, USEC_PER_SEC);
}

static void on_ambiguous(struct worker *of, bool ambiguous _unused_, void *userdata _unused_)
{
        fuzz_check(of == &worker);
}

static void on_identity(struct worker *of, pid_t pid, bool remote _unused_, void *userdata _unused_)
{
        fuzz_check(of == &worker && pid == PID);
}

static void on_heartbeat(struct worker *of, const struct heartbeat *heartbeat, void *userdata _unused_)
{
        fuzz_check(of == &worker && heartbeat->sent_usec > 0);
}

static void on_sibling(struct worker *of, pid_t pid _unused_, void *userdata _unused_)
{
        fuzz_check(of == &worker);
}

static void on_done(struct heartbeats *of, void *userdata _unused_)
{
        fuzz_check(of == heartbeats);
}

static void begin(uint8_t framework)
{
        static const struct heartbeats_ops ops = {
                .host_name = host_name,
                .is_descendant = is_process,
                .has_booted = is_process,
                .has_start = has_start,
                .is_born = is_born,
                .on_ambiguous = on_ambiguous,
                .on_identity = on_identity,
                .on_heartbeat = on_heartbeat,
                .on_sibling = on_sibling,
                .on_done = on_done,
        };
        static const struct redis_settings settings = {.url = (char *)"redis://127.0.0.1:6379/2",
                                                       .timeout = USEC_PER_HOUR};
        const struct redis_format *format = redis_format_of(framework) ?: redis_format_of(0);

        fuzz_check(format);
        peer_begin();
        fleet_settings = (struct fleet_settings){.traits = format->traits};
        worker = (struct worker){.fleet = &fleet, .process.pid = PID, .spawned_at = 1};
        asked = 0;
        reader = reader_make(&settings, format->traits->id);
        fuzz_check(server_heartbeats_new(reader, framework_of(format->traits), &ops, NULL, &heartbeats) == 0);
        fuzz_check(heartbeats_add(heartbeats, &worker, &slot) == 0);
        peer_run();
}

/* Checks that all queries have an answer once Redis has closed the connection. */
static void end(void)
{
        peer_hang_up();
        peer_run();
        for (size_t i = 0; i < asked; i++)
                fuzz_check(answered[i]);
        heartbeats = heartbeats_free(heartbeats);
        reader_free(reader);
        reader = NULL;
        peer_end();
}

static void act(int action)
{
        if (action == 0)
                peer_hang_up();
        if (action == 1) {
                heartbeats_want(slot, POLL_HEARTBEAT | POLL_WORK_LIST);
                (void)heartbeats_poll(heartbeats);
        }
        if (action > 1)
                ask((enum query_kind)(action - 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};

        begin(input_byte(&input));
        while (input.left > 0)
                act(peer_step(&input, phrases, ELEMENTSOF(phrases)));
        end();
        return 0;
}
