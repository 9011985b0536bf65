/* SPDX-License-Identifier: MIT */
/* Replays a record; see the header. */
#include "record/replay_rules.h"
#include "decide/plan.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe_memory.h"
#include "observe/observe_time.h"
#include "settings/operations.h"
#include "settings/value.h"
#include <stdio.h>
#include <string.h>

struct segment {
        const uint8_t *bytes;
        struct record_header header;
};

/* A changed setting. */
struct change {
        const struct settings_key *key;
        const char *value;              /* not owned */
        char fleet[FLEET_NAME_MAX + 1]; /* "": all */
        bool found;                     /* a segment has had a fleet for it */
};

struct replay {
        const struct settings_surroundings *surroundings; /* not owned */
        struct segment segments[RECORD_SLOTS];            /* in the order of time */
        size_t n_segments, n_damaged, at;
        struct change changes[REPLAY_CHANGES_MAX];
        size_t n_changes;

        /* The current segment. */
        struct codec_reader reader;
        struct record_names names;
        struct settings *settings;
        struct recorded_world recorded;
        struct world *world;
        struct plan plan;
        struct codec_writer written; /* the replayed decision */
        struct decision was, is;
};

static int refuse(char why[static REPLAY_WHY_MAX], const char *text)
{
        snprintf(why, REPLAY_WHY_MAX, "%s", text);
        return -EBADMSG;
}

int replay_check_header(const uint8_t *bytes, size_t size, uint64_t *ret_slot_bytes,
                        char why[static REPLAY_WHY_MAX])
{
        const size_t version_at = sizeof(RECORD_MAGIC) - 1;
        struct record_header header;
        int r = size == 0 ? 0 : size < RECORD_HEADER_SIZE ? -EBADMSG : record_header_parse(bytes, &header);

        if (r == 0)
                return refuse(why, "the record is empty");
        if (r > 0) {
                *ret_slot_bytes = header.slot_bytes;
                return 0;
        }
        if (memcmp(bytes, RECORD_MAGIC, MIN(size, version_at)) != 0)
                return refuse(why, "not a record of sqmgr");
        if (size < RECORD_HEADER_SIZE || codec_get_bytes(bytes + version_at, 4) == RECORD_VERSION)
                return refuse(why, "the record is damaged or truncated");
        snprintf(why, REPLAY_WHY_MAX, "the record has format %u; this sqmgr-replay reads format %d",
                 (unsigned)codec_get_bytes(bytes + version_at, 4), RECORD_VERSION);
        return -EBADMSG;
}

static int compare_segments(const void *left, const void *right)
{
        const struct segment *a = left, *b = right;

        return (a->header.sequence > b->header.sequence) - (a->header.sequence < b->header.sequence);
}

/* All slots have one size. The last one may be shorter: nothing is written behind its segment. */
static int find_segments(struct replay *replay, const uint8_t *bytes, size_t size, char *why)
{
        struct record_header header;
        uint64_t slot_bytes;
        int r = replay_check_header(bytes, size, &slot_bytes, why);

        if (r < 0)
                return r;
        for (size_t i = 0; i < RECORD_SLOTS && i * slot_bytes < size; i++) {
                const uint8_t *slot = bytes + i * slot_bytes;

                r = record_header_read(slot, size - i * slot_bytes, &header);
                /* After a power failure, a header may be newer than what it describes. */
                replay->n_damaged += r < 0 || (r > 0 && header.slot_bytes != slot_bytes);
                /* A segment that sqmgr could not write, or had no time to, is empty. */
                if (r > 0 && header.slot_bytes == slot_bytes && header.used > 0)
                        replay->segments[replay->n_segments++] =
                                (struct segment){.bytes = slot + RECORD_HEADER_SIZE, .header = header};
        }
        if (size / slot_bytes > RECORD_SLOTS)
                return refuse(why, "the record is longer than its slots");
        if (replay->n_segments == 0)
                return refuse(why, replay->n_damaged > 0 ? "the record is damaged or truncated"
                                                         : "the record is empty");
        qsort(replay->segments, replay->n_segments, sizeof(*replay->segments), compare_segments);
        for (size_t i = 1; i < replay->n_segments; i++)
                if (replay->segments[i].header.sequence == replay->segments[i - 1].header.sequence)
                        return refuse(why, "two segments of the record have the same number");
        return 0;
}

