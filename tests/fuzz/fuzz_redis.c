/* SPDX-License-Identifier: MIT */
/* What a Redis says, from the log-in on, to all that sqmgr asks it. Whatever that is: each question has one
 * end, and no reply is larger than the bounds. */
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/redis_heartbeats.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
#include "frameworks/sidekiq/requeue.h"
#include "model/fleet.h"
#include "model/poll_schedule.h"
#include "model/queues.h"
#include "model/world.h"
#include "peer.h"
#include "redis/redis.h"
#include "redis/reply_limit.h"

#define PID       77
#define IDENTITY  "host:77:0123456789ab"
#define ENTRY     "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\",\"args\":[]},\"run_at\":1}"
#define QUESTIONS 64

static const char *const phrases[] = {
        ":0\r\n",
        "+OK\r\n",
        "*2\r\n$1\r\n0\r\n*1\r\n$20\r\n" IDENTITY "\r\n",
        "*6\r\n$1\r\n0\r\n$12\r\n1700000000.5\r\n$5\r\nfalse\r\n$-1\r\n$3\r\n100\r\n$2\r\n{}\r\n",
        "*2\r\n$2\r\nt1\r\n$70\r\n" ENTRY "\r\n",
        "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*5\r\n$1\r\n3\r\n$16\r\n1700000001.12345\r\n$4\r\ntrue\r\n$2\r\n10\r\n$-1\r\n",
        "*1\r\n",
        "*2\r\n",
        "*3\r\n",
        "*6\r\n",
        "$1\r\n7\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        ":1\r\n",
        ":-1\r\n",
        ":9223372036854775807\r\n",
        "+PONG\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
        "-NOAUTH Authentication required.\r\n",
        "-NOPERM this user has no permissions\r\n",
        "-NOSCRIPT No matching script.\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-MOVED 1 127.0.0.1:7001\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-WRONGPASS invalid username-password pair\r\n",
        "-WRONGTYPE Operation against a key\r\n",
        "-ERR \r\n",
        "-\r\n",
        ">2\r\n+invalidate\r\n*0\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "~1\r\n+a\r\n",
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "(12345678901234567890\r\n",
        "=5\r\ntxt:a\r\n",
        "$33554433\r\n",
        "*262145\r\n",
        "*2147483646\r\n",
        "$\r\n",
        "$00\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
};

static struct redis_settings settings = {.url = (char *)"redis://127.0.0.1:6379/2",
                                         .connect_timeout = USEC_PER_HOUR,
                                         .command_timeout = USEC_PER_HOUR};
static const struct settings world_settings = {.check_interval = 5 * USEC_PER_SEC};
static const struct fleet_settings fleet_settings = {
        .traits = &sidekiq_traits, .rescue_jobs = RESCUE_JOBS_REQUEUE, .rescue_limit = 2};
static struct world world = {.settings = &world_settings};
static struct fleet fleet = {.world = &world, .settings = &fleet_settings};

static struct redis *redis;
static struct worker worker;
static struct heartbeats *heartbeats;
static struct heartbeat_slot *slot;
static struct redis_running_jobs *running_jobs;
static struct queue_reader *queues;
static struct requeue *requeue;
static struct job_list jobs;
static unsigned asked, answered[QUESTIONS];

/* How many items it has, its own too. */
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

static void on_state(struct redis *from _unused_, enum redis_state state, const char *error,
                     void *userdata _unused_)
{
        fuzz_check((state == REDIS_STATE_DOWN) == !!error);
        for (const char *c = error; c && *c; c++)
                fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f);
}

static const char *host_name(void *userdata _unused_)
{
        return "host";
}

static int is_descendant(pid_t pid, const struct worker *of, void *userdata _unused_)
{
        return pid == PID && of == &worker;
}

static void on_identity(struct worker *of, pid_t heartbeat_pid, void *userdata _unused_)
{
        fuzz_check(of == &worker && heartbeat_pid == PID);
}

static void on_heartbeat(struct worker *of, const struct heartbeat *heartbeat, void *userdata _unused_)
{
        fuzz_check(of == &worker && heartbeat->sent_usec > 0);
}

static void on_looked(struct heartbeats *of, void *userdata _unused_)
{
        fuzz_check(of == heartbeats);
}

