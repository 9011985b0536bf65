/* SPDX-License-Identifier: MIT */
/* Decodes the data of Sidekiq 5 to 8, and what is announced for 9, in Redis; see the header. */
#include "frameworks/sidekiq/format.h"
#include "wire/json.h"
#include <stdio.h>

/* More than any machine has. */
#define RSS_KIB_MAX (1ULL << 40)

/* A larger timestamp is in milliseconds: as seconds it would be after the year 5138. */
#define STAMP_SECONDS_MAX 1e11

bool sidekiq_stamp_decode(const json_t *stamp, uint64_t *ret_usec)
{
        double at = json_number_value(stamp);

        if (!(at > 0) || at > STAMP_SECONDS_MAX * 1000)
                return false;
        *ret_usec = (uint64_t)(at > STAMP_SECONDS_MAX ? at * 1e3 : at * 1e6);
        return true;
}

bool sidekiq_heartbeat_decode(const struct field fields[static _SIDEKIQ_FIELD_MAX], struct heartbeat *ret)
{
        const struct field *busy = &fields[SIDEKIQ_BUSY], *heartbeat = &fields[SIDEKIQ_HEARTBEAT];
        const struct field *concurrency = &fields[SIDEKIQ_CONCURRENCY], *rss = &fields[SIDEKIQ_RSS];
        bool is_quiet = decode_field_is(&fields[SIDEKIQ_QUIET], "true");
        unsigned long long n_busy, n_concurrency = 0, rss_kib = 0;
        uint64_t sent_usec;

        if (!busy->text || !heartbeat->text ||
            (!is_quiet && !decode_field_is(&fields[SIDEKIQ_QUIET], "false")) ||
            !decode_count(busy->text, busy->len, DECODE_COUNT_MAX, &n_busy) ||
            !decode_seconds(heartbeat->text, heartbeat->len, &sent_usec) ||
            (concurrency->text &&
             !decode_count(concurrency->text, concurrency->len, DECODE_COUNT_MAX, &n_concurrency)))
                return false;
        /* No decision depends on rss. */
        if (rss->text && !decode_count(rss->text, rss->len, RSS_KIB_MAX, &rss_kib))
                rss_kib = 0;

        /* Each poll decodes all heartbeats: nothing is copied. */
        *ret = (struct heartbeat){0};
        ret->sent_usec = sent_usec;
        ret->busy = (unsigned)n_busy;
        ret->concurrency = (unsigned)n_concurrency;
        ret->quiet = is_quiet;
        ret->rss_bytes = rss_kib * 1024;
        if (!fields[SIDEKIQ_PROCESSED].text)
                return true;
        ret->outcomes = decode_outcomes(&fields[SIDEKIQ_PROCESSED], &fields[SIDEKIQ_FAILED]);
        decode_outcomes_class(&fields[SIDEKIQ_FAILED_CLASS], &fields[SIDEKIQ_FAILED_CLASS_COUNT],
                              &ret->outcomes);
        return true;
}

/* Adds the names in value to an object, in which each is found once at a cost that does not grow with their
 * number: a text, the keys of an object, or a list of both. Returns 0 or -ENOMEM. */
static int add_names(json_t *names, json_t *value)
{
        const char *name = json_string_value(value);
        json_t *each;
        size_t i;
        int r = 0;

        if (json_is_string(value) && strlen(name) == json_string_length(value))
                return json_object_set_new(names, name, json_true()) < 0 ? -ENOMEM : 0;
        if (json_is_object(value))
                return json_object_update_missing(names, value) < 0 ? -ENOMEM : 0;
        json_array_foreach(value, i, each) if (r == 0) r = add_names(names, each);
        return r;
}

/* Sidekiq 8 lists the queues as `queues`, as all before it, and as keys of the `weights` of each capsule. For
 * 9.0 it is announced that `queues` goes. Returns 0 or -ENOMEM. */
static int find_queues(const json_t *root, json_t *names)
{
        const char *capsule_name;
        json_t *capsule;

        int r = add_names(names, json_object_get(root, "queues"));
        json_object_foreach(json_object_get(root, "capsules"), capsule_name, capsule) if (r == 0) r =
                add_names(names, json_object_get(capsule, "weights"));
        return r;
}

/* Returns the length of the names, including the final NUL. */
static size_t take_queues(json_t *found, char names[static HEARTBEAT_QUEUES_MAX])
{
        size_t used = 0;
        const char *name;
        json_t *value;

        json_object_foreach(found, name, value)
        {
                size_t length = strlen(name);

                if (length == 0 || used + length + 2 > HEARTBEAT_QUEUES_MAX)
                        continue;
                memcpy(names + used, name, length + 1);
                used += length + 1;
        }
        names[used++] = '\0';
        return used;
}

int sidekiq_info_decode(const struct field *field, struct heartbeat_info **ret)
{
        static const struct json_bounds bounds = {
                .bytes = SIDEKIQ_INFO_MAX, .values = SIDEKIQ_INFO_MAX / 4, .depth = 16};
        _cleanup_json_ json_t *root = NULL, *found = json_object();
        char queues[HEARTBEAT_QUEUES_MAX];
        const char *name;
        json_t *capsule;

        if (!found)
                return -ENOMEM;
        if (!field->text)
                return -EINVAL;
        int r = json_load(&bounds, field->text, field->len, 0, &root);
        if (r != -EMSGSIZE && !json_is_object(root))
                return r == -ENOMEM ? r : -EINVAL;
        r = find_queues(root, found);
        if (r < 0)
                return r;
        size_t length = take_queues(found, queues);
        struct heartbeat_info *info = calloc(1, sizeof(*info) + length);
        if (!info)
                return -ENOMEM;
        memcpy(info->queues, queues, length);
        json_int_t concurrency = json_integer_value(json_object_get(root, "concurrency"));
        if (concurrency > 0 && concurrency <= DECODE_COUNT_MAX)
                info->concurrency = (unsigned)concurrency;
        (void)sidekiq_stamp_decode(json_object_get(root, "started_at"), &info->born_usec);
        json_object_foreach(json_object_get(root, "capsules"), name, capsule)
        {
                if (info->n_capsules == HEARTBEAT_CAPSULES_MAX)
                        break;
                snprintf(info->capsules[info->n_capsules++], sizeof(info->capsules[0]), "%s", name);
        }
        *ret = info;
        return 0;
}
