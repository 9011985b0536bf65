/* SPDX-License-Identifier: MIT */
/* The answer about the hosts that scan, as bytes. */
#include "queries/answer.h"

static const struct codec_field fields[] = {
        CODEC_RANGE(struct answer_scanners, members, 0, UINT32_MAX),
        CODEC_FIELD(NUMBER, struct answer_scanners, members_known),
        CODEC_RANGE(struct answer_scanners, scanners, 0, UINT32_MAX),
        CODEC_FIELD(NUMBER, struct answer_scanners, blind),
};
static const struct record scanners_record = RECORD(fields);

static void write_scanners(struct codec_writer *writer, const void *body)
{
        codec_write(writer, &scanners_record, body);
}

static int read_scanners(struct codec_reader *reader, void *body)
{
        return codec_read(reader, &scanners_record, body);
}

const struct answer_format answer_scanners_format = {.write = write_scanners, .read = read_scanners};
