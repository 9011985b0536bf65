/* SPDX-License-Identifier: MIT */
/* Packs and unpacks the state. The tables list the fields of each record in the order of their bytes. */
#include "continuity/state.h"
#include "base/hash.h"
#include "continuity/codec.h"
#include "model/rollout.h"
#include "model/world.h"
#include "settings/database_url.h"

/* Magic, version, length and checksum of the payload. */
#define STATE_MAGIC "sqmgr.st"
/* Each version adds fields, marked by codec_field.since, and reads all earlier versions. */
#define STATE_VERSION     1
#define STATE_HEADER_SIZE (sizeof(STATE_MAGIC) - 1 + 4 + 8 + 8)

static const struct codec_field backoff_fields[] = {
        CODEC_FIELD(NUMBER, struct backoff, count),
        CODEC_FIELD(TIME, struct backoff, failed_at),
        CODEC_FIELD(WAIT, struct backoff, next_at),
        CODEC_FIELD(NUMBER, struct backoff, freed),
};
static const struct record backoff_record = RECORD(backoff_fields);

static const struct codec_field rollout_fields[] = {
        CODEC_RANGE(struct rollout, state, 0, _ROLLOUT_STATE_MAX - 1),
        CODEC_FIELD(NUMBER, struct rollout, total),
        CODEC_FIELD(TIME, struct rollout, started_at),
        CODEC_FIELD(TIME, struct rollout, progress_at),
        CODEC_FIELD(NUMBER, struct rollout, failures),
        CODEC_FIELD(TIME, struct rollout, failed_at),
        CODEC_FIELD(ARRAY, struct rollout, error),
        CODEC_RANGE(struct rollout, before, 0, UINT64_MAX - 1),
        CODEC_FIELD(NUMBER, struct rollout, returned),
        CODEC_FIELD(TIME, struct rollout, kept_since),
};
static const struct record rollout_record = RECORD(rollout_fields);

static const struct codec_field worker_flag_fields[] = {
        CODEC_FIELD(NUMBER, struct worker, heartbeat.seen),
        CODEC_FIELD(NUMBER, struct worker, evidence.threads_witness),
        CODEC_FIELD(NUMBER, struct worker, memory.over_threshold),
        CODEC_FIELD(NUMBER, struct worker, orders.quiet),
        CODEC_FIELD(NUMBER, struct worker, heartbeat.hung),
        CODEC_FIELD(NUMBER, struct worker, process.unproven),
        CODEC_FIELD(NUMBER, struct worker, orders.quiet_uncaught),
        CODEC_FIELD(NUMBER, struct worker, orders.finishes_job),
        CODEC_FIELD(NUMBER, struct worker, process.forked),
        CODEC_FIELD(NUMBER, struct worker, process.awaits_go),
        CODEC_FIELD(NUMBER, struct worker, orders.unconfirmed),
        CODEC_FIELD(NUMBER, struct worker, orders.group_signaled),
        CODEC_FIELD(NUMBER, struct worker, orders.forced),
        CODEC_FIELD(NUMBER, struct worker, process.elsewhere),
        CODEC_FIELD(NUMBER, struct worker, process.shimless),
        CODEC_FIELD(NUMBER, struct worker, process.remote),
};
static const struct record worker_flags = RECORD(worker_flag_fields);

static const struct codec_field worker_fields[] = {
        CODEC_RANGE(struct state_worker, worker.index, 1, UINT32_MAX),
        CODEC_RANGE(struct state_worker, worker.generation, 1, UINT64_MAX - 1),
        CODEC_RANGE(struct state_worker, worker.process.pid, 1, INT32_MAX),
        CODEC_FIELD(NUMBER, struct state_worker, worker.process.start),
        CODEC_RANGE(struct state_worker, worker.process.heartbeat_pid, 0, INT32_MAX),
        CODEC_FIELD(NUMBER, struct state_worker, worker.process.heartbeat_start),
        CODEC_RANGE(struct state_worker, worker.state, 0, WORKER_GONE - 1),
        CODEC_RANGE(struct state_worker, worker.reason, 0, _REASON_MAX - 1),
        CODEC_RANGE(struct state_worker, worker.started_for, 0, _REASON_MAX - 1),
        CODEC_FIELD(TIME, struct state_worker, worker.spawned_at),
        CODEC_FIELD(TIME, struct state_worker, worker.state_at),
        CODEC_FIELD(TIME, struct state_worker, worker.active_at),
        CODEC_FIELD(NUMBER, struct state_worker, worker.last_uptime),
        CODEC_FIELD(TIME, struct state_worker, worker.orders.quiet_at),
        CODEC_FIELD(TIME, struct state_worker, worker.orders.stop_at),
        CODEC_FIELD(TIME, struct state_worker, worker.orders.killed_at),
        CODEC_FIELD(TIME, struct state_worker, worker.heartbeat.changed_at),
        CODEC_FIELD(NUMBER, struct state_worker, worker.heartbeat.written_usec),
        CODEC_FIELD(NUMBER, struct state_worker, worker.heartbeat.concurrency),
        CODEC_PART(FLAGS, struct state_worker, worker, worker_flags),
        CODEC_FIELD(STRING, struct state_worker, identity),
};
static const struct record worker_record = RECORD(worker_fields);

