/* SPDX-License-Identifier: MIT */
/* A group of hosts through some hours of orders and faults, and then of peace; what must hold is checked by
 * what the simulated world knows. */
#include "hosts.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STEP      (250 * USEC_PER_MSEC)
#define LOOK_USEC (5 * USEC_PER_SEC)
#define TROUBLED  (60 * USEC_PER_MIN)
#define PEACE     (40 * USEC_PER_MIN)
#define BEGUN_AT  (1000000 * USEC_PER_SEC)

_printf_(2, 3) static void tell(const struct sim *sim, const char *format, ...)
{
        va_list arguments;

        if (!sim->verbose)
                return;
        printf("%9.2f ", (double)(sim->now - BEGUN_AT) / 1e6);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
}

_printf_(2, 3) static void violate(struct sim *sim, const char *format, ...)
{
        va_list arguments;

        if (sim->broken[0] != '\0')
                return;
        va_start(arguments, format);
        vsnprintf(sim->broken, sizeof(sim->broken), format, arguments);
        va_end(arguments);
        tell(sim, "VIOLATED: %s", sim->broken);
}

static usec_t host_now(const struct sim *sim, const struct host *host)
{
        return (usec_t)((int64_t)sim->now + host->clock_usec);
}

static bool can_reach(const struct sim *sim, const struct host *host)
{
        return host->exists && !host->gone && host->up && !host->partitioned &&
               sim->now >= sim->redis_down_until;
}

static bool restarts(const struct host *host)
{
        return host->exists && host->restart == ROLLOUT_RUNNING;
}

/* What Redis shows of a host is of this one: of two of one name, of that whose instance stands there. */
static bool holds_place(const struct sim *sim, const struct host *host)
{
        int state = keys_state(&sim->redis.keys, host->name);
        const struct entry *entry = keys_find(&sim->redis.keys, KEY_HOSTS, host->name);
        size_t len = strlen(host->instance);

        return (state == HOST_TURN_ROLLING || state == HOST_TURN_LOST) && entry &&
               strncmp(entry->value, host->instance, len) == 0 && entry->value[len] == ' ';
}

/* Redis does not know any more of those that restart and have no place there. Returns how many they are. */
static unsigned excuse(struct sim *sim)
{
        unsigned n = 0;

        for (size_t i = 0; i < sim->n_hosts; i++) {
                struct host *host = &sim->host[i];

                if (!restarts(host) || host->excused || holds_place(sim, host))
                        continue;
                host->excused = true;
                n++;
        }
        return n;
}

/* Its lease is not over. */
static bool is_renewed(const struct sim *sim, const struct host *host)
{
        const struct entry *turn = keys_find(&sim->redis.keys, KEY_TURNS, host->name);
        double now = (double)((int64_t)sim->now + sim->redis.clock_usec) / 1e6;

        return turn && now - turn->score < ROLLOUT_LEASE_SECONDS - 1;
}

static bool has_twin(const struct sim *sim, const struct host *host)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (&sim->host[i] != host && strcmp(sim->host[i].name, host->name) == 0)
                        return true;
        return false;
}

static unsigned asked_hosts(const struct sim *sim)
{
        return (unsigned)strtoul(keys_field(&sim->redis.keys, "hosts"), NULL, 10);
}

/* It has been able since then to say what it does, of the epoch that Redis has. */
static bool could_say(const struct sim *sim, const struct host *host, usec_t since)
{
        return host->able_at > 0 && host->able_at <= since && !host->flight.under_way && !sim->forged &&
               !has_twin(sim, host) && host->group.trouble == ROLLOUT_TROUBLE_NONE &&
               host->group.number == strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) &&
               strcmp(host->group.id, keys_field(&sim->redis.keys, "id")) == 0;
}

