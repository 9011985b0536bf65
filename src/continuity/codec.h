/* SPDX-License-Identifier: MIT */
/* Structs as bytes: what a record consists of is said once, in a table of its fields, by which it is written
 * as well as read. Each number takes eight bytes, the lowest first; a text has its length before it. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

enum codec_kind {
        CODEC_NUMBER, /* bool, or an integer or enum of 4 or 8 bytes that is never negative */
        CODEC_TIME,   /* usec_t, passed, or 0: never; as its age */
        CODEC_WAIT,   /* usec_t, to come; as what is left of it */
        CODEC_ARRAY,  /* char[] */
        CODEC_STRING, /* char *, owned once it is read; NULL is written as "" */
        CODEC_FLAGS,  /* bools, those of another record, as the bits of one number */
        CODEC_RECORD, /* another record, in its place */
};

struct codec_field {
        enum codec_kind kind;
        size_t offset, size;
        uint64_t min, max;           /* of CODEC_NUMBER */
        const struct record *record; /* of CODEC_FLAGS and CODEC_RECORD */
};

struct record {
        const struct codec_field *fields;
        size_t n_fields;
        size_t n_fields_first; /* in the first version: the first so many */
};

#define RECORD(list) CODEC_GROWN(list, ELEMENTSOF(list))
/* A record that had n fields in the first version. */
#define CODEC_GROWN(list, n)                                                                                 \
        {                                                                                                    \
                .fields = (list), .n_fields = ELEMENTSOF(list), .n_fields_first = (n)                        \
        }

/* The largest number that fits a field of so many bytes. */
#define CODEC_MAX(bytes) ((bytes) == 8 ? UINT64_MAX : (bytes) == 4 ? UINT32_MAX : UINT64_C(1))

#define CODEC_SIZE(type, member) sizeof(((type *)NULL)->member)
#define CODEC_RANGE(type, member, from, to)                                                                  \
        {                                                                                                    \
                .kind = CODEC_NUMBER, .offset = offsetof(type, member), .size = CODEC_SIZE(type, member),    \
                .min = (from), .max = (to)                                                                   \
        }
/* CODEC_FIELD(NUMBER, struct backoff, count): any number that fits. */
#define CODEC_FIELD(what, type, member)                                                                      \
        {                                                                                                    \
                .kind = CODEC_##what, .offset = offsetof(type, member), .size = CODEC_SIZE(type, member),    \
                .max = CODEC_MAX(CODEC_SIZE(type, member))                                                   \
        }
/* A field that another record describes. */
#define CODEC_PART(what, type, member, part)                                                                 \
        {                                                                                                    \
                .kind = CODEC_##what, .offset = offsetof(type, member), .record = &(part)                    \
        }

/* No text is longer: what is, is written cut. */
#define CODEC_TEXT_MAX 4096U

/* Writes: once memory was short, nothing more is written. */
struct codec_writer {
        uint8_t *bytes; /* the caller's to free */
        size_t size, allocated;
        usec_t now; /* the clock of ages and waits */
        bool failed;
};

/* Reads: once something was wrong, all numbers are 0 and all texts are empty. */
struct codec_reader {
        const uint8_t *at;
        size_t left;
        usec_t now;         /* when the bytes were written, by our clock */
        bool first_version; /* records have n_fields_first; the fields behind them stay zero */
        bool wrong;
};

/* A number of 4 or 8 bytes at a place of its own. */
void codec_put_bytes(uint8_t *at, size_t size, uint64_t value);
uint64_t codec_get_bytes(const uint8_t *at, size_t size);

/* Room for so many bytes, or NULL. */
uint8_t *codec_write_space(struct codec_writer *writer, size_t size);
void codec_write_number(struct codec_writer *writer, uint64_t value);
/* Leaves space for a number that is known later: returns its place, for codec_fill_number(). */
size_t codec_write_later(struct codec_writer *writer);
void codec_fill_number(struct codec_writer *writer, size_t place, uint64_t value);
void codec_write_text(struct codec_writer *writer, const char *text);
/* What base points to, which the record describes. */
void codec_write(struct codec_writer *writer, const struct record *record, const void *base);

/* 0 where the number is not from min to max, which is wrong. */
uint64_t codec_read_number(struct codec_reader *reader, uint64_t min, uint64_t max);
/* Not terminated; its length in *ret_length. More than max bytes are wrong, and so is a NUL. */
const char *codec_read_text(struct codec_reader *reader, size_t max, size_t *ret_length);
/* A reader of the bytes that follow their number: the outer one is behind them then. */
struct codec_reader codec_read_inner(struct codec_reader *reader);
/* Into what base points to, which is zero so far. Returns 0, even where the bytes are wrong; or -ENOMEM. In
 * both cases the strings so far are the caller's to free. */
int codec_read(struct codec_reader *reader, const struct record *record, void *base);

/* How many bytes a record has at least, in any version: a count that asks for more than there are is wrong.
 */
size_t codec_bytes_min(const struct record *record);
