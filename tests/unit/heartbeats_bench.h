/* SPDX-License-Identifier: MIT */
/* What reads heartbeats, at a real redis-server, with workers that are made up. */
#pragma once

#include "frameworks/native/native.h"
#include "frameworks/rq/rq.h"
#include "frameworks/server_heartbeats.h"
#include "frameworks/sidekiq/format.h"
#include "io/clock.h"
#include "model/deadlines.h"
#include "model/world.h"

/* Below the headers of the model: parameters there are named event, too. */
#include "local_reader.h"
#include "redis_server.h"

#define HOST     "vm*1"
#define WORKERS  20
#define FOREIGN  10000
#define IDENTITY HOST ":%d:%012x"

static struct redis_settings settings;
static struct reader *reader;
static struct heartbeats *heartbeats;

static const struct settings world_settings = {.check_interval = 5 * USEC_PER_SEC};
static const struct fleet_settings fleet_settings = {.name = (char *)"web", .traits = &sidekiq_traits};
static struct world world = {.settings = &world_settings};
static struct fleet fleet = {.world = &world, .settings = &fleet_settings};
static struct worker workers[WORKERS];
static struct heartbeat_slot *slots[WORKERS];
static struct reported {
        unsigned identities, heartbeats;
        pid_t heartbeat_pid;
        struct heartbeat heartbeat;
        unsigned siblings_polled;
        pid_t other;
        bool remote;
} reported[WORKERS];
static unsigned n_done, n_asked, n_boots_asked;
static int boots = 1, births;
static uint64_t born_asked;     /* what is_born() was last asked */
static uint64_t foreign_before; /* records that were registered earlier are of other hosts */
static pid_t descendant;
static struct inside insides[WORKERS]; /* what is read of workers in namespaces of their own */
static int inside_error;
static unsigned n_inside_read;
static const char *host;              /* NULL: it cannot be told */
static unsigned short_of_descriptors; /* so many answers more */
static enum { FREE_NEVER, FREE_AT_IDENTITY, FREE_AT_HEARTBEAT, FREE_AT_DONE } free_at;
static bool remove_at_heartbeat;

static inline const char *host_name(_unused_ void *userdata)
{
        return host;
}

static inline int is_descendant(pid_t pid, const struct worker *worker, _unused_ void *userdata)
{
        n_asked++;
        if (short_of_descriptors > 0) {
                short_of_descriptors--;
                return -EMFILE;
        }
        return pid == descendant && worker == &workers[0];
}

/* No process of this world is one: what is so is made up. */
static inline int has_booted(pid_t pid, const struct worker *worker, _unused_ void *userdata)
{
        ck_assert(pid == worker->process.pid || pid == descendant);
        n_boots_asked++;
        return boots;
}

static inline int has_start(pid_t pid, uint64_t start, _unused_ void *userdata)
{
        ck_assert_int_eq(pid, workers[0].process.pid);
        return start == workers[0].process.start;
}

static inline int is_born(pid_t pid, const struct heartbeat *heartbeat, const struct worker *worker,
                          _unused_ void *userdata)
{
        ck_assert_int_eq(pid, worker->process.pid);
        ck_assert_uint_ne(heartbeat->sent_usec, 0);
        born_asked = heartbeat->born_usec;
        return heartbeat->born_usec < foreign_before ? -EREMOTE : births;
}

static inline int read_inside(const struct worker *worker, struct inside *ret, _unused_ void *userdata)
{
        n_inside_read++;
        *ret = insides[worker - workers];
        return inside_error;
}

static inline void on_identity(struct worker *worker, pid_t heartbeat_pid, bool remote,
                               _unused_ void *userdata)
{
        struct reported *to = &reported[worker - workers];

        worker->process.heartbeat_pid = heartbeat_pid;
        worker->process.remote = to->remote = remote;
        to->identities++;
        to->heartbeat_pid = heartbeat_pid;
        if (free_at == FREE_AT_IDENTITY)
                heartbeats = heartbeats_free(heartbeats);
}

