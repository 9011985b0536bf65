/* SPDX-License-Identifier: MIT */
/* The data of the plots: ring buffers of fixed size. No I/O, no clock. */
#include "web/history.h"
#include "base/hash.h"
#include "base/printable.h"
#include "wire/reply.h"
#include <float.h>
#include <math.h>

#define SOCKET_MAX  104
#define FLEET_MAX   48
#define EVENT_MAX   32
#define TEXT_MAX    304
#define SLOTS       (720 + 1440 + 4320)
#define CHANGES_MAX 512
/* A fleet seen within this time is not replaced by another. Otherwise 65 fleets would displace each other. */
#define GONE_AFTER (10 * USEC_PER_MIN)
/* Up to this value, a number of thousandths fits in int64_t. */
#define THOUSANDTHS_MAX 9e15

enum series { SERIES_MEMORY, SERIES_ACTIVE, SERIES_BUSY, SERIES_LATENCY, _SERIES_MAX };

struct slot {
        uint32_t owner;  /* owner of the fleet; 0: empty */
        uint32_t number; /* time / step */
        float values[_SERIES_MAX];
        uint32_t n_busy; /* number of samples in the mean SERIES_BUSY */
        uint32_t check;
};

struct history_fleet {
        uint32_t owner; /* unique among all fleets that this history ever had; 0: none */
        uint32_t check;
        char socket[SOCKET_MAX], name[FLEET_MAX];
};

struct mark {
        uint64_t at;     /* microseconds since 1970 */
        uint64_t serial; /* 0: empty */
        uint32_t group;  /* hash of socket and fleet */
        uint32_t check;
        char socket[SOCKET_MAX], fleet[FLEET_MAX], event[EVENT_MAX], text[TEXT_MAX];
};

/* Any other layout has other values here. */
struct header {
        char magic[HISTORY_MAGIC];
        uint32_t version, byte_order;
        uint32_t fleets, marks, slots, fleet_size, mark_size, slot_size;
};

struct image {
        struct header header;
        struct history_fleet fleets[HISTORY_FLEETS];
        struct mark marks[HISTORY_MARKS];
        struct slot slots[HISTORY_FLEETS][SLOTS];
};

/* Without padding, whose bytes would be undefined. */
static_assert(sizeof(struct slot) == 32, "slot");
static_assert(sizeof(struct history_fleet) == 8 + SOCKET_MAX + FLEET_MAX, "fleet");
static_assert(sizeof(struct mark) == 512, "mark");
static_assert(offsetof(struct image, fleets) == sizeof(struct header) && sizeof(struct header) == 40,
              "header");

struct history {
        struct image image;
        usec_t seen[HISTORY_FLEETS]; /* last sample; derived from slots after loading a file */
        uint32_t last_owner;
        uint64_t last_serial;
        size_t left_out;
        struct history_change changes[CHANGES_MAX];
        size_t n_changes; /* above CHANGES_MAX: too many changes, write everything */
};

const size_t HISTORY_BYTES = sizeof(struct image), HISTORY_HEADER = sizeof(struct header);

static const struct header header_of_this_version = {
        .magic = {'s', 'q', 'm', 'g', 'r', 'h', 'i', 's'},
        .version = HISTORY_VERSION,
        .byte_order = 0x01020304,
        .fleets = HISTORY_FLEETS,
        .marks = HISTORY_MARKS,
        .slots = SLOTS,
        .fleet_size = sizeof(struct history_fleet),
        .mark_size = sizeof(struct mark),
        .slot_size = sizeof(struct slot),
};

static const struct ring {
        const char *name;
        unsigned step_seconds;
        size_t first, length;
} rings[] = {
        [HISTORY_HOUR] = {"hour", 5, 0, 720},
        [HISTORY_DAY] = {"day", 60, 720, 1440},
        [HISTORY_MONTH] = {"month", 600, 720 + 1440, 4320},
};
static_assert(ELEMENTSOF(rings) == _HISTORY_RANGE_MAX, "rings");