/* A turn was taken: by what the world knows, might it be? */
static void check_taken(struct sim *sim, const struct host *taker, unsigned failed_before)
{
        unsigned n = 0, hosts = asked_hosts(sim);

        sim->n_turns++;
        for (size_t i = 0; i < sim->n_hosts; i++) {
                const struct host *host = &sim->host[i];

                n += host != taker && restarts(host) && !host->excused;
                if (host != taker && restarts(host) && host->undone && !holds_place(sim, host) &&
                    could_say(sim, host, taker->connected_at))
                        violate(sim, "%s takes a turn before %s had a lease to say that it restarts",
                                taker->name, host->name);
        }
        if (n >= hosts)
                violate(sim, "%s takes a turn while %u others restart, and %u may", taker->name, n, hosts);
        if (keys_count(&sim->redis.keys, HOST_TURN_ROLLING, HOST_TURN_LOST) > hosts)
                violate(sim, "%s takes a turn, and %u places are held of %u: one that was lost is handed on",
                        taker->name, keys_count(&sim->redis.keys, HOST_TURN_ROLLING, HOST_TURN_LOST), hosts);
        if (failed_before > (unsigned)strtoul(keys_field(&sim->redis.keys, "failures"), NULL, 10))
                violate(sim, "%s takes a turn after a halt", taker->name);
        if (taker->group.number != strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) ||
            strcmp(taker->group.id, keys_field(&sim->redis.keys, "id")) != 0)
                violate(sim, "%s takes a turn of epoch %llu with the word of another", taker->name,
                        (unsigned long long)taker->group.number);
        /* A failover is likeliest where it would undo the most. */
        if (sim->faults && rng_chance(&sim->rng, sim->now < sim->taken_at + 2 * USEC_PER_SEC ? 700 : 100))
                sim->fail_over_at = sim->now + rng_range(&sim->rng, 0, 800 * USEC_PER_MSEC);
        sim->taken_at = sim->now;
}

/* The call has reached Redis. */
static void execute(struct sim *sim, struct host *host)
{
        struct flight *flight = &host->flight;
        const char *words[ELEMENTSOF(flight->words)], *error = "";
        struct rollout_word reply[WORDS_MAX];
        int before = keys_state(&sim->redis.keys, host->name);
        unsigned failed = keys_count(&sim->redis.keys, HOST_TURN_LOST, HOST_TURN_FAILED);

        flight->executed = true;
        if (!can_reach(sim, host) || flight->server != sim->redis.server) {
                flight->failed = true;
                return;
        }
        for (size_t i = 0; i < flight->n; i++)
                words[i] = flight->words[i];
        bool rolled[HOSTS_MAX] = {false};
        for (size_t i = 0; i < sim->n_hosts; i++)
                rolled[i] = !sim->forged && restarts(&sim->host[i]) && holds_place(sim, &sim->host[i]) &&
                            is_renewed(sim, &sim->host[i]);
        size_t n = script_run(&sim->redis, sim->now, words, flight->n, reply, &error);
        sim->n_calls++;
        if (n == 0 || rollout_reply_decode(reply, n, &flight->reply) < 0) {
                violate(sim, "the script fails: %s", error);
                return;
        }
        if (flight->what != FLIGHT_TICK)
                sim->ordered_at = sim->now;
        bool wants = flight->what == FLIGHT_TICK && strcmp(flight->words[5], "want") == 0;
        if (wants && before == HOST_TURN_WAITING &&
            keys_state(&sim->redis.keys, host->name) == HOST_TURN_ROLLING)
                check_taken(sim, host, failed);
        for (size_t i = 0; flight->what == FLIGHT_BEGIN && i < sim->n_hosts; i++)
                if (rolled[i] && !holds_place(sim, &sim->host[i]))
                        violate(sim, "the next order forgets that %s restarts", sim->host[i].name);
        /* By an order, or by another machine of its name, a host may lose its place. */
        if (flight->what != FLIGHT_TICK || has_twin(sim, host))
                (void)excuse(sim);
        if (sim->verbose && (wants || flight->what != FLIGHT_TICK || before != (int)flight->reply.mine))
                tell(sim, "%s: %s %s %s epoch %s: verdict %d, epoch %llu %s, it is %s%s%s", host->name,
                     flight->words[0], flight->n > 5 ? flight->words[5] : "",
                     flight->n > 6 ? flight->words[6] : "", flight->words[3], (int)flight->reply.verdict,
                     (unsigned long long)flight->reply.number, epoch_state_name(flight->reply.state),
                     host_turn_name(flight->reply.mine), flight->reply.error[0] != '\0' ? ": " : "",
                     flight->reply.error);
}

