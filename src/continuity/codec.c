/* SPDX-License-Identifier: MIT */
/* Converts structs to bytes and back, by the table of their fields. */
#include "continuity/codec.h"
#include <string.h>

/* The age of a time that never came. */
#define AGE_NONE UINT64_MAX

#define NUMBER_BYTES sizeof(uint64_t)

void codec_put_bytes(uint8_t *at, size_t size, uint64_t value)
{
        for (size_t i = 0; i < size; i++)
                at[i] = (uint8_t)(value >> (8 * i));
}

uint64_t codec_get_bytes(const uint8_t *at, size_t size)
{
        uint64_t value = 0;

        for (size_t i = 0; i < size; i++)
                value |= (uint64_t)at[i] << (8 * i);
        return value;
}

/* Load and store the number in a field of 1 (a bool), 4 or 8 bytes. number must fit. */
static uint64_t load_field(const void *field, size_t size)
{
        uint64_t number;
        uint32_t half;

        switch (size) {
        case sizeof(uint8_t):
                return *(const uint8_t *)field;
        case sizeof(half):
                memcpy(&half, field, sizeof(half));
                return half;
        default:
                memcpy(&number, field, sizeof(number));
                return number;
        }
}

static void store_field(void *field, size_t size, uint64_t number)
{
        uint32_t half = (uint32_t)number;

        if (size == sizeof(uint8_t))
                *(uint8_t *)field = (uint8_t)number;
        else if (size == sizeof(half))
                memcpy(field, &half, sizeof(half));
        else
                memcpy(field, &number, sizeof(number));
}

uint8_t *codec_write_space(struct codec_writer *writer, size_t size)
{
        if (!writer->failed && size > writer->allocated - writer->size) {
                size_t allocated = MAX(2 * writer->allocated, writer->size + size + 1024);
                uint8_t *bytes = realloc(writer->bytes, allocated);

                writer->failed = !bytes;
                writer->bytes = bytes ?: writer->bytes;
                writer->allocated = bytes ? allocated : writer->allocated;
        }
        if (writer->failed)
                return NULL;
        writer->size += size;
        return writer->bytes + writer->size - size;
}

void codec_write_number(struct codec_writer *writer, uint64_t value)
{
        uint8_t *at = codec_write_space(writer, NUMBER_BYTES);

        if (at)
                codec_put_bytes(at, NUMBER_BYTES, value);
}

size_t codec_write_later(struct codec_writer *writer)
{
        size_t place = writer->size;

        codec_write_number(writer, 0);
        return place;
}

void codec_fill_number(struct codec_writer *writer, size_t place, uint64_t value)
{
        if (!writer->failed)
                codec_put_bytes(writer->bytes + place, NUMBER_BYTES, value);
}

void codec_write_text(struct codec_writer *writer, const char *text)
{
        size_t length = strnlen(text ?: "", CODEC_TEXT_MAX);

        codec_write_number(writer, length);
        uint8_t *at = codec_write_space(writer, length);
        if (at && length > 0)
                memcpy(at, text, length);
}

static void write_flags(struct codec_writer *writer, const struct record *flags, const char *base)
{
        uint64_t bits = 0;

        for (size_t i = 0; i < flags->n_fields; i++)
                bits |= load_field(base + flags->fields[i].offset, sizeof(bool)) << i;
        codec_write_number(writer, bits);
}

static void write_time(struct codec_writer *writer, usec_t at)
{
        codec_write_number(writer, at == 0 ? AGE_NONE : usec_sub(writer->now, at));
}

static void write_field(struct codec_writer *writer, const struct codec_field *field, const char *base)
{
        const char *place = base + field->offset;

        switch (field->kind) {
        case CODEC_NUMBER:
                codec_write_number(writer, load_field(place, field->size));
                return;
        case CODEC_TIME:
                write_time(writer, load_field(place, field->size));
                return;
        case CODEC_WAIT:
                codec_write_number(writer, usec_sub(load_field(place, field->size), writer->now));
                return;
        case CODEC_ARRAY:
                codec_write_text(writer, place);
                return;
        case CODEC_STRING:
                codec_write_text(writer, *(const char *const *)(const void *)place);
                return;
        case CODEC_FLAGS:
                write_flags(writer, field->record, place);
                return;
        case CODEC_RECORD:
                codec_write(writer, field->record, place);
        }
}

void codec_write(struct codec_writer *writer, const struct record *record, const void *base)
{
        for (size_t i = 0; i < record->n_fields; i++)
                write_field(writer, &record->fields[i], base);
}