int history_range_find(const char *name)
{
        for (int range = 0; range < _HISTORY_RANGE_MAX; range++)
                if (strcmp(rings[range].name, name) == 0)
                        return range;
        return -EINVAL;
}

static uint32_t number_at(const struct ring *ring, usec_t realtime)
{
        return (uint32_t)(realtime / (ring->step_seconds * USEC_PER_SEC));
}

static uint32_t fold_hash(uint64_t hash)
{
        return (uint32_t)(hash ^ hash >> 32);
}

/* The checksum of a record without the checksum itself. */
static uint32_t check_of(const void *record, size_t size, const uint32_t *check)
{
        size_t before = (size_t)((const uint8_t *)check - (const uint8_t *)record);
        uint64_t hash = hash_bytes(HASH_INIT, record, before);

        return fold_hash(hash_bytes(hash, check + 1, size - before - sizeof(*check)));
}
#define CHECK_OF(record) check_of((record), sizeof(*(record)), &(record)->check)

struct history *history_new(void)
{
        struct history *history = calloc(1, sizeof(*history));

        if (history)
                history->image.header = header_of_this_version;
        return history;
}

static void changed(struct history *history, const void *record, size_t size)
{
        if (history->n_changes < CHANGES_MAX)
                history->changes[history->n_changes] = (struct history_change){
                        .offset = (size_t)((const uint8_t *)record - history_bytes(history)), .size = size};
        history->n_changes = MIN(history->n_changes + 1, CHANGES_MAX + 1);
}

/* Cuts between characters. The rest is filled with 0, so that equal texts have equal bytes. */
static void put_text(char *to, size_t size, const char *from)
{
        size_t length = strnlen(from, size);

        if (length == size) {
                length--;
                while (length > 0 && (from[length] & 0xc0) == 0x80)
                        length--;
        }
        memcpy(to, from, length);
        memset(to + length, 0, size - length);
        printable_replace(to, length, false);
}

static struct history_fleet make_fleet(uint32_t owner, const char *socket, const char *name)
{
        struct history_fleet fleet = {.owner = owner};

        put_text(fleet.socket, sizeof(fleet.socket), socket);
        put_text(fleet.name, sizeof(fleet.name), name);
        fleet.check = CHECK_OF(&fleet);
        return fleet;
}

static bool same_key(const struct history_fleet *a, const struct history_fleet *b)
{
        return memcmp(a->name, b->name, sizeof(a->name)) == 0 &&
               memcmp(a->socket, b->socket, sizeof(a->socket)) == 0;
}

/* Returns the fleet's place, assigning one if needed. Returns HISTORY_FLEETS if no place is available. */
static size_t find_place(struct history *history, const struct history_fleet *key, usec_t now)
{
        struct history_fleet *fleets = history->image.fleets;
        size_t place = HISTORY_FLEETS;
        usec_t longest = GONE_AFTER;

        for (size_t i = 0; i < HISTORY_FLEETS; i++) {
                usec_t seen = history->seen[i];
                /* The clock may have been set back since then. */
                usec_t absent = fleets[i].owner == 0 ? USEC_INFINITY : MAX(now, seen) - MIN(now, seen);

                if (fleets[i].owner != 0 && same_key(&fleets[i], key))
                        return i;
                if (absent > longest) {
                        longest = absent;
                        place = i;
                }
        }
        if (place == HISTORY_FLEETS)
                return place;
        fleets[place] = make_fleet(++history->last_owner, key->socket, key->name);
        changed(history, &fleets[place], sizeof(fleets[place]));
        return place;
}

static float known(double value)
{
        return value >= 0 && value <= (double)FLT_MAX ? (float)value : NAN;
}

