/* SPDX-License-Identifier: MIT */
/* What must outlive sqmgr itself, as bytes: orders, generations, rollouts, backoffs, and which worker is
 * which process. The shell keeps the bytes; what they say is folded into a new world by
 * state_continue_fleet() and observe_adopted(). */
#pragma once

#include "model/exit_status.h"
#include "model/fleet.h"

struct world;
struct plan;
struct codec_writer;

/* More than that is never packed, and never read. */
#define STATE_BYTES_MAX ((size_t)16 << 20)

/* What bytes amount to. */
enum state_outcome {
        STATE_READ,
        STATE_TRUNCATED, /* they end too early, or say nothing at all */
        STATE_GARBLED,   /* not ours, or changed since */
        STATE_NEWER,     /* of a later version of sqmgr */
};

/* A worker as it was. Of worker, what is evidence of its jobs is left out: it is gathered anew. */
struct state_worker {
        struct worker worker; /* pid 0: its start was under way, whether it came about is not known */
        char *identity; /* the shell's name for its heartbeat; of one whose heartbeat_pid is 0, the names of
                         * this host under which it may beat, see match_hosts_since(); "": none */
};

/* A start that was under way when the state was read, and of which nothing has come forward yet. */
struct underway {
        struct fleet *fleet;
        struct worker start; /* as it was, its pid 0 */
};

/* What optional features keep of a fleet, which only they understand. */
struct state_features {
        uint8_t *bytes; /* owned; NULL: nothing */
        size_t size;
        usec_t now; /* when the bytes were written, by our clock: that of a codec_reader */
};

struct state_fleet {
        char *name;
        uint64_t generation;
        enum fleet_order order;
        bool force;
        unsigned scale;       /* 0: none */
        unsigned scale_for;   /* active_process_count when it was in force */
        unsigned scaled;      /* the count that scaling has put in force; 0: none */
        uint64_t launch_hash; /* these four: of its settings then */
        unsigned framework;   /* id of its traits */
        char *redis_url;      /* without user and password; "": none of its own */
        unsigned heartbeat; /* where they were: enum heartbeat_place, as its framework lets that be chosen */
        struct rollout rollout;
        struct backoff crash;
        struct backoff churn;
        char crash_last[CRASH_LAST_MAX];
        uint64_t random;

        struct state_features features;
        unsigned places_left; /* see struct fleet */
        struct leak_past grown[LEAK_PAST];

        struct preload preload;
        struct template templates[TEMPLATES_MAX]; /* of those that live, what outlives a sqmgr */

        struct state_worker *workers; /* ordered by index, each place once */
        size_t n_workers;
};

/* A worker that is dead, and whose jobs have not been followed up yet. */
struct state_dead {
        struct state_dead *next;
        char *fleet;                /* its name */
        struct state_worker worker; /* as it was; of its worker, fleet and io mean nothing */
        struct exit_status exit;    /* of the process that beat; without the texts */
};

struct state {
        struct state_fleet *fleets;
        size_t n_fleets;
        struct state_dead *dead;
};

/* The identity of a struct state_worker; NULL: none. It is packed before the next is asked for. */
typedef const char *(*state_identity_fn)(const struct worker *worker, void *userdata);

/* What is packed, all borrowed. */
struct state_source {
        const struct world *world;
        const struct state_dead *dead;
        const struct plan *starting;     /* whose starts are about to be made; NULL: none */
        const struct underway *underway; /* those that are still looked for */
        size_t n_underway;
        const char *boot_id;        /* of the boot of the machine on whose monotonic clock the times are */
        state_identity_fn identity; /* may be NULL */
        void *userdata;
        /* Writes what optional features keep of a fleet, if anything. NULL: there are none. */
        void (*features)(struct codec_writer *writer, const struct fleet *fleet, void *userdata);
        void *features_userdata;
        usec_t now;
};

/* Packs all that as it is now. Returns 0 with *ret to be freed; -ENOMEM; or -EFBIG. */
int state_pack(const struct state_source *source, uint8_t **ret, size_t *ret_size);

/* Unpacks bytes of any origin. Times are of this boot's monotonic clock; where boot_id is another, what is
 * left of waits counts from now, and there are no workers, alive or dead: none outlived the boot. Returns an
 * enum state_outcome, with *ret to be freed by state_free() for STATE_READ alone; or -ENOMEM. */
int state_unpack(const uint8_t *bytes, size_t size, const char *boot_id, usec_t now, struct state **ret);
struct state *state_free(struct state *state);

/* The fleet goes on where it was, its workers left aside. A scale lapses where the configured count is
 * another than it was given for; workers that would be started otherwise now are outdated. */
void state_continue_fleet(struct fleet *fleet, const struct state_fleet *saved, usec_t now);
