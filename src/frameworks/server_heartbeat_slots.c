/* SPDX-License-Identifier: MIT */
/* Identities of the workers whose heartbeats are on a server, and requests for them. */
#include "frameworks/server_heartbeat_slots.h"
#include "io/clock.h"
#include "io/reader.h"
#include "model/fleet.h"
#include "model/poll_schedule.h"
#include "observe/observe_identity.h"
#include <string.h>

static void heartbeats_destroy(struct server_heartbeats *heartbeats)
{
        for (struct server_slot *slot = heartbeats->slots, *next; slot; slot = next) {
                next = slot->next;
                slot_free(slot);
        }
        match_clear(&heartbeats->match);
        free(heartbeats->scan_host);
        free(heartbeats);
}

/* Removed slots stay linked while a pending query or a function on the stack may refer to them. */
static void sweep_slots(struct server_heartbeats *heartbeats)
{
        heartbeats->end = &heartbeats->slots;
        while (*heartbeats->end) {
                struct server_slot *slot = *heartbeats->end;

                if (slot->base.worker) {
                        heartbeats->end = &slot->next;
                        continue;
                }
                *heartbeats->end = slot->next;
                slot_free(slot);
                heartbeats->n_slots--;
        }
}

void server_heartbeats_enter(struct server_heartbeats *heartbeats)
{
        heartbeats->entered++;
}

void server_heartbeats_leave(struct server_heartbeats *heartbeats)
{
        if (--heartbeats->entered > 0)
                return;
        if (heartbeats->freed)
                heartbeats_destroy(heartbeats);
        else
                sweep_slots(heartbeats);
}

int server_heartbeats_know(struct heartbeat_slot *base, const char *identity)
{
        struct server_slot *slot = own_slot(base);
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        size_t host_len;
        pid_t pid;

        char *copy = strdup(identity);
        if (!copy)
                return -ENOMEM;
        slot_lose_identity(slot);
        slot->base.identity = copy;
        slot->changed_at = now;
        /* If this identity is lost later, the search uses its host name. */
        if (!heartbeats->framework->identity_parse(identity, strlen(identity), &host_len, &pid))
                return 0;
        return match_host_was(&heartbeats->match, identity, host_len, now);
}

void server_heartbeats_forget(struct heartbeat_slot *base)
{
        struct server_slot *slot = own_slot(base);
        slot->forgotten_at = clock_now(CLOCK_MONOTONIC);
        slot->siblings_scan_at = 0;
        if (!slot->base.identity)
                return;
        match_distrust(&heartbeats_of(slot)->match, slot->base.identity);
        slot_lose_identity(slot);
}

void server_heartbeats_amend(struct server_slot *slot, struct heartbeat *heartbeat)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        *heartbeat = heartbeat_amend(slot->base.worker, heartbeat, now);
        if (heartbeat->sent_usec == now)
                slot->changed_at = now;
}

void server_heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items)
{
        own_slot(slot)->wanted |= poll_items & (POLL_HEARTBEAT | POLL_WORK_LIST | POLL_SIBLINGS);
}

void server_heartbeats_count_others(struct server_heartbeats *heartbeats)
{
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                slot->n_others = 0;
        FOREACH_POINTER(candidate, heartbeats->match.candidates, heartbeats->match.n_candidates) {
                struct server_slot *slot = (struct server_slot *)candidate->owner;

                if (slot && (!slot->base.identity || strcmp(candidate->identity, slot->base.identity) != 0))
                        slot->n_others++;
        }
}

void server_heartbeats_forget_hosts(struct server_heartbeats *heartbeats)
{
        usec_t oldest = USEC_INFINITY;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (slot->base.worker)
                        oldest = MIN(oldest, slot->base.worker->spawned_at);
        match_hosts_forget(&heartbeats->match, oldest);
}

char *server_heartbeats_take_another(struct heartbeat_slot *base, pid_t *ret_pid)
{
        struct server_slot *slot = own_slot(base);
        struct match *match = &heartbeats_of(slot)->match;
        usec_t since = MAX(slot->base.worker->spawned_at, slot->forgotten_at);
        size_t at = 0;

        const struct candidate *other = match_other(match, slot, slot->base.identity, since, &at);
        if (!other)
                return NULL;
        char *identity = strdup(other->identity);
        *ret_pid = other->pid;
        match_distrust(match, other->identity);
        return identity;
}

bool server_heartbeats_contended(const struct heartbeats *heartbeats)
{
        return scan_permit_is_contended(&((const struct server_heartbeats *)heartbeats)->scan_permit);
}

static void on_signal(struct answer *answer, void *userdata)
{
        struct server_slot *slot = userdata;

        if (answer->status != ANSWER_LOST)
                slot->signal_refused = answer->status == ANSWER_REFUSED;
        server_heartbeats_leave(heartbeats_of(slot));
}

int server_heartbeats_signal(struct heartbeat_slot *base, int signo)
{
        struct server_slot *slot = own_slot(base);
        struct server_heartbeats *heartbeats = heartbeats_of(slot);

        if (!base->identity)
                return -ESRCH;
        if (slot->signal_refused && signo == 0)
                return -ENOTSUP;
        if (slot->signal_refused) {
                /* The permissions of the server's user may have been changed since: try again. */
                slot->signal_refused = false;
                return -EACCES;
        }
        const struct field texts[] = {QUERY_TEXT(base->identity)};
        const struct query query = {
                .kind = QUERY_SIGNAL, .numbers = {(uint64_t)signo}, .texts = texts, .n_texts = 1};
        int r = reader_ask(heartbeats->reader, &query, on_signal, slot);
        if (r >= 0)
                server_heartbeats_enter(heartbeats);
        return r;
}
