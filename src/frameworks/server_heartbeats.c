/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers from a server; see the header.
 *
 * A poll has up to two rounds. The first reads the heartbeats of workers whose identity is known, and
 * scans the set of identities if another is needed. The second reads the heartbeats of the candidates that
 * observe/match.h holds for a worker. Then match_decide() assigns identities to workers. */
#include "frameworks/server_heartbeats.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/proc.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/scan_throttle.h"
#include <sys/random.h>

/* Queries for one worker in one poll. */
#define QUERIES_MAX 2
/* Searches of /proc in one poll; the remaining ones wait for the next poll. */
#define DESCENDANTS_MAX 512
/* Processes of one worker that are checked for having booted, in one poll. */
#define BOOTS_MAX 64
/* A scan is followed by a pause of this many times its duration. */
#define SCAN_DUTY 10
/* A longer scan is abandoned: known heartbeats must not wait for it. */
#define SCAN_MAX_USEC (5 * USEC_PER_SEC)
/* How often to search for a heartbeat that is missing or stale, and for siblings of its worker. */
#define RESCAN_USEC (30 * USEC_PER_SEC)

struct server_slot {
        struct heartbeat_slot base;
        struct server_slot *next;
        unsigned wanted;     /* poll items requested for the next poll */
        unsigned poll_items; /* poll items of the current poll */
        unsigned queries;    /* sent for this slot in the current poll */
        unsigned pending;    /* queries of the slot without an answer */
        unsigned n_others;   /* candidates of the slot beside its own identity */

        bool heartbeat_missing;     /* the last poll found no heartbeat */
        usec_t forgotten_at;        /* when heartbeats_forget() was called for the slot; 0: never */
        usec_t changed_at;          /* when the heartbeat was last seen to change */
        struct heartbeat heartbeat; /* the last heartbeat read; sent_usec 0: none */
        bool signal_refused;        /* the last signal through the server was refused */
        bool heartbeat_waits;       /* for the answer about its work list */
        usec_t siblings_scan_at;    /* no scan for siblings before this; 0: none was made yet */
        bool deferred;              /* the caller wants `again` at heartbeats_resume() */
        struct heartbeat again;
        struct inside *inside; /* owned; NULL: the worker has no namespaces, or never sought its identity */
        usec_t inside_read_at; /* 0: never */
        usec_t seeks_at;       /* the last poll of the slot, if that wanted a scan; else 0 */
};

struct server_heartbeats {
        struct heartbeats base;
        struct reader *reader;
        const struct framework *framework;
        char *scan_host; /* host of the scanned identities; NULL: no scan was made */

        struct server_slot *slots; /* including removed slots while anything refers to them */
        struct server_slot **end;  /* the next slot is linked here */
        unsigned n_slots;

        struct match match;
        struct inside_names names; /* of the workers in namespaces of their own; refers to the slots */

        /* Coordinates the scans of the hosts of one server (observe/scan_throttle.h). A host that wants to
         * scan has the server count its connection. If the server gives no such count, each host scans as if
         * it were alone. */
        struct scan_throttle scan_throttle;
        struct scan_throttle_reading scanners; /* the reading in progress */
        bool counted;                          /* the host is among the scanners */
        bool blind;                            /* the server gives no count */

        uint64_t connection; /* the connection that match belongs to */

        bool looking;
        bool again;       /* a poll was requested during the current one: starts when that is done */
        bool undecided;   /* the current or last poll awaits heartbeats_resume() */
        bool failed;      /* the current poll has failed */
        unsigned pending; /* queries of the current poll without an answer */
        usec_t polled_at; /* when the current or last poll began */
        usec_t scan_began_at;
        bool scan_all; /* a single scan reads all hosts: workers in namespaces of their own may have any name
                        */
        size_t scan_hosts;   /* index into this host's names: those before it are scanned */
        usec_t scan_next_at; /* no scan before this */
        usec_t lost_scan_at; /* no scan for a lost heartbeat before this */

        unsigned entered; /* functions of this object on the stack, plus pending queries; the object is freed
                             at 0 */
        bool freed;
};

/* A pending query. */
struct poll_query {
        struct server_heartbeats *heartbeats;
        struct server_slot *slot;    /* NULL: a scan step */
        struct candidate *candidate; /* NULL: the slot's own heartbeat */
};

static struct server_heartbeats *own(struct heartbeats *heartbeats)
{
        return (struct server_heartbeats *)heartbeats;
}

static struct server_slot *own_slot(struct heartbeat_slot *slot)
{
        return (struct server_slot *)slot;
}

static struct server_heartbeats *heartbeats_of(const struct server_slot *slot)
{
        return own(slot->base.heartbeats);
}

static void slot_lose_identity(struct server_slot *slot)
{
        free(slot->base.identity);
        slot->base.identity = NULL;
        free(slot->base.info);
        slot->base.info = NULL;
        slot->heartbeat_missing = slot->signal_refused = false;
        slot->heartbeat = (struct heartbeat){0};
        slot->heartbeat_waits = false;
        slot->deferred = false;
}

static bool slot_is_namespaced(const struct server_slot *slot)
{
        return slot->base.worker->fleet->settings->namespaced;
}

static void slot_free(struct server_slot *slot)
{
        free(slot->inside);
        free(slot->base.identity);
        free(slot->base.info);
        free(slot);
}

