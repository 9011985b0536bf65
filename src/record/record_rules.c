/* SPDX-License-Identifier: MIT */
/* The bytes of a record; see the header. */
#include "record/record_rules.h"
#include "base/hash.h"
#include "decide/plan.h"
#include "model/fleet.h"
#include "model/world.h"
#include "settings/keys.h"
#include "settings/operations.h"
#include "settings/value.h"
#include <string.h>

/* Bits of the derived settings of a fleet. */
#define FLEET_REMOVED       1U
#define FLEET_STOP_BOUNDED  2U
#define FLEET_INTERRUPTIBLE 4U /* the setting names classes */
/* Longest name or value in a segment. */
#define TEXT_MAX 255

enum worker_change { WORKERS_END, WORKER_CHANGED, WORKER_REMOVED };

static void put(struct codec_writer *writer, uint64_t number)
{
        uint8_t bytes[10];
        size_t n = 0;

        for (; number >= 0x80; number >>= 7)
                bytes[n++] = (uint8_t)(number | 0x80);
        bytes[n++] = (uint8_t)number;
        uint8_t *space = codec_write_space(writer, n);
        if (space)
                memcpy(space, bytes, n);
}

static uint64_t get(struct codec_reader *reader, uint64_t max)
{
        uint64_t number = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                const uint8_t *byte = codec_read_space(reader, 1);

                if (!byte)
                        return 0;
                number |= (uint64_t)(*byte & 0x7f) << shift;
                if (*byte & 0x80)
                        continue;
                if (number <= max)
                        return number;
                break;
        }
        reader->wrong = true;
        return 0;
}

/* A difference of two numbers, both of which may be any: small ones of either sign are short. */
static void put_change(struct codec_writer *writer, uint64_t from, uint64_t to)
{
        uint64_t change = to - from;

        put(writer, change << 1 ^ (0 - (change >> 63)));
}

static uint64_t get_change(struct codec_reader *reader, uint64_t from)
{
        uint64_t change = get(reader, UINT64_MAX);

        return from + (change >> 1 ^ (0 - (change & 1)));
}

static void put_text(struct codec_writer *writer, const char *text)
{
        size_t length = strnlen(text, TEXT_MAX);

        put(writer, length);
        uint8_t *space = codec_write_space(writer, length);
        if (space)
                memcpy(space, text, length);
}

static void get_text(struct codec_reader *reader, char text[static TEXT_MAX + 1])
{
        size_t length = get(reader, TEXT_MAX);
        const uint8_t *bytes = codec_read_space(reader, length);

        if (bytes && memchr(bytes, '\0', length))
                reader->wrong = true;
        if (!bytes || reader->wrong)
                length = 0;
        else
                memcpy(text, bytes, length);
        text[length] = '\0';
}

void record_header_write(const struct record_header *header, uint8_t bytes[static RECORD_HEADER_SIZE])
{
        const uint64_t numbers[] = {header->slot_bytes, header->sequence, header->used, header->checksum};
        size_t at = sizeof(RECORD_MAGIC) - 1;

        memcpy(bytes, RECORD_MAGIC, at);
        codec_put_bytes(bytes + at, 4, RECORD_VERSION);
        at += 4;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++, at += 8)
                codec_put_bytes(bytes + at, 8, numbers[i]);
        codec_put_bytes(bytes + at, 4, (uint32_t)hash_bytes(HASH_INIT, bytes, at));
}

int record_header_parse(const uint8_t bytes[static RECORD_HEADER_SIZE], struct record_header *ret)
{
        size_t at = sizeof(RECORD_MAGIC) - 1, zeros = 0;
        uint64_t numbers[4];

        while (zeros < RECORD_HEADER_SIZE && bytes[zeros] == 0)
                zeros++;
        if (zeros == RECORD_HEADER_SIZE)
                return 0;
        if (memcmp(bytes, RECORD_MAGIC, at) != 0 || codec_get_bytes(bytes + at, 4) != RECORD_VERSION)
                return -EBADMSG;
        at += 4;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++, at += 8)
                numbers[i] = codec_get_bytes(bytes + at, 8);
        if (codec_get_bytes(bytes + at, 4) != (uint32_t)hash_bytes(HASH_INIT, bytes, at))
                return -EBADMSG;
        *ret = (struct record_header){
                .slot_bytes = numbers[0],
                .sequence = numbers[1],
                .used = numbers[2],
                .checksum = numbers[3],
        };
        return ret->slot_bytes < RECORD_HEADER_SIZE || ret->used > ret->slot_bytes - RECORD_HEADER_SIZE
                       ? -EBADMSG
                       : 1;
}

