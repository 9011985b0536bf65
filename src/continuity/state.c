/* SPDX-License-Identifier: MIT */
/* Packs and unpacks what must outlive sqmgr itself. What a worker and a fleet consist of, and in which order,
 * the tables say: a field is appended there, never moved. */
#include "continuity/state.h"
#include "base/hash.h"
#include "continuity/record.h"
#include "decide/plan.h"
#include "decide/relief.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "settings/redis_url.h"
#include <string.h>

/* Magic, version, length and checksum of the payload. */
#define STATE_MAGIC   "sqmgr.st"
#define STATE_VERSION 7
/* All that there is is told by the first, too, while no worker was seen to grow and no place is left empty
 * for want of memory; by the second while no count follows its queues, either; by the third while no
 * optional feature keeps anything of a fleet; by the fourth while none has to do with templates; by the fifth
 * while no heartbeat stands elsewhere than the framework's do; and by the sixth while no worker has a flag
 * that came with the fifth: an older sqmgr can go on with that. */
#define STATE_VERSION_SCALED    6
#define STATE_VERSION_FEATURES  5
#define STATE_VERSION_TEMPLATES 4
#define STATE_VERSION_CHOSEN    3
#define STATE_VERSION_PLACES    2
#define STATE_VERSION_PROVEN    1
#define STATE_HEADER_SIZE       (sizeof(STATE_MAGIC) - 1 + 4 + 8 + 8)

static const struct record_field backoff_fields[] = {
        RECORD_FIELD(NUMBER, struct backoff, count),
        RECORD_FIELD(TIME, struct backoff, failed_at),
        RECORD_FIELD(WAIT, struct backoff, next_at),
        RECORD_FIELD(NUMBER, struct backoff, freed),
};
static const struct record backoff_record = RECORD(backoff_fields);

static const struct record_field rollout_fields[] = {
        RECORD_RANGE(struct rollout, state, 0, _ROLLOUT_STATE_MAX - 1),
        RECORD_FIELD(NUMBER, struct rollout, total),
        RECORD_FIELD(TIME, struct rollout, started_at),
        RECORD_FIELD(TIME, struct rollout, progress_at),
        RECORD_FIELD(NUMBER, struct rollout, failures),
        RECORD_FIELD(TIME, struct rollout, failed_at),
        RECORD_FIELD(ARRAY, struct rollout, error),
};
static const struct record rollout_record = RECORD(rollout_fields);

static const struct record_field worker_flag_fields[] = {
        RECORD_FIELD(NUMBER, struct worker, heartbeat.seen),
        RECORD_FIELD(NUMBER, struct worker, evidence.threads_witness),
        RECORD_FIELD(NUMBER, struct worker, memory.over_threshold),
        RECORD_FIELD(NUMBER, struct worker, orders.quiet),
        RECORD_FIELD(NUMBER, struct worker, heartbeat.hung),
        RECORD_FIELD(NUMBER, struct worker, process.unproven),
        RECORD_FIELD(NUMBER, struct worker, orders.quiet_uncaught),
        RECORD_FIELD(NUMBER, struct worker, orders.finishes_job),
        RECORD_FIELD(NUMBER, struct worker, process.forked),
        RECORD_FIELD(NUMBER, struct worker, process.awaits_go),
        RECORD_FIELD(NUMBER, struct worker, orders.pressed),
};
static const struct record worker_flags = RECORD(worker_flag_fields);