static void on_scan_permit(struct server_heartbeats *heartbeats, bool open);

/* Returns true if many hosts wanted to scan at the last reading. */
static bool server_heartbeats_contended(const struct heartbeats *heartbeats)
{
        return ((const struct server_heartbeats *)heartbeats)->scan_throttle.gap >
               SCAN_THROTTLE_CONTENDED_USEC;
}

/* An error is ignored: if the query cannot be sent, the connection is lost and this host is not counted. */
static void leave_scanners(struct server_heartbeats *heartbeats)
{
        const struct query query = {.kind = QUERY_SCAN_LEAVE};

        if (heartbeats->counted)
                (void)reader_ask(heartbeats->reader, &query, NULL, NULL);
        heartbeats->counted = false;
}

/* Requests a scan; see scan_throttle_request(). Returns true if request_scan_permit() is due. */
static bool want_scan(struct server_heartbeats *heartbeats, usec_t now, bool may_find)
{
        if (scan_throttle_request(&heartbeats->scan_throttle, now, may_find))
                return heartbeats->blind || scan_throttle_is_due(&heartbeats->scan_throttle, now);
        leave_scanners(heartbeats);
        return false;
}

static bool decide_scan(struct server_heartbeats *heartbeats, const struct answer_scanners *answer)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        uint32_t lot = 0;

        (void)getrandom(&lot, sizeof(lot), GRND_NONBLOCK);
        heartbeats->scanners.members = answer->members;
        heartbeats->scanners.scanners = answer->scanners;
        heartbeats->blind |= answer->blind;
        return heartbeats->blind ||
               (answer->members_known && answer->scanners > 0 &&
                scan_throttle_decide(&heartbeats->scan_throttle, &heartbeats->scanners, lot, now));
}

static void on_scanners(struct answer *answer, void *userdata)
{
        on_scan_permit(userdata, answer->status == ANSWER_OK && decide_scan(userdata, &answer->scanners));
}

/* Returns true if the heartbeat of the known identity is missing or stale: the worker may now use another
 * identity. */
static bool slot_is_lost(const struct server_slot *slot, usec_t now)
{
        /* Stricter than worker_stale_usec(), which adds a margin: the search must start before the worker
         * counts as hung and before its work list expires. */
        return slot->base.identity &&
               (slot->heartbeat_missing ||
                usec_sub(now, slot->changed_at) > slot->base.worker->fleet->settings->traits->stale_usec);
}

static bool slot_is_without_identity(const struct server_slot *slot, usec_t now)
{
        return !slot->base.identity || slot_is_lost(slot, now);
}

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

/* Enclose what must not free the object or its slots: a function on the stack, or a pending query. */
static void server_heartbeats_enter(struct server_heartbeats *heartbeats)
{
        heartbeats->entered++;
}

static void server_heartbeats_leave(struct server_heartbeats *heartbeats)
{
        if (--heartbeats->entered > 0)
                return;
        if (heartbeats->freed)
                heartbeats_destroy(heartbeats);
        else
                sweep_slots(heartbeats);
}

static int server_heartbeats_know(struct heartbeat_slot *base, const char *identity)
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

static void server_heartbeats_forget(struct heartbeat_slot *base)
{
        struct server_slot *slot = own_slot(base);
        slot->forgotten_at = clock_now(CLOCK_MONOTONIC);
        slot->siblings_scan_at = 0;
        if (!slot->base.identity)
                return;
        match_distrust(&heartbeats_of(slot)->match, slot->base.identity);
        slot_lose_identity(slot);
}

/* Adds to a heartbeat what its framework leaves to sqmgr: see process_is_heartbeat in struct traits. */
static void server_heartbeats_amend(struct server_slot *slot, struct heartbeat *heartbeat)
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
static struct server_slot *next_inside(struct server_heartbeats *heartbeats, usec_t now)
{
        struct server_slot *next = NULL;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (is_namespaced(slot) && slot->poll_items && slot->inside_read_at != now &&
                    (slot_is_without_identity(slot, now) || (slot->poll_items & POLL_SIBLINGS)) &&
                    (!next || slot->inside_read_at < next->inside_read_at))
                        next = slot;
        return next;
}

/* Makes the names of all workers whose processes were ever read. */
static int make_names(struct server_heartbeats *heartbeats, usec_t now)
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
                                .seeks = slot_is_without_identity(slot, now),
                                .main_pid = slot->base.worker->process.pid,
                                .read_at = slot->inside_read_at,
                        };
        return inside_names_make(owners, n, &heartbeats->names);
}

/* Reads the processes of the workers in namespaces of their own that seek their identity, as far as one poll
 * may, and makes their names known to the match. Returns 0 or -ENOMEM. */