int record_header_read(const uint8_t *bytes, size_t size, struct record_header *ret)
{
        int r = size < RECORD_HEADER_SIZE ? -EBADMSG : record_header_parse(bytes, ret);

        if (r > 0 && (ret->used > size - RECORD_HEADER_SIZE ||
                      hash_bytes(HASH_INIT, bytes + RECORD_HEADER_SIZE, ret->used) != ret->checksum))
                r = -EBADMSG;
        return r;
}

int recorded_world_init(struct recorded_world *recorded, size_t n_fleets)
{
        *recorded = (struct recorded_world){.n_fleets = n_fleets};
        recorded->fleets = calloc(n_fleets + 1, sizeof(*recorded->fleets));
        return recorded->fleets ? 0 : -ENOMEM;
}

void recorded_world_free(struct recorded_world *recorded)
{
        for (size_t i = 0; recorded->fleets && i < recorded->n_fleets; i++) {
                for (size_t j = 0; j < recorded->fleets[i].n_workers; j++)
                        free(recorded->fleets[i].workers[j]);
                free(recorded->fleets[i].workers);
        }
        free(recorded->fleets);
        *recorded = (struct recorded_world){0};
}

/* Inserts a worker at this position. Only pointers move: many workers may come or go in one pass. */
static struct recorded_worker *insert_worker(struct recorded_fleet *fleet, size_t at, unsigned index)
{
        struct recorded_worker *worker = calloc(1, sizeof(*worker));

        if (!worker || !ARRAY_RESERVE(fleet->workers, fleet->n_workers, fleet->allocated)) {
                free(worker);
                return NULL;
        }
        worker->index = index;
        memmove(&fleet->workers[at + 1], &fleet->workers[at],
                (fleet->n_workers++ - at) * sizeof(*fleet->workers));
        fleet->workers[at] = worker;
        return worker;
}

static void remove_worker(struct recorded_fleet *fleet, size_t at)
{
        free(fleet->workers[at]);
        memmove(&fleet->workers[at], &fleet->workers[at + 1],
                (--fleet->n_workers - at) * sizeof(*fleet->workers));
}

bool settings_key_is_recorded(const struct settings_key *key)
{
        return key->scope != SETTINGS_REDIS && key->type >= SETTINGS_CHOICE;
}

/* Settings are written as the numbers that they are in memory, so that nothing is rounded. */
static uint64_t key_get(const struct settings_key *key, const void *base)
{
        const void *field = (const uint8_t *)base + key->offset;
        const struct share *share = field;
        uint64_t number;
        uint32_t half;

        if (key->type == SETTINGS_SHARE)
                return (uint64_t)share->value << 1 | share->percent;
        if (key->type == SETTINGS_DURATION || key->type == SETTINGS_SIZE) {
                memcpy(&number, field, sizeof(number));
                return number;
        }
        memcpy(&half, field, sizeof(half));
        return half;
}

/* A value that the key cannot have is ignored. */
static void key_set(const struct settings_key *key, void *base, uint64_t value)
{
        void *field = (uint8_t *)base + key->offset;
        const struct settings_choice *choice = key->choices;
        struct share *share = field;
        uint32_t half = (uint32_t)value;

        if (key->type == SETTINGS_SHARE) {
                if (value >> 1 <= (uint64_t)key->max)
                        *share = (struct share){.value = (uint32_t)(value >> 1), .percent = value & 1};
                return;
        }
        if (key->type == SETTINGS_DURATION || key->type == SETTINGS_SIZE) {
                memcpy(field, &value, sizeof(value));
                return;
        }
        /* A plan starts as many workers as the settings say. */
        if (key->type == SETTINGS_COUNT && value > (uint64_t)key->max)
                return;
        while (key->type == SETTINGS_CHOICE && choice->name && choice->value != (int)half)
                choice++;
        if (key->type != SETTINGS_CHOICE || choice->name ||
            (key->unset_value && memcmp(key->unset_value, &half, sizeof(half)) == 0))
                memcpy(field, &half, sizeof(half));
}

