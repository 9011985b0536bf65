/* SPDX-License-Identifier: MIT */
/* Answers about heartbeats and identities, as bytes. */
#include "base/printable.h"
#include "model/queues.h"
#include "queries/answer.h"
#include <limits.h>
#include <string.h>

/* No process has more jobs or threads. */
#define COUNT_MAX 1000000
/* The largest number of a signal; SIGRTMAX is no constant. */
#define SIGNAL_MAX 64
/* More than any machine has. */
#define RSS_MAX (UINT64_C(1) << 50)

static const struct codec_field heartbeat_fields[] = {
        CODEC_RANGE(struct heartbeat, sent_usec, 0, ANSWER_CLOCK_MAX_USEC),
        CODEC_RANGE(struct heartbeat, busy, 0, COUNT_MAX),
        CODEC_RANGE(struct heartbeat, concurrency, 0, COUNT_MAX),
        CODEC_FIELD(NUMBER, struct heartbeat, quiet),
        CODEC_RANGE(struct heartbeat, rss_bytes, 0, RSS_MAX),
        CODEC_FIELD(NUMBER, struct heartbeat, start),
        CODEC_RANGE(struct heartbeat, born_usec, 0, ANSWER_CLOCK_MAX_USEC),
        CODEC_RANGE(struct heartbeat, quiet_signal, 0, SIGNAL_MAX),
        CODEC_RANGE(struct heartbeat, stop_signal, 0, SIGNAL_MAX),
        CODEC_FIELD(NUMBER, struct heartbeat, processed_known),
        CODEC_RANGE(struct heartbeat, processed, 0, WORKER_PROCESSED_MAX),
};
static const struct record heartbeat_record = RECORD(heartbeat_fields);

/* No process fails more jobs than it has processed, and no class has more failures than all. */
static void write_outcomes(struct codec_writer *writer, const struct worker_outcomes *outcomes)
{
        codec_write_number(writer, outcomes->known);
        codec_write_number(writer, outcomes->processed);
        codec_write_number(writer, outcomes->failed);
        codec_write_number(writer, outcomes->class_failed);
        codec_write_text(writer, outcomes->class);
}

static void read_outcomes(struct codec_reader *reader, struct worker_outcomes *ret)
{
        size_t length;

        ret->known = codec_read_number(reader, 0, 1);
        ret->processed = codec_read_number(reader, 0, WORKER_PROCESSED_MAX);
        ret->failed = codec_read_number(reader, 0, ret->processed);
        ret->class_failed = codec_read_number(reader, 0, ret->failed);
        const char *class = codec_read_text(reader, sizeof(ret->class) - 1, &length);
        memcpy(ret->class, class, length);
        printable_replace(ret->class, length, false);
}

static const struct codec_field info_fields[] = {
        CODEC_RANGE(struct heartbeat_info, concurrency, 0, COUNT_MAX),
        CODEC_RANGE(struct heartbeat_info, born_usec, 0, ANSWER_CLOCK_MAX_USEC),
        CODEC_RANGE(struct heartbeat_info, n_capsules, 0, HEARTBEAT_CAPSULES_MAX),
};
static const struct record info_record = RECORD(info_fields);

static void write_info(struct codec_writer *writer, const struct heartbeat_info *info)
{
        size_t length = queue_names_length(info->queues);

        codec_write(writer, &info_record, info);
        for (size_t i = 0; i < info->n_capsules; i++)
                codec_write_text(writer, info->capsules[i]);
        codec_write_number(writer, length);
        uint8_t *at = codec_write_space(writer, length);
        if (at && length > 0)
                memcpy(at, info->queues, length);
}

static void read_capsules(struct codec_reader *reader, struct heartbeat_info *info)
{
        for (size_t i = 0; i < info->n_capsules; i++) {
                size_t length;
                const char *text = codec_read_text(reader, HEARTBEAT_COMM_MAX, &length);

                memcpy(info->capsules[i], text, length);
        }
}