static int server_heartbeats_read_inside(struct server_heartbeats *heartbeats, usec_t now)
{
        size_t processes = 0;
        bool any = false;

        forget_names(heartbeats);
        if (!heartbeats->base.ops->read_inside)
                return 0;
        for (unsigned i = 0; i < INSIDE_READ_MAX && processes < INSIDE_PROCESSES_SUM; i++) {
                struct server_slot *slot = next_inside(heartbeats, now);

                if (!slot)
                        break;
                any = true;
                processes += read_inside(slot, now);
        }
        /* A scan of this host alone would forget what is known of identities with other names. */
        for (struct server_slot *slot = heartbeats->slots; slot && !any; slot = slot->next)
                any = is_namespaced(slot) && slot_is_without_identity(slot, now);
        int r = make_names(heartbeats, now);
        heartbeats->match.names = &heartbeats->names;
        /* While no worker in namespaces of its own needs it, scans read this host only. */
        heartbeats->match.names_have = r >= 0 && any ? names_have : NULL;
        return r;
}

/* Finds the owner of a candidate among the workers in namespaces of their own. */
static void server_heartbeats_find_inside(const struct server_heartbeats *heartbeats,
                                          struct candidate *candidate)
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

/* A process that was not visible may have become a descendant of its worker: looks for that of one worker
 * whose processes were not read since `before`. */
static void server_heartbeats_reread_remote(struct server_heartbeats *heartbeats, usec_t before, usec_t now)
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

static void server_heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items)
{
        own_slot(slot)->wanted |= poll_items & (POLL_HEARTBEAT | POLL_WORK_LIST | POLL_SIBLINGS);
}

/* Counts the other candidates of each slot. A slot without others needs no search through all candidates. */
static void server_heartbeats_count_others(struct server_heartbeats *heartbeats)
{
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                slot->n_others = 0;
        FOREACH_POINTER(candidate, heartbeats->match.candidates, heartbeats->match.n_candidates) {
                struct server_slot *slot = (struct server_slot *)candidate->owner;

                if (slot && (!slot->base.identity || strcmp(candidate->identity, slot->base.identity) != 0))
                        slot->n_others++;
        }
}

/* Drops host names under which no live worker can have started. */
static void server_heartbeats_forget_hosts(struct server_heartbeats *heartbeats)
{
        usec_t oldest = USEC_INFINITY;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (slot->base.worker)
                        oldest = MIN(oldest, slot->base.worker->spawned_at);
        match_hosts_forget(&heartbeats->match, oldest);
}

static char *server_heartbeats_take_another(struct heartbeat_slot *base, pid_t *ret_pid)
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

static void on_signal(struct answer *answer, void *userdata)
{
        struct server_slot *slot = userdata;

        if (answer->status != ANSWER_LOST)
                slot->signal_refused = answer->status == ANSWER_REFUSED;
        server_heartbeats_leave(heartbeats_of(slot));
}

static int server_heartbeats_signal(struct heartbeat_slot *base, int signo)
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

static const struct heartbeat_source server_kind;

int server_heartbeats_new(struct reader *reader, const struct framework *framework,
                          const struct heartbeats_ops *ops, void *userdata, struct heartbeats **ret)
{
        struct server_heartbeats *heartbeats = calloc(1, sizeof(*heartbeats));
        if (!heartbeats)
                return -ENOMEM;
        heartbeats->reader = reader;
        heartbeats->framework = framework;
        heartbeats->end = &heartbeats->slots;
        heartbeats->base = (struct heartbeats){
                .kind = &server_kind, .ops = ops, .userdata = userdata, .match = &heartbeats->match};
        heartbeats->scanners.nsec = framework->member_nsec;
        *ret = &heartbeats->base;
        return 0;
}

static void server_heartbeats_free(struct heartbeats *base)
{
        struct server_heartbeats *heartbeats = own(base);

        if (heartbeats->freed)
                return;
        heartbeats->freed = true;
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                slot->base.worker = NULL;
        server_heartbeats_enter(heartbeats);
        server_heartbeats_leave(heartbeats);
}

/* Returns 0 or -ENOMEM. */
static int observe_host_name(struct server_heartbeats *heartbeats)
{
        const char *name = heartbeats->base.ops->host_name(heartbeats->base.userdata);

        return name ? match_host_is(&heartbeats->match, name, clock_now(CLOCK_MONOTONIC)) : 0;
}

static int server_heartbeats_add(struct heartbeats *base, struct worker *worker, struct heartbeat_slot **ret)
{
        struct server_heartbeats *heartbeats = own(base);

        /* The current host name is the one the new process sees; the name may have changed by the next
         * scan. */
        int r = observe_host_name(heartbeats);
        if (r < 0)
                return r;
        struct server_slot *slot = calloc(1, sizeof(*slot));
        if (!slot)
                return -ENOMEM;
        slot->base = (struct heartbeat_slot){.heartbeats = base, .worker = worker};
        *heartbeats->end = slot;
        heartbeats->end = &slot->next;
        heartbeats->n_slots++;
        match_owner_added(&heartbeats->match);
        *ret = &slot->base;
        return 0;
}

static void server_heartbeats_remove(struct heartbeat_slot *base)
{
        struct server_slot *slot = own_slot(base);
        struct server_heartbeats *heartbeats = heartbeats_of(slot);

        slot->base.worker = NULL;
        match_owner_removed(&heartbeats->match, slot);
        server_heartbeats_enter(heartbeats);
        server_heartbeats_leave(heartbeats);
}

static void poll_advance(struct server_heartbeats *heartbeats);

