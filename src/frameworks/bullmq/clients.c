/* SPDX-License-Identifier: MIT */
/* Decodes the reply to CLIENT LIST; see the header. */
#include "frameworks/bullmq/clients.h"
#include "frameworks/decode.h"
#include <resolv.h>
#include <stdint.h>
#include <string.h>

static const char worker_mark[] = ":w:";

/* Decodes base64. Returns false for any other text, and for a name that no queue has. */
static bool take_queue(const char *text, size_t len, char ret[static QUEUE_NAME_MAX + 1])
{
        char encoded[(QUEUE_NAME_MAX + 2) / 3 * 4 + 1];
        uint8_t bytes[QUEUE_NAME_MAX + 3];

        if (len >= sizeof(encoded))
                return false;
        memcpy(encoded, text, len);
        encoded[len] = '\0';
        int n = b64_pton(encoded, bytes, sizeof(bytes));
        if (n <= 0 || n > QUEUE_NAME_MAX || memchr(bytes, '\0', (size_t)n))
                return false;
        memcpy(ret, bytes, (size_t)n);
        ret[n] = '\0';
        return true;
}

/* Splits `PREFIX:BASE64`, with `:w:NAME` appended unless the worker has no name. */
static bool take_name(const struct field *name, const char *prefix, struct bullmq_client *ret)
{
        size_t skip = strlen(prefix) + 1, mark = strlen(worker_mark);

        if (name->len <= skip || memcmp(name->text, prefix, skip - 1) != 0 || name->text[skip - 1] != ':')
                return false;
        const char *text = name->text + skip, *end = name->text + name->len;
        const char *colon = memchr(text, ':', (size_t)(end - text));
        if (!take_queue(text, (size_t)((colon ?: end) - text), ret->queue))
                return false;
        if (!colon)
                return true;
        if ((size_t)(end - colon) < mark || memcmp(colon, worker_mark, mark) != 0)
                return false;
        const struct field identity = {colon + mark, (size_t)(end - colon) - mark};
        if (bullmq_identity_parse(identity.text, identity.len, &ret->host_len, &ret->pid))
                ret->identity = identity;
        return true;
}

static bool take_seconds(const struct field *value, uint64_t *ret)
{
        unsigned long long seconds;

        if (!decode_count(value->text, value->len, UINT32_MAX, &seconds))
                return false;
        *ret = seconds;
        return true;
}

/* Returns the value of a word `KEY=VALUE`, absent for any other key. */
static struct field value_of(const struct field *word, const char *key)
{
        size_t len = strlen(key);

        if (word->len <= len || memcmp(word->text, key, len) != 0 || word->text[len] != '=')
                return (struct field){0};
        return (struct field){word->text + len + 1, word->len - len - 1};
}

static bool take_until(struct field *text, char end, struct field *ret)
{
        if (text->len == 0)
                return false;
        const char *at = memchr(text->text, end, text->len);
        size_t len = at ? (size_t)(at - text->text) : text->len;
        *ret = (struct field){text->text, len};
        len += at ? 1 : 0;
        text->text += len;
        text->len -= len;
        return true;
}

bool bullmq_client_parse(const struct field *line, const char *prefix, unsigned database,
                         struct bullmq_client *ret)
{
        enum { NAME, AGE, IDLE, FLAGS, DB, _KEY_MAX };
        static const char *const keys[] = {
                [NAME] = "name", [AGE] = "age", [IDLE] = "idle", [FLAGS] = "flags", [DB] = "db"};
        struct field rest = *line, word, values[_KEY_MAX] = {0};
        uint64_t db;

        while (take_until(&rest, ' ', &word))
                for (size_t i = 0; i < _KEY_MAX; i++)
                        if (!values[i].text)
                                values[i] = value_of(&word, keys[i]);
        for (size_t i = 0; i < _KEY_MAX; i++)
                if (!values[i].text)
                        return false;
        *ret = (struct bullmq_client){
                .waits = memchr(values[FLAGS].text, 'b', values[FLAGS].len),
        };
        return take_seconds(&values[DB], &db) && db == database && take_seconds(&values[AGE], &ret->age) &&
               take_seconds(&values[IDLE], &ret->idle) && take_name(&values[NAME], prefix, ret);
}

bool bullmq_next_line(struct field *text, struct field *ret)
{
        return take_until(text, '\n', ret);
}