int replay_new(const uint8_t *bytes, size_t size, const struct settings_surroundings *surroundings,
               struct replay **ret, char why[static REPLAY_WHY_MAX])
{
        struct replay *replay = calloc(1, sizeof(*replay));

        if (!replay)
                return -ENOMEM;
        replay->surroundings = surroundings;
        int r = find_segments(replay, bytes, size, why);
        if (r < 0)
                replay_free(replay);
        else
                *ret = replay;
        return r;
}

size_t replay_damaged(const struct replay *replay)
{
        return replay->n_damaged;
}

static void forget_segment(struct replay *replay)
{
        replay->world = world_free(replay->world);
        replay->settings = settings_free(replay->settings);
        recorded_world_free(&replay->recorded);
}

struct replay *replay_free(struct replay *replay)
{
        if (!replay)
                return NULL;
        forget_segment(replay);
        plan_free(&replay->plan);
        free(replay->written.bytes);
        free(replay->was.actions);
        free(replay->is.actions);
        free(replay);
        return NULL;
}

/* Parses the value into the field of base, which may have a value. */
static int change_value(const struct replay *replay, const struct change *change, void *base, char *why)
{
        struct fleet_settings *fleet = fleet_settings_new(NULL);
        struct settings other = {0};
        void *parsed = settings_key_is_of_fleet(change->key) ? (void *)fleet : &other;
        char text[SETTINGS_WHY_MAX];

        if (!fleet)
                return -ENOMEM;
        int r = settings_value_parse(change->key, change->value, replay->surroundings, parsed, text);
        if (r == -EINVAL)
                snprintf(why, REPLAY_WHY_MAX, "%s: %s", change->key->name, text);
        if (r == 0 && base)
                r = settings_value_copy(change->key, parsed, base);
        fleet_settings_free(fleet);
        return r;
}

int replay_set(struct replay *replay, const char *text, char why[static REPLAY_WHY_MAX])
{
        const char *equals = strchr(text, '='),
                   *colon = memchr(text, ':', equals ? (size_t)(equals - text) : 0);
        const char *begin = colon ? colon + 1 : text;
        char name[64];

        if (!equals || (colon && (colon == text || colon - text > FLEET_NAME_MAX))) {
                snprintf(why, REPLAY_WHY_MAX, "write KEY=VALUE or FLEET:KEY=VALUE");
                return -EINVAL;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(equals - begin), begin);
        struct change change = {.key = settings_key_find(SETTINGS_FLEET, name), .value = equals + 1};
        if (!change.key && !colon)
                change.key = settings_key_find(SETTINGS_SQMGR, name);
        if (!change.key || !settings_key_is_recorded(change.key) || change.key->type == SETTINGS_FRAMEWORK) {
                snprintf(why, REPLAY_WHY_MAX, "'%s' is no setting that a record has", name);
                return -EINVAL;
        }
        if (replay->n_changes == REPLAY_CHANGES_MAX) {
                snprintf(why, REPLAY_WHY_MAX, "at most %d settings can be changed", REPLAY_CHANGES_MAX);
                return -EINVAL;
        }
        if (colon)
                snprintf(change.fleet, sizeof(change.fleet), "%.*s", (int)(colon - text), text);
        int r = change_value(replay, &change, NULL, why);
        if (r == 0)
                replay->changes[replay->n_changes++] = change;
        return r;
}

static bool change_is_of(const struct change *change, const char *fleet)
{
        return change->fleet[0] == '\0' || strcmp(change->fleet, fleet) == 0;
}