static void fold(struct slot *slot, uint32_t owner, uint32_t number, const struct history_sample *sample)
{
        float busy = known(sample->busy), *values = slot->values;

        if (slot->owner != owner || slot->number != number)
                *slot = (struct slot){.owner = owner, .number = number, .values = {NAN, NAN, NAN, NAN}};
        /* fmaxf() and fminf() of a number and NAN return the number. */
        values[SERIES_MEMORY] = fmaxf(values[SERIES_MEMORY], known(sample->memory_bytes));
        values[SERIES_ACTIVE] = fminf(values[SERIES_ACTIVE], known(sample->active));
        values[SERIES_LATENCY] = fmaxf(values[SERIES_LATENCY], known(sample->latency_seconds));
        if (!isnan(busy) && slot->n_busy < UINT32_MAX) {
                float mean = slot->n_busy == 0 ? 0 : values[SERIES_BUSY];

                slot->n_busy++;
                values[SERIES_BUSY] = mean + (busy - mean) / (float)slot->n_busy;
        }
        slot->check = CHECK_OF(slot);
}

void history_add(struct history *history, usec_t realtime, const struct history_sample *samples, size_t n)
{
        history->left_out = 0;
        for (size_t i = 0; i < n; i++) {
                const struct history_fleet key = make_fleet(0, samples[i].socket, samples[i].fleet);
                size_t place = find_place(history, &key, realtime);

                if (place == HISTORY_FLEETS) {
                        history->left_out++;
                        continue;
                }
                history->seen[place] = realtime;
                for (int range = 0; range < _HISTORY_RANGE_MAX; range++) {
                        uint32_t number = number_at(&rings[range], realtime);
                        struct slot *slot =
                                &history->image
                                         .slots[place][rings[range].first + number % rings[range].length];

                        fold(slot, history->image.fleets[place].owner, number, &samples[i]);
                        changed(history, slot, sizeof(*slot));
                }
        }
}

static size_t count_group(const struct mark *marks, uint32_t group)
{
        size_t n = 0;

        for (size_t i = 0; i < HISTORY_MARKS; i++)
                n += marks[i].group == group;
        return n;
}

/* Returns a free place, or the oldest mark of the group with the most marks. */
static struct mark *place_for_mark(struct mark *marks)
{
        struct mark *oldest = NULL;
        size_t most = 0;

        for (size_t i = 0; i < HISTORY_MARKS; i++) {
                if (marks[i].serial == 0)
                        return &marks[i];
                if (oldest && marks[i].group == oldest->group) {
                        if (marks[i].serial < oldest->serial)
                                oldest = &marks[i];
                        continue;
                }
                size_t n = count_group(marks, marks[i].group);
                if (n > most) {
                        most = n;
                        oldest = &marks[i];
                }
        }
        return oldest;
}

/* Sets all members but at and serial, which the caller has set. */
static void fill_mark(struct mark *mark, const char *socket, const char *fleet, const char *event,
                      const char *text)
{
        put_text(mark->socket, sizeof(mark->socket), socket);
        put_text(mark->fleet, sizeof(mark->fleet), fleet);
        put_text(mark->event, sizeof(mark->event), event);
        put_text(mark->text, sizeof(mark->text), text);
        uint64_t hash = hash_bytes(HASH_INIT, mark->socket, sizeof(mark->socket));
        hash = hash_bytes(hash, mark->fleet, sizeof(mark->fleet));
        mark->group = fold_hash(hash);
        mark->check = CHECK_OF(mark);
}

void history_mark(struct history *history, usec_t realtime, const char *socket, const char *fleet,
                  const char *event, const char *text)
{
        struct mark *mark = place_for_mark(history->image.marks);

        *mark = (struct mark){.at = realtime, .serial = ++history->last_serial};
        fill_mark(mark, socket, fleet ?: "", event, text);
        changed(history, mark, sizeof(*mark));
}

usec_t history_newest_mark(const struct history *history, const char *socket, usec_t now)
{
        usec_t newest = 0;

        for (size_t i = 0; i < HISTORY_MARKS; i++) {
                const struct mark *mark = &history->image.marks[i];

                if (mark->at <= now && strcmp(mark->socket, socket) == 0)
                        newest = MAX(newest, mark->at);
        }
        return newest;
}

