/* SPDX-License-Identifier: MIT */
/* Matches the identities of this host in Redis to workers; see the header. */
#include "observe/match.h"
#include "model/world.h"

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
        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                free(match->hosts[i].name);
        *match = (struct match){0};
}

static bool host_is(const struct match_host *host, const char *name, size_t len)
{
        return host->name && strlen(host->name) == len && memcmp(host->name, name, len) == 0;
}

static struct match_host *find_host(const struct match *match, const char *name, size_t len)
{
        FOREACH_ELEMENT(host, match->hosts) {
                if (host_is(host, name, len))
                        return (struct match_host *)host;
        }
        return NULL;
}

/* Uses a free slot, or the slot of the name that ended first. */
static int add_host(struct match *match, const char *name, size_t len, usec_t ended_at)
{
        struct match_host *place = &match->hosts[0];
        char *copy = strndup(name, len);

        if (!copy)
                return -ENOMEM;
        for (size_t i = 1; i < MATCH_HOSTS_MAX && place->name; i++) {
                struct match_host *host = &match->hosts[i];
                if (!host->name ||
                    (host->ended_at != 0 && (place->ended_at == 0 || host->ended_at < place->ended_at)))
                        place = host;
        }
        free(place->name);
        *place = (struct match_host){.name = copy, .ended_at = ended_at};
        return 0;
}

int match_host_is(struct match *match, const char *name, usec_t now)
{
        FOREACH_ELEMENT(host, match->hosts) {
                if (host->ended_at == 0 && !host_is(host, name, strlen(name)))
                        host->ended_at = now;
        }
        struct match_host *known = find_host(match, name, strlen(name));
        if (!known)
                return add_host(match, name, strlen(name), 0);
        known->ended_at = 0;
        return 0;
}

int match_host_was(struct match *match, const char *name, size_t len, usec_t now)
{
        return find_host(match, name, len) ? 0 : add_host(match, name, len, now);
}

/* True if the host had this name at that time or later. */
static bool host_is_since(const struct match_host *host, usec_t at)
{
        return host->name && (host->ended_at == 0 || host->ended_at > at);
}

const char *match_hosts_since(const struct match *match, usec_t spawned_at,
                              char text[static MATCH_HOSTS_TEXT_MAX])
{
        size_t used = 0;

        FOREACH_ELEMENT(host, match->hosts) {
                size_t len = host->name ? strlen(host->name) : 0;

                if (!host_is_since(host, spawned_at) || used + len + 2 > MATCH_HOSTS_TEXT_MAX)
                        continue;
                memcpy(text + used, host->name, len);
                text[used + len] = ' ';
                used += len + 1;
        }
        text[used] = '\0';
        return text;
}

int match_hosts_were(struct match *match, const char *names, usec_t now)
{
        int r = 0;

        for (size_t len; r == 0 && *names != '\0'; names += len + strspn(names + len, " ")) {
                len = strcspn(names, " ");
                r = match_host_was(match, names, len, now);
        }
        return r;
}

unsigned match_n_hosts(const struct match *match)
{
        unsigned n = 0;

        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                n += match->hosts[i].name ? 1 : 0;
        return n;
}

void match_hosts_forget(struct match *match, usec_t oldest)
{
        FOREACH_ELEMENT(host, match->hosts) {
                if (host->ended_at == 0 || host->ended_at > oldest)
                        continue;
                free(host->name);
                *host = (struct match_host){0};
        }
}

void match_connected(struct match *match, usec_t now)
{
        match->connected_at = now;
        match->all_done_at = 0;
        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                match->hosts[i].scan_done_at = 0;
        for (size_t i = 0; i < match->n_candidates; i++)
                match->candidates[i]->absent_at = 0;
}

void match_scan_begin(struct match *match, usec_t now)
{
        match->scan++;
        match->scan_at = now;
        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                match->hosts[i].scan = match->scan;
}

const char *match_scan_host(const struct match *match, size_t *at)
{
        while (*at < MATCH_HOSTS_MAX) {
                const struct match_host *host = &match->hosts[(*at)++];

                if (host->name && host->scan == match->scan)
                        return host->name;
        }
        return NULL;
}

