/* SPDX-License-Identifier: MIT */
/* Fuzzes the queries that sqmgr sends to a reader. A query is read as a whole: written again, it is the same.
 */
#include "fuzz.h"
#include "servers/configuration.h"

static void try_configuration(const struct query *query)
{
        struct reader_configuration configuration, again;
        struct codec_writer writer = {0};
        struct query_read read;
        int r = reader_configuration_read(query, &configuration);

        fuzz_check(r == 0 || r == -EPROTO || r == -EBADMSG);
        if (r < 0)
                return;
        reader_configuration_write(&writer, &configuration);
        fuzz_check(query_read(writer.bytes, writer.size, &read) == 0);
        fuzz_check(reader_configuration_read(&read.query, &again) == 0);
        fuzz_check(again.framework == configuration.framework && again.check == configuration.check &&
                   !again.url == !configuration.url);
        for (size_t i = 0; i < _SETTINGS_TLS_MAX; i++)
                fuzz_check(!again.tls_files[i] == !configuration.tls_files[i]);
        reader_configuration_clear(&again);
        reader_configuration_clear(&configuration);
        query_read_clear(&read);
        free(writer.bytes);
}

static void try_query(const uint8_t *bytes, size_t size)
{
        struct codec_writer writer = {0};
        struct query_read read;
        int r = query_read(bytes, size, &read);

        fuzz_check(r == 0 || r == -EBADMSG);
        if (r < 0)
                return;
        for (size_t i = 0; i <= read.query.n_texts; i++)
                fuzz_check(query_text(&read.query, i)[i < read.query.n_texts ? read.query.texts[i].len : 0] ==
                           '\0');
        query_write(&writer, read.id, &read.query);
        fuzz_check(writer.size == size && memcmp(writer.bytes, bytes, size) == 0);
        free(writer.bytes);
        if (read.query.kind == QUERY_CONFIGURE)
                try_configuration(&read.query);
        query_read_clear(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field bytes = input_field(&input, size);

        try_query((const uint8_t *)bytes.text, bytes.len);
        field_free(&bytes);
        return 0;
}
