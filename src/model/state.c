/* SPDX-License-Identifier: MIT */
/* Packs and unpacks what must outlive sqmgr itself. Each pair of functions writes and reads one part. */
#include "model/state.h"
#include "base/hash.h"
#include "model/plan.h"
#include "model/rollout.h"
#include "settings/redis_url.h"
#include <string.h>

/* Magic, version, length and checksum of the payload. */
#define STATE_MAGIC       "sqmgr.st"
#define STATE_VERSION     1
#define STATE_HEADER_SIZE (sizeof(STATE_MAGIC) - 1 + 4 + 8 + 8)
#define STATE_TEXT_MAX    4096U
/* Of a time that never came. */
#define AGE_NONE UINT64_MAX
/* No worker and no fleet is shorter: a count that asks for more memory than it has bytes for is wrong. */
#define WORKER_BYTES_MIN (21 * 8U)
#define FLEET_BYTES_MIN  (27 * 8U)

/* Writes: once memory was short, nothing more is written. */
struct packer {
        uint8_t *bytes;
        size_t size, allocated;
        usec_t now;
        bool failed;
};

/* Reads: once something was wrong, everything reads as 0. */
struct unpacker {
        const uint8_t *at;
        size_t left;
        usec_t packed_at; /* the clock of the ages, by this boot's */
        bool same_boot;
        bool wrong;
};

static uint8_t *pack_space(struct packer *packer, size_t size)
{
        if (!packer->failed && size > packer->allocated - packer->size) {
                size_t allocated = MAX(2 * packer->allocated, packer->size + size + 1024);
                uint8_t *bytes = realloc(packer->bytes, allocated);

                packer->failed = bytes == NULL;
                packer->bytes = bytes ?: packer->bytes;
                packer->allocated = bytes ? allocated : packer->allocated;
        }
        if (packer->failed)
                return NULL;
        packer->size += size;
        return packer->bytes + packer->size - size;
}

static const uint8_t *unpack_space(struct unpacker *unpacker, size_t size)
{
        unpacker->wrong = unpacker->wrong || size > unpacker->left;
        if (unpacker->wrong)
                return NULL;
        unpacker->at += size;
        unpacker->left -= size;
        return unpacker->at - size;
}

static void put_number(uint8_t *at, size_t size, uint64_t value)
{
        for (size_t i = 0; i < size; i++)
                at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *at, size_t size)
{
        uint64_t value = 0;

        for (size_t i = 0; i < size; i++)
                value |= (uint64_t)at[i] << (8 * i);
        return value;
}

static void pack_number(struct packer *packer, uint64_t value)
{
        uint8_t *at = pack_space(packer, 8);

        if (at != NULL)
                put_number(at, 8, value);
}

static uint64_t unpack_number(struct unpacker *unpacker, uint64_t min, uint64_t max)
{
        const uint8_t *at = unpack_space(unpacker, 8);
        uint64_t value = at != NULL ? get_number(at, 8) : 0;

        unpacker->wrong = unpacker->wrong || value < min || value > max;
        return unpacker->wrong ? 0 : value;
}

static void pack_text(struct packer *packer, const char *text)
{
        size_t length = strnlen(text ?: "", STATE_TEXT_MAX);

        pack_number(packer, length);
        uint8_t *at = pack_space(packer, length);
        if (at != NULL && length > 0)
                memcpy(at, text, length);
}

/* Not terminated; its length in *ret_length. */
static const char *unpack_text(struct unpacker *unpacker, size_t max, size_t *ret_length)
{
        size_t length = unpack_number(unpacker, 0, MIN(max, (size_t)STATE_TEXT_MAX));
        const char *text = (const char *)unpack_space(unpacker, length);

        if (text == NULL || memchr(text, '\0', length) != NULL) {
                unpacker->wrong = true;
                length = 0;
        }
        *ret_length = length;
        return text ?: "";
}

static void unpack_array(struct unpacker *unpacker, char *array, size_t size)
{
        size_t length;
        const char *text = unpack_text(unpacker, size - 1, &length);

        memcpy(array, text, length);
        array[length] = '\0';
}

/* -ENOMEM is told apart from bad bytes. */
static int unpack_string(struct unpacker *unpacker, char **ret)
{
        size_t length;
        const char *text = unpack_text(unpacker, STATE_TEXT_MAX, &length);
        char *string = strndup(text, length);

        if (string == NULL)
                return -ENOMEM;
        *ret = string;
        return 0;
}

