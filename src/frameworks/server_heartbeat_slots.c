/* SPDX-License-Identifier: MIT */
/* Identities of the workers whose heartbeats are on a server, and requests for them. */
#include "frameworks/server_heartbeat_slots.h"
#include "io/clock.h"
#include "model/deadlines.h"
#include "model/fleet.h"
#include "servers/server.h"
#include <string.h>

static void heartbeats_destroy(struct server_heartbeats *heartbeats)
{
        for (struct server_slot *slot = heartbeats->slots, *next; slot; slot = next) {
                next = slot->next;
                slot_free(slot);
        }
        inside_names_clear(&heartbeats->names);
        match_clear(&heartbeats->match);
        free(heartbeats->scan_host);
        free(heartbeats);
}

static void forget_names(struct server_heartbeats *heartbeats)
{
        inside_names_clear(&heartbeats->names);
        heartbeats->match.names_have = NULL;
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
                if (slot->inside)
                        forget_names(heartbeats);
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
        /* If this identity is lost later, the search uses its host name, unless that is the worker's own. */
        if (slot_is_namespaced(slot) ||
            !heartbeats->framework->identity_parse(identity, strlen(identity), &host_len, &pid))
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
        if (slot->base.worker->fleet->settings->traits->process_is_heartbeat)
                slot->changed_at = heartbeat->sent_usec = clock_now(CLOCK_MONOTONIC);
}

/* Workers whose processes are read in one poll, and processes: the worker that exceeds this is the last. */
#define INSIDE_READ_MAX      32
#define INSIDE_PROCESSES_SUM 512

static bool names_have(const void *names, const char *host, size_t len, pid_t own_pid)
{
        return inside_names_have(names, host, len, own_pid);
}

/* Returns the number of processes read. While its environment is being read, a worker keeps the names of its
 * earlier processes. Without processes it has no name. */
static size_t read_inside(struct server_slot *slot, usec_t now)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        _cleanup_free_ struct inside *inside = calloc(1, sizeof(*inside));

        slot->inside_read_at = now;
        if (!inside ||
            heartbeats->base.ops->read_inside(slot->base.worker, inside, heartbeats->base.userdata) < 0) {
                if (slot->inside)
                        slot->inside->complete = false;
                return 0;
        }
        /* Names point to the one that is there. */
        if (slot->inside)
                *slot->inside = *inside;
        else
                slot->inside = TAKE_PTR(inside);
        return slot->inside->n;
}

static bool is_namespaced(const struct server_slot *slot)
{
        return slot->base.worker && slot_is_namespaced(slot);
}

/* Returns the slot that was read longest ago, of those that need it now. */
static struct server_slot *next_inside(struct server_heartbeats *heartbeats,
                                       bool (*seeks)(const struct server_slot *slot, usec_t now), usec_t now)
{
        struct server_slot *next = NULL;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (is_namespaced(slot) && slot->poll_items && slot->inside_read_at != now &&
                    (seeks(slot, now) || (slot->poll_items & POLL_SIBLINGS)) &&
                    (!next || slot->inside_read_at < next->inside_read_at))
                        next = slot;
        return next;
}

/* Makes the names of all workers whose processes were ever read. */
static int make_names(struct server_heartbeats *heartbeats,
                      bool (*seeks)(const struct server_slot *slot, usec_t now), usec_t now)
{
        size_t n = 0;

        for (const struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                n += is_namespaced(slot) && slot->inside;
        struct inside_owner *owners = calloc(n + 1, sizeof(*owners));
        if (!owners)
                return -ENOMEM;
        n = 0;
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (is_namespaced(slot) && slot->inside)
                        owners[n++] = (struct inside_owner){
                                .owner = slot,
                                .inside = slot->inside,
                                .identity = &slot->base.identity,
                                .seeks = seeks(slot, now),
                                .main_pid = slot->base.worker->process.pid,
                                .read_at = slot->inside_read_at,
                        };
        return inside_names_make(owners, n, &heartbeats->names);
}

int server_heartbeats_read_inside(struct server_heartbeats *heartbeats,
                                  bool (*seeks)(const struct server_slot *slot, usec_t now), usec_t now)
{
        size_t processes = 0;
        bool any = false;

        forget_names(heartbeats);
        if (!heartbeats->base.ops->read_inside)
                return 0;
        for (unsigned i = 0; i < INSIDE_READ_MAX && processes < INSIDE_PROCESSES_SUM; i++) {
                struct server_slot *slot = next_inside(heartbeats, seeks, now);

                if (!slot)
                        break;
                any = true;
                processes += read_inside(slot, now);
        }
        /* A scan of this host alone would forget what is known of identities with other names. */
        for (struct server_slot *slot = heartbeats->slots; slot && !any; slot = slot->next)
                any = is_namespaced(slot) && seeks(slot, now);
        int r = make_names(heartbeats, seeks, now);
        heartbeats->match.names = &heartbeats->names;
        /* While no worker in namespaces of its own needs it, scans read this host only. */
        heartbeats->match.names_have = r >= 0 && any ? names_have : NULL;
        return r;
}

void server_heartbeats_find_inside(const struct server_heartbeats *heartbeats, struct candidate *candidate)
{
        if (!inside_names_find(&heartbeats->names, candidate))
                return;
        const struct server_slot *slot = candidate->owner;
        /* The worker may have been removed since its names were made. */
        if (!slot->base.worker) {
                match_disown(candidate);
                return;
        }
        candidate->resolved = true;
        /* An identity with a unique name cannot be older than its worker. */
        if (candidate->unique && candidate->absent_at == 0)
                candidate->absent_at = slot->base.worker->spawned_at;
}

void server_heartbeats_reread_remote(struct server_heartbeats *heartbeats, usec_t before, usec_t now)
{
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next) {
                struct worker *worker = slot->base.worker;
                size_t host_len;
                pid_t pid;
                bool several;

                if (!is_namespaced(slot) || !slot->poll_items || !slot->base.identity ||
                    !worker->process.remote || worker->process.heartbeat_pid != worker->process.pid ||
                    slot->inside_read_at >= before || !heartbeats->base.ops->read_inside ||
                    !heartbeats->framework->identity_parse(slot->base.identity, strlen(slot->base.identity),
                                                           &host_len, &pid))
                        continue;
                (void)read_inside(slot, now);
                const struct inside_process *process =
                        slot->inside ? inside_find(slot->inside, pid, NULL, &several) : NULL;
                if (process && process->pid != worker->process.pid)
                        heartbeats->base.ops->on_identity(worker, process->pid, false,
                                                          heartbeats->base.userdata);
                /* A poll reads one worker. */
                return;
        }
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
