/* SPDX-License-Identifier: MIT */
/* The data that must outlive sqmgr, as bytes: orders, generations, rollouts, backoffs, and the processes of
 * each worker. The caller stores the bytes. state_continue_fleet() and observe_adopted() restore their
 * contents into a new world. */
#pragma once

#include "model/describe.h"

struct world;
struct codec_writer;

/* Maximum size that is packed or read. */
#define STATE_BYTES_MAX ((size_t)16 << 20)

/* Outcomes of state_unpack(). */
enum state_outcome {
        STATE_READ,
        STATE_TRUNCATED, /* end too early, or empty */
        STATE_GARBLED,   /* not a state, or changed since it was packed */
        STATE_NEWER,     /* from a later version of sqmgr */
};

/* A saved worker. Evidence about jobs is not saved; it is collected anew. */
struct state_worker {
        struct worker worker;
        char *identity; /* the identity of its heartbeats. If heartbeat_pid is 0: the host names under which
                           the worker may send heartbeats, see match_hosts_since(). "": none */
};

/* Data of optional features about a fleet, opaque here. */
struct state_features {
        uint8_t *bytes; /* owned; NULL: none */
        size_t size;
        usec_t now; /* when the bytes were written, converted to our monotonic clock; for codec_reader.now */
};

struct state_fleet {
        char *name;
        uint64_t generation;
        enum fleet_order order;
        bool force;
        unsigned scale;       /* 0: none */
        unsigned scale_for;   /* active_process_count at the time of the scale order */
        unsigned scaled;      /* the count set by autoscaling; 0: none */
        uint64_t launch_hash; /* with the next three members: from the settings when the state was saved */
        unsigned framework;   /* id of its traits */
        char *redis_url;      /* also database_url; without user and password; "": no URL of its own */
        unsigned heartbeat;   /* place of the heartbeats: enum heartbeat_place, if the framework has a
                                 choice */
        struct rollout rollout;
        struct backoff crash;
        struct backoff churn;
        char crash_last[CRASH_LAST_MAX];
        struct quoted crash_quoted;
        uint64_t random;

        struct state_features features;
        struct leak_past grown[LEAK_PAST];
        uint64_t newest_generation;
        struct launch launches[LAUNCHES_KEPT];

        struct preload preload;
        struct template templates[TEMPLATES_MAX]; /* the saved fields of each live template */

        struct state_worker *workers; /* ordered by index; each index occurs once */
        size_t n_workers;
};

/* A dead worker whose jobs still have to be rescued. */
struct state_dead {
        struct state_dead *next;
        char *fleet; /* the name of the fleet */
        struct state_worker
                worker; /* as it was before its death; fleet and handle of its worker are undefined */
        struct exit_status exit; /* of the process that sent heartbeats; without texts */
};

struct state {
        struct state_fleet *fleets;
        size_t n_fleets;
        struct state_dead *dead;
};

/* Returns the identity of a worker for struct state_worker; NULL: none. The text is copied before the next
 * call. */
typedef const char *(*state_identity_fn)(const struct worker *worker, void *userdata);

/* The data to pack; all pointers are borrowed. */
struct state_source {
        const struct world *world;
        const struct state_dead *dead;
        const char *boot_id;        /* identifies the boot to which the monotonic times belong */
        state_identity_fn identity; /* may be NULL */
        void *userdata;
        /* Writes the data of optional features about a fleet, if any. NULL: there are none. */
        void (*features)(struct codec_writer *writer, const struct fleet *fleet, void *userdata);
        void *features_userdata;
        usec_t now;
        bool orders; /* pack only what an operator ordered, and a halted restart: what is to survive a reboot
                      */
};

/* Packs the source. Returns 0 with *ret owned by the caller; -ENOMEM; or -EFBIG if larger than
 * STATE_BYTES_MAX. */
int state_pack(const struct state_source *source, uint8_t **ret, size_t *ret_size);

/* Unpacks untrusted bytes. Times are converted to this boot's monotonic clock. If boot_id differs from the
 * saved one, remaining times count from now, and all workers are dropped, alive or dead: none outlived the
 * boot. Past times of another boot become the beginning of this one. Returns an enum state_outcome, or
 * -ENOMEM. Sets *ret only for STATE_READ; free with state_free(). */
int state_unpack(const uint8_t *bytes, size_t size, const char *boot_id, usec_t now, struct state **ret);
/* Frees the state with all that it owns. Accepts NULL; returns NULL. */
struct state *state_free(struct state *state);

/* Restores the fleet from its saved record, without its workers. A scale order lapses if the configured count
 * has changed since. If the launch settings have changed, the fleet's workers become outdated. */
void state_continue_fleet(struct fleet *fleet, const struct state_fleet *saved, usec_t now);