/* A time that has passed, as its age. */
static void pack_time(struct packer *packer, usec_t at)
{
        pack_number(packer, at == 0 ? AGE_NONE : usec_sub(packer->now, at));
}

static usec_t unpack_time(struct unpacker *unpacker)
{
        uint64_t age = unpack_number(unpacker, 0, AGE_NONE);

        if (age == AGE_NONE || unpacker->wrong)
                return 0;
        /* 0 would say that it never came; on a young boot what was long ago is held at its begin. */
        return MAX(usec_sub(unpacker->packed_at, age), (usec_t)1);
}

static void pack_flags(struct packer *packer, const bool *const flags[], size_t n)
{
        uint64_t bits = 0;

        for (size_t i = 0; i < n; i++)
                bits |= (uint64_t)*flags[i] << i;
        pack_number(packer, bits);
}

static void unpack_flags(struct unpacker *unpacker, bool *const flags[], size_t n)
{
        uint64_t bits = unpack_number(unpacker, 0, (1U << n) - 1);

        for (size_t i = 0; i < n; i++)
                *flags[i] = bits >> i & 1;
}

static void pack_backoff(struct packer *packer, const struct backoff *backoff)
{
        pack_number(packer, backoff->count);
        pack_time(packer, backoff->failed_at);
        pack_number(packer, usec_sub(backoff->next_at, packer->now));
        pack_number(packer, backoff->freed);
}

static void unpack_backoff(struct unpacker *unpacker, struct backoff *backoff)
{
        backoff->count = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        backoff->failed_at = unpack_time(unpacker);
        usec_t left = unpack_number(unpacker, 0, USEC_INFINITY);
        backoff->next_at = left > 0 ? usec_add(unpacker->packed_at, left) : 0;
        backoff->freed = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
}

static void pack_rollout(struct packer *packer, const struct rollout *rollout)
{
        pack_number(packer, rollout->state);
        pack_number(packer, rollout->total);
        pack_time(packer, rollout->started_at);
        pack_time(packer, rollout->progress_at);
        pack_number(packer, rollout->failures);
        pack_time(packer, rollout->failed_at);
        pack_text(packer, rollout->error);
}

static void unpack_rollout(struct unpacker *unpacker, struct rollout *rollout)
{
        rollout->state = (enum rollout_state)unpack_number(unpacker, 0, _ROLLOUT_STATE_MAX - 1);
        rollout->total = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        rollout->started_at = unpack_time(unpacker);
        rollout->progress_at = unpack_time(unpacker);
        rollout->failures = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        rollout->failed_at = unpack_time(unpacker);
        unpack_array(unpacker, rollout->error, sizeof(rollout->error));
}

/* The flags of a worker, in the order of their bits. */
#define WORKER_FLAGS(worker)                                                                                 \
        {                                                                                                    \
                &(worker)->has_beat, &(worker)->threads_witness, &(worker)->over_threshold,                  \
                        &(worker)->quiet_ordered, &(worker)->hung                                            \
        }

static void pack_worker(struct packer *packer, const struct worker *worker, const char *identity)
{
        const bool *const flags[] = WORKER_FLAGS(worker);

        pack_number(packer, worker->index);
        pack_number(packer, worker->generation);
        pack_number(packer, (uint64_t)worker->pid);
        pack_number(packer, worker->pid_start);
        pack_number(packer, (uint64_t)worker->beat_pid);
        pack_number(packer, worker->beat_pid_start);
        pack_number(packer, worker->state);
        pack_number(packer, worker->reason);
        pack_number(packer, worker->started_for);
        pack_time(packer, worker->spawned_at);
        pack_time(packer, worker->state_at);
        pack_time(packer, worker->active_at);
        pack_number(packer, worker->last_life);
        pack_time(packer, worker->quiet_at);
        pack_time(packer, worker->stop_at);
        pack_time(packer, worker->killed_at);
        pack_time(packer, worker->beat_at);
        pack_number(packer, worker->beat_usec);
        pack_number(packer, worker->concurrency);
        pack_flags(packer, flags, ELEMENTSOF(flags));
        pack_text(packer, identity);
}