static const struct record_field worker_fields[] = {
        RECORD_RANGE(struct state_worker, worker.index, 1, UINT32_MAX),
        RECORD_RANGE(struct state_worker, worker.generation, 1, UINT64_MAX - 1),
        RECORD_RANGE(struct state_worker, worker.process.pid, 0, INT32_MAX),
        RECORD_FIELD(NUMBER, struct state_worker, worker.process.start),
        RECORD_RANGE(struct state_worker, worker.process.beat_pid, 0, INT32_MAX),
        RECORD_FIELD(NUMBER, struct state_worker, worker.process.beat_start),
        RECORD_RANGE(struct state_worker, worker.state, 0, WORKER_GONE - 1),
        RECORD_RANGE(struct state_worker, worker.reason, 0, _REASON_MAX - 1),
        RECORD_RANGE(struct state_worker, worker.started_for, 0, _REASON_MAX - 1),
        RECORD_FIELD(TIME, struct state_worker, worker.spawned_at),
        RECORD_FIELD(TIME, struct state_worker, worker.state_at),
        RECORD_FIELD(TIME, struct state_worker, worker.active_at),
        RECORD_FIELD(NUMBER, struct state_worker, worker.last_life),
        RECORD_FIELD(TIME, struct state_worker, worker.orders.quiet_at),
        RECORD_FIELD(TIME, struct state_worker, worker.orders.stop_at),
        RECORD_FIELD(TIME, struct state_worker, worker.orders.killed_at),
        RECORD_FIELD(TIME, struct state_worker, worker.heartbeat.changed_at),
        RECORD_FIELD(NUMBER, struct state_worker, worker.heartbeat.written_usec),
        RECORD_FIELD(NUMBER, struct state_worker, worker.heartbeat.concurrency),
        RECORD_PART(FLAGS, struct state_worker, worker, worker_flags),
        RECORD_FIELD(STRING, struct state_worker, identity),
};
static const struct record worker_record = RECORD(worker_fields);

/* Its workers follow: their number, and each one's record. */
static const struct record_field fleet_fields[] = {
        RECORD_FIELD(STRING, struct state_fleet, name),
        RECORD_RANGE(struct state_fleet, generation, 1, UINT64_MAX - 1),
        RECORD_RANGE(struct state_fleet, order, 0, _FLEET_ORDER_MAX - 1),
        RECORD_FIELD(NUMBER, struct state_fleet, force),
        RECORD_FIELD(NUMBER, struct state_fleet, scale),
        RECORD_FIELD(NUMBER, struct state_fleet, scale_for),
        RECORD_FIELD(NUMBER, struct state_fleet, launch_hash),
        RECORD_FIELD(NUMBER, struct state_fleet, framework),
        RECORD_FIELD(STRING, struct state_fleet, redis_url),
        RECORD_FIELD(NUMBER, struct state_fleet, random),
        RECORD_PART(RECORD, struct state_fleet, rollout, rollout_record),
        RECORD_PART(RECORD, struct state_fleet, crash, backoff_record),
        RECORD_FIELD(ARRAY, struct state_fleet, crash_last),
        RECORD_PART(RECORD, struct state_fleet, churn, backoff_record),
};
static const struct record fleet_record = RECORD(fleet_fields);

static const struct record_field dead_fields[] = {
        RECORD_FIELD(STRING, struct state_dead, fleet),
        RECORD_PART(RECORD, struct state_dead, worker, worker_record),
        RECORD_FIELD(NUMBER, struct state_dead, worker.worker.heartbeat.busy),
        RECORD_FIELD(NUMBER, struct state_dead, exit.known),
        RECORD_FIELD(NUMBER, struct state_dead, exit.by_signal),
        RECORD_RANGE(struct state_dead, exit.status, 0, INT32_MAX),
};
static const struct record dead_record = RECORD(dead_fields);

static const struct record_field template_fields[] = {
        RECORD_RANGE(struct template, state, TEMPLATE_LOADING, _TEMPLATE_STATE_MAX - 1),
        RECORD_RANGE(struct template, generation, 1, UINT64_MAX - 1),
        RECORD_RANGE(struct template, pid, 1, INT32_MAX),
        RECORD_FIELD(NUMBER, struct template, pid_start),
        RECORD_RANGE(struct template, serving_pid, 0, INT32_MAX),
        RECORD_FIELD(NUMBER, struct template, serving_start),
        RECORD_FIELD(TIME, struct template, started_at),
        RECORD_FIELD(TIME, struct template, state_at),
        RECORD_FIELD(NUMBER, struct template, memory_bytes),
};
static const struct record template_record = RECORD(template_fields);

