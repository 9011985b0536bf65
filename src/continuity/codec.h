/* SPDX-License-Identifier: MIT */
/* Converts structs to bytes and back. One table of fields describes each record, for writing and for reading.
 * A number takes eight bytes, the lowest first; a text is preceded by its length. */
#pragma once

#include "base/macro.h"

enum codec_kind {
        CODEC_NUMBER, /* bool, or a nonnegative integer or enum of 4 or 8 bytes */
        CODEC_TIME,   /* usec_t in the past, or 0: never; written as its age */
        CODEC_WAIT,   /* usec_t in the future; written as the remaining time */
        CODEC_ARRAY,  /* char[] */
        CODEC_STRING, /* char *, owned after reading; NULL is written as "" */
        CODEC_FLAGS,  /* the bools of another record, as bits of one number */
        CODEC_RECORD, /* another record, embedded */
};

struct codec_field {
        enum codec_kind kind;
        size_t offset, size;
        uint64_t min, max;           /* range of CODEC_NUMBER */
        const struct record *record; /* for CODEC_FLAGS and CODEC_RECORD */
        unsigned since;              /* the first version of the bytes that has the field; 0: all have it */
};

struct record {
        const struct codec_field *fields;
        size_t n_fields;
};

#define RECORD(list)                                                                                         \
        {                                                                                                    \
                .fields = (list), .n_fields = ELEMENTSOF(list)                                               \
        }

/* The largest number that fits a field of this size. */
#define CODEC_MAX(bytes) ((bytes) == 8 ? UINT64_MAX : (bytes) == 4 ? UINT32_MAX : UINT64_C(1))

#define CODEC_SIZE(type, member) sizeof(((type *)NULL)->member)
#define CODEC_RANGE(type, member, from, to)                                                                  \
        {                                                                                                    \
                .kind = CODEC_NUMBER, .offset = offsetof(type, member), .size = CODEC_SIZE(type, member),    \
                .min = (from), .max = (to)                                                                   \
        }
/* CODEC_FIELD(NUMBER, struct backoff, count): any number that fits the field. */
#define CODEC_FIELD(what, type, member)                                                                      \
        {                                                                                                    \
                .kind = CODEC_##what, .offset = offsetof(type, member), .size = CODEC_SIZE(type, member),    \
                .max = CODEC_MAX(CODEC_SIZE(type, member))                                                   \
        }
/* A field described by another record. */
#define CODEC_PART(what, type, member, part)                                                                 \
        {                                                                                                    \
                .kind = CODEC_##what, .offset = offsetof(type, member), .record = &(part)                    \
        }

/* Maximum length of a text; longer texts are truncated when written. */
#define CODEC_TEXT_MAX 4096U

/* Output buffer. After a failed allocation, later writes do nothing. */
struct codec_writer {
        uint8_t *bytes; /* owned by the caller, who frees it */
        size_t size, allocated;
        usec_t now; /* reference time for ages and remaining times */
        bool failed;
};

/* Input. After an error, all numbers read are 0 and all texts are empty. */
struct codec_reader {
        const uint8_t *at;
        size_t left;
        usec_t now;       /* when the bytes were written, by our clock */
        bool other_boot;  /* the bytes were written before this boot */
        unsigned version; /* of the bytes: fields that are newer stay zero; 0: all fields are there */
        bool wrong;
};

/* Store and load a number of 4 or 8 bytes at any address, the lowest byte first. */
void codec_put_bytes(uint8_t *at, size_t size, uint64_t value);
uint64_t codec_get_bytes(const uint8_t *at, size_t size);

/* Returns space for size bytes, or NULL if out of memory. Valid until the next write. */
uint8_t *codec_write_space(struct codec_writer *writer, size_t size);
/* Writes append to the buffer. Check writer->failed once, after the last write. */
void codec_write_number(struct codec_writer *writer, uint64_t value);
/* Reserves space for a number that is known later. Returns its position, for codec_fill_number(). */
size_t codec_write_later(struct codec_writer *writer);
/* Writes the number at that position. Does nothing after a failed allocation. */
void codec_fill_number(struct codec_writer *writer, size_t place, uint64_t value);
/* Writes at most CODEC_TEXT_MAX bytes of text. NULL is written as "". */
void codec_write_text(struct codec_writer *writer, const char *text);
/* Writes the struct at base, as the record describes it. */
void codec_write(struct codec_writer *writer, const struct record *record, const void *base);

/* Returns the next size bytes; NULL, and sets wrong, if fewer are left. */
const uint8_t *codec_read_space(struct codec_reader *reader, size_t size);
/* Returns 0 and sets wrong if the number is not within min..max. */
uint64_t codec_read_number(struct codec_reader *reader, uint64_t min, uint64_t max);
/* Returns a text without terminator, with its length in *ret_length. A text longer than max bytes, or with a
 * NUL, is an error. */
const char *codec_read_text(struct codec_reader *reader, size_t max, size_t *ret_length);
/* Returns a reader for the bytes behind their byte count, and advances the outer reader past them. */
struct codec_reader codec_read_inner(struct codec_reader *reader);
/* Reads into the struct at base, which must be zeroed. Returns 0, even if the bytes are wrong, or -ENOMEM. In
 * both cases the caller frees the strings read so far. */
int codec_read(struct codec_reader *reader, const struct record *record, void *base);

/* Returns the minimum size of a record in any version. Reject counts that need more bytes than are left. */
size_t codec_bytes_min(const struct record *record);
