/* SPDX-License-Identifier: MIT */
/* Runs the hosts of a simulated group, and checks each against the state of the simulated world. */
#include "hosts.h"
#include "base/hash.h"
#include "continuity/codec.h"
#include "model/names.h"
#include "rollout_hosts/signature_rules.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define POLL_USEC (5 * USEC_PER_SEC)
/* Timeout of a call. */
#define COMMAND_USEC (5 * USEC_PER_SEC)

void group_report(const struct group_sim *sim, const char *format, ...)
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

void group_violate(struct group_sim *sim, const char *format, ...)
{
        va_list arguments;

        if (sim->broken[0] != '\0')
                return;
        va_start(arguments, format);
        vsnprintf(sim->broken, sizeof(sim->broken), format, arguments);
        va_end(arguments);
        group_report(sim, "VIOLATED: %s", sim->broken);
}

static usec_t host_now(const struct group_sim *sim, const struct host *host)
{
        return (usec_t)((int64_t)sim->now + host->clock_usec);
}

bool host_reaches(const struct group_sim *sim, const struct host *host)
{
        return host->exists && !host->gone && host->up && !host->partitioned &&
               sim->now >= sim->redis_down_until;
}

bool host_restarts(const struct host *host)
{
        return host->exists && host->restarts;
}

/* Returns true if Redis has a lease of this host. Of two hosts of one name, the one whose instance Redis has.
 */
bool host_holds_lease(const struct group_sim *sim, const struct host *host)
{
        int state = keys_state(&sim->redis.keys, host->name);
        const struct entry *entry = keys_find(&sim->redis.keys, KEY_HOSTS, host->name);
        size_t len = strlen(host->instance);

        return (state == HOST_LEASE_ROLLING || state == HOST_LEASE_LOST) && entry &&
               strncmp(entry->value, host->instance, len) == 0 && entry->value[len] == ' ';
}

/* Excuses the hosts that restart without a lease in Redis, which has lost it. Returns their number. */
unsigned group_excuse(struct group_sim *sim)
{
        unsigned n = 0;

        for (size_t i = 0; i < sim->n_hosts; i++) {
                struct host *host = &sim->host[i];

                if (!host_restarts(host) || host->excused || host_holds_lease(sim, host))
                        continue;
                host->excused = true;
                n++;
        }
        return n;
}

/* Returns true if the lease is renewed and not about to end. */
static bool is_renewed(const struct group_sim *sim, const struct host *host)
{
        const struct entry *lease = keys_find(&sim->redis.keys, KEY_LEASES, host->name);
        double now = (double)((int64_t)sim->now + sim->redis.clock_usec) / 1e6;

        return lease && now - lease->score < ROLLOUT_LEASE_SECONDS - 1;
}

bool host_has_twin(const struct group_sim *sim, const struct host *host)
{
        for (size_t i = 0; i < sim->n_hosts; i++)
                if (&sim->host[i] != host && strcmp(sim->host[i].name, host->name) == 0)
                        return true;
        return false;
}

static unsigned asked_hosts(const struct group_sim *sim)
{
        return (unsigned)strtoul(keys_field(&sim->redis.keys, "hosts"), NULL, 10);
}

/* Returns true if the host has been able since then to report its state in the rollout that Redis has. */
static bool could_report(const struct group_sim *sim, const struct host *host, usec_t since)
{
        return host->able_at > 0 && host->able_at <= since && !host->flight.under_way && !sim->forged &&
               !host_has_twin(sim, host) && host->group.trouble == ROLLOUT_TROUBLE_NONE &&
               host->group.number == strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) &&
               strcmp(host->group.id, keys_field(&sim->redis.keys, "id")) == 0;
}