/* Its templates follow: their number, and each one's record. */
static const struct record_field preload_fields[] = {
        RECORD_FIELD(ARRAY, struct preload, refused),
        RECORD_FIELD(NUMBER, struct preload, refused_generation),
        RECORD_FIELD(NUMBER, struct preload, failures),
        RECORD_FIELD(NUMBER, struct preload, slowest_fork),
        RECORD_FIELD(NUMBER, struct preload, template_bytes),
};
static const struct record preload_record = RECORD(preload_fields);

static const struct record_field grown_fields[] = {
        RECORD_FIELD(NUMBER, struct growth_past, generation),
        RECORD_FIELD(NUMBER, struct growth_past, bytes_per_day),
};
static const struct record grown_record = RECORD(grown_fields);

/* The starts of the plan that are this fleet's, from the place at on: the next one, or NULL. */
static const struct action *next_start(const struct plan *plan, size_t *at, const struct fleet *fleet)
{
        while (plan && *at < plan->n_actions) {
                const struct action *action = &plan->actions[(*at)++];

                if (action->kind == ACTION_START && action->fleet == fleet)
                        return action;
        }
        return NULL;
}

static void pack_worker(struct record_writer *writer, const struct worker *worker, const char *identity)
{
        struct state_worker saved = {.worker = *worker, .identity = (char *)identity};

        /* Of a shortage that is over nothing is left to do. */
        saved.worker.orders.pressed = relief_presses(worker);
        record_write(writer, &worker_record, &saved);
}

/* Is one about to be made in this place? */
static bool is_starting(const struct plan *plan, const struct fleet *fleet, unsigned index)
{
        const struct action *start;

        for (size_t at = 0; (start = next_start(plan, &at, fleet));)
                if (start->index == index)
                        return true;
        return false;
}

/* The same of the starts that are still looked for: the next one of this fleet whose place is empty. Once
 * they are given up their places are taken, before that is told here. */
static const struct worker *next_underway(const struct state_source *source, size_t *at,
                                          const struct fleet *fleet)
{
        while (*at < source->n_underway) {
                const struct underway *underway = &source->underway[(*at)++];

                if (underway->fleet == fleet && !fleet_has_place(fleet, underway->start.index) &&
                    !is_starting(source->starting, fleet, underway->start.index))
                        return &underway->start;
        }
        return NULL;
}

/* One that is under way. */
static void pack_start(struct record_writer *writer, unsigned index, uint64_t generation,
                       enum reason started_for, usec_t at)
{
        const struct worker worker = {
                .index = index,
                .generation = generation,
                .started_for = started_for,
                .spawned_at = at,
                .state_at = at,
        };

        pack_worker(writer, &worker, NULL);
}

static void pack_workers(struct record_writer *writer, const struct state_source *source,
                         const struct fleet *fleet)
{
        const struct worker *underway;
        uint64_t n = 0;

        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                n += template_forks(&fleet->templates[i]);
        for (size_t at = 0; next_start(source->starting, &at, fleet);)
                n++;
        for (size_t at = 0; next_underway(source, &at, fleet);)
                n++;
        for (size_t i = 0; i < fleet->n_workers; i++)
                n += fleet->workers[i]->state != WORKER_GONE;
        record_write_number(writer, n);
        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];
                if (worker->state != WORKER_GONE)
                        pack_worker(writer, worker,
                                    source->identity ? source->identity(worker, source->userdata) : NULL);
        }
        for (size_t at = 0; (underway = next_underway(source, &at, fleet));)
                pack_worker(writer, underway, NULL);
        for (size_t i = 0; i < TEMPLATES_MAX; i++) {
                const struct template *template = &fleet->templates[i];

                if (template_forks(template))
                        pack_start(writer, template->fork.index, template->generation, template->fork.reason,
                                   template->fork.asked_at);
        }
        const struct action *start;
        for (size_t at = 0; (start = next_start(source->starting, &at, fleet));)
                pack_start(writer, start->index,
                           start->template ? start->template->generation : fleet->generation, start->reason,
                           source->now);
}

static int compare_places(const void *left, const void *right)
{
        const struct state_worker *a = left, *b = right;

        return (a->worker.index > b->worker.index) - (a->worker.index < b->worker.index);
}

