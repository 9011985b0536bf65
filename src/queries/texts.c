/* SPDX-License-Identifier: MIT */
/* A list of texts, as bytes. */
#include "queries/texts.h"
#include <string.h>

void texts_write(struct codec_writer *writer, const struct field list[], size_t n)
{
        codec_write_number(writer, n);
        for (size_t i = 0; i < n; i++) {
                codec_write_number(writer, list[i].len);
                uint8_t *at = codec_write_space(writer, list[i].len);
                if (at && list[i].len > 0)
                        memcpy(at, list[i].text, list[i].len);
        }
}

int texts_read(struct codec_reader *reader, size_t n_max, size_t length_max, struct texts *ret)
{
        size_t n = codec_read_number(reader, 0, MIN(n_max, reader->left / sizeof(uint64_t)));
        /* Each text takes eight bytes for its length, so there is space for a NUL behind each. */
        char *at = malloc(reader->left + 1);

        *ret = (struct texts){.list = calloc(n + 1, sizeof(*ret->list)), .bytes = at};
        if (!at || !ret->list)
                return -ENOMEM;
        for (; ret->n < n; ret->n++) {
                size_t length = codec_read_number(reader, 0, length_max);
                const uint8_t *text = codec_read_space(reader, length);

                if (!text)
                        break;
                memcpy(at, text, length);
                at[length] = '\0';
                ret->list[ret->n] = (struct field){.text = at, .len = length};
                at += length + 1;
        }
        return 0;
}

void texts_clear(struct texts *texts)
{
        free(texts->list);
        free(texts->bytes);
        *texts = (struct texts){0};
}