/* Checks a lease that was just taken: by the truth of the world, was it permitted? */
static void check_taken(struct group_sim *sim, const struct host *taker, unsigned failed_before)
{
        unsigned n = 0, hosts = asked_hosts(sim);

        sim->n_leases++;
        for (size_t i = 0; i < sim->n_hosts; i++) {
                const struct host *host = &sim->host[i];

                n += host != taker && host_restarts(host) && !host->excused;
                if (host != taker && host_restarts(host) && host->undone && !host_holds_lease(sim, host) &&
                    could_report(sim, host, taker->connected_at))
                        group_violate(sim, "%s takes a turn before %s had a lease to say that it restarts",
                                      taker->name, host->name);
        }
        if (n >= hosts)
                group_violate(sim, "%s takes a turn while %u others restart, and %u may", taker->name, n,
                              hosts);
        if (keys_count(&sim->redis.keys, HOST_LEASE_ROLLING, HOST_LEASE_LOST) > hosts)
                group_violate(sim,
                              "%s takes a turn, and %u places are held of %u: one that was lost is handed on",
                              taker->name, keys_count(&sim->redis.keys, HOST_LEASE_ROLLING, HOST_LEASE_LOST),
                              hosts);
        if (failed_before > (unsigned)strtoul(keys_field(&sim->redis.keys, "failures"), NULL, 10))
                group_violate(sim, "%s takes a turn after a halt", taker->name);
        if (taker->group.number != strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10) ||
            strcmp(taker->group.id, keys_field(&sim->redis.keys, "id")) != 0)
                group_violate(sim, "%s takes a turn of epoch %llu with the word of another", taker->name,
                              (unsigned long long)taker->group.number);
        /* A failover is most likely right after a lease was taken, when it does the most damage. */
        if (sim->faults && rng_chance(&sim->rng, sim->now < sim->taken_at + 2 * USEC_PER_SEC ? 700 : 100))
                sim->fail_over_at = sim->now + rng_range(&sim->rng, 0, 800 * USEC_PER_MSEC);
        sim->taken_at = sim->now;
}

/* Runs a call that has reached Redis. */
static void execute(struct group_sim *sim, struct host *host)
{
        struct flight *flight = &host->flight;
        const char *words[ELEMENTSOF(flight->words)], *error = "";
        struct field reply[WORDS_MAX];
        int before = keys_state(&sim->redis.keys, host->name);
        unsigned failed = keys_count(&sim->redis.keys, HOST_LEASE_LOST, HOST_LEASE_FAILED);

        flight->executed = true;
        if (!host_reaches(sim, host) || flight->server != sim->redis.server) {
                flight->failed = true;
                return;
        }
        for (size_t i = 0; i < flight->n; i++)
                words[i] = flight->words[i];
        bool rolled[HOSTS_MAX] = {false};
        for (size_t i = 0; i < sim->n_hosts; i++)
                rolled[i] = !sim->forged && host_restarts(&sim->host[i]) &&
                            host_holds_lease(sim, &sim->host[i]) && is_renewed(sim, &sim->host[i]);
        size_t n = script_run(&sim->redis, sim->now, words, flight->n, reply, &error);
        sim->n_calls++;
        if (n == 0 || rollout_reply_decode(reply, n, &flight->reply) < 0) {
                group_violate(sim, "the script fails: %s", error);
                return;
        }
        if (flight->what != FLIGHT_TICK)
                sim->ordered_at = sim->now;
        if (flight->what == FLIGHT_BEGIN && flight->reply.verdict == ROLLOUT_VERDICT_OK)
                sim->recorded[sim->n_recorded++ % RECORDED_MAX] = sim->redis.keys.key[KEY_ROLLOUT];
        bool wants = flight->what == FLIGHT_TICK && strcmp(flight->words[5], "want") == 0;
        if (wants && before == HOST_LEASE_WAITING &&
            keys_state(&sim->redis.keys, host->name) == HOST_LEASE_ROLLING)
                check_taken(sim, host, failed);
        for (size_t i = 0; flight->what == FLIGHT_BEGIN && i < sim->n_hosts; i++)
                if (rolled[i] && !host_holds_lease(sim, &sim->host[i]))
                        group_violate(sim, "the next order forgets that %s restarts", sim->host[i].name);
        /* A host that was removed from the rollout no longer suffers from a failover. */
        for (size_t i = 0; flight->what == FLIGHT_FORGET && i < sim->n_hosts; i++)
                sim->host[i].undone &= strcmp(sim->host[i].name, flight->words[5]) != 0;
        /* An order, or another machine of the same name, may take the lease from a host. */
        if (flight->what != FLIGHT_TICK || host_has_twin(sim, host))
                (void)group_excuse(sim);
        if (sim->verbose && (wants || flight->what != FLIGHT_TICK || before != (int)flight->reply.mine))
                group_report(sim, "%s: %s %s %s epoch %s: verdict %d, epoch %llu %s, it is %s%s%s",
                             host->name, flight->words[0], flight->n > 5 ? flight->words[5] : "",
                             flight->n > 6 ? flight->words[6] : "", flight->words[3],
                             (int)flight->reply.verdict, (unsigned long long)flight->reply.number,
                             group_state_name(flight->reply.state), host_lease_name(flight->reply.mine),
                             flight->reply.error[0] != '\0' ? ": " : "", flight->reply.error);
}

