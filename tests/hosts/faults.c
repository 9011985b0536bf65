/* SPDX-License-Identifier: MIT */
/* Events of a simulated group: orders, faults and forged messages. */
#include "hosts.h"
#include <stdio.h>
#include <string.h>

static struct host *any_host(struct group_sim *sim)
{
        struct host *host = &sim->host[rng_range(&sim->rng, 0, sim->n_hosts - 1)];

        return host->exists && !host->gone ? host : NULL;
}

/* A failover: the writes of the last moment, less than a second, are lost, and the clock of the server
 * differs. */
void group_fail_over(struct group_sim *sim)
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
                core_redis_failed_over(sim->host[i].core);
                sim->host[i].undone |= host_restarts(&sim->host[i]) && !sim->host[i].excused &&
                                       !host_holds_lease(sim, &sim->host[i]);
        }
        unsigned undone = group_excuse(sim);
        group_report(sim, "Redis: failover, the last %.1f s are lost, %u turns among them",
                     (double)lost / 1e6, undone);
        if (undone > 1)
                group_violate(sim, "a failover undid %u turns", undone);
}

static void forge_number(struct group_sim *sim, const char *field, uint64_t number)
{
        char text[24];

        number_text(number, text);
        keys_put(&sim->redis.keys, KEY_ROLLOUT, field, text, 0);
}

/* Forges a running rollout, with an id that no operator has given. */
static void forge_rollout(struct group_sim *sim, uint64_t number)
{
        struct keys *keys = &sim->redis.keys;
        char id[16];

        forge_number(sim, "number", number);
        snprintf(id, sizeof(id), "%c%u", rng_chance(&sim->rng, 500) ? 'f' : 'z', ++sim->ids);
        keys_put(keys, KEY_ROLLOUT, "id", id, 0);
        keys_put(keys, KEY_ROLLOUT, "state", "running", 0);
        keys_put(keys, KEY_ROLLOUT, "hosts", "8", 0);
}

static void let_all_wait(struct group_sim *sim)
{
        struct key *states = &sim->redis.keys.key[KEY_STATES];

        sim->redis.keys.key[KEY_LEASES].n = 0;
        for (size_t i = 0; i < states->n; i++)
                states->list[i].score = HOST_LEASE_WAITING;
}

/* Shows a recorded rollout again. */
static void replay(struct group_sim *sim)
{
        size_t n = MIN(sim->n_recorded, (size_t)RECORDED_MAX);

        if (n == 0)
                return;
        sim->redis.keys.key[KEY_ROLLOUT] = sim->recorded[rng_range(&sim->rng, 0, n - 1)];
        keys_put(&sim->redis.keys, KEY_ROLLOUT, "state", "running", 0);
        keys_put(&sim->redis.keys, KEY_ROLLOUT, "hosts", "8", 0);
        let_all_wait(sim);
}

/* Returns the highest number that a host believes. A forger counts up from there. */
static uint64_t newest_number(const struct group_sim *sim)
{
        uint64_t newest = 1;

        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].group.number < group_seconds(sim) + ROLLOUT_SLACK_SECONDS - 1000)
                        newest = MAX(newest, sim->host[i].group.number);
        return newest;
}

void group_forge(struct group_sim *sim)
{
        uint64_t number = newest_number(sim);

        if (sim->now < sim->climb_until)
                forge_rollout(sim, number + rng_range(&sim->rng, 1, 100));
        if (sim->now >= sim->storm_until || sim->now < sim->storm_at)
                return;
        /* With another id under the same number, hosts request no lease for a while. */
        sim->storm_at = sim->now + (sim->storm == STORM_IDS ? 40 : 0) * USEC_PER_SEC +
                        rng_range(&sim->rng, 5, 15) * USEC_PER_SEC;
        sim->storm_begins = !sim->storm_begins;
        group_report(sim, "Redis: a forger continues (%d)", (int)sim->storm);
        switch (sim->storm) {
        case STORM_STOPS:
                /* The forger halts or aborts the forged rollout: such restarts have a limit of their own. */
                if (!sim->storm_begins) {
                        keys_put(&sim->redis.keys, KEY_ROLLOUT, "state",
                                 rng_chance(&sim->rng, 500) ? "halted" : "aborted", 0);
                        break;
                }
                forge_rollout(sim, number + 1);
                let_all_wait(sim);
                break;
        case STORM_IDS:
                forge_rollout(sim, number);
                let_all_wait(sim);
                break;
        default:
                replay(sim);
                break;
        }
        (void)group_excuse(sim);
}

