/* SPDX-License-Identifier: MIT */
/* Dispatches each call to the heartbeat source. */
#include "frameworks/heartbeats.h"
#include "io/clock.h"

struct heartbeats *heartbeats_free(struct heartbeats *heartbeats)
{
        if (heartbeats)
                heartbeats->kind->free(heartbeats);
        return NULL;
}

int heartbeats_add(struct heartbeats *heartbeats, struct worker *worker, struct heartbeat_slot **ret)
{
        return heartbeats->kind->add(heartbeats, worker, ret);
}

void heartbeats_remove(struct heartbeat_slot *slot)
{
        slot->heartbeats->kind->drop(slot);
}

void heartbeats_moved(struct heartbeat_slot *slot)
{
        if (slot->heartbeats->match)
                match_owner_added(slot->heartbeats->match);
}

int heartbeats_know(struct heartbeat_slot *slot, const char *identity)
{
        return slot->heartbeats->kind->know ? slot->heartbeats->kind->know(slot, identity) : 0;
}

const char *heartbeats_hosts(const struct heartbeat_slot *slot, char text[static MATCH_HOSTS_TEXT_MAX])
{
        const struct match *match = slot->heartbeats->match;

        return match ? match_hosts_since(match, slot->worker->spawned_at, text) : NULL;
}

int heartbeats_know_hosts(struct heartbeat_slot *slot, const char *names)
{
        struct match *match = slot->heartbeats->match;

        return match ? match_hosts_were(match, names, clock_now(CLOCK_MONOTONIC)) : 0;
}

usec_t heartbeats_scanned_at(const struct heartbeat_slot *slot)
{
        const struct match *match = slot->heartbeats->match;

        return match ? match_scanned_at(match) : USEC_INFINITY;
}

bool heartbeats_wait_for_scan(const struct heartbeat_slot *slot, usec_t since)
{
        const struct heartbeat_source *kind = slot->heartbeats->kind;

        return kind->contended && kind->contended(slot->heartbeats) && heartbeats_scanned_at(slot) < since;
}

void heartbeats_forget(struct heartbeat_slot *slot)
{
        if (slot->heartbeats->kind->forget)
                slot->heartbeats->kind->forget(slot);
}

char *heartbeats_take_another(struct heartbeat_slot *slot, pid_t *ret_pid)
{
        return slot->heartbeats->kind->take_another ? slot->heartbeats->kind->take_another(slot, ret_pid)
                                                    : NULL;
}

int heartbeats_signal(struct heartbeat_slot *slot, int signo)
{
        return slot->heartbeats->kind->signal ? slot->heartbeats->kind->signal(slot, signo) : -ESRCH;
}

void heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items)
{
        slot->heartbeats->kind->want(slot, poll_items);
}

int heartbeats_poll(struct heartbeats *heartbeats)
{
        return heartbeats->kind->poll(heartbeats);
}

void heartbeats_resume(struct heartbeats *heartbeats)
{
        if (heartbeats->kind->resume)
                heartbeats->kind->resume(heartbeats);
}