static int unpack_worker(struct unpacker *unpacker, uint64_t generation, struct state_worker *ret)
{
        struct worker *worker = &ret->worker;
        bool *const flags[] = WORKER_FLAGS(worker);

        worker->index = (unsigned)unpack_number(unpacker, 1, UINT32_MAX);
        worker->generation = unpack_number(unpacker, 1, generation);
        worker->pid = (pid_t)unpack_number(unpacker, 0, INT32_MAX);
        worker->pid_start = unpack_number(unpacker, 0, UINT64_MAX);
        worker->beat_pid = (pid_t)unpack_number(unpacker, 0, INT32_MAX);
        worker->beat_pid_start = unpack_number(unpacker, 0, UINT64_MAX);
        worker->state = (enum worker_state)unpack_number(unpacker, 0, WORKER_GONE - 1);
        worker->reason = (enum reason)unpack_number(unpacker, 0, _REASON_MAX - 1);
        worker->started_for = (enum reason)unpack_number(unpacker, 0, _REASON_MAX - 1);
        worker->spawned_at = unpack_time(unpacker);
        worker->state_at = unpack_time(unpacker);
        worker->active_at = unpack_time(unpacker);
        worker->last_life = unpack_number(unpacker, 0, USEC_INFINITY);
        worker->quiet_at = unpack_time(unpacker);
        worker->stop_at = unpack_time(unpacker);
        worker->killed_at = unpack_time(unpacker);
        worker->beat_at = unpack_time(unpacker);
        worker->beat_usec = unpack_number(unpacker, 0, UINT64_MAX);
        worker->concurrency = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        unpack_flags(unpacker, flags, ELEMENTSOF(flags));
        if (worker->pid == 0 && worker->state != WORKER_STARTING)
                unpacker->wrong = true;
        return unpack_string(unpacker, &ret->identity);
}

/* The starts of the plan that are this fleet's, from the place at on: the next one, or NULL. */
static const struct action *next_start(const struct plan *plan, size_t *at, const struct fleet *fleet)
{
        while (plan != NULL && *at < plan->n_actions) {
                const struct action *action = &plan->actions[(*at)++];

                if (action->kind == ACTION_START && action->fleet == fleet)
                        return action;
        }
        return NULL;
}

static void pack_workers(struct packer *packer, const struct fleet *fleet, const struct plan *starting,
                         state_identity_fn identity, void *userdata)
{
        uint64_t n = 0;

        for (size_t at = 0; next_start(starting, &at, fleet) != NULL;)
                n++;
        for (size_t i = 0; i < fleet->n_workers; i++)
                n += fleet->workers[i]->state != WORKER_GONE;
        pack_number(packer, n);
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->state != WORKER_GONE)
                        pack_worker(packer, fleet->workers[i],
                                    identity != NULL ? identity(fleet->workers[i], userdata) : NULL);
        const struct action *start;
        for (size_t at = 0; (start = next_start(starting, &at, fleet)) != NULL;) {
                struct worker worker = {
                        .index = start->index,
                        .generation = fleet->generation,
                        .started_for = start->reason,
                        .spawned_at = packer->now,
                        .state_at = packer->now,
                };
                pack_worker(packer, &worker, NULL);
        }
}

static int compare_places(const void *left, const void *right)
{
        const struct state_worker *a = left, *b = right;

        return (a->worker.index > b->worker.index) - (a->worker.index < b->worker.index);
}

static int unpack_workers(struct unpacker *unpacker, struct state_fleet *fleet)
{
        size_t n = unpack_number(unpacker, 0, unpacker->left / WORKER_BYTES_MIN);

        fleet->workers = calloc(n + 1, sizeof(*fleet->workers));
        if (fleet->workers == NULL)
                return -ENOMEM;
        while (fleet->n_workers < n && !unpacker->wrong) {
                int r = unpack_worker(unpacker, fleet->generation, &fleet->workers[fleet->n_workers++]);
                if (r < 0)
                        return r;
        }
        if (unpacker->wrong)
                return 0;
        qsort(fleet->workers, n, sizeof(*fleet->workers), compare_places);
        for (size_t i = 1; i < n; i++)
                unpacker->wrong |= fleet->workers[i - 1].worker.index == fleet->workers[i].worker.index;
        return 0;
}

/* No secret goes into the file. */
static void pack_url(struct packer *packer, const char *url)
{
        _cleanup_free_ char *text = url != NULL ? redis_url_redact(url) : NULL;

        packer->failed = packer->failed || (url != NULL && text == NULL);
        pack_text(packer, text);
}