static void forge(struct group_sim *sim)
{
        static const uint64_t numbers[] = {(UINT64_C(1) << 53) - 1000, (UINT64_C(1) << 52) - 1};
        struct keys *keys = &sim->redis.keys;
        char text[32];
        const struct host *host = any_host(sim);
        uint64_t at = group_seconds(sim), number = strtoull(keys_field(keys, "number"), NULL, 10);

        sim->forged = true;
        sim->n_forged++;
        switch (rng_range(&sim->rng, 0, 12)) {
        case 0:
                forge_rollout(sim, at + rng_range(&sim->rng, 0, 2 * ROLLOUT_SLACK_SECONDS) -
                                           ROLLOUT_SLACK_SECONDS);
                break;
        case 1:
                forge_rollout(sim, rng_chance(&sim->rng, 500) ? numbers[rng_range(&sim->rng, 0, 1)]
                                                              : at + ROLLOUT_SLACK_SECONDS + 1000);
                break;
        case 2:
                keys_put(keys, KEY_ROLLOUT, "state", rng_chance(&sim->rng, 500) ? "halted" : "running", 0);
                break;
        case 3:
                if (host)
                        keys_put(keys, KEY_STATES, host->name, "", (double)rng_range(&sim->rng, 0, 4));
                break;
        case 4:
                for (unsigned i = KEY_HOSTS; host && i < ROLLOUT_SCRIPT_KEYS; i++)
                        keys_remove(keys, i, host->name);
                break;
        case 5:
                keys_put(keys, KEY_ROLLOUT, rng_chance(&sim->rng, 500) ? "taken" : "from", "nan", 0);
                break;
        case 6:
                for (unsigned i = 0; i < 8; i++) {
                        snprintf(text, sizeof(text), "forged%u", i);
                        keys_put(keys, KEY_LEASES, text, "", 0);
                }
                break;
        case 7:
                forge_number(sim, "high",
                             rng_chance(&sim->rng, 500) ? at + ROLLOUT_SLACK_SECONDS - 1
                                                        : number + UINT32_MAX);
                break;
        case 8:
                replay(sim);
                break;
        case 9:
                forge_rollout(sim, number);
                break;
        case 10:
                sim->climb_until = sim->now + rng_range(&sim->rng, 1, 120) * USEC_PER_SEC;
                break;
        case 11:
                sim->storm_until = sim->now + rng_range(&sim->rng, 1, 15) * USEC_PER_MIN;
                sim->storm = rng_range(&sim->rng, STORM_STOPS, STORM_REPLAYS);
                break;
        default:
                /* A rollout without number and id. */
                keys->key[KEY_ROLLOUT].n = 0;
                keys_put(keys, KEY_ROLLOUT, "state", "running", 0);
                keys_put(keys, KEY_ROLLOUT, "hosts", "8", 0);
                break;
        }
        group_report(sim, "Redis: somebody writes there");
        (void)group_excuse(sim);
}

/* Adds a machine of the same name with the same state. */
static void clone(struct group_sim *sim, const struct host *host)
{
        struct host *other = group_add_host(sim, host->name);

        if (!other)
                return;
        other->clone = true;
        other->clock_usec = host->clock_usec;
        other->group = host->group;
        host_pack(sim, other);
        other->acted_number = host->acted_number;
        snprintf(other->acted_id, sizeof(other->acted_id), "%s", host->acted_id);
        memcpy(other->acts, host->acts, sizeof(other->acts));
        other->excused = true;
        host_boot(sim, other, false);
}

static void rename_host(struct group_sim *sim, struct host *host)
{
        /* Redis refuses the calls of another host of the old name until the lease of this one has expired. */
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].able_at > 0 && strcmp(sim->host[i].name, host->name) == 0)
                        sim->host[i].able_at = sim->now;
        snprintf(host->name, sizeof(host->name), "renamed%u", (unsigned)rng_range(&sim->rng, 0, 3));
        host->excused |= host_restarts(host);
        host->able_at = sim->now;
}

static bool can_order(const struct host *host)
{
        return host->up && !host->flight.under_way && host->connected;
}

static void begin(struct group_sim *sim, struct host *host)
{
        host->retries = 0;
        host_order(sim, host, NULL);
}

static void order_all(struct group_sim *sim, struct host *host)
{
        struct host *other = rng_chance(&sim->rng, 200) ? any_host(sim) : NULL;

        begin(sim, host);
        /* Another host orders at the same time, with its own settings. */
        if (other && can_order(other))
                begin(sim, other);
        /* A failover may lose the order itself. */
        if (sim->faults && rng_chance(&sim->rng, 100))
                sim->fail_over_at = sim->now + rng_range(&sim->rng, 0, USEC_PER_SEC);
}

