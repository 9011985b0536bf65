/* SPDX-License-Identifier: MIT */
/* Answers of a reader process, as bytes. */
#include "queries/answer.h"
#include "base/printable.h"
#include <string.h>

static const struct codec_field configure_fields[] = {
        CODEC_RANGE(struct answer_configure, refused, 0, _SETTINGS_TLS_MAX),
};
static const struct record configure_record = RECORD(configure_fields);

static const struct codec_field work_list_fields[] = {
        CODEC_FIELD(NUMBER, struct answer_work_list, known),
        CODEC_FIELD(NUMBER, struct answer_work_list, empty),
};
static const struct record work_list_record = RECORD(work_list_fields);

static const struct codec_field scanners_fields[] = {
        CODEC_RANGE(struct answer_scanners, members, 0, UINT32_MAX),
        CODEC_FIELD(NUMBER, struct answer_scanners, members_known),
        CODEC_RANGE(struct answer_scanners, scanners, 0, UINT32_MAX),
        CODEC_FIELD(NUMBER, struct answer_scanners, blind),
};
static const struct record scanners_record = RECORD(scanners_fields);

static const struct codec_field released_fields[] = {
        CODEC_RANGE(struct answer_released, n, 0, QUERY_RELEASED_MAX),
};
static const struct record released_record = RECORD(released_fields);

static const struct codec_field requeue_fields[] = {
        CODEC_RANGE(struct answer_requeue, outcome, 0, _RESCUE_OUTCOME_MAX - 1),
        CODEC_FIELD(NUMBER, struct answer_requeue, times),
};
static const struct record requeue_record = RECORD(requeue_fields);

static bool requeue_is_valid(const void *body)
{
        const struct answer_requeue *requeue = body;

        return (requeue->outcome == RESCUE_REQUEUED) == (requeue->times > 0);
}

static const struct answer_format *const formats[_QUERY_KIND_MAX] = {
        [QUERY_CONFIGURE] = &(const struct answer_format){.record = &configure_record},
        [QUERY_HEARTBEAT] = &answer_heartbeat_format,
        [QUERY_WORK_LIST] = &(const struct answer_format){.record = &work_list_record},
        [QUERY_SCAN] = &answer_scan_format,
        [QUERY_SCANNERS] = &(const struct answer_format){.record = &scanners_record},
        [QUERY_REQUEUE] =
                &(const struct answer_format){.record = &requeue_record, .is_valid = requeue_is_valid},
        [QUERY_QUEUES] = &answer_queues_format,
        [QUERY_JOBS] = &answer_jobs_format,
        [QUERY_DIAGNOSIS] = &answer_diagnosis_format,
        [QUERY_RELEASED] = &(const struct answer_format){.record = &released_record},
};

/* Kinds without a format have no body: their answer is the status alone. */
static void *body_of(struct answer *answer)
{
        return &answer->heartbeat;
}

void answer_clear(struct answer *answer)
{
        const struct answer_format *format = formats[answer->kind];

        if (answer->status == ANSWER_OK && format && format->clear)
                format->clear(body_of(answer));
        answer->status = ANSWER_LOST;
}

static const struct codec_field error_fields[] = {
        CODEC_FIELD(ARRAY, struct error_report, text),
        CODEC_FIELD(ARRAY, struct error_report, quoted.quoted_bytes),
};
static const struct record error_record = RECORD(error_fields);

void answer_write(struct codec_writer *writer, uint64_t id, const struct answer *answer)
{
        const struct answer_format *format = formats[answer->kind];

        codec_write_number(writer, READER_ANSWER);
        codec_write_number(writer, id);
        codec_write_number(writer, answer->status);
        codec_write_number(writer, answer->rtt_usec);
        codec_write(writer, &error_record, &answer->error);
        if (answer->status != ANSWER_OK || !format)
                return;
        if (format->record)
                codec_write(writer, format->record, &answer->heartbeat);
        else
                format->write(writer, &answer->heartbeat);
}

uint64_t answer_read_id(struct codec_reader *reader)
{
        return codec_read_number(reader, 0, UINT64_MAX);
}

static void clean_error(struct error_report *error)
{
        printable_replace(error->text, strlen(error->text), false);
        quoted_clean(&error->quoted);
}

static int read_body(struct codec_reader *reader, const struct answer_format *format, void *body)
{
        if (!format->record)
                return format->read(reader, body);
        int r = codec_read(reader, format->record, body);
        reader->wrong |= format->is_valid && !format->is_valid(body);
        return r;
}

int answer_read(struct codec_reader *reader, enum query_kind kind, struct answer *ret)
{
        const struct answer_format *format = formats[kind];
        int r = 0;

        *ret = (struct answer){.kind = kind};
        ret->status = (enum answer_status)codec_read_number(reader, 0, _ANSWER_STATUS_MAX - 1);
        ret->rtt_usec = codec_read_number(reader, 0, USEC_PER_DAY);
        (void)codec_read(reader, &error_record, &ret->error); /* without a string it allocates nothing */
        clean_error(&ret->error);
        if (!reader->wrong && ret->status == ANSWER_OK && format)
                r = read_body(reader, format, body_of(ret));
        if (r == 0 && (reader->wrong || reader->left > 0))
                r = -EBADMSG;
        if (r < 0)
                answer_clear(ret);
        return r;
}

static const struct codec_field report_fields[] = {
        CODEC_RANGE(struct reader_report, state, 0, _READER_STATE_MAX - 1),
        CODEC_FIELD(NUMBER, struct reader_report, connections),
        CODEC_FIELD(ARRAY, struct reader_report, error.text),
        CODEC_FIELD(ARRAY, struct reader_report, error.quoted.quoted_bytes),
        CODEC_FIELD(ARRAY, struct reader_report, server),
};
static const struct record report_record = RECORD(report_fields);

void reader_report_write(struct codec_writer *writer, const struct reader_report *report)
{
        codec_write_number(writer, READER_STATE);
        codec_write(writer, &report_record, report);
}

int reader_report_read(struct codec_reader *reader, struct reader_report *ret)
{
        *ret = (struct reader_report){0};
        (void)codec_read(reader, &report_record, ret); /* without a string it allocates nothing */
        clean_error(&ret->error);
        printable_replace(ret->server, strlen(ret->server), false);
        return reader->wrong || reader->left > 0 ? -EBADMSG : 0;
}