/* No worker is of a later generation than generation. */
static void check_worker(struct record_reader *reader, const struct worker *worker, uint64_t generation)
{
        if (worker->generation > generation || (worker->process.pid == 0 && worker->state != WORKER_STARTING))
                reader->wrong = true;
}

static int unpack_workers(struct record_reader *reader, struct state_fleet *fleet)
{
        size_t n = record_read_number(reader, 0, reader->left / record_bytes_min(&worker_record));

        fleet->workers = calloc(n + 1, sizeof(*fleet->workers));
        if (!fleet->workers)
                return -ENOMEM;
        while (fleet->n_workers < n && !reader->wrong) {
                struct state_worker *saved = &fleet->workers[fleet->n_workers++];
                int r = record_read(reader, &worker_record, saved);
                if (r < 0)
                        return r;
                check_worker(reader, &saved->worker, fleet->generation);
                saved->worker.heartbeat.busy = saved->worker.orders.finishes_job;
        }
        if (reader->wrong)
                return 0;
        qsort(fleet->workers, n, sizeof(*fleet->workers), compare_places);
        for (size_t i = 1; i < n; i++)
                reader->wrong |= fleet->workers[i - 1].worker.index == fleet->workers[i].worker.index;
        return 0;
}

static void pack_fleet(struct record_writer *writer, const struct state_source *source,
                       const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;
        /* No secret goes into the file. */
        _cleanup_free_ char *url = settings->redis_url ? redis_url_redact(settings->redis_url) : NULL;
        struct state_fleet saved = {
                .name = settings->name,
                .generation = fleet->generation,
                .order = fleet->order,
                .force = fleet->force,
                .scale = fleet->scale,
                .scale_for = settings->active_process_count,
                .launch_hash = settings->launch_hash,
                .framework = settings->traits->id,
                .redis_url = url,
                .rollout = fleet->rollout,
                .crash = fleet->crash,
                .churn = fleet->churn,
                .random = fleet->random,
        };

        memcpy(saved.crash_last, fleet->crash_last, sizeof(saved.crash_last));
        writer->failed = writer->failed || (settings->redis_url && !url);
        record_write(writer, &fleet_record, &saved);
        pack_workers(writer, source, fleet);
}

static int unpack_fleet(struct record_reader *reader, struct state_fleet *fleet)
{
        int r = record_read(reader, &fleet_record, fleet);

        return r < 0 ? r : unpack_workers(reader, fleet);
}

static void pack_dead(struct record_writer *writer, const struct state_dead *dead)
{
        uint64_t n = 0;

        for (const struct state_dead *each = dead; each; each = each->next)
                n++;
        record_write_number(writer, n);
        for (; dead; dead = dead->next) {
                struct state_dead saved = *dead;

                /* It is asked of none that is dead, and would be a word of a version that may not be meant.
                 */
                saved.worker.worker.orders.pressed = false;
                record_write(writer, &dead_record, &saved);
        }
}

static int unpack_dead(struct record_reader *reader, struct state *state)
{
        /* A sqmgr that did not keep them ended here. */
        if (reader->left == 0)
                return 0;
        uint64_t n = record_read_number(reader, 0, reader->left / record_bytes_min(&dead_record));
        for (struct state_dead **end = &state->dead; n > 0 && !reader->wrong; n--, end = &(*end)->next) {
                struct state_dead *dead = *end = calloc(1, sizeof(*dead));

                if (!dead)
                        return -ENOMEM;
                int r = record_read(reader, &dead_record, dead);
                if (r < 0)
                        return r;
                check_worker(reader, &dead->worker.worker, UINT64_MAX - 1);
        }
        return 0;
}

/* Anything of it has to do with templates. */
static bool has_templates(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];

                if (fleet_preload_refused(fleet)[0] != '\0' || fleet_has_templates(fleet))
                        return true;
                for (size_t j = 0; j < fleet->n_workers; j++)
                        if (fleet->workers[j]->process.forked)
                                return true;
        }
        return false;
}

static bool has_features(const struct state_source *source)
{
        struct record_writer writer = {.now = source->now};

        for (size_t i = 0; source->features && i < source->world->n_fleets; i++)
                source->features(&writer, source->world->fleets[i], source->features_userdata);
        free(writer.bytes);
        return writer.size > 0;
}