static void carry_out(struct sim *sim, struct host *host, enum rollout_act act)
{
        struct rollout_group *group = &host->group;
        usec_t now = host_now(sim, host);

        host->saved = *group;
        if (act == ROLLOUT_ACT_ABORT) {
                tell(sim, "%s: aborts its restart", host->name);
                if (restarts(host))
                        host->restart = ROLLOUT_ABORTED;
        }
        if (act != ROLLOUT_ACT_RESTART)
                return;
        tell(sim, "%s: restarts for epoch %llu", host->name, (unsigned long long)group->number);
        if (group->number < host->acted_number)
                violate(sim, "%s restarts for epoch %llu after %llu", host->name,
                        (unsigned long long)group->number, (unsigned long long)host->acted_number);
        bool same = group->number == host->acted_number && strcmp(group->id, host->acted_id) == 0;
        if (!group->trusted && !same && host->acted_at > 0 && sim->now < host->acted_at + ROLLOUT_PAUSE_USEC)
                violate(sim, "%s restarts twice within five minutes for who it does not know", host->name);
        host->acted_number = group->number;
        snprintf(host->acted_id, sizeof(host->acted_id), "%s", group->id);
        host->acted_at = sim->now;
        if (!restarts(host))
                host->excused = !holds_place(sim, host);
        host->restart = ROLLOUT_RUNNING;
        host->restart_left = rng_range(&sim->rng, 5, 120) * USEC_PER_SEC;
        host->restart_fails = sim->faults && rng_chance(&sim->rng, 60);
        rollout_group_observe_begun(group, now);
        host->saved = *group;
}

static void begin_call(struct sim *sim, struct host *host, int what, const char *const extra[])
{
        struct flight *flight = &host->flight;

        *flight = (struct flight){.under_way = true, .what = (unsigned)what, .server = host->server};
        flight->execute_at = sim->now + rng_range(&sim->rng, 1, 40) * USEC_PER_MSEC;
        flight->deliver_at = flight->execute_at + rng_range(&sim->rng, 1, 40) * USEC_PER_MSEC;
        if (sim->faults && rng_chance(&sim->rng, 20))
                flight->execute_at += rng_wait(&sim->rng, 2 * USEC_PER_SEC);
        flight->deliver_at = MAX(flight->deliver_at, flight->execute_at);
        if (sim->faults && rng_chance(&sim->rng, 10))
                flight->deliver_at += rng_wait(&sim->rng, 5 * USEC_PER_SEC);
        static const char *const operations[] = {"tick", "begin", "abort", "forget"};
        const char *const own[] = {operations[what], host->name, host->instance};
        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                snprintf(flight->words[flight->n++], sizeof(flight->words[0]), "%s", own[i]);
        for (; *extra; extra++)
                snprintf(flight->words[flight->n++], sizeof(flight->words[0]), "%s", *extra);
}

static void number_text(uint64_t number, char text[24])
{
        snprintf(text, 24, "%llu", (unsigned long long)number);
}

static void order_begin(struct sim *sim, struct host *host, uint64_t number)
{
        char digits[24], id[16], canary[24], failures[8];
        static const char *const hosts[] = {"1", "2", "1", "30%"};

        number_text(number, digits);
        snprintf(id, sizeof(id), "id%u", ++sim->ids);
        number_text(rng_chance(&sim->rng, 250) ? rng_range(&sim->rng, 1, 90) : 0, canary);
        snprintf(failures, sizeof(failures), "%u", (unsigned)rng_range(&sim->rng, 0, 1));
        begin_call(sim, host, FLIGHT_BEGIN,
                   (const char *const[]){digits, id, hosts[rng_range(&sim->rng, 0, 3)], canary, failures, "",
                                         "", NULL});
}

