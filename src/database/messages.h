/* SPDX-License-Identifier: MIT */
/* Messages between sqmgr and a helper program of a database, as continuity/codec.h writes them. The first
 * number of each is its kind. sqmgr trusts no message of a helper, which decodes what a server or a file
 * holds. */
#pragma once

#include "continuity/codec.h"
#include "database/database.h"

enum database_message {
        /* To the helper, which answers each: the settings and a ping by its state, a batch by rows and an
         * end. */
        DATABASE_SETTINGS, /* the first message: timeout; url and probe as values */
        DATABASE_PING,
        DATABASE_BATCH, /* whether it writes; number of statements; of each: number of parameters; sql and
                         * the parameters as values */
        /* To sqmgr. */
        DATABASE_STATE, /* database_report_write(); also sent unasked */
        DATABASE_ROW,   /* of the batch: statement; number of values; the values */
        DATABASE_END,   /* of the batch: database_end_write() */
        _DATABASE_MESSAGE_MAX,
};

/* Bounds of one message, in bytes. */
#define DATABASE_REQUEST_MAX ((size_t)16 * 1024 * 1024)
#define DATABASE_REPLY_MAX   (DATABASE_BYTES_MAX + (size_t)64 * 1024)

struct database_report {
        enum database_state state;
        uint64_t connections;
        struct error_report error; /* text "": none, as if the state is DATABASE_CONNECTED */
};

struct database_end {
        enum database_result result;
        usec_t rtt_usec;
        struct error_report error; /* text "" if the result is DATABASE_DONE, and only then */
};

void database_report_write(struct codec_writer *writer, const struct database_report *report);
void database_end_write(struct codec_writer *writer, const struct database_end *end);
/* Read the rest of a message. Texts are made printable. Return false if the message is invalid. */
bool database_report_read(struct codec_reader *reader, struct database_report *ret);
bool database_end_read(struct codec_reader *reader, struct database_end *ret);

/* A text with its length and a NUL behind it, or SQL NULL. */
void database_value_write(struct codec_writer *writer, const struct field *value);
void database_text_write(struct codec_writer *writer, const char *text); /* NULL: SQL NULL */
/* Returns a value within the bytes of the message. Sets wrong after an invalid one. */
struct field database_value_read(struct codec_reader *reader);
