/* SPDX-License-Identifier: MIT */
/* Queries of sqmgr to a reader process, as bytes. */
#include "queries/query.h"
#include <string.h>

void query_write(struct codec_writer *writer, uint64_t id, const struct query *query)
{
        codec_write_number(writer, query->kind);
        codec_write_number(writer, id);
        for (size_t i = 0; i < QUERY_NUMBERS; i++)
                codec_write_number(writer, query->numbers[i]);
        texts_write(writer, query->texts, query->n_texts);
}

int query_read(const uint8_t *bytes, size_t n, struct query_read *ret)
{
        struct codec_reader reader = {.at = bytes, .left = n};

        *ret = (struct query_read){0};
        ret->query.kind = (enum query_kind)codec_read_number(&reader, 0, _QUERY_KIND_MAX - 1);
        ret->id = codec_read_number(&reader, 0, UINT64_MAX);
        for (size_t i = 0; i < QUERY_NUMBERS; i++)
                ret->query.numbers[i] = codec_read_number(&reader, 0, UINT64_MAX);
        int r = texts_read(&reader, QUERY_TEXTS_MAX, QUERY_BYTES_MAX, &ret->texts);
        if (r == 0 && (reader.wrong || reader.left > 0))
                r = -EBADMSG;
        if (r < 0) {
                query_read_clear(ret);
                return r;
        }
        ret->query.texts = ret->texts.list;
        ret->query.n_texts = ret->texts.n;
        return 0;
}

void query_read_clear(struct query_read *read)
{
        texts_clear(&read->texts);
        read->query.texts = NULL;
        read->query.n_texts = 0;
}

const char *query_text(const struct query *query, size_t i)
{
        return i < query->n_texts ? query->texts[i].text : "";
}