static void write_keys(struct codec_writer *writer, bool of_fleet, const void *base)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];

                if (!settings_key_is_recorded(key) || settings_key_is_of_fleet(key) != of_fleet ||
                    key->type == SETTINGS_FRAMEWORK)
                        continue;
                put_text(writer, key->name);
                put(writer, key_get(key, base));
        }
        put_text(writer, "");
}

void record_write_begin(struct codec_writer *writer, const struct settings *settings)
{
        for (size_t part = 0; part < _MODEL_PART_MAX; part++) {
                put(writer, model_tables[part].n);
                for (size_t i = 0; i < model_tables[part].n; i++)
                        put_text(writer, model_tables[part].fields[i].name);
        }
        write_keys(writer, false, settings);
        put(writer, settings->n_fleets);
        for (size_t i = 0; i < settings->n_fleets; i++) {
                const struct fleet_settings *fleet = settings->fleets[i];

                put_text(writer, fleet->name);
                put_text(writer, fleet->traits->name);
                put(writer, (fleet->removed ? FLEET_REMOVED : 0) |
                                    (fleet->stop_bounded ? FLEET_STOP_BOUNDED : 0) |
                                    (fleet->interruptible ? FLEET_INTERRUPTIBLE : 0));
                write_keys(writer, true, fleet);
        }
}

/* Writes the fields that differ, each behind its distance from the one before, and then 0. */
static bool write_values(struct codec_writer *writer, enum model_part part, uint64_t *values,
                         const void *base)
{
        const struct model_table *table = &model_tables[part];
        size_t last = 0;

        for (size_t i = 0; i < table->n; i++) {
                uint64_t value = codec_load_field((const uint8_t *)base + table->fields[i].offset,
                                                  table->fields[i].size);

                if (value == values[i])
                        continue;
                put(writer, i + 1 - last);
                put_change(writer, values[i], value);
                values[i] = value;
                last = i + 1;
        }
        put(writer, 0);
        return last > 0;
}

static void write_worker_head(struct codec_writer *writer, enum worker_change change, unsigned index,
                              unsigned *last)
{
        put(writer, change);
        put_change(writer, *last, index);
        *last = index;
}

/* A worker without a difference costs nothing. */
static void write_worker(struct codec_writer *writer, struct recorded_worker *recorded,
                         const struct worker *worker, unsigned *last)
{
        size_t size = writer->size;
        unsigned before = *last;

        write_worker_head(writer, WORKER_CHANGED, worker->index, last);
        if (!write_values(writer, MODEL_WORKER, recorded->values, worker)) {
                writer->size = size;
                *last = before;
        }
}

static int write_workers(struct codec_writer *writer, struct recorded_fleet *recorded,
                         const struct fleet *fleet)
{
        unsigned last = 0;
        size_t at = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                while (at < recorded->n_workers && recorded->workers[at]->index < worker->index) {
                        write_worker_head(writer, WORKER_REMOVED, recorded->workers[at]->index, &last);
                        remove_worker(recorded, at);
                }
                if ((at == recorded->n_workers || recorded->workers[at]->index != worker->index) &&
                    !insert_worker(recorded, at, worker->index))
                        return -ENOMEM;
                write_worker(writer, recorded->workers[at++], worker, &last);
        }
        while (at < recorded->n_workers) {
                write_worker_head(writer, WORKER_REMOVED, recorded->workers[at]->index, &last);
                remove_worker(recorded, at);
        }
        put(writer, WORKERS_END);
        return 0;
}

int record_write_state(struct codec_writer *writer, struct recorded_world *recorded,
                       const struct world *world, usec_t now)
{
        int r = 0;

        assert(recorded->n_fleets == world->n_fleets);
        put_change(writer, recorded->now, now);
        recorded->now = now;
        (void)write_values(writer, MODEL_WORLD, recorded->values, world);
        for (size_t i = 0; i < world->n_fleets && r == 0; i++) {
                struct recorded_fleet *fleet = &recorded->fleets[i];

                (void)write_values(writer, MODEL_FLEET, fleet->values, world->fleets[i]);
                for (size_t j = 0; j < TEMPLATES_MAX; j++)
                        (void)write_values(writer, MODEL_TEMPLATE, fleet->templates[j],
                                           &world->fleets[i]->templates[j]);
                r = write_workers(writer, fleet, world->fleets[i]);
                recorded->work += fleet->n_workers;
        }
        return r;
}