static const struct codec_field template_fields[] = {
        CODEC_RANGE(struct template, state, 0, _TEMPLATE_STATE_MAX - 1),
        CODEC_RANGE(struct template, generation, 0, UINT64_MAX - 1),
        CODEC_RANGE(struct template, pid, 0, INT32_MAX),
        CODEC_FIELD(NUMBER, struct template, pid_start),
        CODEC_RANGE(struct template, serving_pid, 0, INT32_MAX),
        CODEC_FIELD(NUMBER, struct template, serving_start),
        CODEC_FIELD(TIME, struct template, started_at),
        CODEC_FIELD(TIME, struct template, state_at),
        CODEC_FIELD(NUMBER, struct template, memory_bytes),
};
static const struct record template_record = RECORD(template_fields);

static const struct codec_field preload_fields[] = {
        CODEC_FIELD(ARRAY, struct preload, refused),
        CODEC_FIELD(NUMBER, struct preload, refused_generation),
        CODEC_FIELD(NUMBER, struct preload, failures),
        CODEC_FIELD(NUMBER, struct preload, slowest_fork),
        CODEC_FIELD(NUMBER, struct preload, template_bytes),
};
static const struct record preload_record = RECORD(preload_fields);

static const struct codec_field grown_fields[] = {
        CODEC_FIELD(NUMBER, struct leak_past, generation),
        CODEC_FIELD(NUMBER, struct leak_past, bytes_per_day),
};
static const struct record grown_record = RECORD(grown_fields);

static const struct codec_field launch_fields[] = {
        CODEC_RANGE(struct launch, generation, 0, UINT64_MAX - 1),
        CODEC_FIELD(NUMBER, struct launch, launch_hash),
};
static const struct record launch_record = RECORD(launch_fields);

/* Followed by the number of workers and their records, then by the size and bytes of the feature data. */
static const struct codec_field fleet_fields[] = {
        CODEC_FIELD(STRING, struct state_fleet, name),
        CODEC_RANGE(struct state_fleet, generation, 1, UINT64_MAX - 1),
        CODEC_RANGE(struct state_fleet, order, 0, _FLEET_ORDER_MAX - 1),
        CODEC_FIELD(NUMBER, struct state_fleet, force),
        CODEC_FIELD(NUMBER, struct state_fleet, scale),
        CODEC_FIELD(NUMBER, struct state_fleet, scale_for),
        CODEC_FIELD(NUMBER, struct state_fleet, launch_hash),
        CODEC_FIELD(NUMBER, struct state_fleet, framework),
        CODEC_FIELD(STRING, struct state_fleet, redis_url),
        CODEC_FIELD(NUMBER, struct state_fleet, random),
        CODEC_PART(RECORD, struct state_fleet, rollout, rollout_record),
        CODEC_PART(RECORD, struct state_fleet, crash, backoff_record),
        CODEC_FIELD(ARRAY, struct state_fleet, crash_last),
        CODEC_PART(RECORD, struct state_fleet, churn, backoff_record),
        CODEC_FIELD(NUMBER, struct state_fleet, scaled),
        CODEC_RANGE(struct state_fleet, heartbeat, 0, _HEARTBEAT_PLACE_MAX - 1),
        CODEC_PART(RECORD, struct state_fleet, grown[0], grown_record),
        CODEC_PART(RECORD, struct state_fleet, grown[1], grown_record),
        CODEC_PART(RECORD, struct state_fleet, preload, preload_record),
        CODEC_PART(RECORD, struct state_fleet, templates[0], template_record),
        CODEC_PART(RECORD, struct state_fleet, templates[1], template_record),
        CODEC_FIELD(ARRAY, struct state_fleet, rollout.quoted.quoted_bytes),
        CODEC_FIELD(ARRAY, struct state_fleet, crash_quoted.quoted_bytes),
        CODEC_FIELD(ARRAY, struct state_fleet, preload.quoted.quoted_bytes),
        CODEC_FIELD(NUMBER, struct state_fleet, rollout.elsewhere),
        CODEC_RANGE(struct state_fleet, newest_generation, 0, UINT64_MAX - 1),
        CODEC_PART(RECORD, struct state_fleet, launches[0], launch_record),
        CODEC_PART(RECORD, struct state_fleet, launches[1], launch_record),
        CODEC_PART(RECORD, struct state_fleet, launches[2], launch_record),
        CODEC_PART(RECORD, struct state_fleet, launches[3], launch_record),
};
static const struct record fleet_record = RECORD(fleet_fields);
static_assert(LEAK_PAST == 2 && TEMPLATES_MAX == 2 && LAUNCHES_KEPT == 4, "each has its row");