static int read_info(struct codec_reader *reader, struct heartbeat_info **ret)
{
        struct heartbeat_info head = {0};

        (void)codec_read(reader, &info_record, &head);
        read_capsules(reader, &head);
        size_t length = codec_read_number(reader, 0, HEARTBEAT_QUEUES_MAX - 1);
        const char *names = (const char *)codec_read_space(reader, length);
        if (!names || (length > 0 && names[length - 1] != '\0')) {
                reader->wrong = true;
                return 0;
        }
        struct heartbeat_info *info = calloc(1, sizeof(*info) + length + 1);
        if (!info)
                return -ENOMEM;
        memcpy(info, &head, sizeof(head));
        memcpy(info->queues, names, length);
        /* An empty name would end the list early, which shortens it and does no harm. */
        *ret = info;
        return 0;
}

static void write_heartbeat(struct codec_writer *writer, const void *body)
{
        const struct answer_heartbeat *answer = body;

        codec_write_number(writer, answer->found);
        codec_write_number(writer, !!answer->info);
        if (answer->found) {
                codec_write(writer, &heartbeat_record, &answer->heartbeat);
                write_outcomes(writer, &answer->heartbeat.outcomes);
        }
        if (answer->info)
                write_info(writer, answer->info);
}

static int read_heartbeat(struct codec_reader *reader, void *body)
{
        struct answer_heartbeat *answer = body;

        answer->found = codec_read_number(reader, 0, 1);
        bool has_info = codec_read_number(reader, 0, 1);
        if (answer->found) {
                (void)codec_read(reader, &heartbeat_record, &answer->heartbeat);
                read_outcomes(reader, &answer->heartbeat.outcomes);
        }
        return has_info ? read_info(reader, &answer->info) : 0;
}

static void clear_heartbeat(void *body)
{
        struct answer_heartbeat *answer = body;

        free(TAKE_PTR(answer->info));
}

const struct answer_format answer_heartbeat_format = {
        .write = write_heartbeat, .read = read_heartbeat, .clear = clear_heartbeat};

static void write_scan(struct codec_writer *writer, const void *body)
{
        const struct answer_scan *scan = body;

        codec_write_text(writer, scan->cursor);
        codec_write_number(writer, scan->n);
        for (size_t i = 0; i < scan->n; i++) {
                codec_write_text(writer, scan->list[i].identity);
                codec_write_number(writer, scan->list[i].host_len);
                codec_write_number(writer, (uint64_t)scan->list[i].pid);
        }
}

static int read_identity(struct codec_reader *reader, struct answer_identity *ret)
{
        size_t length;
        const char *text = codec_read_text(reader, ANSWER_IDENTITY_MAX, &length);

        ret->host_len = codec_read_number(reader, 0, MIN(length, (size_t)ANSWER_HOST_MAX));
        ret->pid = (pid_t)codec_read_number(reader, 1, INT_MAX);
        if (reader->wrong)
                return 0;
        ret->identity = strndup(text, length);
        return ret->identity ? 0 : -ENOMEM;
}

static int read_scan(struct codec_reader *reader, void *body)
{
        struct answer_scan *scan = body;
        size_t length;
        const char *cursor = codec_read_text(reader, sizeof(scan->cursor) - 1, &length);

        memcpy(scan->cursor, cursor, length);
        size_t n = codec_read_number(reader, 0,
                                     MIN(ANSWER_IDENTITIES_MAX, reader->left / (3 * sizeof(uint64_t))));
        scan->list = calloc(n + 1, sizeof(*scan->list));
        int r = scan->list ? 0 : -ENOMEM;
        for (size_t i = 0; i < n && r == 0 && !reader->wrong; i++) {
                r = read_identity(reader, &scan->list[i]);
                scan->n += r == 0 && scan->list[i].identity;
        }
        return r;
}

static void clear_scan(void *body)
{
        struct answer_scan *scan = body;

        for (size_t i = 0; i < scan->n; i++)
                free(scan->list[i].identity);
        free(TAKE_PTR(scan->list));
        scan->n = 0;
}

const struct answer_format answer_scan_format = {.write = write_scan, .read = read_scan, .clear = clear_scan};
