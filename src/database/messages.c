/* SPDX-License-Identifier: MIT */
/* Messages between sqmgr and a helper program of a database; see the header. */
#include "database/messages.h"
#include "base/printable.h"
#include <string.h>

/* The length of a value that is SQL NULL. */
#define LENGTH_NULL  UINT32_MAX
#define LENGTH_BYTES sizeof(uint32_t)

static const struct codec_field report_fields[] = {
        CODEC_RANGE(struct database_report, state, 0, _DATABASE_STATE_MAX - 1),
        CODEC_FIELD(NUMBER, struct database_report, connections),
        CODEC_FIELD(ARRAY, struct database_report, error.text),
        CODEC_FIELD(ARRAY, struct database_report, error.quoted.quoted_bytes),
};
static const struct record report_record = RECORD(report_fields);

static const struct codec_field end_fields[] = {
        CODEC_RANGE(struct database_end, result, 0, _DATABASE_RESULT_MAX - 1),
        CODEC_RANGE(struct database_end, rtt_usec, 0, USEC_PER_DAY),
        CODEC_FIELD(ARRAY, struct database_end, error.text),
        CODEC_FIELD(ARRAY, struct database_end, error.quoted.quoted_bytes),
};
static const struct record end_record = RECORD(end_fields);

void database_report_write(struct codec_writer *writer, const struct database_report *report)
{
        codec_write_number(writer, DATABASE_STATE);
        codec_write(writer, &report_record, report);
}

void database_end_write(struct codec_writer *writer, const struct database_end *end)
{
        codec_write_number(writer, DATABASE_END);
        codec_write(writer, &end_record, end);
}

/* Returns true if the message was valid to its end. */
static bool read_last(struct codec_reader *reader, const struct record *record, void *ret,
                      struct error_report *error)
{
        (void)codec_read(reader, record, ret); /* without a string it allocates nothing */
        printable_replace(error->text, strlen(error->text), false);
        quoted_clean(&error->quoted);
        return !reader->wrong && reader->left == 0;
}

bool database_report_read(struct codec_reader *reader, struct database_report *ret)
{
        *ret = (struct database_report){0};
        return read_last(reader, &report_record, ret, &ret->error) &&
               (ret->state != DATABASE_CONNECTED || ret->error.text[0] == '\0');
}

bool database_end_read(struct codec_reader *reader, struct database_end *ret)
{
        *ret = (struct database_end){0};
        return read_last(reader, &end_record, ret, &ret->error) &&
               (ret->result == DATABASE_DONE) == (ret->error.text[0] == '\0');
}

void database_value_write(struct codec_writer *writer, const struct field *value)
{
        size_t length = value->text ? value->len : LENGTH_NULL;
        uint8_t *at = codec_write_space(writer, LENGTH_BYTES);

        if (at)
                codec_put_bytes(at, LENGTH_BYTES, length);
        if (!value->text || !(at = codec_write_space(writer, length + 1)))
                return;
        memcpy(at, value->text, length);
        at[length] = '\0';
}

void database_text_write(struct codec_writer *writer, const char *text)
{
        const struct field value = {.text = text, .len = strlen(text ?: "")};

        database_value_write(writer, &value);
}

struct field database_value_read(struct codec_reader *reader)
{
        const uint8_t *at = codec_read_space(reader, LENGTH_BYTES);
        size_t length = at ? codec_get_bytes(at, LENGTH_BYTES) : LENGTH_NULL;
        const char *text = length == LENGTH_NULL ? NULL : (const char *)codec_read_space(reader, length + 1);

        reader->wrong |= text && text[length] != '\0';
        return (struct field){.text = text, .len = text ? length : 0};
}
