/* SPDX-License-Identifier: MIT */
/* Facts that a server reported about itself, as bytes. */
#include "base/printable.h"
#include "queries/answer.h"
#include <string.h>

static const struct codec_field facts_fields[] = {
        CODEC_FIELD(NUMBER, struct redis_facts, has_info),
        CODEC_FIELD(NUMBER, struct redis_facts, has_limit),
        CODEC_FIELD(NUMBER, struct redis_facts, snapshot_failed),
        CODEC_FIELD(NUMBER, struct redis_facts, is_appending),
        CODEC_FIELD(NUMBER, struct redis_facts, evicted),
        CODEC_FIELD(ARRAY, struct redis_facts, policy),
        CODEC_FIELD(ARRAY, struct redis_facts, info_error.quoted_bytes),
        CODEC_FIELD(NUMBER, struct redis_facts, has_save),
        CODEC_FIELD(ARRAY, struct redis_facts, save),
        CODEC_FIELD(ARRAY, struct redis_facts, config_error.quoted_bytes),
};
static const struct record facts_record = RECORD(facts_fields);

static const struct codec_field database_fields[] = {
        CODEC_FIELD(ARRAY, struct database_facts, version),
        CODEC_RANGE(struct database_facts, read_only, 0, 1),
        CODEC_FIELD(NUMBER, struct database_facts, forking),
        CODEC_RANGE(struct database_facts, has_roles, 0, 1),
        CODEC_FIELD(NUMBER, struct database_facts, dispatchers),
        CODEC_FIELD(NUMBER, struct database_facts, schedulers),
        CODEC_FIELD(NUMBER, struct database_facts, recurring),
        CODEC_FIELD(NUMBER, struct database_facts, paused_queues),
        CODEC_FIELD(NUMBER, struct database_facts, failed),
};
static const struct record database_record = RECORD(database_fields);

static void write_facts(struct codec_writer *writer, const void *body)
{
        const struct answer_diagnosis *diagnosis = body;

        codec_write(writer, &database_record, &diagnosis->database);
        codec_write(writer, &facts_record, &diagnosis->redis);
}

static int read_facts(struct codec_reader *reader, void *body)
{
        struct answer_diagnosis *diagnosis = body;
        struct redis_facts *facts = &diagnosis->redis;
        char *const texts[] = {facts->policy, facts->save, diagnosis->database.version};

        (void)codec_read(reader, &database_record, &diagnosis->database);
        (void)codec_read(reader, &facts_record, facts);
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                printable_replace(texts[i], strlen(texts[i]), false);
        quoted_clean(&facts->info_error);
        quoted_clean(&facts->config_error);
        return 0;
}

const struct answer_format answer_diagnosis_format = {.write = write_facts, .read = read_facts};