static void deliver(struct sim *sim, struct host *host)
{
        struct flight *flight = &host->flight;
        usec_t now = host_now(sim, host);

        uint64_t known = host->group.number;

        flight->under_way = false;
        if (flight->failed || host->server != flight->server || !host->connected) {
                host->connected = false;
                return;
        }
        if (flight->what == FLIGHT_TICK) {
                carry_out(sim, host,
                          rollout_group_observe(&host->group, &flight->reply, ROLLOUT_SEAL_UNASKED, now));
        } else if (flight->what == FLIGHT_BEGIN) {
                if (flight->reply.verdict == ROLLOUT_VERDICT_OLD && host->retries++ < 3) {
                        order_begin(sim, host, rollout_group_next(&host->group, &flight->reply));
                        return;
                }
                carry_out(sim, host, rollout_group_observe_ordered(&host->group, &flight->reply, now));
        }
        if (host->group.number < known)
                violate(sim, "%s takes epoch %llu for the newest, after %llu", host->name,
                        (unsigned long long)host->group.number, (unsigned long long)known);
}

static void look(struct sim *sim, struct host *host)
{
        struct rollout_group *group = &host->group;
        usec_t now = host_now(sim, host);
        char digits[24];
        enum epoch_state state = EPOCH_NONE;

        rollout_group_observe_fleet(group, host->restart, "new workers failed", now);
        host->saved = *group;
        if (host->flight.under_way)
                return;
        if (!can_reach(sim, host)) {
                host->connected = false;
                return;
        }
        if (!host->connected || host->server != sim->redis.server) {
                host->connected = true;
                host->connected_at = sim->now;
                host->server = sim->redis.server;
                rollout_group_observe_connection(group, now);
        }
        for (unsigned i = 0; i < _EPOCH_STATE_MAX; i++)
                if (strcmp(keys_field(&sim->redis.keys, "state"), epoch_state_name((enum epoch_state)i)) == 0)
                        state = (enum epoch_state)i;
        if (!rollout_group_is_due(group, strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10),
                                  keys_field(&sim->redis.keys, "id"), state, now))
                return;
        if (restarts(host) && group->turn == HOST_TURN_ROLLING &&
            could_say(sim, host, usec_sub(sim->now, USEC_PER_MIN)) &&
            keys_state(&sim->redis.keys, host->name) != HOST_TURN_ROLLING &&
            sim->now > sim->ordered_at + USEC_PER_MIN)
                violate(sim, "Redis does not know that %s restarts, which could say so for a minute",
                        host->name);
        number_text(group->number, digits);
        enum rollout_word_said word = rollout_group_say(group, now);
        begin_call(sim, host, FLIGHT_TICK,
                   (const char *const[]){digits, group->id, rollout_word_name(word),
                                         word == ROLLOUT_SAYS_FAIL ? group->error : "", NULL});
}

/* The name is free again only for who has the instance; what a host did is forgotten with its machine. */
static void boot(struct sim *sim, struct host *host, bool state_lost)
{
        host->up = true;
        host->connected = false;
        host->flight.under_way = false;
        host->group = state_lost ? rollout_group_new() : host->saved;
        /* Of what an earlier life knew of Redis nothing is kept. */
        host->group.mine = HOST_TURN_NONE;
        host->group.state = EPOCH_NONE;
        host->group.said = ROLLOUT_SAYS_SEE;
        host->group.asked_at = 0;
        host->look_at = sim->now + rng_range(&sim->rng, 0, LOOK_USEC);
        if (state_lost) {
                host->acted_number = 0;
                host->acted_at = 0;
        }
}