void host_pack(const struct group_sim *sim, struct host *host)
{
        struct codec_writer writer = {.now = host_now(sim, host)};

        rollout_group_pack(&host->group, "group", &writer);
        assert(!writer.failed && writer.size <= sizeof(host->saved));
        host->saved_size = writer.size;
        host->saved_at = writer.now;
        if (writer.size > 0)
                memcpy(host->saved, writer.bytes, writer.size);
        free(writer.bytes);
}

/* Saves the state of the host: workers and group are in the same file. */
static bool save(const struct group_sim *sim, struct host *host)
{
        bool saved = core_save(host->core);

        if (saved)
                host_pack(sim, host);
        (void)core_was_saved(host->core);
        return saved;
}

/* Checks that a host begins few restarts which no trusted party has ordered, and none if there is a key. */
static void check_act(struct group_sim *sim, struct host *host)
{
        const struct rollout_group *group = &host->group;
        unsigned n = 0, n_counted = 0;
        bool same = group->number == host->acted_number && strcmp(group->id, host->acted_id) == 0;

        if (sim->keyed && strncmp(group->id, "id", 2) != 0)
                group_violate(sim, "%s restarts for rollout %s, which nobody with the key has begun",
                              host->name, group->id);
        if (group->trusted || same)
                return;
        memmove(host->acts + 1, host->acts, sizeof(host->acts) - sizeof(host->acts[0]));
        host->acts[0].at = sim->now;
        host->acts[0].stopped = false;
        snprintf(host->acts[0].id, sizeof(host->acts[0].id), "%s", group->id);
        for (size_t i = 0; i < ELEMENTSOF(host->acts); i++) {
                bool counts = host->acts[i].at > 0 && sim->now < host->acts[i].at + ROLLOUT_PAUSE_USEC;

                n += counts;
                n_counted += counts && !host->acts[i].stopped;
        }
        if (n_counted > ROLLOUT_COUNTED_MAX || n > ROLLOUT_COUNTED_MAX + ROLLOUT_STOPPED_MAX)
                group_violate(sim, "%s restarts %u times within five minutes for who it does not know",
                              host->name, n);
}

static void excuse_acts(struct host *host, const char *id)
{
        for (size_t i = 0; i < ELEMENTSOF(host->acts); i++)
                host->acts[i].stopped |= strcmp(host->acts[i].id, id) == 0;
}

static void carry_out(struct group_sim *sim, struct host *host, enum rollout_act act)
{
        struct rollout_group *group = &host->group;
        usec_t now = host_now(sim, host);

        bool saved = save(sim, host);
        if (act == ROLLOUT_ACT_ABORT) {
                group_report(sim, "%s: aborts its restart", host->name);
                if (host_restarts(host))
                        core_abort(host->core);
        }
        /* Without a saved state nothing starts; the next reply tries again. */
        if (act != ROLLOUT_ACT_RESTART || !saved)
                return;
        /* sqmgr may die after it has saved its decision, before the restart. */
        if (sim->faults && rng_chance(&sim->rng, 20) && core_kill(host->core, false)) {
                group_report(sim, "%s: sqmgr dies before it restarts anything", host->name);
                host->up = false;
                host->up_at = sim->now + rng_wait(&sim->rng, USEC_PER_MIN);
                return;
        }
        group_report(sim, "%s: restarts for rollout %llu %s", host->name, (unsigned long long)group->number,
                     group->id);
        check_act(sim, host);
        if (group->number < host->acted_number ||
            (group->number == host->acted_number && strcmp(group->id, host->acted_id) < 0))
                group_violate(sim, "%s restarts for rollout %llu %s after %llu %s", host->name,
                              (unsigned long long)group->number, group->id,
                              (unsigned long long)host->acted_number, host->acted_id);
        host->acted_number = group->number;
        snprintf(host->acted_id, sizeof(host->acted_id), "%s", group->id);
        if (!host_restarts(host))
                host->excused = !host_holds_lease(sim, host);
        host->restarts = core_restart(host->core, sim->faults && rng_chance(&sim->rng, 60));
        rollout_group_observe_begun(group, now);
        if (!host->restarts) {
                host->excused = false;
                rollout_group_observe_fleet(group, ROLLOUT_DONE, "", now);
        }
        (void)save(sim, host);
}