static void pack_fleet(struct packer *packer, const struct fleet *fleet, const struct plan *starting,
                       state_identity_fn identity, void *userdata)
{
        pack_text(packer, fleet->settings->name);
        pack_number(packer, fleet->generation);
        pack_number(packer, fleet->order);
        pack_number(packer, fleet->force);
        pack_number(packer, fleet->scale);
        pack_number(packer, fleet->settings->active_process_count);
        pack_number(packer, fleet->settings->launch_hash);
        pack_number(packer, fleet->settings->traits->id);
        pack_url(packer, fleet->settings->redis_url);
        pack_number(packer, fleet->random);
        pack_rollout(packer, &fleet->rollout);
        pack_backoff(packer, &fleet->crash);
        pack_text(packer, fleet->crash_last);
        pack_backoff(packer, &fleet->churn);
        pack_workers(packer, fleet, starting, identity, userdata);
}

static int unpack_fleet(struct unpacker *unpacker, struct state_fleet *fleet)
{
        int r = unpack_string(unpacker, &fleet->name);

        if (r < 0)
                return r;
        fleet->generation = unpack_number(unpacker, 1, UINT64_MAX - 1);
        fleet->order = (enum fleet_order)unpack_number(unpacker, 0, _FLEET_ORDER_MAX - 1);
        fleet->force = unpack_number(unpacker, 0, 1) == 1;
        fleet->scale = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        fleet->scale_for = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        fleet->launch_hash = unpack_number(unpacker, 0, UINT64_MAX);
        fleet->framework = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
        r = unpack_string(unpacker, &fleet->redis_url);
        if (r < 0)
                return r;
        fleet->random = unpack_number(unpacker, 0, UINT64_MAX);
        unpack_rollout(unpacker, &fleet->rollout);
        unpack_backoff(unpacker, &fleet->crash);
        unpack_array(unpacker, fleet->crash_last, sizeof(fleet->crash_last));
        unpack_backoff(unpacker, &fleet->churn);
        return unpack_workers(unpacker, fleet);
}

static void pack_dead(struct packer *packer, const struct state_dead *dead)
{
        const struct state_dead *each;
        uint64_t n = 0;

        for (each = dead; each != NULL; each = each->next)
                n++;
        pack_number(packer, n);
        for (each = dead; each != NULL; each = each->next) {
                pack_text(packer, each->fleet);
                pack_worker(packer, &each->worker.worker, each->worker.identity);
                pack_number(packer, each->worker.worker.busy);
                pack_number(packer, each->exit.known);
                pack_number(packer, each->exit.by_signal);
                pack_number(packer, (uint64_t)each->exit.status);
        }
}

static int unpack_dead(struct unpacker *unpacker, struct state *state)
{
        /* A sqmgr that did not keep them ended here. */
        if (unpacker->left == 0)
                return 0;
        uint64_t n = unpack_number(unpacker, 0, unpacker->left / WORKER_BYTES_MIN);
        for (struct state_dead **end = &state->dead; n > 0 && !unpacker->wrong; n--, end = &(*end)->next) {
                struct state_dead *dead = *end = calloc(1, sizeof(*dead));

                if (dead == NULL)
                        return -ENOMEM;
                int r = unpack_string(unpacker, &dead->fleet);
                if (r == 0)
                        r = unpack_worker(unpacker, UINT64_MAX - 1, &dead->worker);
                if (r < 0)
                        return r;
                dead->worker.worker.busy = (unsigned)unpack_number(unpacker, 0, UINT32_MAX);
                dead->exit.known = unpack_number(unpacker, 0, 1) == 1;
                dead->exit.by_signal = unpack_number(unpacker, 0, 1) == 1;
                dead->exit.status = (int)unpack_number(unpacker, 0, INT32_MAX);
        }
        return 0;
}

static void pack_header(uint8_t *bytes, size_t size)
{
        uint8_t *at = mempcpy(bytes, STATE_MAGIC, sizeof(STATE_MAGIC) - 1);

        put_number(at, 4, STATE_VERSION);
        put_number(at + 4, 8, size - STATE_HEADER_SIZE);
        put_number(at + 12, 8, hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, size - STATE_HEADER_SIZE));
}

static enum state_outcome unpack_header(const uint8_t *bytes, size_t size)
{
        const uint8_t *at = bytes + sizeof(STATE_MAGIC) - 1;