static void step_host(struct sim *sim, struct host *host)
{
        if (!host->exists)
                return;
        if (!can_reach(sim, host) || sim->now < host->frozen_until)
                host->able_at = 0;
        else if (host->able_at == 0)
                host->able_at = sim->now;
        if (host->flight.under_way && !host->flight.executed && sim->now >= host->flight.execute_at)
                execute(sim, host);
        if (host->gone)
                return;
        if (!host->up) {
                if (sim->now >= host->up_at) {
                        tell(sim, "%s: is back", host->name);
                        boot(sim, host, false);
                }
                return;
        }
        if (sim->now < host->frozen_until)
                return;
        if (restarts(host)) {
                host->restart_left = usec_sub(host->restart_left, STEP);
                if (host->restart_left == 0) {
                        host->restart = host->restart_fails ? ROLLOUT_HALTED : ROLLOUT_DONE;
                        host->excused = host->undone = false;
                        tell(sim, "%s: its restart is %s", host->name,
                             host->restart_fails ? "halted" : "done");
                }
        }
        if (host->flight.under_way && host->flight.executed && sim->now >= host->flight.deliver_at)
                deliver(sim, host);
        if (sim->now < host->look_at)
                return;
        host->look_at = sim->now + LOOK_USEC;
        look(sim, host);
}

static struct host *any_host(struct sim *sim)
{
        struct host *host = &sim->host[rng_range(&sim->rng, 0, sim->n_hosts - 1)];

        return host->exists && !host->gone ? host : NULL;
}

static struct host *add_host(struct sim *sim, const char *name)
{
        if (sim->n_hosts == HOSTS_MAX)
                return NULL;
        struct host *host = &sim->host[sim->n_hosts];

        *host = (struct host){.exists = true, .group = rollout_group_new()};
        snprintf(host->instance, sizeof(host->instance), "i%zu", sim->n_hosts++);
        snprintf(host->name, sizeof(host->name), "%s", name);
        host->saved = host->group;
        host->clock_usec = (int64_t)rng_range(&sim->rng, 0, 100000) * 1000000;
        boot(sim, host, false);
        return host;
}

/* The newest writes are lost, of less than a second; the server's clock is another. */
static void fail_over(struct sim *sim)
{
        struct redis *redis = &sim->redis;
        usec_t lost = rng_range(&sim->rng, 0, 900 * USEC_PER_MSEC);

        while (redis->n_calls > 0) {
                size_t last = (redis->n_calls - 1) % CALLS_KEPT;

                if (redis->before_at[last] + lost < sim->now || redis->before_at[last] == 0)
                        break;
                keys_copy(&redis->keys, &redis->before[last]);
                redis->before_at[last] = 0;
                redis->n_calls--;
        }
        redis->server++;
        redis->clock_usec += (int64_t)rng_range(&sim->rng, 0, 240) * 1000000 - 120000000;
        sim->n_failovers++;
        sim->redis_down_until = sim->now + rng_range(&sim->rng, 0, 20) * USEC_PER_SEC;
        for (size_t i = 0; i < sim->n_hosts; i++) {
                sim->host[i].able_at = 0;
                sim->host[i].undone |=
                        restarts(&sim->host[i]) && !sim->host[i].excused && !holds_place(sim, &sim->host[i]);
        }
        unsigned undone = excuse(sim);
        tell(sim, "Redis: failover, the last %.1f s are lost, %u turns among them", (double)lost / 1e6,
             undone);
        if (undone > 1)
                violate(sim, "a failover undid %u turns", undone);
}