static size_t position_of(const struct world *world, const struct fleet *fleet)
{
        size_t i = 0;

        while (world->fleets[i] != fleet)
                i++;
        return i;
}

void record_write_decision(struct codec_writer *writer, const struct plan *plan, const struct world *world,
                           usec_t now)
{
        put(writer, plan->n_actions);
        for (size_t i = 0; i < plan->n_actions; i++) {
                const struct action *action = &plan->actions[i];

                put(writer, action->kind);
                put(writer, position_of(world, action->fleet));
                put(writer, action->worker ? action->worker->index : action->index);
                put(writer,
                    action->template ? (uint64_t)(action->template - action->fleet->templates) + 1 : 0);
                put(writer, action->reason);
        }
        put(writer, plan->wake_at == USEC_INFINITY ? 0 : plan->wake_at - now + 1);
}

static void read_names(struct codec_reader *reader, struct record_names *names)
{
        char name[TEXT_MAX + 1];

        for (size_t part = 0; part < _MODEL_PART_MAX; part++) {
                const struct model_table *table = &model_tables[part];

                names->parts[part].n = get(reader, MODEL_FIELDS_MAX);
                for (size_t i = 0; i < names->parts[part].n; i++) {
                        get_text(reader, name);
                        names->parts[part].own[i] = -1;
                        for (size_t j = 0; j < table->n; j++)
                                if (strcmp(table->fields[j].name, name) == 0)
                                        names->parts[part].own[i] = (int16_t)j;
                }
        }
}

/* Keys that this sqmgr does not have are skipped. */
static void read_keys(struct codec_reader *reader, bool of_fleet, void *base)
{
        char name[TEXT_MAX + 1];

        for (;;) {
                get_text(reader, name);
                if (reader->wrong || name[0] == '\0')
                        return;
                uint64_t value = get(reader, UINT64_MAX);
                const struct settings_key *key =
                        settings_key_find(of_fleet ? SETTINGS_FLEET : SETTINGS_SQMGR, name);
                if (key && settings_key_is_recorded(key) && key->type != SETTINGS_FRAMEWORK)
                        key_set(key, base, value);
        }
}

static const struct traits *find_traits(const struct settings_surroundings *surroundings, const char *name)
{
        const struct traits *const *traits = surroundings->frameworks;

        while (*traits && strcmp((*traits)->name, name) != 0)
                traits++;
        return *traits;
}

static int read_fleet_settings(struct codec_reader *reader, const struct settings_surroundings *surroundings,
                               struct settings *settings)
{
        char name[TEXT_MAX + 1], framework[TEXT_MAX + 1];

        get_text(reader, name);
        get_text(reader, framework);
        const struct traits *traits = find_traits(surroundings, framework);
        uint64_t flags = get(reader, FLEET_REMOVED | FLEET_STOP_BOUNDED | FLEET_INTERRUPTIBLE);
        /* Names are printed: nothing else than an ini may have. */
        if (!traits || name[0] == '\0' || strlen(name) > FLEET_NAME_MAX ||
            name[strspn(name, FLEET_NAME_LETTERS)] != '\0' || settings_find_fleet(settings, name))
                reader->wrong = true;
        if (reader->wrong)
                return 0;
        struct fleet_settings *fleet = settings_add_fleet(settings, name);
        if (!fleet)
                return -ENOMEM;
        fleet->traits = traits;
        fleet->removed = flags & FLEET_REMOVED;
        fleet->stop_bounded = flags & FLEET_STOP_BOUNDED;
        if (flags & FLEET_INTERRUPTIBLE && !(fleet->interruptible = strdup("recorded")))
                return -ENOMEM;
        read_keys(reader, true, fleet);
        return 0;
}

int record_read_begin(struct codec_reader *reader, const struct settings_surroundings *surroundings,
                      struct record_names *names, struct settings **ret_settings)
{
        _cleanup_settings_ struct settings *settings = calloc(1, sizeof(*settings));

