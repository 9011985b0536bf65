/* SPDX-License-Identifier: MIT */
/* Reports between hosts that scale by the same queues; see the header. */
#include "autoscaling/scaling_peer_rules.h"
#include "base/parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reports of another version are ignored; their hosts then do not count. */
#define VERSION     1
#define NUMBERS     5
#define NUMBERS_MAX 80

static size_t list_length(const char *list)
{
        const char *end = list;

        while (end && *end != '\0')
                end += strlen(end) + 1;
        return end ? (size_t)(end - list) : 0;
}

size_t peer_encode(const struct peer_share *share, char text[static PEER_TEXT_MAX])
{
        size_t length = list_length(share->queues);
        size_t used = (size_t)snprintf(text, PEER_TEXT_MAX, "%d %u %u %u %u", VERSION, share->weight,
                                       share->busy, share->threads, share->idle) +
                      1;

        if (used + length > PEER_TEXT_MAX)
                return used;
        if (length > 0)
                memcpy(text + used, share->queues, length);
        return used + length;
}

/* Numbers separated by single blanks. */
static int take_numbers(const char *text, uint64_t numbers[static NUMBERS])
{
        char copy[NUMBERS_MAX], *next = copy;
        size_t n = 0;

        if (strlen(text) >= sizeof(copy))
                return -EBADMSG;
        snprintf(copy, sizeof(copy), "%s", text);
        for (; next && n < NUMBERS; n++) {
                char *word = next;

                next = strchr(word, ' ');
                if (next)
                        *next++ = '\0';
                if (parse_unsigned(word, 0, UINT32_MAX, &numbers[n]) < 0)
                        return -EBADMSG;
        }
        return n == NUMBERS && !next ? 0 : -EBADMSG;
}

/* Returns true if each name ends within len bytes and none is empty: an empty name would end the list early.
 */
static bool is_list(const char *list, size_t len)
{
        size_t n = 0;

        if (len > 0 && list[len - 1] != '\0')
                return false;
        for (const char *name = list; name < list + len; name += strlen(name) + 1)
                if (*name == '\0' || ++n > PEER_QUEUES_MAX)
                        return false;
        return true;
}

int peer_decode(const char *text, size_t len, struct peer_share *ret)
{
        uint64_t numbers[NUMBERS];
        size_t used = strlen(text) + 1;

        if (len > PEER_TEXT_MAX || used > len || take_numbers(text, numbers) < 0 || numbers[0] != VERSION ||
            !is_list(text + used, len - used))
                return -EBADMSG;
        *ret = (struct peer_share){
                .weight = (unsigned)MIN(numbers[1], (uint64_t)PEER_WEIGHT_MAX),
                .busy = (unsigned)MIN(numbers[2], (uint64_t)PEER_THREADS_MAX),
                .threads = (unsigned)MIN(numbers[3], (uint64_t)PEER_THREADS_MAX),
                .idle = (unsigned)MIN(numbers[4], (uint64_t)PEER_THREADS_MAX),
                .queues = text + used,
        };
        return 0;
}

static void peer_clear(struct peer *peer)
{
        free(peer->host);
        free(peer->text);
}

void peers_clear(struct peers *peers)
{
        for (size_t i = 0; i < peers->n; i++)
                peer_clear(&peers->list[i]);
        free(peers->list);
        *peers = (struct peers){0};
}

static int append(struct peers *peers, const struct peer *peer)
{
        struct peer *list = reallocarray(peers->list, peers->n + 1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        peers->list = list;
        list[peers->n++] = *peer;
        return 0;
}

int peers_add(struct peers *peers, const char *host, const char *text, size_t len, usec_t now)
{
        struct peer_share share;

        if (peer_decode(text, len, &share) < 0)
                return 0;
        struct peer peer = {
                .host = strdup(host), .text = malloc(len + 1), .share = share, .reported_at = now};
        if (peer.text) {
                memcpy(peer.text, text, len + 1);
                peer.share.queues = peer.text + (share.queues - text);
        }
        if (!peer.host || !peer.text || append(peers, &peer) < 0) {
                peer_clear(&peer);
                return -ENOMEM;
        }
        return 0;
}

int peers_keep(struct peers *peers, struct peers *from, usec_t since, size_t most)
{
        const size_t n = peers->n;
        int r = 0;

        for (size_t i = 0; i < from->n && peers->n < most && r == 0; i++) {
                const struct peers known = {.list = peers->list, .n = n};

                if (from->list[i].reported_at < since || peers_find(&known, from->list[i].host))
                        continue;
                r = append(peers, &from->list[i]);
                if (r == 0)
                        from->list[i] = (struct peer){0};
        }
        peers_clear(from);
        peers_sort(peers);
        return r;
}

static int by_host(const void *a, const void *b)
{
        return strcmp(((const struct peer *)a)->host, ((const struct peer *)b)->host);
}

void peers_sort(struct peers *peers)
{
        if (peers->n > 1)
                qsort(peers->list, peers->n, sizeof(*peers->list), by_host);
}

const struct peer *peers_find(const struct peers *peers, const char *host)
{
        const struct peer key = {.host = (char *)host};

        return peers->n > 0 ? bsearch(&key, peers->list, peers->n, sizeof(key), by_host) : NULL;
}