void host_call(struct group_sim *sim, struct host *host, int what, const char *const extra[])
{
        struct flight *flight = &host->flight;

        *flight = (struct flight){.under_way = true, .what = (unsigned)what, .server = host->server};
        flight->execute_at = sim->now + rng_range(&sim->rng, 1, 40) * USEC_PER_MSEC;
        flight->deliver_at = flight->execute_at + rng_range(&sim->rng, 1, 40) * USEC_PER_MSEC;
        if (sim->faults && rng_chance(&sim->rng, 20))
                flight->execute_at += rng_wait(&sim->rng, 2 * USEC_PER_SEC);
        flight->deliver_at = MAX(flight->deliver_at, flight->execute_at);
        if (sim->faults && rng_chance(&sim->rng, 10))
                flight->deliver_at += rng_range(&sim->rng, 0, COMMAND_USEC);
        static const char *const operations[] = {"tick", "begin", "abort", "forget"};
        const char *const own[] = {operations[what], host->name, host->instance};
        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                snprintf(flight->words[flight->n++], sizeof(flight->words[0]), "%s", own[i]);
        for (; *extra; extra++)
                snprintf(flight->words[flight->n++], sizeof(flight->words[0]), "%s", *extra);
}

void number_text(uint64_t number, char text[24])
{
        snprintf(text, 24, "%llu", (unsigned long long)number);
}

uint64_t group_seconds(const struct group_sim *sim)
{
        return (uint64_t)((int64_t)sim->now + sim->redis.clock_usec) / USEC_PER_SEC;
}

void group_sign(const struct group_sim *sim, const char *order, const struct rollout_reply *rollout,
                char mac[static ROLLOUT_MAC_MAX + 1])
{
        const struct rollout_place place = rollout_place("redis://localhost", NULL, NULL, "g");
        _cleanup_free_ char *text = rollout_signed_text(order, &place, rollout);

        mac[0] = '\0';
        if (sim->keyed && text)
                snprintf(mac, ROLLOUT_MAC_MAX + 1, "%016llx",
                         (unsigned long long)hash_bytes(HASH_INIT, text, strlen(text)));
}

struct rollout_reply group_rollout(const struct group_sim *sim)
{
        const struct keys *keys = &sim->redis.keys;
        struct rollout_reply rollout = {
                .number = strtoull(keys_field(keys, "number"), NULL, 10),
                .canary_seconds = (uint32_t)strtoul(keys_field(keys, "canary"), NULL, 10),
                .failures = (uint32_t)strtoul(keys_field(keys, "failures"), NULL, 10),
        };

        snprintf(rollout.id, sizeof(rollout.id), "%s", keys_field(keys, "id"));
        snprintf(rollout.asked, sizeof(rollout.asked), "%s", keys_field(keys, "asked"));
        return rollout;
}

static enum rollout_signature signature_of(const struct group_sim *sim, const struct rollout_reply *reply)
{
        char begin[ROLLOUT_MAC_MAX + 1], abort[ROLLOUT_MAC_MAX + 1];

        if (!sim->keyed)
                return ROLLOUT_SIGNATURE_UNASKED;
        group_sign(sim, "begin", reply, begin);
        group_sign(sim, "abort", reply, abort);
        return reply->number == 0 || (strcmp(begin, reply->mac) == 0 &&
                                      (reply->state != GROUP_ABORTED || strcmp(abort, reply->end_mac) == 0))
                       ? ROLLOUT_SIGNATURE_GOOD
                       : ROLLOUT_SIGNATURE_BAD;
}

