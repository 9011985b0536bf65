/* SPDX-License-Identifier: MIT */
/* Reads the work lists of some processes; see the header. */
#include "io/works.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Which of them a process writes depends on its version: `work` from 6.4.2 on, `workers` before. */
static const char *const suffixes[] = {"work", "workers"};

struct works {
        struct job_list *lists;
        size_t n_lists;
        size_t pending; /* commands without a reply */
        char error[256];
        works_fn done; /* NULL: given up */
        void *userdata;
};

struct ask {
        struct works *works;
        size_t list;
        bool old_key;
};

static void works_destroy(struct works *works)
{
        for (size_t i = 0; i < works->n_lists; i++)
                job_list_clear(&works->lists[i]);
        free(works->lists);
        free(works);
}

static void works_finish(struct works *works)
{
        bool failed = works->error[0] != '\0';

        for (size_t i = 0; failed && i < works->n_lists; i++)
                job_list_clear(&works->lists[i]);
        if (works->done)
                works->done(works->lists, failed ? works->error : NULL, works->userdata);
        works_destroy(works);
}

static void take_list(struct works *works, const struct ask *ask, const redisReply *reply)
{
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
                const redisReply *thread = reply->element[i], *entry = reply->element[i + 1];

                if (thread->type != REDIS_REPLY_STRING || entry->type != REDIS_REPLY_STRING)
                        continue;
                struct sidekiq_field field = {.text = thread->str, .len = thread->len};
                struct sidekiq_field value = {.text = entry->str, .len = entry->len};
                if (job_list_add(&works->lists[ask->list], ask->old_key, &field, &value) == -ENOMEM)
                        snprintf(works->error, sizeof(works->error), "there is too little memory");
        }
}

static void on_list(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct works *works = ask->works;

        if (!reply)
                snprintf(works->error, sizeof(works->error), "the connection was lost");
        else if (reply->type == REDIS_REPLY_ERROR)
                snprintf(works->error, sizeof(works->error), "it answers '%s'", reply->str);
        else if (reply->type == REDIS_REPLY_ARRAY)
                take_list(works, ask, reply);
        free(ask);
        if (--works->pending == 0)
                works_finish(works);
}

static int ask_list(struct works *works, struct redis *redis, const char *namespace, const char *identity,
                    size_t list, bool old_key)
{
        _cleanup_free_ char *key = sidekiq_key(namespace, identity, suffixes[old_key]);
        struct ask *ask = malloc(sizeof(*ask));
        const char *argv[] = {"HGETALL", key};
        int r = -ENOMEM;

        if (key && ask) {
                *ask = (struct ask){.works = works, .list = list, .old_key = old_key};
                r = redis_command_forbiddable(redis, on_list, ask, ELEMENTSOF(argv), argv, NULL);
        }
        if (r < 0)
                free(ask);
        else
                works->pending++;
        return r;
}

int works_read(struct redis *redis, const char *namespace, const char *const identities[], size_t n,
               works_fn done, void *userdata, struct works **ret)
{
        struct works *works = calloc(1, sizeof(*works));
        int r = 0;

        if (!works || !(works->lists = calloc(n, sizeof(*works->lists)))) {
                free(works);
                return -ENOMEM;
        }
        works->n_lists = n;
        for (size_t i = 0; i < n && r >= 0; i++) {
                r = ask_list(works, redis, namespace, identities[i], i, false);
                if (r >= 0)
                        r = ask_list(works, redis, namespace, identities[i], i, true);
        }
        if (r < 0) {
                if (works->pending == 0)
                        works_destroy(works);
                return r;
        }
        works->done = done;
        works->userdata = userdata;
        *ret = works;
        return 0;
}

struct works *works_free(struct works *works)
{
        if (works)
                works->done = NULL;
        return NULL;
}