static void forge(struct sim *sim)
{
        struct keys *keys = &sim->redis.keys;
        char text[32];
        const struct host *host = any_host(sim);

        sim->forged = true;
        sim->n_forged++;
        switch (rng_range(&sim->rng, 0, 4)) {
        case 0:
                number_text(sim->redis.n_calls + rng_range(&sim->rng, 1, 100), text);
                keys_put(keys, KEY_EPOCH, "number", text, 0);
                keys_put(keys, KEY_EPOCH, "state", "running", 0);
                keys_put(keys, KEY_EPOCH, "hosts", "8", 0);
                break;
        case 1:
                keys_put(keys, KEY_EPOCH, "number", "9007199254740000", 0);
                break;
        case 2:
                keys_put(keys, KEY_EPOCH, "state", rng_chance(&sim->rng, 500) ? "halted" : "running", 0);
                break;
        case 3:
                if (host)
                        keys_put(keys, KEY_STATES, host->name, "", (double)rng_range(&sim->rng, 0, 4));
                break;
        default:
                for (unsigned i = 0; i < 8; i++) {
                        snprintf(text, sizeof(text), "forged%u", i);
                        keys_put(keys, KEY_TURNS, text, "", 0);
                }
                break;
        }
        tell(sim, "Redis: somebody writes there");
        (void)excuse(sim);
}

/* A machine of the same name, with the same state. */
static void clone(struct sim *sim, const struct host *host)
{
        struct host *other = add_host(sim, host->name);

        if (!other)
                return;
        other->clone = true;
        other->clock_usec = host->clock_usec;
        other->group = other->saved = host->group;
        other->restart = host->restart;
        other->restart_left = host->restart_left;
        other->acted_number = host->acted_number;
        other->acted_at = host->acted_at;
        other->excused = true;
        boot(sim, other, false);
}

static void rename_host(struct sim *sim, struct host *host)
{
        snprintf(host->name, sizeof(host->name), "renamed%u", (unsigned)rng_range(&sim->rng, 0, 3));
        host->excused |= restarts(host);
        host->able_at = sim->now;
}

static void order(struct sim *sim, struct host *host)
{
        const char *number = keys_field(&sim->redis.keys, "number"), *id = keys_field(&sim->redis.keys, "id");

        if (!host->up || host->flight.under_way || !host->connected)
                return;
        host->retries = 0;
        unsigned what = (unsigned)rng_range(&sim->rng, 0, 9);
        if (what > 2)
                order_begin(sim, host, host->group.number + 1);
        else if (what == 2)
                begin_call(sim, host, FLIGHT_ABORT, (const char *const[]){number, id, "", NULL});
        else
                begin_call(sim, host, FLIGHT_FORGET,
                           (const char *const[]){number, id,
                                                 sim->host[rng_range(&sim->rng, 0, sim->n_hosts - 1)].name,
                                                 "", NULL});
}

static void die(struct sim *sim, struct host *host)
{
        host->up = false;
        host->up_at = sim->now + rng_wait(&sim->rng, USEC_PER_MIN);
        if (rng_chance(&sim->rng, 300)) {
                tell(sim, "%s: reboots", host->name);
                snprintf(host->instance, sizeof(host->instance), "b%u",
                         (unsigned)rng_range(&sim->rng, 0, 9999));
                host->restart = host->restart == ROLLOUT_RUNNING ? ROLLOUT_DONE : host->restart;
                host->excused = false;
                if (rng_chance(&sim->rng, 300))
                        host->saved = rollout_group_new();
                if (host->saved.number == 0)
                        host->acted_number = host->acted_at = 0;
        } else {
                tell(sim, "%s: sqmgr dies", host->name);
        }
        if (rng_chance(&sim->rng, 60)) {
                tell(sim, "%s: is gone for good", host->name);
                host->gone = true;
                host->restart = ROLLOUT_NONE;
        }
}

