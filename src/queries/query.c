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
        codec_write_number(writer, query->n_texts);
        for (size_t i = 0; i < query->n_texts; i++) {
                const struct field *text = &query->texts[i];

                codec_write_number(writer, text->len);
                uint8_t *at = codec_write_space(writer, text->len);
                if (at && text->len > 0)
                        memcpy(at, text->text, text->len);
        }
}

static int read_texts(struct codec_reader *reader, struct query_read *ret)
{
        size_t n =
                codec_read_number(reader, 0, MIN((size_t)QUERY_TEXTS_MAX, reader->left / sizeof(uint64_t)));
        /* Each text takes eight bytes for its length, so there is space for a NUL behind each. */
        char *at = malloc(reader->left + 1);

        ret->bytes = at;
        ret->texts = calloc(n + 1, sizeof(*ret->texts));
        ret->query.texts = ret->texts;
        if (!at || !ret->texts)
                return -ENOMEM;
        for (; ret->query.n_texts < n; ret->query.n_texts++) {
                size_t length = codec_read_number(reader, 0, QUERY_BYTES_MAX);
                const uint8_t *text = codec_read_space(reader, length);

                if (!text)
                        break;
                memcpy(at, text, length);
                at[length] = '\0';
                ret->texts[ret->query.n_texts] = (struct field){.text = at, .len = length};
                at += length + 1;
        }
        return 0;
}

int query_read(const uint8_t *bytes, size_t n, struct query_read *ret)
{
        struct codec_reader reader = {.at = bytes, .left = n};

        *ret = (struct query_read){0};
        ret->query.kind = (enum query_kind)codec_read_number(&reader, 0, _QUERY_KIND_MAX - 1);
        ret->id = codec_read_number(&reader, 0, UINT64_MAX);
        for (size_t i = 0; i < QUERY_NUMBERS; i++)
                ret->query.numbers[i] = codec_read_number(&reader, 0, UINT64_MAX);
        int r = read_texts(&reader, ret);
        if (r == 0 && (reader.wrong || reader.left > 0))
                r = -EBADMSG;
        if (r < 0)
                query_read_clear(ret);
        return r;
}

void query_read_clear(struct query_read *read)
{
        free(read->texts);
        free(read->bytes);
        *read = (struct query_read){0};
}

const char *query_text(const struct query *query, size_t i)
{
        return i < query->n_texts ? query->texts[i].text : "";
}