        *ret_settings = NULL;
        if (!settings)
                return -ENOMEM;
        read_names(reader, names);
        read_keys(reader, false, settings);
        int r = 0;
        size_t n = get(reader, RECORD_FLEETS_MAX);
        for (size_t i = 0; i < n && r == 0 && !reader->wrong; i++)
                r = read_fleet_settings(reader, surroundings, settings);
        if (r == 0 && !reader->wrong)
                *ret_settings = TAKE_PTR(settings);
        return r;
}

static void read_values(struct codec_reader *reader, const struct record_names *names, enum model_part part,
                        uint64_t *values)
{
        const struct model_table *table = &model_tables[part];
        size_t at = 0, step;

        while ((step = get(reader, MODEL_FIELDS_MAX)) != 0) {
                at += step;
                if (at > names->parts[part].n) {
                        reader->wrong = true;
                        return;
                }
                int own = names->parts[part].own[at - 1];
                uint64_t value = get_change(reader, own < 0 ? 0 : values[own]);
                if (own < 0)
                        continue;
                if (value > table->fields[own].max)
                        reader->wrong = true;
                else
                        values[own] = value;
        }
}

static int read_workers(struct codec_reader *reader, const struct record_names *names,
                        struct recorded_world *recorded, struct recorded_fleet *fleet)
{
        enum worker_change change;
        uint64_t last = 0;
        size_t at = 0;

        while ((change = (enum worker_change)get(reader, WORKER_REMOVED)) != WORKERS_END) {
                uint64_t index = get_change(reader, last);

                if (reader->wrong || index <= last || index > INT32_MAX)
                        break;
                last = index;
                while (at < fleet->n_workers && fleet->workers[at]->index < index)
                        at++;
                bool known = at < fleet->n_workers && fleet->workers[at]->index == index;
                if (change == WORKER_REMOVED ? !known : !known && recorded->n_workers >= RECORD_WORKERS_MAX)
                        break;
                if (change == WORKER_REMOVED) {
                        remove_worker(fleet, at);
                        recorded->n_workers--;
                        continue;
                }
                recorded->n_workers += !known;
                if (!known && !insert_worker(fleet, at, (unsigned)index))
                        return -ENOMEM;
                read_values(reader, names, MODEL_WORKER, fleet->workers[at]->values);
        }
        reader->wrong |= change != WORKERS_END;
        return 0;
}

int record_read_state(struct codec_reader *reader, const struct record_names *names,
                      struct recorded_world *recorded)
{
        int r = 0;

        recorded->now = get_change(reader, recorded->now);
        read_values(reader, names, MODEL_WORLD, recorded->values);
        for (size_t i = 0; i < recorded->n_fleets && r == 0 && !reader->wrong; i++) {
                struct recorded_fleet *fleet = &recorded->fleets[i];

                read_values(reader, names, MODEL_FLEET, fleet->values);
                for (size_t j = 0; j < TEMPLATES_MAX; j++)
                        read_values(reader, names, MODEL_TEMPLATE, fleet->templates[j]);
                r = read_workers(reader, names, recorded, fleet);
        }
        recorded->work += recorded->n_workers;
        return r;
}

int record_read_decision(struct codec_reader *reader, usec_t now, size_t n_fleets, struct decision *ret)
{
        /* An action takes at least five bytes. */
        size_t n = get(reader, n_fleets > 0 ? reader->left / 5 : 0);

        *ret = (struct decision){.actions = calloc(n + 1, sizeof(*ret->actions))};
        if (!ret->actions)
                return -ENOMEM;
        for (; ret->n < n && !reader->wrong; ret->n++)
                ret->actions[ret->n] = (struct recorded_action){
                        .kind = (unsigned)get(reader, ACTION_TEMPLATE_KILL),
                        .fleet = get(reader, n_fleets - 1),
                        .index = (unsigned)get(reader, UINT32_MAX),
                        .slot = (unsigned)get(reader, TEMPLATES_MAX),
                        .reason = (unsigned)get(reader, _REASON_MAX - 1),
                };
        uint64_t wake = get(reader, UINT64_MAX);
        ret->wake_at = wake == 0 ? USEC_INFINITY : now + wake - 1;
        return 0;
}