static void trouble(struct sim *sim)
{
        struct host *host = any_host(sim);

        if (!host || !rng_chance(&sim->rng, 25))
                return;
        switch (rng_range(&sim->rng, 0, 19)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
                order(sim, host);
                break;
        case 5:
        case 6:
        case 7:
                if (host->up)
                        die(sim, host);
                break;
        case 8:
        case 9:
                tell(sim, "%s: freezes", host->name);
                host->frozen_until = sim->now + rng_wait(&sim->rng, 40 * USEC_PER_SEC);
                break;
        case 10:
        case 11:
        case 12:
                host->partitioned = !host->partitioned;
                tell(sim, "%s: %s Redis", host->name, host->partitioned ? "cannot reach" : "can reach");
                break;
        case 13:
        case 14:
                fail_over(sim);
                break;
        case 15:
                sim->redis_down_until = sim->now + rng_wait(&sim->rng, 20 * USEC_PER_SEC);
                break;
        case 16:
                if (!rng_chance(&sim->rng, 200))
                        break;
                tell(sim, "Redis: FLUSHALL");
                memset(&sim->redis.keys, 0, sizeof(sim->redis.keys));
                (void)excuse(sim);
                break;
        case 17:
                if (rng_chance(&sim->rng, 300)) {
                        tell(sim, "%s: is cloned", host->name);
                        clone(sim, host);
                }
                break;
        case 18:
                if (rng_chance(&sim->rng, 300)) {
                        tell(sim, "%s: is renamed", host->name);
                        rename_host(sim, host);
                }
                break;
        default:
                if (sim->seed % 4 == 0)
                        forge(sim);
                break;
        }
}

static void step(struct sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                step_host(sim, &sim->host[i]);
        sim->now += STEP;
}

/* Is something told of what holds it up? A host that cannot come forward, or an epoch that none of its hosts
 * takes for one. */
static bool is_told(const struct sim *sim)
{
        for (size_t i = 0; i < sim->redis.keys.key[KEY_STATES].n; i++) {
                const struct entry *entry = &sim->redis.keys.key[KEY_STATES].list[i];
                bool speaks = false;

                for (size_t j = 0; j < sim->n_hosts; j++)
                        speaks |= strcmp(sim->host[j].name, entry->name) == 0 &&
                                  can_reach(sim, &sim->host[j]) &&
                                  sim->host[j].group.trouble == ROLLOUT_TROUBLE_NONE;
                if (!speaks && entry->score < HOST_TURN_FAILED)
                        return true;
        }
        return false;
}

/* Nothing more is to come of what was ordered: after the pause that forged orders lead to, and a canary. */
static bool is_at_rest(const struct sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (restarts(&sim->host[i]) && !sim->host[i].gone)
                        return false;
        return sim->now > BEGUN_AT + TROUBLED + 3 * ROLLOUT_PAUSE_USEC &&
               strcmp(keys_field(&sim->redis.keys, "state"), "running") != 0;
}

static void check_told(struct sim *sim)
{
        for (size_t i = 0; i < sim->redis.keys.key[KEY_STATES].n; i++)
                tell(sim, "Redis has %s as %s", sim->redis.keys.key[KEY_STATES].list[i].name,
                     host_turn_name((enum host_turn)sim->redis.keys.key[KEY_STATES].list[i].score));
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].exists && !sim->host[i].gone)
                        tell(sim, "%s (%s) knows epoch %llu as %s, trouble %d", sim->host[i].name,
                             sim->host[i].instance, (unsigned long long)sim->host[i].group.number,
                             host_turn_name(sim->host[i].group.turn), (int)sim->host[i].group.trouble);
        if (strcmp(keys_field(&sim->redis.keys, "state"), "running") == 0 && !is_told(sim))
                violate(sim, "after %d min of peace the epoch still runs, and nothing tells why",
                        (int)(PEACE / USEC_PER_MIN));
        for (size_t i = 0; i < sim->n_hosts && !sim->forged; i++)
                if (can_reach(sim, &sim->host[i]) && sim->host[i].group.trouble == ROLLOUT_TROUBLE_LOST &&
                    sim->host[i].group.number > strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) &&
                    strcmp(keys_field(&sim->redis.keys, "state"), "aborted") != 0)
                        violate(sim, "Redis has lost an epoch, and does not tell");
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].up && !sim->host[i].gone && restarts(&sim->host[i]))
                        violate(sim, "after all the peace %s still restarts", sim->host[i].name);
}