static int apply_change(struct replay *replay, struct change *change, char *why)
{
        struct settings *settings = replay->settings;
        int r = 0;

        if (!settings_key_is_of_fleet(change->key))
                return change_value(replay, change, settings, why);
        for (size_t i = 0; i < settings->n_fleets && r == 0; i++) {
                if (!change_is_of(change, settings->fleets[i]->name))
                        continue;
                change->found = true;
                r = change_value(replay, change, settings->fleets[i], why);
        }
        /* A fleet may be added or removed by a later reload. */
        if (r == 0 && !change->found && change->fleet[0] != '\0' && replay->at == replay->n_segments) {
                snprintf(why, REPLAY_WHY_MAX, "the record has no fleet '%s'", change->fleet);
                return -EINVAL;
        }
        return r;
}

/* Begins the next segment. */
static int begin_segment(struct replay *replay, char *why)
{
        const struct segment *segment = &replay->segments[replay->at++];

        forget_segment(replay);
        replay->reader = (struct codec_reader){.at = segment->bytes, .left = segment->header.used};
        int r = record_read_begin(&replay->reader, replay->surroundings, &replay->names, &replay->settings);
        if (r == 0 && !replay->settings)
                return refuse(why, "the settings in the record are damaged");
        for (size_t i = 0; i < replay->n_changes && r == 0; i++)
                r = apply_change(replay, &replay->changes[i], why);
        if (r == 0)
                r = recorded_world_init(&replay->recorded, replay->settings->n_fleets);
        return r < 0 ? r : world_new(replay->settings, 0, &replay->world);
}

static void set_values(enum model_part part, const uint64_t *values, void *base)
{
        const struct model_table *table = &model_tables[part];

        for (size_t i = 0; i < table->n; i++)
                codec_store_field((uint8_t *)base + table->fields[i].offset, table->fields[i].size,
                                  values[i]);
}

/* Without a changed limit, the recorded judgment stands: it may be older than the segment. */
static bool judges_memory(const struct replay *replay, const struct fleet *fleet)
{
        for (size_t i = 0; i < replay->n_changes; i++) {
                const char *key = replay->changes[i].key->name;

                if (change_is_of(&replay->changes[i], fleet->settings->name) &&
                    (strcmp(key, "memory_threshold") == 0 || strcmp(key, "memory_limit") == 0))
                        return true;
        }
        return false;
}

/* Judges the recorded reading of the memory by the changed settings. before: the worker at the last pass;
 * NULL: it is new. */
static void judge_memory(struct worker *worker, const struct worker_memory *before)
{
        uint64_t bytes = worker->memory.bytes;
        usec_t read_at = worker->memory.read_at;
        bool again = before && before->read_at == read_at;

        worker->memory = before ? *before : (struct worker_memory){.own_bytes = worker->memory.own_bytes};
        if (!again && read_at != 0)
                observe_memory(worker, bytes, read_at);
}

static int set_workers(const struct replay *replay, const struct recorded_fleet *recorded,
                       struct fleet *fleet)
{
        bool judges = judges_memory(replay, fleet);
        size_t at = 0;

        /* Keep those that are recorded. */
        FLEET_FOREACH_WORKER(fleet, worker) {
                while (at < recorded->n_workers && recorded->workers[at]->index < worker->index)
                        at++;
                if (at == recorded->n_workers || recorded->workers[at]->index != worker->index)
                        worker->state = WORKER_GONE;
        }
        fleet_reap(fleet, NULL);
        for (at = 0; at < recorded->n_workers; at++) {
                bool known =
                        at < fleet->n_workers && fleet->workers[at]->index == recorded->workers[at]->index;
                const struct worker new = {.index = recorded->workers[at]->index};
                struct worker *worker = known ? fleet->workers[at] : fleet_add_worker(fleet, &new);

                if (!worker)
                        return -ENOMEM;
                const struct worker_memory before = worker->memory;
                pid_t pid = worker->process.pid;
                set_values(MODEL_WORKER, recorded->workers[at]->values, worker);
                if (judges)
                        judge_memory(worker, known && worker->process.pid == pid ? &before : NULL);
        }
        return 0;
}