/* Most values are whole numbers, which are shorter as integers. */
static json_t *number_json(float value)
{
        double exact = (double)value;

        if (!isfinite(value))
                return json_null();
        if (exact < -THOUSANDTHS_MAX || exact > THOUSANDTHS_MAX)
                return json_real(exact);
        int64_t thousandths = (int64_t)(exact * 1000 + 0.5);
        return thousandths % 1000 == 0 ? json_integer(thousandths / 1000)
                                       : json_real((double)thousandths / 1000);
}

/* Returns the slot of that number, or NULL. */
static const struct slot *find_slot(const struct image *image, size_t place, const struct ring *ring,
                                    uint32_t number)
{
        const struct slot *slot = &image->slots[place][ring->first + number % ring->length];

        bool is_it = slot->owner != 0 && slot->owner == image->fleets[place].owner && slot->number == number;

        return is_it ? slot : NULL;
}

static json_t *series_json(const struct image *image, size_t place, const struct ring *ring, uint32_t last,
                           size_t series)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < ring->length; i++) {
                const struct slot *slot =
                        find_slot(image, place, ring, last - (uint32_t)(ring->length - 1 - i));

                if (json_array_append_new(array, slot ? number_json(slot->values[series]) : json_null()) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static bool has_values(const struct image *image, size_t place, const struct ring *ring, uint32_t last)
{
        for (uint32_t i = 0; image->fleets[place].owner != 0 && i < ring->length; i++)
                if (find_slot(image, place, ring, last - i))
                        return true;
        return false;
}

static json_t *fleet_json(const struct image *image, size_t place, const struct ring *ring, uint32_t last)
{
        const struct history_fleet *key = &image->fleets[place];
        json_t *series[_SERIES_MAX];

        for (size_t i = 0; i < _SERIES_MAX; i++)
                series[i] = series_json(image, place, ring, last, i);
        /* json_pack() takes over all references, even on failure. */
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "socket", key->socket, "name", key->name,
                         "memory_bytes", series[SERIES_MEMORY], "active", series[SERIES_ACTIVE], "busy",
                         series[SERIES_BUSY], "latency_seconds", series[SERIES_LATENCY]);
}

static int compare_fleets(const void *a, const void *b)
{
        const struct history_fleet *one = *(const struct history_fleet *const *)a,
                                   *other = *(const struct history_fleet *const *)b;
        int by_socket = strcmp(one->socket, other->socket);

        return by_socket != 0 ? by_socket : strcmp(one->name, other->name);
}

static json_t *fleets_json(const struct image *image, const struct ring *ring, uint32_t last)
{
        _cleanup_json_ json_t *array = json_array();
        const struct history_fleet *sorted[HISTORY_FLEETS] = {0};
        size_t n = 0;

        for (size_t i = 0; i < HISTORY_FLEETS; i++)
                if (has_values(image, i, ring, last))
                        sorted[n++] = &image->fleets[i];
        qsort(sorted, n, sizeof(*sorted), compare_fleets);
        for (size_t i = 0; array && i < n; i++)
                if (json_array_append_new(
                            array, fleet_json(image, (size_t)(sorted[i] - image->fleets), ring, last)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static int compare_marks(const void *a, const void *b)
{
        const struct mark *one = *(const struct mark *const *)a, *other = *(const struct mark *const *)b;

        if (one->at != other->at)
                return one->at < other->at ? -1 : 1;
        return one->serial < other->serial ? -1 : 1;
}

static json_t *mark_json(const struct mark *mark)
{
        return json_pack("{s:f, s:s, s:o, s:s, s:s}", "at", (double)mark->at / (double)USEC_PER_SEC, "socket",
                         mark->socket, "fleet",
                         mark->fleet[0] != '\0' ? json_string(mark->fleet) : json_null(), "event",
                         mark->event, "text", mark->text);
}

static json_t *marks_json(const struct image *image, usec_t from, usec_t to)
{
        _cleanup_json_ json_t *array = json_array();
        const struct mark *sorted[HISTORY_MARKS] = {0};
        size_t n = 0;

        for (size_t i = 0; i < HISTORY_MARKS; i++) {
                const struct mark *mark = &image->marks[i];

                if (mark->serial != 0 && mark->at >= from && mark->at <= to)
                        sorted[n++] = mark;
        }
        qsort(sorted, n, sizeof(*sorted), compare_marks);
        for (size_t i = 0; array && i < n; i++)
                if (json_array_append_new(array, mark_json(sorted[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

json_t *history_json(const struct history *history, enum history_range range, usec_t now)
{
        const struct ring *ring = &rings[range];
        usec_t step = ring->step_seconds * USEC_PER_SEC, end = now - now % step;
        usec_t from = usec_sub(end, (ring->length - 1) * step);
        json_t *fleets = fleets_json(&history->image, ring, number_at(ring, now));
        json_t *marks = marks_json(&history->image, from, now);

        /* json_pack() takes over both references, even on failure. */
        return json_pack("{s:s, s:i, s:I, s:I, s:o, s:o}", "range", ring->name, "step_seconds",
                         (int)ring->step_seconds, "end", (json_int_t)(end / USEC_PER_SEC), "left_out",
                         (json_int_t)history->left_out, "fleets", fleets, "marks", marks);
}

uint8_t *history_bytes(struct history *history)
{
        return (uint8_t *)&history->image;
}

/* A valid record has the same bytes when rebuilt from its contents. */
static bool fleet_is_whole(const struct history_fleet *fleet)
{
        const struct history_fleet again = make_fleet(fleet->owner, fleet->socket, fleet->name);

        return memcmp(fleet, &again, sizeof(again)) == 0;
}

static bool mark_is_whole(const struct mark *mark)
{
        struct mark again = {.at = mark->at, .serial = mark->serial};

        fill_mark(&again, mark->socket, mark->fleet, mark->event, mark->text);
        return memcmp(mark, &again, sizeof(again)) == 0;
}

bool history_is_zero(const void *bytes, size_t size)
{
        const uint8_t *first = bytes;

        return size == 0 || (first[0] == 0 && memcmp(first, first + 1, size - 1) == 0);
}

static size_t adopt_marks(struct history *history)
{
        size_t n_damaged = 0;

        for (size_t i = 0; i < HISTORY_MARKS; i++) {
                struct mark *mark = &history->image.marks[i];

                if (history_is_zero(mark, sizeof(*mark)))
                        continue;
                if (mark->serial == 0 || mark->serial == UINT64_MAX || !mark_is_whole(mark)) {
                        *mark = (struct mark){0};
                        n_damaged++;
                }
                history->last_serial = MAX(history->last_serial, mark->serial);
        }
        return n_damaged;
}

static bool is_second(const struct image *image, size_t place)
{
        for (size_t i = 0; i < place; i++)
                if (image->fleets[i].owner != 0 && (image->fleets[i].owner == image->fleets[place].owner ||
                                                    same_key(&image->fleets[i], &image->fleets[place])))
                        return true;
        return false;
}

/* Returns false if the slot was damaged. A valid slot of a fleet that was replaced is dropped, but not
 * counted as damaged. */
static bool adopt_slot(struct history *history, size_t place, const struct ring *ring, size_t i)
{
        struct slot *slot = &history->image.slots[place][ring->first + i];
        uint32_t owner = history->image.fleets[place].owner;

        if (history_is_zero(slot, sizeof(*slot)))
                return true;
        bool whole = slot->number % ring->length == i && slot->check == CHECK_OF(slot);
        if (whole && owner != 0 && slot->owner == owner) {
                history->seen[place] =
                        MAX(history->seen[place], slot->number * (ring->step_seconds * USEC_PER_SEC));
                return true;
        }
        *slot = (struct slot){0};
        history->n_changes = CHANGES_MAX + 1;
        return whole;
}

static size_t adopt_slots(struct history *history, size_t place)
{
        size_t n_damaged = 0;

        if (history_is_zero(history->image.slots[place], sizeof(history->image.slots[place])))
                return 0;
        for (int range = 0; range < _HISTORY_RANGE_MAX; range++)
                for (size_t i = 0; i < rings[range].length; i++)
                        n_damaged += !adopt_slot(history, place, &rings[range], i);
        return n_damaged;
}

size_t history_adopt(struct history *history)
{
        size_t n_damaged = adopt_marks(history);

        for (size_t i = 0; i < HISTORY_FLEETS; i++) {
                struct history_fleet *fleet = &history->image.fleets[i];
                bool empty = history_is_zero(fleet, sizeof(*fleet));

                if (!empty && (fleet->owner == 0 || fleet->owner == UINT32_MAX || !fleet_is_whole(fleet) ||
                               is_second(&history->image, i))) {
                        *fleet = (struct history_fleet){0};
                        n_damaged++;
                }
                history->last_owner = MAX(history->last_owner, fleet->owner);
                n_damaged += adopt_slots(history, i);
        }
        if (n_damaged > 0)
                history->n_changes = CHANGES_MAX + 1;
        return n_damaged;
}

size_t history_changes(const struct history *history, const struct history_change **ret)
{
        static const struct history_change all = {.offset = sizeof(struct header),
                                                  .size = sizeof(struct image) - sizeof(struct header)};

        *ret = history->n_changes > CHANGES_MAX ? &all : history->changes;
        return history->n_changes > CHANGES_MAX ? 1 : history->n_changes;
}

void history_saved(struct history *history)
{
        history->n_changes = 0;
}

static double number_of(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Returns NAN if a worker does not report its busy threads. */
static double busy_of(const json_t *fleet)
{
        const json_t *worker;
        double busy = 0;

        json_foreach_in(worker, fleet, "workers")
                /* A starting worker has not sent a heartbeat and runs no job. */
                if (!reply_is(worker, "state", "starting"))
                        busy += number_of(worker, "busy");
        return busy;
}

static double latency_of(const json_t *redis)
{
        const json_t *each, *queue;
        double latency = NAN;

        json_foreach(each, redis)
                json_foreach_in(queue, each, "queues")
                        latency = fmax(latency, number_of(queue, "latency_seconds"));
        return latency;
}

ssize_t history_feed_samples(const struct instances *instances, struct history_sample **ret)
{
        _cleanup_free_ struct history_sample *list = NULL;
        size_t n = 0, allocated = 0;

        for (size_t i = 0; i < instances->n; i++) {
                const struct instance *instance = &instances->list[i];
                const json_t *fleet;
                double latency = latency_of(instance->queues);

                if (!instance->reachable)
                        continue;
                json_foreach_in(fleet, instance->status, "fleets") {
                        const char *name = json_string_value(json_object_get(fleet, "name"));

                        if (!name)
                                continue;
                        if (!ARRAY_RESERVE(list, n, allocated))
                                return -ENOMEM;
                        list[n++] = (struct history_sample){
                                .socket = instance->socket,
                                .fleet = name,
                                .memory_bytes = number_of(fleet, "memory_bytes"),
                                .active = number_of(fleet, "active"),
                                .busy = busy_of(fleet),
                                .latency_seconds = latency,
                        };
                }
        }
        *ret = TAKE_PTR(list);
        return (ssize_t)n;
}

const char *history_feed_mark_name(const char *event)
{
        static const char *const names[][2] = {
                {"boot-timeout", "crash"},
                {"crashed", "crash"},
                {"deaf", "hang"},
                {"database-down", "database"},
                {"drain-cut", "kill"},
                {"hung", "hang"},
                {"job-lost", "job"},
                {"job-parked", "job"},
                {"job-rescued", "job"},
                {"killed", "kill"},
                {"memory-over", "memory"},
                {"redis-down", "redis"},
                {"redis-failover", "redis"},
                {"rollout-aborted", "abort"},
                {"rollout-done", "done"},
                {"rollout-halted", "halt"},
                {"rollout-started", "restart"},
                {"start-failed", "crash"},
                {"template-failed", "crash"},
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strcmp(names[i][0], event) == 0)
                        return names[i][1];
        return NULL;
}