static void order(struct group_sim *sim, struct host *host)
{
        const char *number = keys_field(&sim->redis.keys, "number"), *id = keys_field(&sim->redis.keys, "id");
        const struct rollout_reply rollout = group_rollout(sim);
        char mac[ROLLOUT_MAC_MAX + 1];

        if (!can_order(host))
                return;
        group_sign(sim, "abort", &rollout, mac);
        unsigned what = (unsigned)rng_range(&sim->rng, 0, 9);
        if (what > 2)
                order_all(sim, host);
        else if (what == 2)
                host_call(sim, host, FLIGHT_ABORT, (const char *const[]){number, id, mac, NULL});
        else
                host_call(sim, host, FLIGHT_FORGET,
                          (const char *const[]){number, id,
                                                sim->host[rng_range(&sim->rng, 0, sim->n_hosts - 1)].name,
                                                NULL});
}

/* The host loses its state. */
static void forget(struct host *host)
{
        host->saved_size = 0;
        host->acted_number = 0;
        host->acted_id[0] = '\0';
        memset(host->acts, 0, sizeof(host->acts));
}

static void die(struct group_sim *sim, struct host *host)
{
        bool lost = rng_chance(&sim->rng, 50);

        if (!core_kill(host->core, lost))
                return;
        host->up = false;
        host->frozen_until = 0;
        host->up_at = sim->now + rng_wait(&sim->rng, USEC_PER_MIN);
        if (lost)
                forget(host);
        if (rng_chance(&sim->rng, 300)) {
                group_report(sim, "%s: reboots", host->name);
                snprintf(host->instance, sizeof(host->instance), "b%u",
                         (unsigned)rng_range(&sim->rng, 0, 9999));
                core_reboot(host->core);
                host->restarts = host->excused = false;
                if (rng_chance(&sim->rng, 300))
                        forget(host);
        } else {
                group_report(sim, "%s: sqmgr dies", host->name);
        }
        if (rng_chance(&sim->rng, 60)) {
                group_report(sim, "%s: is gone for good", host->name);
                host->gone = true;
                host->restarts = false;
        }
}

/* Empties Redis. An operator who sees that may order a new rollout. */
static void flush(struct group_sim *sim, struct host *host)
{
        group_report(sim, "Redis: FLUSHALL");
        memset(&sim->redis.keys, 0, sizeof(sim->redis.keys));
        for (size_t i = 0; i < sim->n_hosts; i++) {
                core_redis_was_emptied(sim->host[i].core);
                sim->host[i].undone |= host_restarts(&sim->host[i]) && !sim->host[i].excused;
        }
        (void)group_excuse(sim);
        if (can_order(host) && rng_chance(&sim->rng, 500))
                order_all(sim, host);
}

void group_trouble(struct group_sim *sim)
{
        struct host *host = any_host(sim);

        if (!host || !rng_chance(&sim->rng, 25))
                return;
        if (!sim->faults) {
                if (rng_chance(&sim->rng, 200))
                        order(sim, host);
                else if (rng_chance(&sim->rng, 200))
                        forge(sim);
                return;
        }
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
                group_report(sim, "%s: freezes", host->name);
                host->frozen_until = sim->now + rng_wait(&sim->rng, 40 * USEC_PER_SEC);
                core_freeze(host->core, host->frozen_until, rng_chance(&sim->rng, 500));
                break;
        case 10:
        case 11:
        case 12:
                host->partitioned = !host->partitioned;
                group_report(sim, "%s: %s Redis", host->name,
                             host->partitioned ? "cannot reach" : "can reach");
                break;
        case 13:
        case 14:
                group_fail_over(sim);
                break;
        case 15:
                sim->redis_down_until = sim->now + rng_wait(&sim->rng, 20 * USEC_PER_SEC);
                break;
        case 16:
                if (rng_chance(&sim->rng, 400))
                        flush(sim, host);
                break;
        case 17:
                if (rng_chance(&sim->rng, 300)) {
                        group_report(sim, "%s: is cloned", host->name);
                        clone(sim, host);
                }
                break;
        case 18:
                if (rng_chance(&sim->rng, 300)) {
                        group_report(sim, "%s: is renamed", host->name);
                        rename_host(sim, host);
                }
                break;
        default:
                if (sim->seed % 4 == 0)
                        forge(sim);
                break;
        }
}
