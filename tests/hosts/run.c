/* SPDX-License-Identifier: MIT */
/* Runs a group of hosts through an hour of orders and faults, and then without faults, until everything must
 * have ended. */
#include "hosts.h"
#include <stdio.h>
#include <string.h>

/* How long the restarts of all hosts may take, one after another. */
#define PEACE (8 * USEC_PER_HOUR)

static void step(struct group_sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                host_step(sim, &sim->host[i]);
        sim->now += STEP;
}

/* Returns true if a host of that name can report to Redis. */
static bool speaks(const struct group_sim *sim, const char *name)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (strcmp(sim->host[i].name, name) == 0 && host_reaches(sim, &sim->host[i]) &&
                    sim->host[i].group.trouble == ROLLOUT_TROUBLE_NONE)
                        return true;
        return false;
}

static bool any_speaks(const struct group_sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (speaks(sim, sim->host[i].name))
                        return true;
        return false;
}

/* Returns how many hosts have not ended their rollout in Redis. speak: counts the hosts that can still speak,
 * else those that cannot. Status reports such silent hosts, and a rollout that none of its hosts accepts. */
static unsigned count_unended(const struct group_sim *sim, bool speak)
{
        const struct key *states = &sim->redis.keys.key[KEY_STATES];
        unsigned n = 0;

        for (size_t i = 0; i < states->n; i++)
                n += states->list[i].score < HOST_LEASE_FAILED && speaks(sim, states->list[i].name) == speak;
        return n;
}

/* Returns true if all orders have ended, also after the pause that forged orders cause and after a canary. */
static bool is_settled(const struct group_sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (host_restarts(&sim->host[i]) && !sim->host[i].gone)
                        return false;
        return sim->now > BEGUN_AT + TROUBLED + 3 * ROLLOUT_PAUSE_USEC &&
               (strcmp(keys_field(&sim->redis.keys, "state"), "running") != 0 ||
                count_unended(sim, true) == 0);
}

static void check_reported(struct group_sim *sim)
{
        for (size_t i = 0; i < sim->redis.keys.key[KEY_STATES].n; i++)
                group_report(sim, "Redis has %s as %s", sim->redis.keys.key[KEY_STATES].list[i].name,
                             host_lease_name((enum host_lease)sim->redis.keys.key[KEY_STATES].list[i].score));
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].exists && !sim->host[i].gone)
                        group_report(sim, "%s (%s) knows epoch %llu as %s, trouble %d", sim->host[i].name,
                                     sim->host[i].instance, (unsigned long long)sim->host[i].group.number,
                                     host_lease_name(sim->host[i].group.lease),
                                     (int)sim->host[i].group.trouble);
        /* Without a living host, no script call can judge the rollout. */
        if (any_speaks(sim) && strcmp(keys_field(&sim->redis.keys, "state"), "running") == 0 &&
            count_unended(sim, false) == 0)
                group_violate(sim, "after %d min of peace the epoch still runs, and nothing tells why",
                              (int)(PEACE / USEC_PER_MIN));
        for (size_t i = 0; i < sim->n_hosts && !sim->forged; i++)
                if (host_reaches(sim, &sim->host[i]) && sim->host[i].group.trouble == ROLLOUT_TROUBLE_LOST &&
                    sim->host[i].group.number > strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) &&
                    strcmp(keys_field(&sim->redis.keys, "state"), "aborted") != 0)
                        group_violate(sim, "Redis has lost an epoch, and does not tell");
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].up && !sim->host[i].gone && host_restarts(&sim->host[i]))
                        group_violate(sim, "after all the peace %s still restarts", sim->host[i].name);
}

/* Ends all faults and the clones. */
static void make_peace(struct group_sim *sim)
{
        sim->faults = false;
        sim->redis_down_until = 0;
        for (size_t i = 0; i < sim->n_hosts; i++) {
                struct host *host = &sim->host[i];

                host->partitioned = false;
                host->frozen_until = 0;
                host->up_at = 0;
                if (host->exists && !host->gone)
                        core_calm(host->core);
                if (host->clone)
                        host->exists = false;
                for (size_t j = 0; j < i; j++)
                        host->exists &= !sim->host[j].exists || strcmp(sim->host[j].name, host->name) != 0;
        }
}

static struct host *a_living_host(struct group_sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (sim->host[i].exists && !sim->host[i].gone)
                        return &sim->host[i];
        return NULL;
}

