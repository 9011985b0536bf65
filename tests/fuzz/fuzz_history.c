/* SPDX-License-Identifier: MIT */
/* Fuzzes the bytes of a history file. Each step writes some of them into one record and may make its checksum
 * valid. The result must be readable, shown, continued, and undamaged the next time. */
#include "base/hash.h"
#include "fuzz.h"
#include "web/history.h"
#include "wire/json.h"

#define NOW (1800000000 * USEC_PER_SEC)

static const struct record {
        size_t first, size, check, n;
} records[] = {
        {40, 160, 4, 3},                                    /* fleets */
        {40 + 64 * 160, 512, 20, 3},                        /* marks */
        {40 + 64 * 160 + 512 * 512, 32, 28, 3},             /* the first slots of the first fleet */
        {40 + 64 * 160 + 512 * 512 + 6480 * 32, 32, 28, 3}, /* the first slots of the second fleet */
};

static void seal(uint8_t *bytes, const struct record *record)
{
        uint64_t hash = hash_bytes(HASH_INIT, bytes, record->check);
        size_t behind = record->check + 4;

        hash = hash_bytes(hash, bytes + behind, record->size - behind);
        uint32_t check = (uint32_t)(hash ^ hash >> 32);
        memcpy(bytes + record->check, &check, sizeof(check));
}

static void stroke(struct history *history, struct input *input)
{
        const struct record *record = &records[input_byte(input) % ELEMENTSOF(records)];
        uint8_t *bytes =
                history_bytes(history) + record->first + (input_byte(input) % record->n) * record->size;
        size_t offset = (size_t)(input_byte(input) * 2) % record->size;
        uint8_t how = input_byte(input);

        for (size_t n = how / 2; n > 0 && input->left > 0 && offset < record->size; n--)
                bytes[offset++] = input_byte(input);
        if (how % 2 == 1)
                seal(bytes, record);
}

static void check_fleet(json_t *fleet, size_t length)
{
        const char *key;
        const json_t *value;

        json_object_foreach(fleet, key, value)
                fuzz_check(json_is_string(value) || json_array_size(value) == length);
}

static void look(const struct history *history)
{
        static const size_t lengths[] = {720, 1440, 4320};

        for (int range = 0; range < _HISTORY_RANGE_MAX; range++) {
                _cleanup_json_ json_t *json = history_json(history, range, NOW);
                _cleanup_free_ char *text = json ? json_dumps(json, 0) : NULL;
                json_t *fleet;
                size_t i;

                fuzz_check(text);
                json_array_foreach(json_object_get(json, "fleets"), i, fleet)
                        check_fleet(fleet, lengths[range]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct history_sample samples[] = {{"a.sock", "web", 1, 2, 3, 4},
                                                        {"a.sock", "mail", 4, 3, 2, 1}};
        struct input input = {data, size};
        _cleanup_free_ struct history *history = history_new();

        fuzz_check(history);
        history_add(history, NOW, samples, ELEMENTSOF(samples));
        history_mark(history, NOW, "a.sock", "web", "crash", "it crashed");
        while (input.left > 0)
                stroke(history, &input);
        (void)history_adopt(history);
        fuzz_check(history_adopt(history) == 0);
        look(history);
        history_add(history, NOW, samples, ELEMENTSOF(samples));
        history_mark(history, NOW, "a.sock", NULL, "halt", "it halted");
        look(history);
        fuzz_check(history_adopt(history) == 0);
        return 0;
}
