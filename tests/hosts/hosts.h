/* SPDX-License-Identifier: MIT */
/* A simulated group of hosts with one Redis. The decisions of each host (rollout_hosts/group_rules.h), the
 * script in Redis (rollout_hosts/script_rules.h, run by a Lua) and the core that restarts workers (core.h)
 * are the real code. Hosts, workers, the network, Redis' memory and its failovers are models driven by one
 * seed. */
#pragma once

#include "../sim/rng.h"
#include "core.h"
#include "rollout_hosts/group_rules.h"

#define STEP     (250 * USEC_PER_MSEC)
#define BEGUN_AT (1000000 * USEC_PER_SEC)
/* Faults happen for this time. */
#define TROUBLED (60 * USEC_PER_MIN)

#define HOSTS_MAX   8
#define ENTRIES_MAX 32
#define CALLS_KEPT  64
#define WORDS_MAX   256

#define RECORDED_MAX 8

/* The content of one key of Redis. */
struct entry {
        char name[48];
        char value[320]; /* of a hash */
        double score;    /* of a sorted set */
};
struct key {
        struct entry list[ENTRIES_MAX];
        size_t n;
};
struct keys {
        struct key key[ROLLOUT_SCRIPT_KEYS];
};
enum { KEY_ROLLOUT, KEY_HOSTS, KEY_SEEN, KEY_STATES, KEY_LEASES };

struct redis {
        struct keys keys;
        /* The keys before each of the last calls: a failover returns to one of these states. */
        struct keys before[CALLS_KEPT];
        usec_t before_at[CALLS_KEPT];
        size_t n_calls;
        int64_t clock_usec; /* error of the clock */
        uint64_t server;    /* changes with a failover */
};

/* Creates the Lua that runs the script. Returns false on failure. */
bool script_open(void);
void script_close(void);
/* Runs the script at time now. words: operation, host, and so on. Returns the number of words in the reply,
 * which are valid until the next call; 0: the script failed, and error says why. */
size_t script_run(struct redis *redis, usec_t now, const char *const words[], size_t n,
                  struct field ret[WORDS_MAX], const char **error);

const struct entry *keys_find(const struct keys *keys, unsigned key, const char *name);
void keys_copy(struct keys *to, const struct keys *from);
/* Returns -1 if no host has this name. */
int keys_state(const struct keys *keys, const char *name);
unsigned keys_count(const struct keys *keys, int from, int to);
const char *keys_field(const struct keys *keys, const char *field);
void keys_put(struct keys *keys, unsigned key, const char *name, const char *value, double score);
void keys_remove(struct keys *keys, unsigned key, const char *name);

/* A call on its way to Redis. */
struct flight {
        bool under_way, executed, ordered;
        usec_t execute_at, deliver_at;
        enum { FLIGHT_TICK, FLIGHT_BEGIN, FLIGHT_ABORT, FLIGHT_FORGET } what;
        char words[16][ROLLOUT_TEXT_MAX + 1];
        size_t n;
        bool failed; /* no answer will arrive */
        uint64_t server;
        struct rollout_reply reply;
};

struct host {
        char name[16], instance[16];
        struct rollout_group group; /* in memory */
        uint8_t saved[1024];        /* the packed group in the state file */
        size_t saved_size;
        usec_t saved_at;       /* by the host's clock */
        bool exists, up, gone; /* the machine is gone permanently */
        bool partitioned, clone;
        usec_t frozen_until, up_at, poll_at;
        usec_t able_at;      /* since when the host can ask Redis; 0: it cannot */
        usec_t connected_at; /* when the connection came up */
        int64_t clock_usec;
        bool connected;
        uint64_t server; /* the server of the connection */
        struct flight flight;

        struct core *core;
        bool restarts; /* a restart for the group is in progress */
        bool excused;  /* because of a fault, Redis does not know of this restart */
        bool undone;   /* by a failover */

        uint64_t acted_number; /* the newest rollout for which the host has restarted */
        char acted_id[ROLLOUT_ID_MAX + 1];
        /* The last restarts without a known orderer, newest first. */
        struct {
                usec_t at; /* 0: none */
                char id[ROLLOUT_ID_MAX + 1];
                bool stopped; /* halted or aborted, here or on all hosts */
        } acts[8];
        unsigned retries;
};

struct group_sim {
        uint64_t seed;
        struct rng rng;
        usec_t now;
        struct host host[HOSTS_MAX];
        size_t n_hosts;
        struct redis redis;
        usec_t redis_down_until, fail_over_at, taken_at;
        usec_t ordered_at; /* the last order, which may have taken a lease from a host */
        bool keyed;        /* all hosts have a key, and forgers have none */
        bool forged;       /* a forger has acted in this run */
        /* Until then a forger raises numbers, or begins one rollout after another. */
        usec_t climb_until, storm_until;
        usec_t storm_at;   /* when the forger acts next */
        bool storm_begins; /* the forger's last act was to begin a rollout */
        enum { STORM_STOPS, STORM_IDS, STORM_REPLAYS } storm;
        struct key recorded[RECORDED_MAX]; /* rollouts that a forger has recorded */
        size_t n_recorded;
        bool faults;    /* faults still happen */
        unsigned ids;   /* number of rollout ids so far */
        unsigned cores; /* number of cores so far */
        uint64_t n_calls, n_leases, n_failovers, n_forged;
        bool verbose;
        char broken[512]; /* the violated invariant; "": none */
};

/* run.c */
void group_run(struct group_sim *sim, uint64_t seed, bool verbose);
void group_end(struct group_sim *sim);

/* hosts.c */
void group_report(const struct group_sim *sim, const char *format, ...) _printf_(2, 3);
void group_violate(struct group_sim *sim, const char *format, ...) _printf_(2, 3);
struct host *group_add_host(struct group_sim *sim, const char *name);
/* Excuses hosts that restart without a lease in Redis: Redis has lost it. Returns their number. */
unsigned group_excuse(struct group_sim *sim);
/* Packs the host's knowledge of the group into its state file. */
void host_pack(const struct group_sim *sim, struct host *host);
/* Starts the host's sqmgr again. */
void host_boot(struct group_sim *sim, struct host *host, bool state_lost);
void host_step(struct group_sim *sim, struct host *host);
bool host_reaches(const struct group_sim *sim, const struct host *host);
/* Returns true while a restart for the group is in progress. */
bool host_restarts(const struct host *host);
bool host_holds_lease(const struct group_sim *sim, const struct host *host);
bool host_has_twin(const struct group_sim *sim, const struct host *host);
/* extra: the words after the host's own, ended by NULL. */
void host_call(struct group_sim *sim, struct host *host, int what, const char *const extra[]);
/* Begins a rollout. there: the rollout that Redis has shown; NULL: none yet. */
void host_order(struct group_sim *sim, struct host *host, const struct rollout_reply *there);
/* Writes the HMAC of an order, as a holder of the key makes it; "" without a key. */
void group_sign(const struct group_sim *sim, const char *order, const struct rollout_reply *rollout,
                char mac[static ROLLOUT_MAC_MAX + 1]);
/* Returns the signed part of the rollout in Redis. */
struct rollout_reply group_rollout(const struct group_sim *sim);
/* Returns the time by the clock of Redis. */
uint64_t group_seconds(const struct group_sim *sim);
void number_text(uint64_t number, char text[24]);

/* faults.c */
void group_trouble(struct group_sim *sim);
/* Lets a permanent forger act in this step. */
void group_forge(struct group_sim *sim);
void group_fail_over(struct group_sim *sim);
