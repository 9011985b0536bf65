/* SPDX-License-Identifier: MIT */
/* The identities of this host that Redis lists, and which worker each belongs to; see the header. */
#include "model/match.h"
#include <string.h>

static void candidate_free(struct candidate *candidate)
{
        free(candidate->identity);
        free(candidate->info);
        free(candidate);
}

void match_clear(struct match *match)
{
        for (size_t i = 0; i < match->n_candidates; i++)
                candidate_free(match->candidates[i]);
        free(match->candidates);
        *match = (struct match){0};
}

void match_connected(struct match *match)
{
        match->scan_done_at = 0;
        for (size_t i = 0; i < match->n_candidates; i++)
                match->candidates[i]->absent_at = 0;
}

void match_scan_begin(struct match *match, usec_t now)
{
        match->scan++;
        match->scan_at = now;
}

static int identity_compare(const struct candidate *candidate, const char *identity, size_t len)
{
        int r = strncmp(candidate->identity, identity, len);

        return r != 0 ? r : candidate->identity[len] != '\0';
}

/* Where the identity is, or where it would stand. */
static size_t match_position(const struct match *match, const char *identity, size_t len, bool *ret_found)
{
        size_t low = 0, high = match->n_candidates;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int r = identity_compare(match->candidates[middle], identity, len);
                if (r == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (r < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = false;
        return low;
}

static int match_make_room(struct match *match)
{
        if (match->n_candidates < match->allocated)
                return 0;
        size_t allocated = MAX(2 * match->allocated, 16U);
        struct candidate **candidates =
                reallocarray(match->candidates, allocated, sizeof(match->candidates[0]));
        if (!candidates)
                return -ENOMEM;
        match->candidates = candidates;
        match->allocated = allocated;
        return 0;
}

int match_scan_add(struct match *match, const char *identity, size_t len, pid_t pid)
{
        bool found;
        size_t at = match_position(match, identity, len, &found);

        if (found) {
                match->candidates[at]->scan = match->scan;
                return 0;
        }

        if (match_make_room(match) < 0)
                return -ENOMEM;
        struct candidate *candidate = calloc(1, sizeof(*candidate));
        if (!candidate)
                return -ENOMEM;
        candidate->identity = strndup(identity, len);
        if (!candidate->identity) {
                free(candidate);
                return -ENOMEM;
        }
        candidate->pid = pid;
        candidate->absent_at = match->scan_done_at;
        candidate->scan = match->scan;
        memmove(match->candidates + at + 1, match->candidates + at,
                (match->n_candidates - at) * sizeof(match->candidates[0]));
        match->candidates[at] = candidate;
        match->n_candidates++;
        return 0;
}

void match_scan_end(struct match *match)
{
        size_t kept = 0;

        for (size_t i = 0; i < match->n_candidates; i++) {
                struct candidate *candidate = match->candidates[i];
                if (candidate->scan == match->scan)
                        match->candidates[kept++] = candidate;
                else
                        candidate_free(candidate);
        }
        match->n_candidates = kept;
        match->scan_done_at = match->scan_at;
}

void match_owner_added(struct match *match)
{
        for (size_t i = 0; i < match->n_candidates; i++)
                if (!match->candidates[i]->owner)
                        match->candidates[i]->resolved = false;
}

void match_owner_removed(struct match *match, const void *owner)
{
        for (size_t i = 0; i < match->n_candidates; i++) {
                if (match->candidates[i]->owner == owner) {
                        match->candidates[i]->owner = NULL;
                        match->candidates[i]->resolved = false;
                }
        }
}

void match_read(struct candidate *candidate, const struct heartbeat *beat, usec_t now)
{
        /* The value of before is kept while there is none: the same one again later is no change, and an
         * older one, of a replica that took over, no sign of life. */
        bool known = candidate->beat.beat_usec != 0;

        candidate->has_beat = !!beat;
        if (!beat)
                return;
        if (known && beat->beat_usec > candidate->beat.beat_usec) {
                candidate->changed_from = candidate->read_at;
                candidate->changed_at = now;
        }
        candidate->read_at = candidate->asked_at;
        candidate->beat = *beat;
}

void match_distrust(struct match *match, const char *identity)
{
        bool found;
        size_t at = match_position(match, identity, strlen(identity), &found);

        if (!found)
                return;
        match->candidates[at]->absent_at = 0;
        match->candidates[at]->changed_at = 0;
        match->candidates[at]->changed_from = 0;
}

struct candidate *match_decide(const struct match *match, const void *owner, usec_t spawned_at)
{
        struct candidate *best = NULL;
        bool tie = false;

        for (size_t i = 0; i < match->n_candidates; i++) {
                struct candidate *candidate = match->candidates[i];
                if (candidate->owner != owner || !candidate->has_beat)
                        continue;

                bool appeared = candidate->absent_at > 0 && candidate->absent_at >= spawned_at;
                /* Both values are from after the spawn: the last beats of a dead process with the worker's
                 * pid are not. */
                bool changed = candidate->changed_at > 0 && candidate->changed_from >= spawned_at;
                if (!appeared && !changed)
                        continue;

                if (!best || candidate->changed_at > best->changed_at ||
                    (candidate->changed_at == best->changed_at && candidate->absent_at > best->absent_at)) {
                        best = candidate;
                        tie = false;
                } else if (candidate->changed_at == 0 && best->changed_at == 0 &&
                           candidate->absent_at == best->absent_at) {
                        tie = true;
                }
        }
        return tie ? NULL : best;
}

struct candidate *match_next_unasked(const struct match *match, const void *owner, usec_t before,
                                     const char *skip)
{
        struct candidate *next = NULL;

        for (size_t i = 0; i < match->n_candidates; i++) {
                struct candidate *candidate = match->candidates[i];
                if (candidate->owner != owner || candidate->asked_at >= before ||
                    (skip && strcmp(candidate->identity, skip) == 0))
                        continue;
                if (!next || candidate->asked_at < next->asked_at)
                        next = candidate;
        }
        return next;
}