/* Sends a query of the current poll. The poll fails if the query cannot be sent. */
static bool poll_ask(struct server_heartbeats *heartbeats, const struct query *query,
                     reader_answer_fn callback, struct poll_query ask)
{
        struct poll_query *copy = malloc(sizeof(*copy));

        if (copy)
                *copy = ask;
        if (!copy || reader_ask(heartbeats->reader, query, callback, copy) < 0) {
                free(copy);
                heartbeats->failed = true;
                return false;
        }
        heartbeats->pending++;
        server_heartbeats_enter(heartbeats);
        if (ask.slot) {
                ask.slot->pending++;
                ask.slot->queries++;
        }
        return true;
}

/* Call first for every answer. Returns the context of the query, which is freed. If heartbeats->freed is set,
 * the answer must be ignored. */
static struct poll_query poll_answer(void *userdata, struct answer *answer)
{
        struct poll_query *ask = userdata, copy = *ask;

        free(ask);
        copy.heartbeats->pending--;
        if (copy.slot)
                copy.slot->pending--;
        if (answer->status == ANSWER_LOST)
                copy.heartbeats->failed = true;
        if (answer->kind == QUERY_HEARTBEAT)
                answer->heartbeat.heartbeat.asked_at = copy.heartbeats->polled_at;
        return copy;
}

static void poll_answer_done(struct server_heartbeats *heartbeats)
{
        if (!heartbeats->freed)
                poll_advance(heartbeats);
        server_heartbeats_leave(heartbeats);
}

static void report_heartbeat(struct server_slot *slot, const struct heartbeat *heartbeat)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        struct heartbeat reported = *heartbeat;

        if (!slot->base.worker || heartbeats->freed)
                return;
        server_heartbeats_amend(slot, &reported);
        heartbeats->base.deferred = false;
        heartbeats->base.ops->on_heartbeat(slot->base.worker, &reported, heartbeats->base.userdata);
        if (heartbeats->freed || !heartbeats->base.deferred)
                return;
        slot->deferred = heartbeats->undecided = true;
        slot->again = *heartbeat;
}

/* Returns the heartbeat of an answer; NULL: none. Moves the info of the answer to *info unless *info is set,
 * and takes from *info what the heartbeat itself does not contain. */
static const struct heartbeat *take_heartbeat(struct answer_heartbeat *answer, struct heartbeat_info **info)
{
        if (!*info)
                *info = TAKE_PTR(answer->info);
        if (answer->heartbeat.concurrency == 0 && *info)
                answer->heartbeat.concurrency = (*info)->concurrency;
        if (answer->heartbeat.born_usec == 0 && *info)
                answer->heartbeat.born_usec = (*info)->born_usec;
        return answer->found ? &answer->heartbeat : NULL;
}

static void on_own_heartbeat(struct answer *answer, void *userdata)
{
        struct poll_query ask = poll_answer(userdata, answer);
        struct server_slot *slot = ask.slot;

        /* The identity may have been forgotten meanwhile. Without an answer nothing is known. */
        if (answer->status != ANSWER_LOST && slot->base.worker && slot->base.identity) {
                const struct heartbeat *heartbeat = take_heartbeat(&answer->heartbeat, &slot->base.info);
                slot->heartbeat_missing = !heartbeat;
                if (heartbeat) {
                        if (heartbeat->sent_usec != slot->heartbeat.sent_usec)
                                slot->changed_at = clock_now(CLOCK_MONOTONIC);
                        slot->heartbeat = *heartbeat;
                        slot->heartbeat_waits = slot->pending > 0;
                        if (!slot->heartbeat_waits)
                                report_heartbeat(slot, heartbeat);
                }
        }
        poll_answer_done(ask.heartbeats);
}

static void on_work_list(struct answer *answer, void *userdata)
{
        struct poll_query ask = poll_answer(userdata, answer);
        struct server_slot *slot = ask.slot;

        if (answer->status != ANSWER_LOST && slot->heartbeat_waits) {
                struct heartbeat heartbeat = slot->heartbeat;
                slot->heartbeat_waits = false;
                heartbeat.work_list_known = answer->work_list.known;
                heartbeat.work_list_empty = answer->work_list.known && answer->work_list.empty;
                report_heartbeat(slot, &heartbeat);
        }
        poll_answer_done(ask.heartbeats);
}

/* Requests the slot's own heartbeat, or a candidate's. Returns true if the query was sent. */
static bool ask_heartbeat(struct server_slot *slot, struct candidate *candidate, reader_answer_fn callback)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        const char *identity = candidate ? candidate->identity : slot->base.identity;
        bool with_info = candidate ? !candidate->info : !slot->base.info;
        const struct field texts[] = {QUERY_TEXT(identity)};
        bool outcomes = slot->base.worker && slot->base.worker->fleet->settings->rollout_trial > 0;
        const struct query query = {
                .kind = QUERY_HEARTBEAT, .numbers = {with_info, 0, outcomes}, .texts = texts, .n_texts = 1};
        struct poll_query ask = {.heartbeats = heartbeats, .slot = slot, .candidate = candidate};

        return poll_ask(heartbeats, &query, callback, ask);
}