static bool has_pressed(const struct fleet *fleet)
{
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (relief_presses(fleet->workers[i]))
                        return true;
        return false;
}

static bool has_grown(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->growth.past[0].generation != 0 || world->fleets[i]->places_left > 0 ||
                    has_pressed(world->fleets[i]))
                        return true;
        return false;
}

/* Of each fleet, in their order. */
static void pack_features(struct record_writer *writer, const struct state_source *source)
{
        for (size_t i = 0; i < source->world->n_fleets; i++) {
                const struct fleet *fleet = source->world->fleets[i];

                if (fleet->unknown)
                        continue;
                size_t size_at = record_write_later(writer), begin = writer->size;
                if (source->features)
                        source->features(writer, fleet, source->features_userdata);
                record_fill_number(writer, size_at, writer->size - begin);
        }
}

static int unpack_features(struct record_reader *reader, struct state *state)
{
        for (size_t i = 0; reader->left > 0 && i < state->n_fleets; i++) {
                struct state_features *features = &state->fleets[i].features;
                struct record_reader inner = record_read_inner(reader);

                if (inner.left == 0)
                        continue;
                features->bytes = malloc(inner.left);
                if (!features->bytes)
                        return -ENOMEM;
                memcpy(features->bytes, inner.at, inner.left);
                features->size = inner.left;
                features->now = inner.now;
        }
        return 0;
}

static bool has_chosen(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet_settings *settings = world->fleets[i]->settings;

                if (fleet_settings_heartbeat(settings) != settings->traits->heartbeat)
                        return true;
        }
        return false;
}

static bool has_scaled(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (fleet_scales(world->fleets[i]) && world->fleets[i]->automatic_count > 0)
                        return true;
        return false;
}

/* Of each fleet, in their order. */
static void pack_heartbeats(struct record_writer *writer, const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (!world->fleets[i]->unknown)
                        record_write_number(writer, fleet_settings_heartbeat(world->fleets[i]->settings));
}

/* The same. */
static void pack_templates(struct record_writer *writer, const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];
                uint64_t n = 0;

                if (fleet->unknown)
                        continue;
                record_write(writer, &preload_record, &fleet->preload);
                for (size_t j = 0; j < TEMPLATES_MAX; j++)
                        n += template_lives(&fleet->templates[j]);
                record_write_number(writer, n);
                for (size_t j = 0; j < TEMPLATES_MAX; j++)
                        if (template_lives(&fleet->templates[j]))
                                record_write(writer, &template_record, &fleet->templates[j]);
        }
}

/* The same. */
static void pack_scaled(struct record_writer *writer, const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (!world->fleets[i]->unknown)
                        record_write_number(writer, fleet_scales(world->fleets[i])
                                                            ? world->fleets[i]->automatic_count
                                                            : 0);
}

static void unpack_scaled(struct record_reader *reader, struct state *state)
{
        for (size_t i = 0; reader->left > 0 && i < state->n_fleets; i++)
                state->fleets[i].scaled = (unsigned)record_read_number(reader, 0, UINT32_MAX);
}

static int unpack_templates(struct record_reader *reader, struct state *state)
{
        int r = 0;

        for (size_t i = 0; r == 0 && reader->left > 0 && i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                r = record_read(reader, &preload_record, &fleet->preload);
                fleet->n_templates = record_read_number(reader, 0, TEMPLATES_MAX);
                for (size_t j = 0; r == 0 && j < fleet->n_templates; j++)
                        r = record_read(reader, &template_record, &fleet->templates[j]);
        }
        return r;
}

static void unpack_heartbeats(struct record_reader *reader, struct state *state)
{
        for (size_t i = 0; reader->left > 0 && i < state->n_fleets; i++)
                state->fleets[i].heartbeat =
                        (unsigned)record_read_number(reader, 0, _HEARTBEAT_PLACE_MAX - 1);
}

