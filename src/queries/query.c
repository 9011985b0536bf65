/* SPDX-License-Identifier: MIT */
/* What sqmgr asks of a reader process, as bytes. */
#include "queries/query.h"
#include <string.h>

void query_write(struct codec_writer *writer, uint64_t id, const struct query *query)
{
        codec_write_number(writer, query->kind);
        codec_write_number(writer, id);
        for (size_t i = 0; i < QUERY_NUMBERS; i++)
                codec_write_number(writer, query->numbers[i]);
        codec_write_number(writer, query->n_texts);
        for (size_t i = 0; i < query->n_texts; i++) {
                codec_write_number(writer, query->texts[i].len);
                uint8_t *at = codec_write_space(writer, query->texts[i].len);
                if (at && query->texts[i].len > 0)
                        memcpy(at, query->texts[i].text, query->texts[i].len);
        }
}

static int read_texts(struct codec_reader *reader, size_t n, struct query_read *ret)
{
        /* Each text takes eight bytes for its length, so there is space for a NUL behind each. */
        char *at = ret->bytes = malloc(reader->left + 1);

        ret->texts = calloc(n + 1, sizeof(*ret->texts));
        if (!ret->bytes || !ret->texts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                size_t length = codec_read_number(reader, 0, reader->left);
                const uint8_t *text = codec_read_space(reader, length);

                if (!text)
                        return -EBADMSG;
                memcpy(at, text, length);
                at[length] = '\0';
                ret->texts[i] = (struct field){.text = at, .len = length};
                at += length + 1;
        }
        return reader->left > 0 ? -EBADMSG : 0;
}

int query_read(const uint8_t *bytes, size_t n, struct query_read *ret)
{
        struct codec_reader reader = {.at = bytes, .left = n};

        *ret = (struct query_read){0};
        ret->query.kind = (enum query_kind)codec_read_number(&reader, 0, _QUERY_KIND_MAX - 1);
        ret->id = codec_read_number(&reader, 0, UINT64_MAX);
        for (size_t i = 0; i < QUERY_NUMBERS; i++)
                ret->query.numbers[i] = codec_read_number(&reader, 0, UINT64_MAX);
        ret->query.n_texts = codec_read_number(&reader, 0, QUERY_TEXTS_MAX);
        int r = reader.wrong ? -EBADMSG : read_texts(&reader, ret->query.n_texts, ret);
        if (r < 0) {
                query_read_clear(ret);
                return r;
        }
        ret->query.texts = ret->texts;
        return 0;
}

void query_read_clear(struct query_read *read)
{
        free(TAKE_PTR(read->texts));
        free(TAKE_PTR(read->bytes));
        read->query.texts = NULL;
        read->query.n_texts = 0;
}

const char *query_text(const struct query *query, size_t i)
{
        return i < query->n_texts ? query->texts[i].text : "";
}