/* The heartbeat goes first: a work list read after it is as new or newer, and so never shows too few jobs. */
static void ask_own(struct server_slot *slot, usec_t now)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);

        slot->heartbeat_waits = false;
        if (!ask_heartbeat(slot, NULL, on_own_heartbeat))
                return;
        if (!(slot->poll_items & POLL_WORK_LIST) || slot_is_lost(slot, now))
                return;
        const struct field texts[] = {QUERY_TEXT(slot->base.identity)};
        const struct query query = {.kind = QUERY_WORK_LIST, .texts = texts, .n_texts = 1};
        struct poll_query ask = {.heartbeats = heartbeats, .slot = slot};

        (void)poll_ask(heartbeats, &query, on_work_list, ask);
}

/* Returns true if the candidate's process registered the record of the heartbeat. While that is being read,
 * returns what was known before. Rejects the candidate if another process registered it. */
static bool is_born(struct server_heartbeats *heartbeats, struct candidate *candidate,
                    const struct worker *worker, const struct heartbeat *heartbeat)
{
        int r = worker && heartbeat->born_usec != 0 && !candidate->remote
                        ? heartbeats->base.ops->is_born(candidate->pid, heartbeat, worker,
                                                        heartbeats->base.userdata)
                        : 0;

        candidate->foreign |= r == -EREMOTE;
        candidate->birth_awaited = r == -EINPROGRESS;
        heartbeats->undecided |= candidate->birth_awaited;
        return candidate->birth_awaited ? candidate->born_at != 0 : r > 0;
}

static void on_candidate(struct answer *answer, void *userdata)
{
        struct poll_query ask = poll_answer(userdata, answer);
        struct candidate *candidate = ask.candidate;

        if (answer->status != ANSWER_LOST && !ask.heartbeats->freed) {
                const struct heartbeats *base = &ask.heartbeats->base;
                const struct worker *worker = ask.slot->base.worker;
                const struct heartbeat *heartbeat = take_heartbeat(&answer->heartbeat, &candidate->info);
                if (heartbeat && heartbeat->start != 0 &&
                    base->ops->has_start(candidate->pid, heartbeat->start, base->userdata) <= 0)
                        heartbeat = NULL;
                bool born = heartbeat && is_born(ask.heartbeats, candidate, worker, heartbeat);
                match_read(candidate, heartbeat, born, clock_now(CLOCK_MONOTONIC));
        }
        poll_answer_done(ask.heartbeats);
}

/* Requests the heartbeats of candidates for workers whose identity is unknown or lost. */
static void ask_candidates(struct server_heartbeats *heartbeats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next) {
                if (!slot->poll_items || !slot->base.worker)
                        continue;
                if (slot->base.identity && (slot->n_others == 0 || (!slot_is_lost(slot, now) &&
                                                                    !(slot->poll_items & POLL_SIBLINGS))))
                        continue;
                while (slot->queries < QUERIES_MAX) {
                        struct candidate *candidate =
                                match_next_unasked(&heartbeats->match, slot, now, slot->base.identity);
                        if (!candidate || !ask_heartbeat(slot, candidate, on_candidate))
                                break;
                        candidate->asked_at = now;
                }
        }
}

static struct server_slot *find_owner(struct server_heartbeats *heartbeats, pid_t pid, unsigned *budget)
{
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (slot->base.worker && slot->base.worker->process.pid == pid && !slot_is_namespaced(slot))
                        return slot;
        /* Most leftover identities in Redis belong to processes that are long dead. */
        if (!probe_pid(pid))
                return NULL;
        for (struct server_slot *slot = heartbeats->slots; slot && *budget > 0; slot = slot->next) {
                if (!slot->base.worker || slot_is_namespaced(slot))
                        continue;
                (*budget)--;
                int r = heartbeats->base.ops->is_descendant(pid, slot->base.worker,
                                                            heartbeats->base.userdata);
                if (r > 0)
                        return slot;
                if (is_shortage(r))
                        *budget = 0;
        }
        return NULL;
}

/* Finds the owner of each new candidate. */
static void resolve_owners(struct server_heartbeats *heartbeats)
{
        /* Enough for at least one candidate, however many workers there are. */
        unsigned budget = DESCENDANTS_MAX + (unsigned)heartbeats->n_slots;

        for (size_t i = 0; i < heartbeats->match.n_candidates && !heartbeats->freed; i++) {
                struct candidate *candidate = heartbeats->match.candidates[i];
                if (!candidate->resolved && !candidate->named) {
                        candidate->owner = find_owner(heartbeats, candidate->own_pid, &budget);
                        /* Without an owner after the budget ran out, the search continues at the next poll.
                         */
                        candidate->resolved = candidate->owner || budget > 0;
                }
                /* A worker that is not in namespaces of its own goes first. */
                if (candidate->owner ? candidate->claimed : candidate->named || candidate->resolved)
                        server_heartbeats_find_inside(heartbeats, candidate);
        }
        server_heartbeats_count_others(heartbeats);
}

/* Returns true if another host name must be scanned. Fails the poll if memory is short. */
static bool scan_next_host(struct server_heartbeats *heartbeats)
{
        const char *host = match_scan_host(&heartbeats->match, &heartbeats->scan_hosts);

        if (!host || heartbeats->scan_all)
                return false;
        free(heartbeats->scan_host);
        heartbeats->scan_host = strdup(host);
        heartbeats->failed |= !heartbeats->scan_host;
        return heartbeats->scan_host;
}

static void scan_step(struct server_heartbeats *heartbeats, const char *cursor);