/* Returns the position of the identity, or where to insert it. */
static size_t match_position(const struct match *match, const char *identity, size_t len, bool *ret_found)
{
        size_t low = 0, high = match->n_candidates;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const char *other = match->candidates[middle]->identity;
                int r = strncmp(other, identity, len);

                if (r == 0 && other[len] == '\0') {
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

int match_scan_add(struct match *match, const struct match_found *found, usec_t now)
{
        const struct match_host *host = find_host(match, found->identity, found->host_len);
        bool known, named = !host && match->names_have &&
                            match->names_have(match->names, found->identity, found->host_len, found->pid);

        if (!host && !named)
                return 0;
        size_t at = match_position(match, found->identity, found->len, &known);

        if (known) {
                match->candidates[at]->scan = match->scan;
                return 0;
        }
        if (match->n_candidates == MATCH_CANDIDATES_MAX)
                return -E2BIG;

        if (!ARRAY_RESERVE(match->candidates, match->n_candidates, match->allocated))
                return -ENOMEM;
        struct candidate *candidate = calloc(1, sizeof(*candidate));
        if (!candidate)
                return -ENOMEM;
        candidate->identity = strndup(found->identity, found->len);
        if (!candidate->identity) {
                free(candidate);
                return -ENOMEM;
        }
        candidate->host_len = found->host_len;
        candidate->own_pid = candidate->pid = found->pid;
        candidate->named = named;
        candidate->seen_at = now;
        /* An earlier scan may not have looked for a worker's own name. */
        candidate->absent_at = host ? host->scan_done_at : 0;
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

        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate->scan == match->scan)
                        match->candidates[kept++] = candidate;
                else
                        candidate_free(candidate);
        }
        match->n_candidates = kept;
        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                if (match->hosts[i].scan == match->scan)
                        match->hosts[i].scan_done_at = match->scan_at;
        if (match->names_have)
                match->all_done_at = match->scan_at;
}

usec_t match_scanned_at(const struct match *match)
{
        for (size_t i = 0; i < MATCH_HOSTS_MAX; i++)
                if (match->hosts[i].name && match->hosts[i].ended_at == 0)
                        return match->hosts[i].scan_done_at;
        return 0;
}

void match_owner_added(struct match *match)
{
        for (size_t i = 0; i < match->n_candidates; i++)
                if (!match->candidates[i]->owner)
                        match->candidates[i]->resolved = false;
}

bool match_has_owner(const struct match *match, const char *identity, size_t len)
{
        bool known;
        size_t at = match_position(match, identity, len, &known);

        return known && match->candidates[at]->owner;
}

void match_disown(struct candidate *candidate)
{
        candidate->owner = NULL;
        candidate->pid = candidate->own_pid;
        candidate->foreign = candidate->early = candidate->unique = candidate->remote = candidate->claimed =
                false;
}

void match_owner_removed(struct match *match, const void *owner)
{
        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate->owner != owner)
                        continue;
                match_disown(candidate);
                candidate->resolved = false;
        }
}

void match_born(struct candidate *candidate, bool born, usec_t now)
{
        if (!born)
                candidate->born_at = 0;
        else if (candidate->born_at == 0)
                candidate->born_at = now;
}

void match_read(struct candidate *candidate, const struct heartbeat *heartbeat, bool born, usec_t now)
{
        /* The previous heartbeat is kept while there is none. The same one again later is no change. An older
         * one, from a replica that took over, is no sign of life. */
        bool known = candidate->heartbeat.sent_usec != 0;

        candidate->has_heartbeat = !!heartbeat;
        match_born(candidate, heartbeat && born, now);
        if (!heartbeat)
                return;
        if (known && heartbeat->sent_usec > candidate->heartbeat.sent_usec) {
                candidate->changed_from = candidate->read_at;
                candidate->changed_at = now;
        }
        if (!known || heartbeat->sent_usec != candidate->heartbeat.sent_usec)
                candidate->differed_at = now;
        candidate->read_at = candidate->asked_at;
        candidate->heartbeat = *heartbeat;
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
        match->candidates[at]->born_at = 0;
        match->candidates[at]->differed_at = 0;
}

/* True if the host had the identity's name when the worker was spawned, or later. */
static bool host_counts(const struct match *match, const struct candidate *candidate, usec_t spawned_at)
{
        const struct match_host *host = find_host(match, candidate->identity, candidate->host_len);

        return candidate->named || (host && host_is_since(host, spawned_at));
}

