/* SPDX-License-Identifier: MIT */
/* What the tests of packing and unpacking share: a world, the bytes that it is packed into, and what is read
 * of them again. Bytes that were tampered with are refused, and none is read beyond their end. */
#pragma once

#include "continuity/state.h"
#include "world.h"

#define BOOT "the-boot"

#define STATE_HEAD 28 /* bytes before those that the checksum is of */

static struct test_world t;
static uint8_t *bytes;
static size_t size;
static struct state *state;

static inline void state_world_open(void)
{
        test_world_open(&t, 2);
        bytes = NULL;
        state = NULL;
}

static inline void teardown(void)
{
        state_free(state);
        free(bytes);
        test_world_close(&t);
}

static inline void pack_source(const struct state_source *source)
{
        free(bytes);
        ck_assert_int_eq(state_pack(source, &bytes, &size), 0);
}

static inline const struct state_fleet *unpack(const char *boot, usec_t now)
{
        state_free(state);
        state = NULL;
        ck_assert_int_eq(state_unpack(bytes, size, boot, now, &state), STATE_READ);
        ck_assert_uint_eq(state->n_fleets, 1);
        return &state->fleets[0];
}

static inline int outcome(const uint8_t *changed, size_t length)
{
        struct state *read = NULL;
        int r = state_unpack(changed, length, BOOT, t.now, &read);

        ck_assert((r == STATE_READ) == (!!read));
        state_free(read);
        return r;
}

/* Gives the bytes a checksum that agrees, so that what is behind it is tried. */
static inline void seal(uint8_t *changed, size_t length)
{
        uint64_t sum = 0xcbf29ce484222325U;

        for (size_t i = STATE_HEAD; i < length; i++)
                sum = (sum ^ changed[i]) * 0x100000001b3U;
        for (unsigned i = 0; i < 8; i++) {
                changed[12 + i] = (uint8_t)((length - STATE_HEAD) >> (8 * i));
                changed[20 + i] = (uint8_t)(sum >> (8 * i));
        }
}

/* Each part of the bytes is in memory of just its size, so that a read beyond it is seen. */
static inline void assert_truncation_is_found(void)
{
        for (size_t length = 1; length < size; length++) {
                uint8_t *part = malloc(length);

                memcpy(part, bytes, length);
                ck_assert_int_eq(outcome(part, length), STATE_TRUNCATED);
                if (length > STATE_HEAD) {
                        seal(part, length);
                        ck_assert_int_ge(outcome(part, length), 0);
                }
                free(part);
        }
}

static inline void assert_changes_are_found(void)
{
        for (size_t i = 0; i < size; i++) {
                bytes[i] ^= 0x20;
                ck_assert_int_ne(outcome(bytes, size), STATE_READ);
                bytes[i] ^= 0x20;
        }
}

static inline uint64_t random_next(uint64_t below)
{
        static uint64_t random_state = 1;

        random_state = random_state * 6364136223846793005U + 1442695040888963407U;
        return (random_state >> 33) % below;
}

/* Garbage falls among the last bytes; 0: anywhere, and the end may be cut off. */
static inline void assert_garbage_does_no_harm(size_t last)
{
        unsigned outcomes[STATE_NEWER + 1] = {0};

        for (unsigned round = 0; round < 20000; round++) {
                bool cut = last == 0 && random_next(4) == 0;
                size_t length = cut ? STATE_HEAD + 1 + random_next(size - STATE_HEAD - 1) : size;
                size_t most = last > 0 ? MIN(last, length - STATE_HEAD) : length - STATE_HEAD;
                uint8_t *changed = malloc(length);

                memcpy(changed, bytes, length);
                for (uint64_t n = 1 + random_next(4); n > 0; n--)
                        changed[length - 1 - random_next(most)] =
                                (uint8_t)(random_next(2) ? random_next(256) : 0xff * random_next(2));
                seal(changed, length);
                int r = outcome(changed, length);
                ck_assert_int_ge(r, 0);
                outcomes[r]++;
                free(changed);
        }
        ck_assert_uint_gt(outcomes[STATE_READ], 0);
        ck_assert_uint_gt(outcomes[STATE_GARBLED], 0);
}