static int set_world(struct replay *replay)
{
        struct world *world = replay->world;
        int r = 0;

        set_values(MODEL_WORLD, replay->recorded.values, world);
        for (size_t i = 0; i < world->n_fleets && r == 0; i++) {
                const struct recorded_fleet *recorded = &replay->recorded.fleets[i];
                struct fleet *fleet = world->fleets[i];

                set_values(MODEL_FLEET, recorded->values, fleet);
                for (size_t j = 0; j < TEMPLATES_MAX; j++) {
                        set_values(MODEL_TEMPLATE, recorded->templates[j], &fleet->templates[j]);
                        fleet->templates[j].fleet = fleet;
                }
                r = set_workers(replay, recorded, fleet);
        }
        return r;
}

/* Plans, and brings the decision into the form of the recorded one. */
static int decide(struct replay *replay)
{
        usec_t now = replay->recorded.now;

        observe_time(replay->world, now);
        int r = plan_make(&replay->plan, replay->world, now);
        if (r < 0)
                return r;
        world_events_clear(replay->world);
        replay->written.size = 0;
        record_write_decision(&replay->written, &replay->plan, replay->world, now);
        if (replay->written.failed)
                return -ENOMEM;
        struct codec_reader reader = {.at = replay->written.bytes, .left = replay->written.size};
        free(TAKE_PTR(replay->is.actions));
        return record_read_decision(&reader, now, replay->world->n_fleets, &replay->is);
}

/* Returns true if the passes so far cost more than a record of sqmgr can. */
static bool costs_too_much(const struct replay *replay)
{
        const struct segment *segment = &replay->segments[replay->at - 1];

        return replay->recorded.work > REPLAY_WORK_PER_BYTE * (uint64_t)(replay->reader.at - segment->bytes);
}

/* Returns true if the fleets want more workers than a record can have: a plan that starts them would take
 * gigabytes. */
static bool wants_too_many(const struct world *world)
{
        uint64_t wanted = 0;

        WORLD_FOREACH_FLEET(world, fleet)
                wanted += fleet_target(fleet);
        return wanted > RECORD_WORKERS_MAX;
}

int replay_next(struct replay *replay, struct replay_step *ret, char why[static REPLAY_WHY_MAX])
{
        bool begins = replay->reader.left == 0;
        int r = 0;

        if (begins && replay->at == replay->n_segments)
                return 0;
        if (begins)
                r = begin_segment(replay, why);
        if (r == 0)
                r = record_read_state(&replay->reader, &replay->names, &replay->recorded);
        const uint8_t *decision = replay->reader.at;
        free(TAKE_PTR(replay->was.actions));
        if (r == 0)
                r = record_read_decision(&replay->reader, replay->recorded.now, replay->recorded.n_fleets,
                                         &replay->was);
        if (r == 0 && replay->reader.wrong)
                return refuse(why, "the record is damaged: a pass cannot be read");
        if (r == 0 && costs_too_much(replay))
                return refuse(why, "the record has too many passes and workers for its size");
        size_t size = (size_t)(replay->reader.at - decision);
        if (r == 0)
                r = set_world(replay);
        if (r == 0 && wants_too_many(replay->world))
                return refuse(why, "the record wants more workers than it can have");
        if (r == 0)
                r = decide(replay);
        if (r < 0)
                return r;
        replay->recorded.work += replay->is.n;
        *ret = (struct replay_step){
                .world = replay->world,
                .now = replay->recorded.now,
                .real_usec = replay->recorded.now + (uint64_t)replay->world->doubt.real_lag,
                .begins = begins,
                .same = size == replay->written.size && memcmp(decision, replay->written.bytes, size) == 0,
                .recorded = &replay->was,
                .replayed = &replay->is,
        };
        return 1;
}