static void forget_the_dead(struct group_sim *sim, struct host *operator)
{
        const struct keys *keys = &sim->redis.keys;

        for (size_t i = 0; i < keys->key[KEY_STATES].n && !operator->flight.under_way; i++) {
                const struct entry *entry = &keys->key[KEY_STATES].list[i];
                bool lives = false;

                for (size_t j = 0; j < sim->n_hosts; j++)
                        lives |= sim->host[j].exists && !sim->host[j].gone &&
                                 strcmp(sim->host[j].name, entry->name) == 0;
                if (!lives && entry->score < HOST_LEASE_FAILED)
                        host_call(sim, operator, FLIGHT_FORGET,
                                  (const char *const[]){keys_field(keys, "number"), keys_field(keys, "id"),
                                                        entry->name, NULL});
        }
}

/* Checks that all hosts have all their workers, none older than the last order. */
static void check_settled(struct group_sim *sim)
{
        for (usec_t until = sim->now + PEACE; sim->broken[0] == '\0';) {
                bool settled = true, must = sim->now >= until;

                for (size_t i = 0; i < sim->n_hosts; i++) {
                        const struct host *host = &sim->host[i];

                        if (!host->exists || host->gone)
                                continue;
                        settled &= core_is_settled(host->core, must);
                        if (core_broken(host->core))
                                group_violate(sim, "%s: %s", host->name, core_broken(host->core));
                        else if (settled && core_outdated(host->core) > 0)
                                group_violate(sim, "%s has workers of before the last order", host->name);
                }
                if (settled)
                        return;
                for (unsigned i = 0; i < 40; i++)
                        step(sim);
        }
}

/* Checks that the next order works, whatever happened before, and that all living hosts restart for it. */
static void check_next(struct group_sim *sim)
{
        struct host *operator= a_living_host(sim);
        usec_t until = sim->now + PEACE;
        bool begun = false;
        /* A host may know a forged number that Redis has lost since. It aborts the first order, and the
         * second works. */
        unsigned tries = sim->forged && !sim->keyed ? 2 : 1;

        while (operator&& sim->now<until && sim->broken[0] == '\0') {
                if (!begun && !operator->flight.under_way && operator->connected) {
                        operator->retries = 0;
                        host_order(sim, operator, NULL);
                        begun = true;
                        tries--;
                } else if (begun) {
                        forget_the_dead(sim, operator);
                }
                step(sim);
                char id[16];
                snprintf(id, sizeof(id), "id%u", sim->ids);
                if (!begun || strcmp(keys_field(&sim->redis.keys, "id"), id) != 0)
                        continue;
                if (strcmp(keys_field(&sim->redis.keys, "state"), "done") == 0)
                        break;
                begun = tries == 0 || strcmp(keys_field(&sim->redis.keys, "state"), "aborted") != 0;
        }
        if (!operator|| sim->broken[0] != '\0')
                return;
        if (strcmp(keys_field(&sim->redis.keys, "state"), "done") != 0)
                group_violate(sim, "the next order does not end: it is %s, %s",
                              keys_field(&sim->redis.keys, "state"), keys_field(&sim->redis.keys, "error"));
        for (size_t i = 0; i < sim->n_hosts; i++) {
                const struct host *host = &sim->host[i];

                if (host->exists && !host->gone && strcmp(host->acted_id, operator->group.id) != 0)
                        group_violate(sim, "%s has not restarted for the last order", host->name);
        }
        check_settled(sim);
}

void group_run(struct group_sim *sim, uint64_t seed, bool verbose)
{
        char name[16];

        memset(sim, 0, sizeof(*sim));
        sim->seed = seed;
        sim->verbose = verbose;
        sim->rng = rng_fork(seed, 1);
        sim->now = BEGUN_AT;
        /* Some runs have a forger but no faults, so that hosts are up and may obey the forger. */
        sim->faults = seed % 16 != 4 && seed % 16 != 8;
        sim->keyed = seed / 4 % 2 == 1;
        sim->redis.clock_usec = (int64_t)1700000000 * 1000000;
        size_t n = rng_range(&sim->rng, 2, 5);
        for (size_t i = 0; i < n; i++) {
                snprintf(name, sizeof(name), "host%u", (unsigned)i);
                (void)group_add_host(sim, name);
        }
        while (sim->now < BEGUN_AT + TROUBLED && sim->broken[0] == '\0') {
                group_trouble(sim);
                group_forge(sim);
                if (sim->fail_over_at > 0 && sim->now >= sim->fail_over_at) {
                        sim->fail_over_at = 0;
                        group_fail_over(sim);
                }
                step(sim);
        }
        make_peace(sim);
        for (usec_t until = sim->now + PEACE; sim->now < until && sim->broken[0] == '\0' && !is_settled(sim);)
                step(sim);
        if (sim->broken[0] == '\0')
                check_reported(sim);
        if (sim->broken[0] == '\0')
                check_next(sim);
}

void group_end(struct group_sim *sim)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                sim->host[i].core = core_free(sim->host[i].core);
}