static const struct codec_field dead_fields[] = {
        CODEC_FIELD(STRING, struct state_dead, fleet),
        CODEC_PART(RECORD, struct state_dead, worker, worker_record),
        CODEC_FIELD(NUMBER, struct state_dead, worker.worker.heartbeat.busy),
        CODEC_FIELD(NUMBER, struct state_dead, exit.known),
        CODEC_FIELD(NUMBER, struct state_dead, exit.by_signal),
        CODEC_RANGE(struct state_dead, exit.status, 0, INT32_MAX),
};
static const struct record dead_record = RECORD(dead_fields);

static void pack_workers(struct codec_writer *writer, const struct state_source *source,
                         const struct fleet *fleet)
{
        size_t n_at = codec_write_later(writer);
        uint64_t n = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state == WORKER_GONE)
                        continue;
                const char *identity = source->identity ? source->identity(worker, source->userdata) : NULL;
                const struct state_worker saved = {.worker = *worker, .identity = (char *)identity};
                codec_write(writer, &worker_record, &saved);
                n++;
        }
        codec_fill_number(writer, n_at, n);
}

static int compare_places(const void *left, const void *right)
{
        const struct state_worker *a = left, *b = right;

        return (a->worker.index > b->worker.index) - (a->worker.index < b->worker.index);
}

static int unpack_workers(struct codec_reader *reader, struct state_fleet *fleet)
{
        size_t n = codec_read_number(reader, 0, reader->left / codec_bytes_min(&worker_record));

        fleet->workers = calloc(n + 1, sizeof(*fleet->workers));
        if (!fleet->workers)
                return -ENOMEM;
        while (fleet->n_workers < n && !reader->wrong) {
                struct state_worker *saved = &fleet->workers[fleet->n_workers++];
                int r = codec_read(reader, &worker_record, saved);
                if (r < 0)
                        return r;
                saved->worker.heartbeat.busy = saved->worker.orders.finishes_job;
        }
        if (reader->wrong)
                return 0;
        qsort(fleet->workers, n, sizeof(*fleet->workers), compare_places);
        for (size_t i = 1; i < n; i++)
                reader->wrong |= fleet->workers[i - 1].worker.index == fleet->workers[i].worker.index;
        return 0;
}

/* Returns the URL of the fleet's own server, which the caller frees; NULL: out of memory. */
static char *saved_url(const struct fleet_settings *settings)
{
        _cleanup_database_url_ struct database_url url = {0};

        if (!fleet_settings_need_database(settings))
                return settings->redis_url ? redis_url_redact(settings->redis_url) : strdup("");
        int r = settings->database_url ? database_url_parse(settings->database_url, &url, NULL) : -EINVAL;
        return r < 0 && r != -ENOMEM ? strdup("") : TAKE_PTR(url.text);
}

/* Returns what an operator ordered. A restart that runs is not part of that: after a reboot, all workers are
 * started from the new release. A return has to end with a halt, as its template is gone. */
static struct state_fleet orders_of(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;
        struct state_fleet saved = {
                .name = settings->name,
                .generation = fleet->generation,
                .newest_generation = fleet->newest_generation,
                .order = fleet->order,
                .force = fleet->force,
                .scale = fleet->scale,
                .scale_for = settings->active_process_count,
                .launch_hash = settings->launch_hash,
                .framework = settings->traits->id,
        };

        memcpy(saved.launches, fleet->launches, sizeof(saved.launches));
        if (fleet->rollout.state == ROLLOUT_HALTED || fleet->rollout.returned)
                saved.rollout = fleet->rollout;
        return saved;
}