/* The same. */
static void pack_growth(struct record_writer *writer, const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];

                if (fleet->unknown)
                        continue;
                record_write_number(writer, fleet->places_left);
                for (size_t j = 0; j < GROWTH_PAST; j++)
                        record_write(writer, &grown_record, &fleet->growth.past[j]);
        }
}

static int unpack_growth(struct record_reader *reader, struct state *state)
{
        int r = 0;

        for (size_t i = 0; r == 0 && reader->left > 0 && i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                fleet->places_left = (unsigned)record_read_number(reader, 0, UINT32_MAX);
                for (size_t j = 0; r == 0 && j < GROWTH_PAST; j++)
                        r = record_read(reader, &grown_record, &fleet->grown[j]);
        }
        return r;
}

static uint64_t version_of(const struct state_source *source)
{
        const struct world *world = source->world;

        if (has_grown(world))
                return STATE_VERSION;
        if (has_scaled(world))
                return STATE_VERSION_SCALED;
        if (has_features(source))
                return STATE_VERSION_FEATURES;
        if (has_templates(world))
                return STATE_VERSION_TEMPLATES;
        if (has_chosen(world))
                return STATE_VERSION_CHOSEN;
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++)
                        if (world->fleets[i]->workers[j]->process.unproven ||
                            world->fleets[i]->workers[j]->orders.quiet_uncaught ||
                            world->fleets[i]->workers[j]->orders.finishes_job)
                                return STATE_VERSION_PLACES;
        return STATE_VERSION_PROVEN;
}

static void pack_header(uint8_t *bytes, size_t size, uint64_t version)
{
        uint8_t *at = mempcpy(bytes, STATE_MAGIC, sizeof(STATE_MAGIC) - 1);

        record_put_bytes(at, 4, version);
        record_put_bytes(at + 4, 8, size - STATE_HEADER_SIZE);
        record_put_bytes(at + 12, 8,
                         hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, size - STATE_HEADER_SIZE));
}

static enum state_outcome unpack_header(const uint8_t *bytes, size_t size)
{
        if (size == 0)
                return STATE_TRUNCATED;
        if (memcmp(bytes, STATE_MAGIC, MIN(size, sizeof(STATE_MAGIC) - 1)) != 0)
                return STATE_GARBLED;
        if (size < STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        const uint8_t *at = bytes + sizeof(STATE_MAGIC) - 1;
        uint64_t version = record_get_bytes(at, 4), length = record_get_bytes(at + 4, 8);
        if (version < STATE_VERSION_PROVEN || version > STATE_VERSION)
                return version > STATE_VERSION ? STATE_NEWER : STATE_GARBLED;
        if (length > size - STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        if (length < size - STATE_HEADER_SIZE || size > STATE_BYTES_MAX ||
            record_get_bytes(at + 12, 8) != hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, length))
                return STATE_GARBLED;
        return STATE_READ;
}

int state_pack(const struct state_source *source, uint8_t **ret, size_t *ret_size)
{
        const struct world *world = source->world;
        struct record_writer writer = {.now = source->now};
        uint64_t n_known = 0;

        (void)record_write_space(&writer, STATE_HEADER_SIZE);
        record_write_text(&writer, source->boot_id);
        record_write_number(&writer, source->now);
        /* One whose workers are still looked for, and of which no state tells, is left to the next to find.
         */
        for (size_t i = 0; i < world->n_fleets; i++)
                n_known += !world->fleets[i]->unknown;
        record_write_number(&writer, n_known);
        for (size_t i = 0; i < world->n_fleets; i++)
                if (!world->fleets[i]->unknown)
                        pack_fleet(&writer, source, world->fleets[i]);
        pack_dead(&writer, source->dead);
        uint64_t version = version_of(source);
        if (version >= STATE_VERSION_CHOSEN)
                pack_heartbeats(&writer, world);
        if (version >= STATE_VERSION_TEMPLATES)
                pack_templates(&writer, world);
        if (version >= STATE_VERSION_FEATURES)
                pack_features(&writer, source);
        if (version >= STATE_VERSION_SCALED)
                pack_scaled(&writer, world);
        if (version >= STATE_VERSION)
                pack_growth(&writer, world);
        if (writer.failed || writer.size > STATE_BYTES_MAX) {
                free(writer.bytes);
                return writer.failed ? -ENOMEM : -EFBIG;
        }
        pack_header(writer.bytes, writer.size, version);
        *ret = writer.bytes;
        *ret_size = writer.size;
        return 0;
}

static void free_dead(struct state *state)
{
        struct state_dead *dead;

        while ((dead = state->dead)) {
                state->dead = dead->next;
                free(dead->fleet);
                free(dead->worker.identity);
                free(dead);
        }
}

struct state *state_free(struct state *state)
{
        if (!state)
                return NULL;
        free_dead(state);
        for (size_t i = 0; i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++)
                        free(fleet->workers[j].identity);
                free(fleet->workers);
                free(fleet->features.bytes);
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
                fleet->n_templates = 0;
                fleet->places_left = 0;
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
        struct record_reader reader = {.at = bytes + STATE_HEADER_SIZE, .left = size - STATE_HEADER_SIZE};
        const char *boot = record_read_text(&reader, RECORD_TEXT_MAX, &length);
        usec_t packed_at = record_read_number(&reader, 0, UINT64_MAX);
        /* A boot's own clock never runs back. */
        bool same_boot = packed_at <= now && length == strlen(boot_id) && memcmp(boot, boot_id, length) == 0;
        reader.now = same_boot ? packed_at : now;