/* Returns 0 or -ENOMEM. */
static int take_page(struct server_heartbeats *heartbeats, const struct answer_scan *page)
{
        int r = 0;

        for (size_t i = 0; i < page->n && r >= 0; i++) {
                const struct match_found found = {.identity = page->list[i].identity,
                                                  .len = strlen(page->list[i].identity),
                                                  .host_len = page->list[i].host_len,
                                                  .pid = page->list[i].pid};

                r = match_scan_add(&heartbeats->match, &found, clock_now(CLOCK_MONOTONIC));
        }
        return r;
}

static void on_scan(struct answer *answer, void *userdata)
{
        struct poll_query ask = poll_answer(userdata, answer);
        struct server_heartbeats *heartbeats = ask.heartbeats;

        if (answer->status != ANSWER_LOST && !heartbeats->freed) {
                usec_t now = clock_now(CLOCK_MONOTONIC);
                usec_t took = usec_sub(now, heartbeats->scan_began_at);

                heartbeats->scan_next_at = now + SCAN_DUTY * took;
                if (answer->status != ANSWER_OK || take_page(heartbeats, &answer->scan) < 0 ||
                    took > SCAN_MAX_USEC) {
                        heartbeats->failed = true;
                } else if (answer->scan.cursor[0] != '\0') {
                        scan_step(heartbeats, answer->scan.cursor);
                } else if (scan_next_host(heartbeats)) {
                        scan_step(heartbeats, "");
                } else if (!heartbeats->failed) {
                        match_scan_end(&heartbeats->match);
                        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                                if (slot->poll_items & POLL_SIBLINGS)
                                        slot->siblings_scan_at = now + RESCAN_USEC;
                        resolve_owners(heartbeats);
                        ask_candidates(heartbeats);
                }
        }
        poll_answer_done(heartbeats);
}

static void scan_begin(struct server_heartbeats *heartbeats, usec_t now)
{
        if (observe_host_name(heartbeats) < 0 || server_heartbeats_read_inside(heartbeats, now) < 0) {
                heartbeats->failed = true;
                return;
        }
        server_heartbeats_forget_hosts(heartbeats);
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (slot->base.worker && slot_is_lost(slot, now))
                        heartbeats->lost_scan_at = now + RESCAN_USEC;
        heartbeats->scan_began_at = now;
        heartbeats->scan_hosts = 0;
        match_scan_begin(&heartbeats->match, now);
        heartbeats->scan_all = !!heartbeats->match.names_have;
        if (heartbeats->scan_all || scan_next_host(heartbeats))
                scan_step(heartbeats, "");
}

static void scan_step(struct server_heartbeats *heartbeats, const char *cursor)
{
        bool all = heartbeats->scan_all;
        const struct field texts[] = {QUERY_TEXT(cursor), QUERY_TEXT(all ? "" : heartbeats->scan_host)};
        const struct query query = {.kind = QUERY_SCAN, .texts = texts, .n_texts = all ? 1 : 2};
        struct poll_query ask = {.heartbeats = heartbeats};

        (void)poll_ask(heartbeats, &query, on_scan, ask);
}

/* open: the scan may be made now. */
static void on_scan_permit(struct server_heartbeats *heartbeats, bool open)
{
        heartbeats->pending--;
        if (!heartbeats->freed && open) {
                scan_begin(heartbeats, clock_now(CLOCK_MONOTONIC));
        } else if (!heartbeats->freed) {
                resolve_owners(heartbeats);
                ask_candidates(heartbeats);
        }
        poll_answer_done(heartbeats);
}

/* Other hosts may scan too: ask for permission first. */
static void request_scan_permit(struct server_heartbeats *heartbeats, usec_t now)
{
        const struct query query = {.kind = QUERY_SCANNERS, .numbers = {!heartbeats->counted}};

        if (heartbeats->blind) {
                scan_begin(heartbeats, now);
                return;
        }
        heartbeats->scanners.scans = match_n_hosts(&heartbeats->match);
        if (reader_ask(heartbeats->reader, &query, on_scanners, heartbeats) < 0) {
                heartbeats->failed = true;
                return;
        }
        heartbeats->counted = true;
        heartbeats->pending++;
        server_heartbeats_enter(heartbeats);
}

/* The worker's heartbeats come from this identity from now on. */
static void slot_adopt(struct server_slot *slot, struct candidate *candidate)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        struct heartbeat heartbeat = candidate->heartbeat;

        char *identity = strdup(candidate->identity);
        if (!identity)
                return;
        slot_lose_identity(slot);
        slot->base.identity = identity;
        slot->base.info = TAKE_PTR(candidate->info);
        slot->heartbeat = heartbeat;
        slot->changed_at = clock_now(CLOCK_MONOTONIC);
        heartbeats->base.ops->on_identity(slot->base.worker, candidate->pid, candidate->remote,
                                          heartbeats->base.userdata);
        if (slot->base.identity)
                report_heartbeat(slot, &heartbeat);
}

/* Rejects the candidates of processes that have not booted yet: such identities are leftovers of earlier
 * processes. Returns false if it is not known of some process whether it shows a boot. */