static void pack_fleet(struct codec_writer *writer, const struct state_source *source,
                       const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;
        struct state_fleet saved = orders_of(fleet);

        if (source->orders) {
                codec_write(writer, &fleet_record, &saved);
                codec_write_number(writer, 0); /* workers */
                codec_write_number(writer, 0); /* bytes of optional features */
                return;
        }
        /* The file contains no secret. */
        _cleanup_free_ char *url = saved_url(settings);
        saved.redis_url = url;
        saved.rollout = fleet->rollout;
        saved.crash = fleet->crash;
        saved.crash_quoted = fleet->crash_quoted;
        saved.churn = fleet->churn;
        saved.random = fleet->random;
        saved.scaled = fleet->automatic_count;
        saved.heartbeat = fleet_settings_heartbeat(settings);
        saved.preload = fleet->preload;
        memcpy(saved.grown, fleet->leak.past, sizeof(saved.grown));
        memcpy(saved.templates, fleet->templates, sizeof(saved.templates));
        memcpy(saved.crash_last, fleet->crash_last, sizeof(saved.crash_last));
        writer->failed = writer->failed || !url;
        codec_write(writer, &fleet_record, &saved);
        pack_workers(writer, source, fleet);
        size_t size_at = codec_write_later(writer), begin = writer->size;
        if (source->features)
                source->features(writer, fleet, source->features_userdata);
        codec_fill_number(writer, size_at, writer->size - begin);
}

static int unpack_features(struct codec_reader *reader, struct state_features *features)
{
        struct codec_reader inner = codec_read_inner(reader);

        if (inner.left == 0)
                return 0;
        features->bytes = malloc(inner.left);
        if (!features->bytes)
                return -ENOMEM;
        memcpy(features->bytes, inner.at, inner.left);
        features->size = inner.left;
        features->now = inner.now;
        return 0;
}

static int unpack_fleet(struct codec_reader *reader, struct state_fleet *fleet)
{
        int r = codec_read(reader, &fleet_record, fleet);

        quoted_clean(&fleet->rollout.quoted);
        quoted_clean(&fleet->crash_quoted);
        quoted_clean(&fleet->preload.quoted);
        for (size_t i = 0; i < TEMPLATES_MAX; i++) {
                const struct template *template = &fleet->templates[i];

                reader->wrong |=
                        template_is_alive(template) && (template->pid == 0 || template->generation == 0);
        }
        if (r == 0)
                r = unpack_workers(reader, fleet);
        if (r == 0)
                r = unpack_features(reader, &fleet->features);
        return r;
}

static void pack_dead(struct codec_writer *writer, const struct state_dead *dead)
{
        uint64_t n = 0;

        for (const struct state_dead *each = dead; each; each = each->next)
                n++;
        codec_write_number(writer, n);
        for (; dead; dead = dead->next)
                codec_write(writer, &dead_record, dead);
}