void host_order(struct group_sim *sim, struct host *host, const struct rollout_reply *there)
{
        static const char *const hosts[] = {"1", "2", "1", "30%"};
        struct rollout_reply rollout = {.failures = (uint32_t)rng_range(&sim->rng, 0, 1)};
        struct rollout_next next = {0};
        char digits[24], canary[24], failures[8], seen[24], mac[ROLLOUT_MAC_MAX + 1];

        if (there)
                next = rollout_group_next(&host->group, there, signature_of(sim, there));
        rollout.number = next.number;
        snprintf(rollout.id, sizeof(rollout.id), "id%u", ++sim->ids);
        snprintf(rollout.asked, sizeof(rollout.asked), "%s", hosts[rng_range(&sim->rng, 0, 3)]);
        rollout.canary_seconds = rng_chance(&sim->rng, 250) ? (uint32_t)rng_range(&sim->rng, 1, 90) : 0;
        group_sign(sim, "begin", &rollout, mac);
        number_text(rollout.number, digits);
        number_text(rollout.canary_seconds, canary);
        snprintf(failures, sizeof(failures), "%u", rollout.failures);
        number_text(there ? there->number : 0, seen);
        host_call(sim, host, FLIGHT_BEGIN,
                  (const char *const[]){digits, rollout.id, rollout.asked, canary, failures, "", mac, "",
                                        next.lost ? "1" : "0", seen, there ? there->id : "", NULL});
}

static void deliver(struct group_sim *sim, struct host *host)
{
        struct flight *flight = &host->flight;
        usec_t now = host_now(sim, host);

        uint64_t known = host->group.number;
        char id[ROLLOUT_ID_MAX + 1];

        memcpy(id, host->group.id, sizeof(id));
        flight->under_way = false;
        if (flight->failed || host->server != flight->server || !host->connected) {
                host->connected = false;
                return;
        }
        if (flight->reply.state == GROUP_HALTED || flight->reply.state == GROUP_ABORTED)
                excuse_acts(host, flight->reply.id);
        if (flight->what == FLIGHT_TICK) {
                carry_out(sim, host,
                          rollout_group_observe(&host->group, &flight->reply,
                                                signature_of(sim, &flight->reply), now));
        } else if (flight->what == FLIGHT_BEGIN) {
                if (flight->reply.verdict == ROLLOUT_VERDICT_OLD && host->retries++ < 4) {
                        struct rollout_reply there = flight->reply;

                        host_order(sim, host, &there);
                        return;
                }
                carry_out(sim, host, rollout_group_observe_ordered(&host->group, &flight->reply, now));
        }
        /* A host reports its state in a new rollout at once. */
        if (host->group.number != known || strcmp(host->group.id, id) != 0)
                host->poll_at = sim->now;
        if (host->group.number < known)
                group_violate(sim, "%s takes epoch %llu for the newest, after %llu", host->name,
                              (unsigned long long)host->group.number, (unsigned long long)known);
}

static void observe_restart(struct group_sim *sim, struct host *host)
{
        enum host_lease before = host->group.lease;
        const char *error;
        enum rollout_state state = core_rollout(host->core, &error);

        rollout_group_observe_fleet(&host->group, state, error, host_now(sim, host));
        if (host->group.lease != before)
                (void)save(sim, host);
}

static void look(struct group_sim *sim, struct host *host)
{
        struct rollout_group *group = &host->group;
        usec_t now = host_now(sim, host);
        char digits[24];
        enum group_state state = GROUP_NONE;

        observe_restart(sim, host);
        if (host->flight.under_way)
                return;
        if (!host_reaches(sim, host)) {
                host->connected = false;
                return;
        }
        if (!host->connected || host->server != sim->redis.server) {
                host->connected = true;
                host->connected_at = sim->now;
                host->server = sim->redis.server;
                rollout_group_observe_connection(group, now);
        }
        for (unsigned i = 0; i < _GROUP_STATE_MAX; i++)
                if (strcmp(keys_field(&sim->redis.keys, "state"), group_state_name((enum group_state)i)) == 0)
                        state = (enum group_state)i;
        if (!rollout_group_is_due(group, strtoull(keys_field(&sim->redis.keys, "number"), NULL, 10),
                                  keys_field(&sim->redis.keys, "id"), state, now))
                return;
        if (host_restarts(host) && group->lease == HOST_LEASE_ROLLING &&
            could_report(sim, host, usec_sub(sim->now, USEC_PER_MIN)) &&
            keys_state(&sim->redis.keys, host->name) != HOST_LEASE_ROLLING &&
            sim->now > sim->ordered_at + USEC_PER_MIN)
                group_violate(sim, "Redis does not know that %s restarts, which could say so for a minute",
                              host->name);
        number_text(group->number, digits);
        enum rollout_request word = rollout_group_next_request(group, now);
        host_call(sim, host, FLIGHT_TICK,
                  (const char *const[]){digits, group->id, rollout_request_name(word),
                                        word == ROLLOUT_REQUEST_FAIL ? group->error : "", NULL});
}