const uint8_t *codec_read_space(struct codec_reader *reader, size_t size)
{
        reader->wrong = reader->wrong || size > reader->left;
        if (reader->wrong)
                return NULL;
        reader->at += size;
        reader->left -= size;
        return reader->at - size;
}

uint64_t codec_read_number(struct codec_reader *reader, uint64_t min, uint64_t max)
{
        const uint8_t *at = codec_read_space(reader, NUMBER_BYTES);
        uint64_t value = at ? codec_get_bytes(at, NUMBER_BYTES) : 0;

        reader->wrong = reader->wrong || value < min || value > max;
        return reader->wrong ? 0 : value;
}

const char *codec_read_text(struct codec_reader *reader, size_t max, size_t *ret_length)
{
        size_t length = codec_read_number(reader, 0, MIN(max, (size_t)CODEC_TEXT_MAX));
        const char *text = (const char *)codec_read_space(reader, length);

        if (!text || memchr(text, '\0', length)) {
                reader->wrong = true;
                length = 0;
        }
        *ret_length = length;
        return text ?: "";
}

struct codec_reader codec_read_inner(struct codec_reader *reader)
{
        size_t size = codec_read_number(reader, 0, SIZE_MAX);
        const uint8_t *at = codec_read_space(reader, size);

        return (struct codec_reader){.at = at, .left = at ? size : 0, .now = reader->now, .wrong = !at};
}

static usec_t read_time(struct codec_reader *reader)
{
        uint64_t age = codec_read_number(reader, 0, AGE_NONE);

        if (age == AGE_NONE || reader->wrong)
                return 0;
        /* 0 would mean never. Times before the boot are clamped to its beginning. */
        return reader->other_boot ? 1 : MAX(usec_sub(reader->now, age), (usec_t)1);
}

static usec_t read_wait(struct codec_reader *reader)
{
        usec_t left = codec_read_number(reader, 0, USEC_INFINITY);

        return left > 0 ? usec_add(reader->now, left) : 0;
}

static void read_array(struct codec_reader *reader, char *array, size_t size)
{
        size_t length;
        const char *text = codec_read_text(reader, size - 1, &length);

        memcpy(array, text, length);
        array[length] = '\0';
}

static int read_string(struct codec_reader *reader, char **ret)
{
        size_t length;
        const char *text = codec_read_text(reader, CODEC_TEXT_MAX, &length);
        char *string = strndup(text, length);

        if (!string)
                return -ENOMEM;
        *ret = string;
        return 0;
}

static bool has_field(const struct codec_reader *reader, const struct codec_field *field)
{
        return reader->version == 0 || field->since <= reader->version;
}

static void read_flags(struct codec_reader *reader, const struct record *flags, char *base)
{
        size_t n = 0;

        while (n < flags->n_fields && has_field(reader, &flags->fields[n]))
                n++;
        uint64_t bits = codec_read_number(reader, 0, (UINT64_C(1) << n) - 1);
        for (size_t i = 0; i < n; i++)
                store_field(base + flags->fields[i].offset, sizeof(bool), bits >> i & 1);
}

static int read_field(struct codec_reader *reader, const struct codec_field *field, char *base)
{
        char *place = base + field->offset;

        switch (field->kind) {
        case CODEC_NUMBER:
                store_field(place, field->size, codec_read_number(reader, field->min, field->max));
                return 0;
        case CODEC_TIME:
                store_field(place, field->size, read_time(reader));
                return 0;
        case CODEC_WAIT:
                store_field(place, field->size, read_wait(reader));
                return 0;
        case CODEC_ARRAY:
                read_array(reader, place, field->size);
                return 0;
        case CODEC_STRING:
                return read_string(reader, (char **)(void *)place);
        case CODEC_FLAGS:
                read_flags(reader, field->record, place);
                return 0;
        case CODEC_RECORD:
                return codec_read(reader, field->record, place);
        }
        return 0;
}

int codec_read(struct codec_reader *reader, const struct record *record, void *base)
{
        int r = 0;

        for (size_t i = 0; i < record->n_fields && r == 0; i++)
                if (has_field(reader, &record->fields[i]))
                        r = read_field(reader, &record->fields[i], base);
        return r;
}

size_t codec_bytes_min(const struct record *record)
{
        size_t bytes = 0;

        for (size_t i = 0; i < record->n_fields; i++) {
                const struct codec_field *field = &record->fields[i];

                if (field->since <= 1)
                        bytes += field->kind == CODEC_RECORD ? codec_bytes_min(field->record) : NUMBER_BYTES;
        }
        return bytes;
}