static inline void on_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, void *userdata)
{
        struct reported *to = &reported[worker - workers];

        ck_assert_ptr_eq(userdata, reported);
        to->heartbeats++;
        to->heartbeat = *heartbeat;
        if (remove_at_heartbeat)
                heartbeats_remove(slots[worker - workers]);
        if (free_at == FREE_AT_HEARTBEAT)
                heartbeats = heartbeats_free(heartbeats);
}

static inline void on_sibling(struct worker *worker, pid_t pid, _unused_ void *userdata)
{
        struct reported *to = &reported[worker - workers];

        to->siblings_polled++;
        to->other = pid;
}

static inline void on_done(_unused_ struct heartbeats *b, _unused_ void *userdata)
{
        n_done++;
        if (free_at == FREE_AT_DONE)
                heartbeats = heartbeats_free(heartbeats);
}

static const struct heartbeats_ops ops = {
        .host_name = host_name,
        .is_descendant = is_descendant,
        .read_inside = read_inside,
        .has_booted = has_booted,
        .has_start = has_start,
        .is_born = is_born,
        .on_identity = on_identity,
        .on_heartbeat = on_heartbeat,
        .on_sibling = on_sibling,
        .on_done = on_done,
};

static inline bool is_up(void)
{
        return reader_state(reader) == READER_STATE_CONNECTED;
}

static inline void make_heartbeats(const struct framework *framework)
{
        reader = local_reader_up(&settings, framework->traits->id);
        ck_assert_int_eq(server_heartbeats_new(reader, framework, &ops, reported, &heartbeats), 0);
}

static inline void end_heartbeats(void)
{
        heartbeats = heartbeats_free(heartbeats);
        reader = reader_free(reader);
}

static inline void setup_server(char *namespace, const struct framework *framework)
{
        loop_start();
        host = HOST;
        server_start(0, NULL, NULL);
        settings = (struct redis_settings){
                .url = server_url,
                .namespace = namespace,
                .timeout = SERVER_PATIENCE,
        };
        make_heartbeats(framework);
}

static inline void setup(void)
{
        setup_server(NULL, &sidekiq_framework);
}

static inline void teardown(void)
{
        end_heartbeats();
        loop_end();
}

/* A worker of a pid that no process has: the kernel gives none beyond 4194304. */
static inline void spawn(unsigned i)
{
        workers[i] = (struct worker){
                .fleet = &fleet, .process.pid = 5000000 + (pid_t)i, .spawned_at = clock_now(CLOCK_MONOTONIC)};
        ck_assert_int_eq(heartbeats_add(heartbeats, &workers[i], &slots[i]), 0);
}

static inline void heartbeat_as(unsigned i, unsigned nonce, const char *heartbeat, unsigned busy, bool quiet)
{
        pid_t pid = workers[i].process.pid;

        server_do("SADD processes " IDENTITY, pid, nonce);
        server_do("HSET " IDENTITY " info %s busy %u beat %s quiet %s", pid, nonce,
                  "{\"concurrency\":5,\"version\":\"7.0.2\"}", busy, heartbeat, quiet ? "true" : "false");
}

/* Anew at each second. */
static inline void heartbeat_at(unsigned i, unsigned nonce, unsigned second, unsigned busy)
{
        char heartbeat[32];

        snprintf(heartbeat, sizeof(heartbeat), "%u.5", 1795238000U + second);
        heartbeat_as(i, nonce, heartbeat, busy, false);
}

static inline int look(unsigned n, unsigned poll_items)
{
        unsigned before = n_done;

        for (unsigned i = 0; i < n; i++)
                heartbeats_want(slots[i], poll_items);
        int r = heartbeats_poll(heartbeats);
        if (r == HEARTBEATS_POLLING)
                run_until(n_done > before);
        return r;
}

/* A scan of the set is not due until ten times the duration of the last scan has passed. */
static inline void poll_until_found(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                while (reported[i].identities == 0)
                        (void)look(n, POLL_HEARTBEAT);
}

static inline unsigned calls_of(const char *command)
{
        char key[64];
        unsigned calls = 0;

        redisReply *reply = server_ask("INFO commandstats");
        snprintf(key, sizeof(key), "cmdstat_%s:calls=", command);
        const char *at = strstr(reply->str, key);
        if (at)
                calls = (unsigned)strtoul(at + strlen(key), NULL, 10);
        freeReplyObject(reply);
        return calls;
}