/* The faults are over; the clones are ended. */
static void make_peace(struct sim *sim)
{
        sim->faults = false;
        sim->redis_down_until = 0;
        for (size_t i = 0; i < sim->n_hosts; i++) {
                struct host *host = &sim->host[i];

                host->partitioned = false;
                host->frozen_until = 0;
                host->up_at = 0;
                if (host->clone)
                        host->exists = false;
                for (size_t j = 0; j < i; j++)
                        host->exists &= !sim->host[j].exists || strcmp(sim->host[j].name, host->name) != 0;
        }
}

static struct host *a_living_host(struct sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].exists && !sim->host[i].gone)
                        return &sim->host[i];
        return NULL;
}

static void forget_the_dead(struct sim *sim, struct host *operator)
{
        const struct keys *keys = &sim->redis.keys;

        for (size_t i = 0; i < keys->key[KEY_STATES].n && !operator->flight.under_way; i++) {
                const struct entry *entry = &keys->key[KEY_STATES].list[i];
                bool lives = false;

                for (size_t j = 0; j < sim->n_hosts; j++)
                        lives |= sim->host[j].exists && !sim->host[j].gone &&
                                 strcmp(sim->host[j].name, entry->name) == 0;
                if (!lives && entry->score < HOST_TURN_FAILED)
                        begin_call(sim, operator, FLIGHT_FORGET,
                                   (const char *const[]){keys_field(keys, "number"), keys_field(keys, "id"),
                                                         entry->name, NULL});
        }
}

/* The next order works, whatever has become of all before, and all who live come forward with it. */
static void check_next(struct sim *sim)
{
        struct host *operator= a_living_host(sim);
        usec_t until = sim->now + PEACE;
        bool begun = false;

        while (operator&& sim->now<until && sim->broken[0] == '\0') {
                if (!begun && !operator->flight.under_way && operator->connected) {
                        operator->retries = 0;
                        order_begin(sim, operator, operator->group.number + 1);
                        begun = true;
                } else if (begun) {
                        forget_the_dead(sim, operator);
                }
                step(sim);
                char id[16];
                snprintf(id, sizeof(id), "id%u", sim->ids);
                if (begun && strcmp(keys_field(&sim->redis.keys, "id"), id) == 0 &&
                    strcmp(keys_field(&sim->redis.keys, "state"), "done") == 0)
                        break;
        }
        if (!operator|| sim->broken[0] != '\0')
                return;
        if (strcmp(keys_field(&sim->redis.keys, "state"), "done") != 0)
                violate(sim, "the next order does not end: it is %s, %s",
                        keys_field(&sim->redis.keys, "state"), keys_field(&sim->redis.keys, "error"));
        for (size_t i = 0; i < sim->n_hosts; i++) {
                const struct host *host = &sim->host[i];

                if (host->exists && !host->gone && strcmp(host->acted_id, operator->group.id) != 0)
                        violate(sim, "%s has not restarted for the last order", host->name);
        }
}

void sim_run(struct sim *sim, uint64_t seed, bool verbose)
{
        char name[16];

        memset(sim, 0, sizeof(*sim));
        sim->seed = seed;
        sim->verbose = verbose;
        sim->rng = rng_fork(seed, 1);
        sim->now = BEGUN_AT;
        sim->faults = true;
        sim->redis.clock_usec = (int64_t)1700000000 * 1000000;
        size_t n = rng_range(&sim->rng, 2, 5);
        for (size_t i = 0; i < n; i++) {
                snprintf(name, sizeof(name), "host%u", (unsigned)i);
                (void)add_host(sim, name);
        }
        while (sim->now < BEGUN_AT + TROUBLED && sim->broken[0] == '\0') {
                trouble(sim);
                if (sim->fail_over_at > 0 && sim->now >= sim->fail_over_at) {
                        sim->fail_over_at = 0;
                        fail_over(sim);
                }
                step(sim);
        }
        make_peace(sim);
        for (usec_t until = sim->now + PEACE; sim->now < until && sim->broken[0] == '\0' && !is_at_rest(sim);)
                step(sim);
        if (sim->broken[0] == '\0')
                check_told(sim);
        if (sim->broken[0] == '\0')
                check_next(sim);
}