static bool sort_out_unbooted(struct server_slot *slot)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        unsigned budget = BOOTS_MAX;
        size_t at = 0;
        pid_t pid;

        while (budget-- > 0 && (pid = match_pid(&heartbeats->match, slot, &at)) != 0) {
                int r = heartbeats->base.ops->has_booted(pid, slot->base.worker, heartbeats->base.userdata);
                heartbeats->undecided |= r == -EINPROGRESS;
                if (is_shortage(r) || r == -EINPROGRESS || r == -ETIMEDOUT)
                        return false;
                if (r == 0 || r == -ENODATA)
                        match_unbooted(&heartbeats->match, slot, pid, r == 0);
                else if (r > 0)
                        match_booted(&heartbeats->match, slot, pid);
        }
        return true;
}

/* Decides which identity the worker's heartbeats use. */
static void slot_decide(struct server_slot *slot)
{
        struct server_heartbeats *heartbeats = heartbeats_of(slot);
        const struct worker *worker = slot->base.worker;
        bool ambiguous;

        if (!sort_out_unbooted(slot))
                return;
        const struct match_claim claim = {
                .owner = slot,
                .spawned_at = worker->spawned_at,
                .since = MAX(worker->spawned_at, slot->forgotten_at),
                /* The process of the known identity has no other identity. Of one that is not visible, the
                 * pid is not known. */
                .except = slot->base.identity && !worker->process.remote ? worker->process.heartbeat_pid : 0,
                .stale_usec = worker_outlived_usec(worker),
                .doubt_at = worker->fleet->world->doubt.since,
        };
        struct candidate *candidate = match_decide(&heartbeats->match, &claim, &ambiguous);
        if (!slot->base.identity)
                observe_ambiguous(slot->base.worker, ambiguous);
        /* A known identity is replaced only by one whose heartbeat changed later. */
        if (candidate && (!slot->base.identity || candidate->changed_at > slot->changed_at))
                slot_adopt(slot, candidate);
}

static void poll_decide(struct server_heartbeats *heartbeats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct server_slot *slot = heartbeats->slots; slot && !heartbeats->freed; slot = slot->next) {
                if (slot->poll_items && slot->base.worker &&
                    (!slot->base.identity || slot_is_lost(slot, now)))
                        slot_decide(slot);
        }
}

static void report_siblings(struct server_heartbeats *heartbeats)
{
        for (struct server_slot *slot = heartbeats->slots; slot && !heartbeats->freed; slot = slot->next) {
                size_t at = 0;

                if (!(slot->poll_items & POLL_SIBLINGS) || !slot->base.worker || !slot->base.identity ||
                    slot->siblings_scan_at == 0)
                        continue;
                const struct candidate *other =
                        slot->n_others > 0 ? match_other(&heartbeats->match, slot, slot->base.identity,
                                                         slot->base.worker->spawned_at, &at)
                                           : NULL;
                heartbeats->base.ops->on_sibling(slot->base.worker, other ? other->pid : 0,
                                                 heartbeats->base.userdata);
        }
}

static int server_heartbeats_poll(struct heartbeats *base);

/* Call after each answer. After the last one, ends the poll and starts the next one if it was requested
 * meanwhile. That one must not be dropped: the poll right after a start shows which identities are older than
 * the new process. */
static void poll_advance(struct server_heartbeats *heartbeats)
{
        if (!heartbeats->looking || heartbeats->pending > 0)
                return;
        server_heartbeats_enter(heartbeats);
        heartbeats->base.decides_at = clock_now(CLOCK_MONOTONIC);
        if (!heartbeats->failed)
                poll_decide(heartbeats);
        if (!heartbeats->failed)
                report_siblings(heartbeats);
        heartbeats->looking = false;
        if (!heartbeats->freed)
                heartbeats->base.ops->on_done(&heartbeats->base, heartbeats->base.userdata);
        /* An error is ignored: the next tick requests a poll anyway. */
        if (!heartbeats->freed && heartbeats->again)
                (void)server_heartbeats_poll(&heartbeats->base);
        server_heartbeats_leave(heartbeats);
}

static void decide_births(struct server_heartbeats *heartbeats)
{
        FOREACH_POINTER(candidate, heartbeats->match.candidates, heartbeats->match.n_candidates) {
                const struct server_slot *slot = (struct server_slot *)candidate->owner;

                if (!candidate->birth_awaited)
                        continue;
                match_born(candidate,
                           is_born(heartbeats, candidate, slot ? slot->base.worker : NULL,
                                   &candidate->heartbeat),
                           clock_now(CLOCK_MONOTONIC));
        }
}

static void server_heartbeats_resume(struct heartbeats *base)
{
        struct server_heartbeats *heartbeats = own(base);

        if (!heartbeats->undecided)
                return;
        heartbeats->undecided = false;
        server_heartbeats_enter(heartbeats);
        for (struct server_slot *slot = heartbeats->slots; slot && !heartbeats->freed; slot = slot->next) {
                if (!slot->deferred)
                        continue;
                slot->deferred = false;
                report_heartbeat(slot, &slot->again);
        }
        if (!heartbeats->freed)
                decide_births(heartbeats);
        /* A poll that is still running decides at its end. */
        if (!heartbeats->freed && !heartbeats->looking && !heartbeats->failed)
                poll_decide(heartbeats);
        if (!heartbeats->freed)
                heartbeats->base.ops->on_done(base, base->userdata);
        server_heartbeats_leave(heartbeats);
}

