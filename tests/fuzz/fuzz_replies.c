/* SPDX-License-Identifier: MIT */
/* Fuzzes the replies of a Redis to everything that sqmgr asks. Each query has one answer, within its bounds,
 * and the heartbeats of a worker are of its processes. The first byte chooses the framework. */
#include "frameworks/backends.h"
#include "frameworks/decode.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/redis_format.h"
#include "frameworks/server_heartbeats.h"
#include "frameworks/table.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "peer.h"
#include "redis_phrases.h"

#define PID        77
#define QUERIES    64
#define NESTED_MAX 2
#define HOST       "host"
/* The replies to SELECT, and to the checks of writes and of reads. */
#define LOGIN "+OK\r\n:0\r\n:0\r\n"
/* More than the longest name. */
#define LONG                                                                                                 \
        "a_name_of_32_characters_is_as_long"                                                                 \
        "a_name_of_32_characters_is_as_long"

/* The texts and numbers of each kind of query. */
static const struct {
        uint64_t numbers[QUERY_NUMBERS];
        const char *texts[8];
} questions[_QUERY_KIND_MAX] = {
        [QUERY_HEARTBEAT] = {{1, 1}, {IDENTITY}},
        [QUERY_WORK_LIST] = {{0}, {IDENTITY}},
        [QUERY_SCAN] = {{1}, {"0", HOST}},
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
static bool answered[QUERIES], decoded;
static size_t asked;

static void check_printable(const char *text)
{
        for (; *text; text++)
                fuzz_check((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Quoted text may have several lines. */
static void check_quoted(const struct quoted *quoted)
{
        for (const char *text = quoted_reveal(quoted); *text; text++)
                fuzz_check((unsigned char)*text >= ' ' || *text == '\n');
}

static void check_info(const struct heartbeat_info *info)
{
        for (size_t i = 0; i < info->n_capsules; i++)
                fuzz_check(strlen(info->capsules[i]) <= HEARTBEAT_COMM_MAX);
        for (const char *name = info->queues; *name != '\0'; name += strlen(name) + 1)
                fuzz_check(!queue_names_have(name + strlen(name) + 1, name));
}

static void check_heartbeat(const struct answer_heartbeat *answer)
{
        const struct heartbeat *heartbeat = &answer->heartbeat;

        check_printable(heartbeat->outcomes.class);
        fuzz_check(!answer->found || heartbeat->sent_usec > 0);
        fuzz_check(!heartbeat->work_list_known && !heartbeat->shimless && heartbeat->looked_usec == 0);
        fuzz_check(heartbeat->busy <= 1000000 && heartbeat->concurrency <= 1000000);
        fuzz_check(heartbeat->quiet_signal != SIGKILL && heartbeat->quiet_signal != SIGSTOP);
        fuzz_check(heartbeat->stop_signal != SIGKILL && heartbeat->stop_signal != SIGTSTP);
        fuzz_check(heartbeat_check(framework_of(fleet_settings.traits), heartbeat, answer->info));
        if (answer->info)
                check_info(answer->info);
}

static void check_scan(const struct answer_scan *scan)
{
        const struct framework *framework = framework_of(fleet_settings.traits);
        size_t host_len;
        pid_t pid;

        fuzz_check(strnlen(scan->cursor, sizeof(scan->cursor)) < sizeof(scan->cursor));
        for (size_t i = 0; i < scan->n; i++) {
                const struct answer_identity *one = &scan->list[i];

                fuzz_check(framework->identity_parse(one->identity, strlen(one->identity), &host_len, &pid));
                fuzz_check(host_len == one->host_len && pid == one->pid && pid > 0);
                fuzz_check(host_len == strlen(HOST) && memcmp(one->identity, HOST, host_len) == 0);
        }
}

static void check_queues(const struct queues *queues)
{
        fuzz_check(queues && queues->n <= QUEUES_READ_MAX && queues->service <= QUEUE_SERVICE_MAX);
        for (size_t i = 0; i < queues->n; i++) {
                const struct queue *queue = &queues->list[i];

                fuzz_check(strlen(queue->name) <= QUEUE_NAME_MAX && queue->size <= QUEUE_JOBS_MAX);
                fuzz_check(queue->latency <= DECODE_CLOCK_MAX_USEC && queue->due_in <= DECODE_CLOCK_MAX_USEC);
                fuzz_check(queue->n_classes <= QUEUE_CLASSES_MAX &&
                           queue->service <= QUEUE_CLASSES_MAX * QUEUE_SERVICE_MAX);
        }
}

static void check_jobs(const struct answer_jobs *jobs)
{
        const struct job_list *list = jobs->lists;

        fuzz_check(jobs->n == 1 && list->n_jobs <= JOBS_MAX && !list->space);
        for (size_t i = 0; i < list->n_jobs; i++) {
                const struct job *job = &list->jobs[i];
                const char *const names[] = {job->thread, job->queue, job->class, job->jid};

                FOREACH_ELEMENT(name, names)
                        fuzz_check(*name && strlen(*name) <= JOB_NAME_MAX);
                fuzz_check(job->entry && job->entry_len <= JOB_ENTRY_MAX && !job->payload);
        }
}

static void check_diagnosis(const struct redis_facts *facts)
{
        check_printable(facts->policy);
        check_printable(facts->save);
        check_quoted(&facts->info_error);
        check_quoted(&facts->config_error);
}

static void on_answer(struct answer *answer, void *userdata)
{
        bool *once = userdata;

        fuzz_check(!*once);
        *once = true;
        check_printable(answer->error.text);
        check_quoted(&answer->error.quoted);
        if (answer->status != ANSWER_OK)
                return;
        if (answer->kind == QUERY_HEARTBEAT)
                check_heartbeat(&answer->heartbeat);
        else if (answer->kind == QUERY_SCAN)
                check_scan(&answer->scan);
        else if (answer->kind == QUERY_SCANNERS)
                fuzz_check(MAX(answer->scanners.members, answer->scanners.scanners) <= UINT32_MAX);
        else if (answer->kind == QUERY_QUEUES)
                check_queues(answer->queues.queues);
        else if (answer->kind == QUERY_JOBS)
                check_jobs(&answer->jobs);
        else if (answer->kind == QUERY_REQUEUE)
                fuzz_check((answer->requeue.outcome == RESCUE_REQUEUED) == (answer->requeue.times > 0));
        else if (answer->kind == QUERY_DIAGNOSIS)
                check_diagnosis(&answer->diagnosis.redis);
}

static void ask(enum query_kind kind)
{
        struct field texts[ELEMENTSOF(questions[0].texts)];
        struct query query = {.kind = kind, .texts = texts};

        if (asked == QUERIES)
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

/* The server whose bytes are decoded. */
static void on_decoding(const struct reader *of, void *userdata _unused_)
{
        fuzz_check(!of != !decoded);
        decoded = of;
}

static const char *host_name(void *userdata _unused_)
{
        return HOST;
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
        fleet_settings = (struct fleet_settings){.name = (char *)"web", .traits = format->traits};
        worker = (struct worker){.fleet = &fleet, .process.pid = PID, .spawned_at = 1};
        asked = 0;
        const struct reader_options options = {
                .backend = &redis_backend,
                .framework = format->traits->id,
                .settings = &settings,
                .decoding = on_decoding,
        };
        fuzz_check(reader_new(event, &options, &reader) == 0);
        fuzz_check(server_heartbeats_new(reader, framework_of(format->traits), &ops, NULL, &heartbeats) == 0);
        fuzz_check(heartbeats_add(heartbeats, &worker, &slot) == 0);
        peer_run();
        /* fuzz_redis has all that a server may say before it is connected. */
        peer_send(LOGIN, strlen(LOGIN));
        peer_run();
        fuzz_check(reader_state(reader) == READER_STATE_CONNECTED);
}

/* Checks that all queries have an answer once Redis has closed the connection. */
static void end(void)
{
        peer_hang_up();
        peer_run();
        for (size_t i = 0; i < asked; i++)
                fuzz_check(answered[i]);
        heartbeats = heartbeats_free(heartbeats);
        fuzz_check(!decoded);
        reader = reader_free(reader);
        fuzz_check(!decoded);
        peer_end();
}

/* Texts of which replies are composed. */
static const char *const texts[] = {
        "0",
        "1",
        "1000000",
        "1000001",
        "-1",
        "99999999999999999999",
        "1795238801.5",
        "99999999999.9",
        "1e400",
        "nan",
        "-inf",
        "true",
        "false",
        "",
        "2026-11-22T10:45:09.123456Z",
        "9999-12-31T23:59:59-23:59",
        IDENTITY,
        "host:77",
        "host:77:a",
        "host:2147483648:0123456789ab",
        HOST,
        "rq:worker:a",
        "busy",
        "TERM",
        "USR2",
        "TSTP",
        "KILL",
        "q",
        "rq:queue:q",
        "A|ms",
        "A|p",
        "A\033[2J",
        "{\"queues\":[\"q\",\"r\"],\"concurrency\":1000001,\"started_at\":1e300,\"capsules\":{\"c\":{}}}",
        "{\"concurrency\":5,\"started_at\":1795238801.5,\"queues\":[\"\\u001b\"]}",
        ENTRY,
        "{\"queue\":\"q\",\"payload\":\"{\\\"class\\\":\\\"A\\\",\\\"jid\\\":\\\"1\\\"}\",\"run_at\":-1}",
        "{\"queue\":\"q\",\"payload\":{\"class\":\"" LONG LONG LONG LONG "\",\"jid\":\"1\"},\"run_at\":1e99}",
        "{\"queue\":\"q\",\"run_at\":\"2026-11-22T10:45:09Z\",\"payload\":{\"class\":\"A\",\"args\":[]}}",
        "{\"class\":\"A\",\"queue\":\"q\",\"enqueued_at\":1795238801500}",
        LONG LONG LONG LONG,
        "# Memory\r\nmaxmemory:-1\r\nmaxmemory_policy:all\033\r\nevicted_keys:1\r\naof_enabled:1\r\n",
        "# Clients\r\ntracking_clients:4294967296\r\n",
        "tracking_clients:3",
        "left",
        "parked",
        "other:77:0123456789ab",
};

static void send_text(const char *text, size_t len)
{
        char head[32];

        peer_send(head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", len));
        peer_send(text, len);
        peer_send("\r\n", 2);
}

/* Sends a reply that the input composes: a text, nothing, a number, or a list. */
static void send_reply(struct input *input, unsigned nested)
{
        uint8_t what = input_byte(input);
        char head[32];

        if (what < ELEMENTSOF(texts)) {
                send_text(texts[what], strlen(texts[what]));
        } else if (what >= 0xc0) {
                struct field text = input_field(input, what & 0x3f);

                send_text(text.text, text.len);
                field_free(&text);
        } else if (what >= 0x80 && nested < NESTED_MAX) {
                size_t n = what & 0x1f;

                peer_send(head, (size_t)snprintf(head, sizeof(head), "*%zu\r\n", n));
                for (size_t i = 0; i < n; i++)
                        send_reply(input, nested + 1);
        } else if (what >= 0x60) {
                peer_send(head, (size_t)snprintf(head, sizeof(head), ":%d\r\n", what - 0x70));
        } else {
                peer_send("$-1\r\n", 5);
        }
}

static const enum query_kind kinds[] = {
        QUERY_HEARTBEAT, QUERY_WORK_LIST, QUERY_SCAN,   QUERY_SCANNERS,  QUERY_SCAN_LEAVE, QUERY_QUEUES,
        QUERY_JOBS,      QUERY_REQUEUE,   QUERY_SIGNAL, QUERY_DIAGNOSIS, QUERY_RELEASED,
};

static void act(struct input *input, int action)
{
        if (action == 0) {
                peer_hang_up();
        } else if (action == 1) {
                heartbeats_want(slot, POLL_HEARTBEAT | POLL_WORK_LIST);
                (void)heartbeats_poll(heartbeats);
        } else if (action == 2) {
                send_reply(input, 0);
                peer_run();
        } else if (action > 2 && (size_t)action - 3 < ELEMENTSOF(kinds)) {
                ask(kinds[action - 3]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};

        begin(input_byte(&input));
        while (input.left > 0)
                act(&input, peer_step(&input, phrases, ELEMENTSOF(phrases)));
        end();
        return 0;
}
