/* SPDX-License-Identifier: MIT */
/* Hands each call to the kind of beats that it is of. */
#include "frameworks/beats.h"
#include "io/clock.h"

struct beats *beats_free(struct beats *beats)
{
        if (beats)
                beats->kind->free(beats);
        return NULL;
}

int beats_add(struct beats *beats, struct worker *worker, struct beats_slot **ret)
{
        return beats->kind->add(beats, worker, ret);
}

void beats_remove(struct beats_slot *slot)
{
        slot->beats->kind->drop(slot);
}

void beats_moved(struct beats_slot *slot)
{
        if (slot->beats->match)
                match_owner_added(slot->beats->match);
}

int beats_know(struct beats_slot *slot, const char *identity)
{
        return slot->beats->kind->know ? slot->beats->kind->know(slot, identity) : 0;
}

const char *beats_hosts(const struct beats_slot *slot, char text[static MATCH_HOSTS_TEXT_MAX])
{
        const struct match *match = slot->beats->match;

        return match ? match_hosts_since(match, slot->worker->spawned_at, text) : NULL;
}

int beats_know_hosts(struct beats_slot *slot, const char *names)
{
        struct match *match = slot->beats->match;

        return match ? match_hosts_were(match, names, clock_now(CLOCK_MONOTONIC)) : 0;
}

usec_t beats_scanned_at(const struct beats_slot *slot)
{
        const struct match *match = slot->beats->match;

        return match ? match_scanned_at(match) : USEC_INFINITY;
}

bool beats_wait_for_scan(const struct beats_slot *slot, usec_t since)
{
        const struct beats_kind *kind = slot->beats->kind;

        return kind->contended && kind->contended(slot->beats) && beats_scanned_at(slot) < since;
}

void beats_forget(struct beats_slot *slot)
{
        if (slot->beats->kind->forget)
                slot->beats->kind->forget(slot);
}

char *beats_take_another(struct beats_slot *slot, pid_t *ret_pid)
{
        return slot->beats->kind->take_another ? slot->beats->kind->take_another(slot, ret_pid) : NULL;
}

void beats_want(struct beats_slot *slot, unsigned poll_items)
{
        slot->beats->kind->want(slot, poll_items);
}

int beats_poll(struct beats *beats)
{
        return beats->kind->look(beats);
}