/* Moves the requests to the current poll. Returns true if there are any. */
static bool take_wishes(struct server_heartbeats *heartbeats)
{
        bool any = false;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next) {
                slot->poll_items = slot->base.worker ? slot->wanted : 0;
                slot->queries = 0;
                any = any || slot->poll_items;
                slot->wanted = 0;
        }
        return any;
}

/* Returns true if the worker needs a scan, because its identity is unknown or lost, or for siblings. */
static bool slot_seeks(const struct server_slot *slot, usec_t now)
{
        return !slot->base.identity ||
               ((slot->poll_items & POLL_SIBLINGS) && now >= slot->siblings_scan_at) ||
               (slot_is_lost(slot, now) && now >= heartbeats_of(slot)->lost_scan_at);
}

/* Returns true if any worker that needs a scan may have sent a heartbeat by now. Called only if many hosts
 * scan. */
static bool one_may_heartbeat(struct server_heartbeats *heartbeats, usec_t now)
{
        const struct heartbeats_ops *ops = heartbeats->base.ops;
        unsigned budget = BOOTS_MAX;

        for (const struct server_slot *slot = heartbeats->slots; slot && budget > 0; slot = slot->next) {
                const struct worker *worker = slot->base.worker;

                if (!slot->poll_items || !slot_seeks(slot, now))
                        continue;
                /* A candidate was found already: no further scan is needed for now. */
                size_t at = 0;
                if (match_pid(&heartbeats->match, slot, &at) != 0 &&
                    usec_sub(now, heartbeats->scan_began_at) < RESCAN_USEC)
                        continue;
                budget--;
                if (slot->base.identity || usec_sub(now, worker->spawned_at) >= BIRTH_UNSEEN_BOOT_USEC ||
                    ops->has_booted(worker->process.pid, worker, heartbeats->base.userdata) != 0)
                        return true;
        }
        return budget == 0;
}

/* Returns true if a scan is due in this poll. */
static bool scan_is_due(struct server_heartbeats *heartbeats, usec_t now)
{
        bool due = false, sought = false;

        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next) {
                const struct worker *worker = slot->base.worker;

                if (!worker)
                        continue;
                if (slot->poll_items)
                        slot->seeks_at = slot_seeks(slot, now) ? now : 0;
                due |= slot->seeks_at == now;
                /* Not every worker is requested at each poll; the others are requested at regular polls
                 * only. */
                sought |= slot->seeks_at != 0 &&
                          usec_sub(now, slot->seeks_at) <= 2 * worker->fleet->world->settings->check_interval;
        }
        if (!sought) {
                scan_throttle_cancel(&heartbeats->scan_throttle);
                leave_scanners(heartbeats);
        }
        return due && now >= heartbeats->scan_next_at &&
               want_scan(heartbeats, now,
                         !server_heartbeats_contended(&heartbeats->base) ||
                                 one_may_heartbeat(heartbeats, now));
}

static int server_heartbeats_poll(struct heartbeats *base)
{
        struct server_heartbeats *heartbeats = own(base);
        usec_t now = clock_now(CLOCK_MONOTONIC);

        heartbeats->again = heartbeats->looking;
        if (heartbeats->looking)
                return HEARTBEATS_BUSY;
        if (!take_wishes(heartbeats))
                return HEARTBEATS_NOTHING;
        if (reader_state(heartbeats->reader) != READER_STATE_CONNECTED)
                return -ENOTCONN;
        if (heartbeats->connection != reader_connection_count(heartbeats->reader)) {
                heartbeats->connection = reader_connection_count(heartbeats->reader);
                match_connected(&heartbeats->match, now);
                /* The server does not count this host any more, and may be one that gives a count. */
                heartbeats->counted = heartbeats->blind = false;
        }

        server_heartbeats_enter(heartbeats);
        heartbeats->looking = true;
        heartbeats->polled_at = now;
        heartbeats->failed = false;
        for (struct server_slot *slot = heartbeats->slots; slot; slot = slot->next)
                if (slot->poll_items && slot->base.identity)
                        ask_own(slot, now);
        server_heartbeats_reread_remote(heartbeats, usec_sub(now, RESCAN_USEC), now);
        if (scan_is_due(heartbeats, now)) {
                request_scan_permit(heartbeats, now);
        } else {
                resolve_owners(heartbeats);
                ask_candidates(heartbeats);
        }

        int r = HEARTBEATS_POLLING;
        if (heartbeats->pending == 0) {
                /* For example, a worker without an identity has no candidate yet, and the next scan is not
                 * due. */
                heartbeats->looking = false;
                r = heartbeats->failed ? -ENOMEM : HEARTBEATS_NOTHING;
        }
        server_heartbeats_leave(heartbeats);
        return r;
}

static const struct heartbeat_source server_kind = {
        .free = server_heartbeats_free,
        .add = server_heartbeats_add,
        .drop = server_heartbeats_remove,
        .want = server_heartbeats_want,
        .poll = server_heartbeats_poll,
        .resume = server_heartbeats_resume,
        .forget = server_heartbeats_forget,
        .contended = server_heartbeats_contended,
        .know = server_heartbeats_know,
        .take_another = server_heartbeats_take_another,
        .signal = server_heartbeats_signal,
};