void match_unbooted(struct match *match, const void *owner, pid_t pid, bool certain)
{
        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate->owner != owner || candidate->pid != pid)
                        continue;
                candidate->early = !candidate->unique;
                candidate->foreign |= certain;
        }
}

void match_booted(struct match *match, const void *owner, pid_t pid)
{
        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate->owner == owner && candidate->pid == pid)
                        candidate->foreign |= candidate->early;
        }
}

pid_t match_pid(const struct match *match, const void *owner, size_t *at)
{
        pid_t before = *at > 0 ? match->candidates[*at - 1]->pid : 0;

        while (*at < match->n_candidates) {
                const struct candidate *candidate = match->candidates[(*at)++];

                if (candidate->owner == owner && !candidate->foreign && !candidate->remote &&
                    candidate->pid != before)
                        return candidate->pid;
        }
        return 0;
}

static bool may_be_own(const struct match *match, const struct candidate *candidate,
                       const struct match_claim *claim)
{
        return candidate->owner == claim->owner && !candidate->foreign && candidate->pid != claim->except &&
               candidate->seen_at >= claim->spawned_at && host_counts(match, candidate, claim->spawned_at);
}

/* True if a complete scan for the identity's host name began then or later. */
static bool was_scanned(const struct match *match, const struct candidate *candidate, usec_t since)
{
        const struct match_host *host = find_host(match, candidate->identity, candidate->host_len);

        return candidate->named ? match->all_done_at >= since : host && host->scan_done_at >= since;
}

/* True if the identity demonstrably belongs to a process that has sent heartbeats since then. */
static bool has_shown(const struct match *match, const struct candidate *candidate, usec_t since)
{
        bool appeared = candidate->absent_at > 0 && candidate->absent_at >= since;
        /* A change counts if both heartbeats are from after that time. The last heartbeats of a dead process
         * with the worker's pid are older. */
        bool changed = candidate->changed_at > 0 && candidate->changed_from >= since;

        /* Another host's process of the same name and pid may have registered since then, too. The worker has
         * booted, so a scan that begins later finds its own record beside that one. */
        bool registered = candidate->born_at > 0 && candidate->born_at >= since &&
                          was_scanned(match, candidate, candidate->born_at);

        if (!candidate->has_heartbeat)
                return false;
        /* A worker that can show its boot does so before its record has changed for this long. */
        if (candidate->early)
                return changed && (appeared || (candidate->born_at > 0 && candidate->born_at >= since)) &&
                       candidate->changed_at >= usec_add(candidate->seen_at, BIRTH_UNSEEN_BOOT_USEC);
        return appeared || changed || registered;
}

/* Returns true if candidate continued to send heartbeats while other was silent. Many identities in Redis
 * have no heartbeat left, but a recent one must have one. A heartbeat with an earlier time than the one
 * before breaks the silence: the clock of its process may have gone back. The first reading does not show
 * when its heartbeat was written. */
static bool outlives(const struct match *match, const struct candidate *candidate,
                     const struct candidate *other, const struct match_claim *claim)
{
        usec_t other_at = other->differed_at, trusted_at = MAX(match->connected_at, claim->doubt_at);

        if (other->asked_at == 0)
                return false;
        /* Both have sent heartbeats since the worker exists: the silent one may be the worker, and hang. */
        if (other->changed_at > 0 && other->changed_from >= claim->since)
                return false;
        /* Both identities were listed at the first scan, as after an adoption: the worker's own process may
         * be silent for a moment. */
        if (other_at == 0 && (other->absent_at > 0 || candidate->absent_at == 0))
                other_at = other->seen_at;
        /* Silence proves nothing while there was no connection. Neither does silence after a pause of this
         * machine, before our own processes had time to send heartbeats: processes elsewhere continue
         * meanwhile. A reply that waited during such a pause is as old as its request. */
        return other_at == 0 || MIN(candidate->changed_at, candidate->read_at) >
                                        usec_add(MAX(other_at, trusted_at), claim->stale_usec);
}

