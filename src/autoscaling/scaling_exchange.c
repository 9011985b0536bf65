/* SPDX-License-Identifier: MIT */
/* Exchanges the shares of the need with the other hosts of a group; see the header. */
#include "autoscaling/scaling_exchange.h"
#include "io/clock.h"
#include "io/reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The interval between two readings, per host of the group, because every host reads the shares of all. */
#define MEMBER_USEC (100 * USEC_PER_MSEC)
/* After an outage of Redis, each host must first register again and then write its share. Until then its
 * last share counts. */
#define KEEP_USEC (90 * USEC_PER_SEC)

struct scaling_exchange *scaling_exchange_free(struct scaling_exchange *scaling_exchange)
{
        if (!scaling_exchange)
                return NULL;
        if (scaling_exchange->pending)
                reader_forget(scaling_exchange->reader, scaling_exchange);
        peers_clear(&scaling_exchange->peers);
        free(scaling_exchange->group);
        free(scaling_exchange);
        return NULL;
}

static void replace(struct scaling_exchange *scaling_exchange, struct peers *peers, usec_t now)
{
        peers_sort(peers);
        if (now < scaling_exchange->keep_until)
                (void)peers_keep(peers, &scaling_exchange->peers, usec_sub(now, KEEP_USEC),
                                 ROLLOUT_HOSTS_MAX);
        peers_clear(&scaling_exchange->peers);
        scaling_exchange->peers = *peers;
        scaling_exchange->known = true;
}

/* Replaces the peers. shares: host and share in turn. */
static void take_shares(struct scaling_exchange *scaling_exchange, const struct texts *shares, usec_t now)
{
        struct peers peers = {0};
        size_t n_others = 0;

        static_assert(ANSWER_SHARE_MAX == PEER_TEXT_MAX && ANSWER_HOSTS_MAX == ROLLOUT_HOSTS_MAX,
                      "all is read");
        for (size_t i = 0; i < shares->n; i += 2) {
                const char *host = shares->list[i].text;
                const struct field *share = &shares->list[i + 1];

                if (strcmp(host, scaling_exchange->host) == 0)
                        continue;
                n_others++;
                if (peers_add(&peers, host, share->text, share->len, now) < 0) {
                        peers_clear(&peers);
                        return;
                }
        }
        scaling_exchange->next_at = now + n_others * MEMBER_USEC;
        replace(scaling_exchange, &peers, now);
}

static void on_answer(struct answer *answer, void *userdata)
{
        struct scaling_exchange *scaling_exchange = userdata;
        struct peers none = {0};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        scaling_exchange->pending = false;
        if (answer->status == ANSWER_LOST)
                return;
        if (answer->error.text[0] != '\0' || scaling_exchange->reads)
                scaling_exchange->error = answer->error;
        if (answer->status == ANSWER_REFUSED)
                replace(scaling_exchange, &none, now);
        else if (scaling_exchange->reads)
                take_shares(scaling_exchange, &answer->shares, now);
}

int scaling_exchange_new(struct reader *reader, const char *group, struct scaling_exchange **ret)
{
        struct scaling_exchange *scaling_exchange = calloc(1, sizeof(*scaling_exchange));

        if (!scaling_exchange)
                return -ENOMEM;
        scaling_exchange->reader = reader;
        scaling_exchange->group = strdup(group);
        if (!scaling_exchange->group) {
                free(scaling_exchange);
                return -ENOMEM;
        }
        *ret = scaling_exchange;
        return 0;
}

void scaling_exchange_poll(struct scaling_exchange *scaling_exchange, const char *host,
                           const struct peer_share *share, unsigned seconds, usec_t now)
{
        uint64_t connection = reader_connection_count(scaling_exchange->reader);
        char text[PEER_TEXT_MAX];

        if (reader_state(scaling_exchange->reader) != READER_STATE_CONNECTED || scaling_exchange->pending)
                return;
        if (connection != scaling_exchange->connection)
                scaling_exchange->next_at = now;
        if (connection != scaling_exchange->connection && scaling_exchange->connection != 0)
                scaling_exchange->keep_until = now + KEEP_USEC;
        scaling_exchange->connection = connection;
        scaling_exchange->reads = now >= scaling_exchange->next_at;
        snprintf(scaling_exchange->host, sizeof(scaling_exchange->host), "%s", host);
        if (!share && !scaling_exchange->reads)
                return;
        const struct field texts[] = {QUERY_TEXT(scaling_exchange->group),
                                      QUERY_TEXT(host),
                                      {.text = text, .len = share ? peer_encode(share, text) : 0}};
        const struct query query = {.kind = QUERY_SHARE,
                                    .numbers = {seconds, scaling_exchange->reads},
                                    .texts = texts,
                                    .n_texts = share ? 3 : 2};
        scaling_exchange->pending =
                reader_ask(scaling_exchange->reader, &query, on_answer, scaling_exchange) == 0;
}