static int has_booted(pid_t pid, const struct worker *of, void *userdata _unused_)
{
        return pid == PID && of == &worker;
}

static void on_ambiguous(struct worker *of, bool ambiguous _unused_, void *userdata _unused_)
{
        fuzz_check(of == &worker);
}

static const struct heartbeats_ops heartbeats_ops = {.host_name = host_name,
                                                     .is_descendant = is_descendant,
                                                     .has_booted = has_booted,
                                                     .on_ambiguous = on_ambiguous,
                                                     .on_identity = on_identity,
                                                     .on_heartbeat = on_heartbeat,
                                                     .on_done = on_looked};

static void on_running_jobs(struct job_list *lists, const char *error _unused_, void *userdata _unused_)
{
        fuzz_check(running_jobs);
        running_jobs = NULL;
        for (size_t i = 0; i < lists->n_jobs; i++)
                fuzz_check(lists->jobs[i].payload && lists->jobs[i].jid);
        job_lists_free(lists, 1);
}

static void on_queues(struct queues_reading *reading, const char *error, void *userdata _unused_)
{
        fuzz_check(!reading->queues == !!error);
}

static void on_requeued(enum rescue_outcome outcome _unused_, unsigned times _unused_,
                        const char *error _unused_, void *userdata _unused_)
{
        fuzz_check(requeue);
        requeue = NULL;
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

static void request_running_jobs(void)
{
        static const char *const identities[] = {IDENTITY};
        const struct running_jobs_request request = {
                .event = event, .redis = redis, .identities = identities, .n = 1};

        if (!running_jobs)
                (void)redis_running_jobs_read(sidekiq_redis_format.running_jobs, &request, on_running_jobs,
                                              NULL, &running_jobs);
}

static void ask_requeue(void)
{
        const struct requeue_request request = {.redis = redis,
                                                .identity = IDENTITY,
                                                .job = &jobs.jobs[0],
                                                .settings = &fleet_settings,
                                                .why = "was killed",
                                                .realtime = USEC_PER_SEC};

        if (!requeue)
                (void)sidekiq_requeue.begin(&request, on_requeued, NULL, &requeue);
}

static void act(int action)
{
        switch (action) {
        case 0:
                ask();
                break;
        case 1:
                heartbeats_want(slot, POLL_HEARTBEAT | POLL_WORK_LIST);
                (void)heartbeats_poll(heartbeats);
                break;
        case 2:
                request_running_jobs();
                break;
        case 3:
                (void)queue_reader_read(queues, NULL, 1);
                break;
        case 4:
                ask_requeue();
                break;
        case 5:
                peer_hang_up();
                break;
        case 6:
                running_jobs = redis_running_jobs_free(running_jobs);
                break;
        default:
                break;
        }
}

static void begin(bool with_password)
{
        const struct field thread = {.text = "t1", .len = 2}, entry = {.text = ENTRY, .len = strlen(ENTRY)};
        size_t bytes = SIZE_MAX;

        peer_begin();
        settings.password = with_password ? (char *)"secret" : NULL;
        asked = 0;
        worker = (struct worker){.fleet = &fleet, .process.pid = PID, .spawned_at = 1};
        fuzz_check(job_list_add(&jobs, false, &thread, &entry) == 0);
        fuzz_check(job_list_decode(&jobs, sidekiq_job_decode, &bytes) == 0 && jobs.n_jobs == 1);
        fuzz_check(redis_new(event, NULL, &settings, NULL, on_state, NULL, &redis) == 0);
        fuzz_check(redis_heartbeats_new(redis, sidekiq_framework.heartbeats, NULL, &heartbeats_ops, NULL,
                                        &heartbeats) == 0);
        fuzz_check(queue_reader_new(redis, sidekiq_redis_format.queues, NULL, on_queues, NULL, &queues) == 0);
        fuzz_check(heartbeats_add(heartbeats, &worker, &slot) == 0);
        peer_run();
}

static void end(void)
{
        heartbeats = heartbeats_free(heartbeats);
        running_jobs = redis_running_jobs_free(running_jobs);
        queues = queue_reader_free(queues);
        if (requeue)
                requeue = sidekiq_requeue.free(requeue);
        redis_free(redis);
        for (unsigned i = 0; i < asked; i++)
                fuzz_check(answered[i] == 1);
        redis = NULL;
        job_list_clear(&jobs);
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