static int unpack_dead(struct codec_reader *reader, struct state *state)
{
        uint64_t n = codec_read_number(reader, 0, reader->left / codec_bytes_min(&dead_record));

        for (struct state_dead **end = &state->dead; n > 0 && !reader->wrong; n--, end = &(*end)->next) {
                struct state_dead *dead = *end = calloc(1, sizeof(*dead));

                if (!dead)
                        return -ENOMEM;
                int r = codec_read(reader, &dead_record, dead);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void pack_header(uint8_t *bytes, size_t size)
{
        uint8_t *at = mempcpy(bytes, STATE_MAGIC, sizeof(STATE_MAGIC) - 1);

        codec_put_bytes(at, 4, STATE_VERSION);
        codec_put_bytes(at + 4, 8, size - STATE_HEADER_SIZE);
        codec_put_bytes(at + 12, 8,
                        hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, size - STATE_HEADER_SIZE));
}

static enum state_outcome unpack_header(const uint8_t *bytes, size_t size, unsigned *ret_version)
{
        if (size == 0)
                return STATE_TRUNCATED;
        if (memcmp(bytes, STATE_MAGIC, MIN(size, sizeof(STATE_MAGIC) - 1)) != 0)
                return STATE_GARBLED;
        if (size < STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        const uint8_t *at = bytes + sizeof(STATE_MAGIC) - 1;
        uint64_t version = codec_get_bytes(at, 4), length = codec_get_bytes(at + 4, 8);
        if (version == 0 || version > STATE_VERSION)
                return version > STATE_VERSION ? STATE_NEWER : STATE_GARBLED;
        if (length > size - STATE_HEADER_SIZE)
                return STATE_TRUNCATED;
        if (length < size - STATE_HEADER_SIZE || size > STATE_BYTES_MAX ||
            codec_get_bytes(at + 12, 8) != hash_bytes(HASH_INIT, bytes + STATE_HEADER_SIZE, length))
                return STATE_GARBLED;
        *ret_version = (unsigned)version;
        return STATE_READ;
}

int state_pack(const struct state_source *source, uint8_t **ret, size_t *ret_size)
{
        const struct world *world = source->world;
        struct codec_writer writer = {.now = source->now};
        uint64_t n = 0;

        (void)codec_write_space(&writer, STATE_HEADER_SIZE);
        codec_write_text(&writer, source->boot_id);
        codec_write_number(&writer, source->now);
        size_t n_at = codec_write_later(&writer);
        for (size_t i = 0; i < world->n_fleets; i++) {
                /* The state file had no record of these workers, and the search continues: the next sqmgr
                 * must search too. */
                if (world->fleets[i]->unknown && !source->orders)
                        continue;
                pack_fleet(&writer, source, world->fleets[i]);
                n++;
        }
        codec_fill_number(&writer, n_at, n);
        pack_dead(&writer, source->dead);
        if (writer.failed || writer.size > STATE_BYTES_MAX) {
                free(writer.bytes);
                return writer.failed ? -ENOMEM : -EFBIG;
        }
        pack_header(writer.bytes, writer.size);
        *ret = writer.bytes;
        *ret_size = writer.size;
        return 0;
}

/* Drops all processes, alive or dead. */
static void drop_processes(struct state *state)
{
        struct state_dead *dead;

        for (size_t i = 0; i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                while (fleet->n_workers > 0)
                        free(fleet->workers[--fleet->n_workers].identity);
                memset(fleet->templates, 0, sizeof(fleet->templates));
        }
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
        drop_processes(state);
        for (size_t i = 0; i < state->n_fleets; i++) {
                struct state_fleet *fleet = &state->fleets[i];

                free(fleet->workers);
                free(fleet->features.bytes);
                free(fleet->redis_url);
                free(fleet->name);
        }
        free(state->fleets);
        free(state);
        return NULL;
}

DEFINE_CLEANUP(struct state *, state_free)

int state_unpack(const uint8_t *bytes, size_t size, const char *boot_id, usec_t now, struct state **ret)
{
        _cleanup_(state_free_pointer) struct state *state = NULL;
        unsigned version;
        size_t length;
        enum state_outcome outcome = unpack_header(bytes, size, &version);

        if (outcome != STATE_READ)
                return outcome;
        struct codec_reader reader = {
                .at = bytes + STATE_HEADER_SIZE, .left = size - STATE_HEADER_SIZE, .version = version};
        const char *boot = codec_read_text(&reader, CODEC_TEXT_MAX, &length);
        usec_t packed_at = codec_read_number(&reader, 0, UINT64_MAX);
        /* The monotonic clock of a boot never runs back. */
        bool same_boot = packed_at <= now && length == strlen(boot_id) && memcmp(boot, boot_id, length) == 0;
        reader.now = same_boot ? packed_at : now;
        reader.other_boot = !same_boot;

        /* Each fleet also has the number of its workers. */
        size_t fleet_min = codec_bytes_min(&fleet_record) + sizeof(uint64_t);
        size_t n = codec_read_number(&reader, 0, reader.left / fleet_min);
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
        if (reader.wrong || reader.left > 0)
                return STATE_GARBLED;
        if (!same_boot)
                drop_processes(state);
        *ret = TAKE_PTR(state);
        return STATE_READ;
}

void state_continue_fleet(struct fleet *fleet, const struct state_fleet *saved, usec_t now)
{
        fleet->generation = saved->generation;
        fleet->newest_generation = MAX(saved->newest_generation, saved->generation);
        memcpy(fleet->launches, saved->launches, sizeof(fleet->launches));
        fleet->order = saved->order;
        fleet->force = saved->force;
        fleet->scale = saved->scale_for == fleet->settings->active_process_count ? saved->scale : 0;
        fleet->automatic_count = fleet_scales(fleet) ? saved->scaled : 0;
        fleet->rollout = saved->rollout;
        fleet->crash = saved->crash;
        fleet->churn = saved->churn;
        memcpy(fleet->crash_last, saved->crash_last, sizeof(fleet->crash_last));
        fleet->crash_quoted = saved->crash_quoted;
        if (saved->random != 0)
                fleet->random = saved->random;
        fleet->preload = saved->preload;
        memcpy(fleet->leak.past, saved->grown, sizeof(fleet->leak.past));
        fleet->continued = true;
        if (fleet->settings->removed)
                rollout_abort(fleet, "the fleet is no longer configured", NULL);
        else if (saved->launch_hash != fleet->settings->launch_hash)
                rollout_outdate(fleet, now);
}