        /* Each has the number of its workers, too. */
        size_t fleet_min = record_bytes_min(&fleet_record) + sizeof(uint64_t);
        size_t n = record_read_number(&reader, 0, reader.left / fleet_min);
        state = calloc(1, sizeof(*state));
        if (!state || !(state->fleets = calloc(n + 1, sizeof(*state->fleets))))
                return -ENOMEM;
        while (state->n_fleets < n && !reader.wrong) {
                int r = unpack_fleet(&reader, &state->fleets[state->n_fleets++]);
                if (r < 0)
                        return r;
        }
        int r = unpack_dead(&reader, state);
        if (r < 0)
                return r;
        unpack_heartbeats(&reader, state);
        r = unpack_templates(&reader, state);
        if (r >= 0)
                r = unpack_features(&reader, state);
        if (r < 0)
                return r;
        unpack_scaled(&reader, state);
        r = unpack_growth(&reader, state);
        if (r < 0)
                return r;
        if (reader.wrong || reader.left > 0)
                return STATE_GARBLED;
        if (!same_boot)
                drop_workers(state);
        *ret = TAKE_PTR(state);
        return STATE_READ;
}

/* Some are to leave, or have left, for want of memory. */
static bool was_pressed(const struct state_fleet *saved)
{
        bool pressed = saved->places_left > 0;

        for (size_t i = 0; i < saved->n_workers; i++)
                pressed |= saved->workers[i].worker.orders.pressed;
        return pressed;
}

void state_continue_fleet(struct fleet *fleet, const struct state_fleet *saved, usec_t now)
{
        fleet->generation = saved->generation;
        fleet->order = saved->order;
        fleet->force = saved->force;
        fleet->scale = saved->scale_for == fleet->settings->active_process_count ? saved->scale : 0;
        fleet->automatic_count = fleet_scales(fleet) ? saved->scaled : 0;
        fleet->rollout = saved->rollout;
        fleet->crash = saved->crash;
        fleet->churn = saved->churn;
        memcpy(fleet->crash_last, saved->crash_last, sizeof(fleet->crash_last));
        fleet->random = saved->random;
        fleet->preload = saved->preload;
        memcpy(fleet->growth.past, saved->grown, sizeof(fleet->growth.past));
        /* Until it is read to be over, which without a limit it never is. */
        if (was_pressed(saved) && fleet->world->settings->pressure_limit > 0) {
                fleet->places_left = saved->places_left;
                fleet->world->pressure.high = true;
                /* The last one may have been told just before. */
                fleet->world->pressure.acted_at = now;
        }
        fleet->continued = true;
        if (fleet->settings->removed)
                rollout_abort(fleet, "the fleet is no longer configured", NULL);
        else if (saved->launch_hash != fleet->settings->launch_hash)
                rollout_outdate(fleet, now);
}
