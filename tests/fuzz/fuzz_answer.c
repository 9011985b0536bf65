/* SPDX-License-Identifier: MIT */
/* Fuzzes the messages of a reader. The first byte chooses the kind of query that is answered, or a report. An
 * answer keeps within its bounds: written again, it is read again as the same. */
#include "fuzz.h"
#include "servers/answer.h"

static void check_printable(const char *text)
{
        for (; *text; text++)
                fuzz_check((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Checks that an error is printable; quoted text may have several lines. */
static void check_error(const struct error_report *error)
{
        check_printable(error->text);
        for (const char *text = quoted_reveal(&error->quoted); *text; text++)
                fuzz_check((unsigned char)*text >= ' ' || *text == '\n');
}

static void check_answer(const struct answer *answer)
{
        check_error(&answer->error);
        if (answer->status != ANSWER_OK)
                return;
        if (answer->kind == QUERY_REQUEUE)
                fuzz_check(answer->requeue.outcome < _RESCUE_OUTCOME_MAX);
        for (size_t i = 0; answer->kind == QUERY_SCAN && i < answer->scan.n; i++)
                fuzz_check(answer->scan.list[i].pid > 0 &&
                           answer->scan.list[i].host_len <= strlen(answer->scan.list[i].identity));
}

/* Returns what was read, as bytes; nothing if it is refused. */
static struct codec_writer read_answer(const uint8_t *bytes, size_t size, enum query_kind kind)
{
        struct codec_reader reader = {.at = bytes, .left = size};
        struct codec_writer writer = {0};
        struct answer answer;
        int r = answer_read(&reader, kind, &answer);

        fuzz_check(r == 0 || r == -EBADMSG);
        if (r == 0) {
                check_answer(&answer);
                answer_write(&writer, 0, &answer);
                fuzz_check(!writer.failed);
                answer_clear(&answer);
        }
        return writer;
}

static void try_answer(const uint8_t *bytes, size_t size, enum query_kind kind)
{
        const size_t header = 2 * sizeof(uint64_t); /* the kind of the message, and the id */
        struct codec_writer once = read_answer(bytes, size, kind);

        if (once.bytes) {
                struct codec_writer twice = read_answer(once.bytes + header, once.size - header, kind);

                fuzz_check(twice.size == once.size && memcmp(twice.bytes, once.bytes, once.size) == 0);
                free(twice.bytes);
        }
        free(once.bytes);
}

static void try_report(const uint8_t *bytes, size_t size)
{
        struct codec_reader reader = {.at = bytes, .left = size};
        struct reader_report report;

        if (reader_report_read(&reader, &report) < 0)
                return;
        fuzz_check(report.state < _READER_STATE_MAX);
        check_error(&report.error);
        check_printable(report.server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        uint8_t kind = input_byte(&input);
        struct field bytes = input_field(&input, input.left);

        if (kind < _QUERY_KIND_MAX)
                try_answer((const uint8_t *)bytes.text, bytes.len, (enum query_kind)kind);
        else
                try_report((const uint8_t *)bytes.text, bytes.len);
        field_free(&bytes);
        return 0;
}