        if (size == 0)
                return STATE_TRUNCATED;
        if (memcmp(bytes, STATE_MAGIC, MIN(size, sizeof(STATE_MAGIC) - 1)) != 0)
                return STATE_GARBLED;
        if (size < STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        uint64_t version = get_number(at, 4), length = get_number(at + 4, 8);
        if (version != STATE_VERSION)
                return version > STATE_VERSION ? STATE_NEWER : STATE_GARBLED;
        if (length > size - STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        if (length < size - STATE_HEADER_SIZE || size > STATE_BYTES_MAX ||
            get_number(at + 12, 8) != hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, length))
                return STATE_GARBLED;
        return STATE_READ;
}

int state_pack(const struct world *world, const struct state_dead *dead, const struct plan *starting,
               const char *boot_id, state_identity_fn identity, void *userdata, usec_t now, uint8_t **ret,
               size_t *ret_size)
{
        struct packer packer = {.now = now};

        (void)pack_space(&packer, STATE_HEADER_SIZE);
        pack_text(&packer, boot_id);
        pack_number(&packer, now);
        pack_number(&packer, world->n_fleets);
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];

                pack_fleet(&packer, fleet, starting, identity, userdata);
        }
        pack_dead(&packer, dead);
        if (packer.failed || packer.size > STATE_BYTES_MAX) {
                free(packer.bytes);
                return packer.failed ? -ENOMEM : -EFBIG;
        }
        pack_header(packer.bytes, packer.size);
        *ret = packer.bytes;
        *ret_size = packer.size;
        return 0;
}

static void free_dead(struct state *state)
{
        struct state_dead *dead;

        while ((dead = state->dead) != NULL) {
                state->dead = dead->next;
                free(dead->fleet);
                free(dead->worker.identity);
                free(dead);
        }
}

struct state *state_free(struct state *state)
{
        if (state == NULL)
                return NULL;
        free_dead(state);
        for (size_t i = 0; i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++)
                        free(fleet->workers[j].identity);
                free(fleet->workers);
                free(fleet->redis_url);
                free(fleet->name);
        }
        free(state->fleets);
        free(state);
        return NULL;
}

static void state_free_pointer(struct state **state)
{
        state_free(*state);
}

/* What a boot ended: its processes. */
static void drop_workers(struct state *state)
{
        for (size_t i = 0; i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                while (fleet->n_workers > 0)
                        free(fleet->workers[--fleet->n_workers].identity);
        }
        free_dead(state);
}

int state_unpack(const uint8_t *bytes, size_t size, const char *boot_id, usec_t now, struct state **ret)
{
        enum state_outcome outcome = unpack_header(bytes, size);
        _cleanup_(state_free_pointer) struct state *state = NULL;
        size_t length;

        if (outcome != STATE_READ)
                return outcome;
        struct unpacker unpacker = {.at = bytes + STATE_HEADER_SIZE, .left = size - STATE_HEADER_SIZE};
        const char *boot = unpack_text(&unpacker, STATE_TEXT_MAX, &length);
        usec_t packed_at = unpack_number(&unpacker, 0, UINT64_MAX);
        /* A boot's own clock never runs back. */
        unpacker.same_boot =
                packed_at <= now && length == strlen(boot_id) && memcmp(boot, boot_id, length) == 0;
        unpacker.packed_at = unpacker.same_boot ? packed_at : now;

        size_t n = unpack_number(&unpacker, 0, unpacker.left / FLEET_BYTES_MIN);
        state = calloc(1, sizeof(*state));
        if (state == NULL || (state->fleets = calloc(n + 1, sizeof(*state->fleets))) == NULL)
                return -ENOMEM;
        while (state->n_fleets < n && !unpacker.wrong) {
                int r = unpack_fleet(&unpacker, &state->fleets[state->n_fleets++]);
                if (r < 0)
                        return r;
        }
        int r = unpack_dead(&unpacker, state);
        if (r < 0)
                return r;
        if (unpacker.wrong || unpacker.left > 0)
                return STATE_GARBLED;
        if (!unpacker.same_boot)
                drop_workers(state);
        *ret = TAKE_PTR(state);
        return STATE_READ;
}

void state_continue_fleet(struct fleet *fleet, const struct state_fleet *saved, usec_t now)
{
        fleet->generation = saved->generation;
        fleet->order = saved->order;
        fleet->force = saved->force;
        fleet->scale = saved->scale_for == fleet->settings->active_process_count ? saved->scale : 0;
        fleet->rollout = saved->rollout;
        fleet->crash = saved->crash;
        fleet->churn = saved->churn;
        memcpy(fleet->crash_last, saved->crash_last, sizeof(fleet->crash_last));
        fleet->random = saved->random;
        fleet->continued = true;
        if (fleet->settings->removed)
                rollout_abort(fleet, "the fleet is no longer configured");
        else if (saved->launch_hash != fleet->settings->launch_hash)
                rollout_outdate(fleet, now);
}