/* Starts sqmgr on a host. state_lost: earlier restarts are forgotten, too. */
void host_boot(struct group_sim *sim, struct host *host, bool state_lost)
{
        host->up = true;
        host->connected = false;
        host->flight.under_way = false;
        struct codec_reader reader = {.at = host->saved, .left = host->saved_size, .now = host->saved_at};
        host->group = rollout_group_new();
        if (!state_lost && host->saved_size > 0)
                (void)rollout_group_unpack(&reader, "group", &host->group);
        host->poll_at = sim->now + rng_range(&sim->rng, 0, POLL_USEC);
        core_begin(host->core);
        if (state_lost) {
                host->acted_number = 0;
                host->acted_id[0] = '\0';
                memset(host->acts, 0, sizeof(host->acts));
        }
}

static void run_core(struct group_sim *sim, struct host *host)
{
        const char *error;

        core_run(host->core, sim->now, !host->partitioned && sim->now >= sim->redis_down_until);
        if (core_broken(host->core))
                group_violate(sim, "%s: %s", host->name, core_broken(host->core));
        if (core_was_saved(host->core) && host->up)
                host_pack(sim, host);
        enum rollout_state state = core_rollout(host->core, &error);
        if (!host->restarts || state == ROLLOUT_RUNNING)
                return;
        if (state == ROLLOUT_DONE && core_outdated(host->core) > 0)
                group_violate(sim, "%s is done with its restart, and %u workers of before take jobs",
                              host->name, core_outdated(host->core));
        if (state == ROLLOUT_HALTED || state == ROLLOUT_ABORTED)
                excuse_acts(host, host->acted_id);
        host->restarts = host->excused = host->undone = false;
        group_report(sim, "%s: its restart is %s", host->name, rollout_state_name(state));
}

void host_step(struct group_sim *sim, struct host *host)
{
        if (!host->exists)
                return;
        if (!host_reaches(sim, host) || sim->now < host->frozen_until)
                host->able_at = 0;
        else if (host->able_at == 0)
                host->able_at = sim->now;
        if (host->flight.under_way && !host->flight.executed && sim->now >= host->flight.execute_at)
                execute(sim, host);
        if (host->gone)
                return;
        run_core(sim, host);
        if (!host->up) {
                if (sim->now >= host->up_at) {
                        group_report(sim, "%s: is back", host->name);
                        host_boot(sim, host, false);
                }
                return;
        }
        if (sim->now < host->frozen_until)
                return;
        if (host->flight.under_way && host->flight.executed && sim->now >= host->flight.deliver_at)
                deliver(sim, host);
        if (sim->now < host->poll_at)
                return;
        host->poll_at = sim->now + POLL_USEC;
        look(sim, host);
}

struct host *group_add_host(struct group_sim *sim, const char *name)
{
        if (sim->n_hosts == HOSTS_MAX)
                return NULL;
        struct host *host = &sim->host[sim->n_hosts];

        *host = (struct host){.exists = true, .group = rollout_group_new()};
        snprintf(host->instance, sizeof(host->instance), "i%zu", sim->n_hosts++);
        snprintf(host->name, sizeof(host->name), "%s", name);
        host_pack(sim, host);
        host->core = core_new(sim->seed * 64 + sim->cores++, sim->now, sim->verbose ? name : NULL);
        host->clock_usec = (int64_t)rng_range(&sim->rng, 0, 100000) * 1000000;
        host_boot(sim, host, false);
        return host;
}