/* True if another candidate may be of the same process. */
static bool has_other_candidate(const struct match *match, const struct candidate *best,
                                const struct match_claim *claim, bool *ret_ambiguous)
{
        bool rival = false;

        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate == best || candidate->pid != best->pid || candidate->unique < best->unique ||
                    !may_be_own(match, candidate, claim) || outlives(match, best, candidate, claim))
                        continue;
                rival = true;
                *ret_ambiguous |= best->changed_at > 0 && candidate->changed_at > 0;
        }
        return rival;
}

struct candidate *match_decide(const struct match *match, const struct match_claim *claim,
                               bool *ret_ambiguous)
{
        struct candidate *best = NULL;
        bool tie = false;

        *ret_ambiguous = false;
        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (!may_be_own(match, candidate, claim) || !has_shown(match, candidate, claim->since))
                        continue;

                if (best && candidate->unique != best->unique) {
                        if (candidate->unique)
                                best = candidate;
                        tie &= !candidate->unique;
                        continue;
                }
                if (!best || candidate->changed_at > best->changed_at ||
                    (candidate->changed_at == best->changed_at && candidate->absent_at > best->absent_at)) {
                        best = candidate;
                        tie = false;
                } else if (candidate->changed_at == 0 && best->changed_at == 0 &&
                           candidate->absent_at == best->absent_at) {
                        tie = true;
                }
        }
        if (!best || has_other_candidate(match, best, claim, ret_ambiguous))
                return NULL;
        return tie ? NULL : best;
}

struct candidate *match_other(const struct match *match, const void *owner, const char *own, usec_t since,
                              size_t *at)
{
        bool known = false;
        size_t place = own ? match_position(match, own, strlen(own), &known) : 0;
        pid_t pid = known ? match->candidates[place]->pid : 0;

        while (*at < match->n_candidates) {
                struct candidate *candidate = match->candidates[(*at)++];

                if (candidate->owner == owner && !candidate->foreign && candidate->pid != pid &&
                    candidate->changed_at > 0 && candidate->changed_from >= since)
                        return candidate;
        }
        return NULL;
}

struct candidate *match_next_unasked(const struct match *match, const void *owner, usec_t before,
                                     const char *skip)
{
        struct candidate *next = NULL;

        FOREACH_POINTER(candidate, match->candidates, match->n_candidates) {
                if (candidate->owner != owner || candidate->foreign || candidate->asked_at >= before ||
                    (skip && strcmp(candidate->identity, skip) == 0))
                        continue;
                if (!next || candidate->asked_at < next->asked_at)
                        next = candidate;
        }
        return next;
}

/* /proc rounds the start of a process down to a hundredth of a second. */
#define START_USEC (10 * USEC_PER_MSEC)

/* Returns true if the wall clock was not stepped back within lasts_usec: all records that still exist were
 * written after the last step. */
static bool clock_is_steady(const struct birth *birth, const struct world *world, usec_t lasts_usec)
{
        const struct doubt *doubt = &world->doubt;

        /* doubt->stepped_back_at does not show a step since the last tick. */
        if (doubt_steps_back(doubt, birth->boottime, birth->realtime))
                return false;
        return doubt->stepped_back_at == 0 || usec_sub(birth->monotonic, doubt->stepped_back_at) > lasts_usec;
}

bool birth_is_own(const struct birth *birth, const struct world *world, usec_t lasts_usec)
{
        usec_t age = usec_sub(birth->boottime, birth->started_at);

        return birth->born_usec != 0 && birth->born_usec <= birth->realtime &&
               birth->born_usec >= usec_sub(birth->realtime, age) &&
               (birth->booted || age >= BIRTH_UNSEEN_BOOT_USEC) && clock_is_steady(birth, world, lasts_usec);
}

bool birth_is_foreign(const struct birth *birth, const struct world *world)
{
        const struct doubt *doubt = &world->doubt;
        int64_t lag = (int64_t)(birth->realtime - birth->boottime);
        int64_t started_at = (int64_t)birth->started_at + doubt->steady_lag;

        return birth->born_usec != 0 && doubt->due != 0 &&
               birth->started_at + START_USEC >= doubt->steady_since &&
               llabs(lag - doubt->steady_lag) <= CLOCK_STEP_USEC &&
               llabs((int64_t)(birth->realtime - birth->sent_usec)) <= (int64_t)BIRTH_CLOCK_USEC &&
               (int64_t)birth->born_usec + CLOCK_STEP_USEC < started_at;
}
