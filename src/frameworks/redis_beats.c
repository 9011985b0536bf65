/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers from Redis; see the header.
 *
 * A look has up to two rounds. The first asks for the heartbeats of the workers whose identity is known and,
 * where one is not, walks the set of identities. The second asks for the heartbeats of the candidates that
 * the roster (observe/match.h) holds for a worker. Then the roster decides. */
#include "frameworks/redis_beats.h"
#include "base/fd.h"
#include "frameworks/decode.h"
#include "frameworks/identity_scan.h"
#include "frameworks/redis_command.h"
#include "frameworks/redis_slots.h"
#include "io/redis_batch.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/freshness.h"
#include "model/poll_schedule.h"
#include "model/world.h"
#include <signal.h>
#include <string.h>

/* Commands for one worker in one look. */
#define COMMANDS_MAX 2
/* So long after its start a worker may beat of which no title tells. */
#define UNSEEN_BOOT_USEC (10 * USEC_PER_SEC)
/* Walks through /proc in one look; what is left waits for the next. */
#define DESCENDANTS_MAX 512
/* Processes of one worker that are asked whether they have booted, in one look. */
#define BOOTS_MAX 64
/* A walk may take this share of the time. */
#define SCAN_DUTY 10
/* A walk that lasts longer is given up: the heartbeats that are known must not wait for it. */
#define SCAN_MAX_USEC (5 * USEC_PER_SEC)
/* A heartbeat that is gone or stands still, and what else of its worker beats, is looked for this often. */
#define RESCAN_USEC (30 * USEC_PER_SEC)

static void beats_destroy(struct redis_beats *beats)
{
        for (struct redis_slot *slot = beats->slots, *next; slot; slot = next) {
                next = slot->next;
                slot_free(slot);
        }
        match_clear(&beats->match);
        redis_batch_free(beats->scan_permit.redis_batch);
        free(beats->namespace);
        free(beats->set_key);
        free(beats->pattern);
        free(beats);
}

/* Removed slots stay while somebody may still refer to them. */
static void sweep_slots(struct redis_beats *beats)
{
        beats->end = &beats->slots;
        while (*beats->end) {
                struct redis_slot *slot = *beats->end;

                if (slot->base.worker) {
                        beats->end = &slot->next;
                        continue;
                }
                *beats->end = slot->next;
                slot_free(slot);
                beats->n_slots--;
        }
}

static void beats_enter(struct redis_beats *beats)
{
        beats->entered++;
}

static void beats_leave(struct redis_beats *beats)
{
        if (--beats->entered > 0)
                return;
        if (beats->freed)
                beats_destroy(beats);
        else
                sweep_slots(beats);
}

static const struct beats_kind redis_kind;
static void on_scan_permit(bool open, void *userdata);

int redis_beats_new(struct redis *redis, const struct beats_format *format, const char *namespace,
                    const struct beats_ops *ops, void *userdata, struct beats **ret)
{
        struct redis_beats *beats = calloc(1, sizeof(*beats));
        if (!beats)
                return -ENOMEM;
        beats->redis = redis;
        beats->format = format;
        beats->end = &beats->slots;
        beats->base =
                (struct beats){.kind = &redis_kind, .ops = ops, .userdata = userdata, .match = &beats->match};
        beats->namespace = strdup(namespace ?: "");
        beats->set_key = format->key(namespace, format->set, NULL);
        if (!beats->namespace || !beats->set_key ||
            scan_permit_init(&beats->scan_permit, beats->redis, format->member_nsec, on_scan_permit, beats) < 0) {
                beats_destroy(beats);
                return -ENOMEM;
        }
        *ret = &beats->base;
        return 0;
}

static void redis_beats_free(struct beats *base)
{
        struct redis_beats *beats = own(base);

        if (beats->freed)
                return;
        beats->freed = true;
        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                slot->base.worker = NULL;
        if (beats->entered == 0)
                beats_destroy(beats);
}

/* Returns 0 or -ENOMEM. */
static int observe_host_name(struct redis_beats *beats)
{
        const char *name = beats->base.ops->host_name(beats->base.userdata);

        return name ? match_host_is(&beats->match, name, clock_now(CLOCK_MONOTONIC)) : 0;
}

static int redis_beats_add(struct beats *base, struct worker *worker, struct beats_slot **ret)
{
        struct redis_beats *beats = own(base);

        /* The name that its process has just been given to see: it may have another one at the next walk. */
        int r = observe_host_name(beats);
        if (r < 0)
                return r;
        struct redis_slot *slot = calloc(1, sizeof(*slot));
        if (!slot)
                return -ENOMEM;
        slot->base = (struct beats_slot){.beats = base, .worker = worker};
        *beats->end = slot;
        beats->end = &slot->next;
        beats->n_slots++;
        match_owner_added(&beats->match);
        *ret = &slot->base;
        return 0;
}

static void redis_beats_remove(struct beats_slot *base)
{
        struct redis_slot *slot = own_slot(base);
        struct redis_beats *beats = beats_of(slot);

        slot->base.worker = NULL;
        match_owner_removed(&beats->match, slot);
        if (beats->entered == 0)
                sweep_slots(beats);
}

static int redis_beats_know(struct beats_slot *base, const char *identity)
{
        struct redis_slot *slot = own_slot(base);
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct redis_beats *beats = beats_of(slot);
        size_t host_len;
        pid_t pid;

        char *copy = strdup(identity);
        if (!copy)
                return -ENOMEM;
        slot_lose_identity(slot);
        slot->base.identity = copy;
        slot->changed_at = now;
        /* Should it be lost, it is looked for under the name that it has. */
        if (!beats->format->identity_parse(identity, strlen(identity), &host_len, &pid))
                return 0;
        return match_host_was(&beats->match, identity, host_len, now);
}

static bool redis_beats_contended(const struct beats *beats)
{
        return scan_permit_is_contended(&((const struct redis_beats *)beats)->scan_permit);
}

static void redis_beats_forget(struct beats_slot *base)
{
        struct redis_slot *slot = own_slot(base);
        slot->forgotten_at = clock_now(CLOCK_MONOTONIC);
        slot->siblings_scan_at = 0;
        if (!slot->base.identity)
                return;
        match_distrust(&beats_of(slot)->match, slot->base.identity);
        slot_lose_identity(slot);
}

static void redis_beats_want(struct beats_slot *slot, unsigned poll_items)
{
        own_slot(slot)->wanted |= poll_items & (POLL_HEARTBEAT | POLL_WORK_LIST | POLL_SIBLINGS);
}

/* Its known heartbeat is gone or stands still: perhaps it goes on under another identity. */
static bool slot_is_lost(const struct redis_slot *slot, usec_t now)
{
        /* Looked for without the margin that evidence is given: before the silent one counts as hung, and
         * while its work list has not expired either. */
        return slot->base.identity &&
               (slot->beat_missing ||
                usec_sub(now, slot->changed_at) > slot->base.worker->fleet->settings->traits->stale_usec);
}

static void poll_advance(struct redis_beats *beats);

/* Sends a command of this look, whose keys are freed. Where that fails, so does the look. */
static bool poll_command(struct redis_beats *beats, redis_reply_fn callback, struct ask ask,
                         struct beats_command *command)
{
        bool sent = false;

        struct ask *copy = malloc(sizeof(*copy));
        if (copy) {
                *copy = ask;
                sent = redis_command(beats->redis, callback, copy, command->argc, command->argv, NULL) == 0;
        }
        command_clear(command);
        if (!sent) {
                free(copy);
                beats->failed = true;
                return false;
        }
        beats->pending++;
        beats_enter(beats);
        if (ask.slot) {
                ask.slot->pending++;
                ask.slot->commands++;
        }
        return true;
}

/* What every reply begins with. Returns what was asked; reply is to be ignored where beats is freed. */
static struct ask poll_reply(void *userdata, const redisReply *reply)
{
        struct ask *ask = userdata, copy = *ask;

        free(ask);
        copy.beats->pending--;
        if (copy.slot)
                copy.slot->pending--;
        if (!reply)
                copy.beats->failed = true;
        return copy;
}

static void poll_reply_done(struct redis_beats *beats)
{
        if (!beats->freed)
                poll_advance(beats);
        beats_leave(beats);
}

static void tell_heartbeat(struct redis_slot *slot, const struct heartbeat *beat)
{
        struct redis_beats *beats = beats_of(slot);
        struct heartbeat told = *beat;

        if (!slot->base.worker || beats->freed)
                return;
        if (slot->base.worker->fleet->settings->traits->lives_as_beat)
                told.beat_usec = slot->changed_at = clock_now(CLOCK_MONOTONIC);
        beats->base.ops->on_heartbeat(slot->base.worker, &told, beats->base.userdata);
}

static void on_own_beat(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = poll_reply(userdata, reply);
        struct redis_slot *slot = ask.slot;
        struct heartbeat beat;

        /* Without its identity it was forgotten meanwhile; without a reply nothing is known. */
        if (reply && slot->base.worker && slot->base.identity) {
                bool found = ask.beats->format->take_beat(reply, &beat, &slot->base.info);
                slot->beat_missing = !found;
                if (found) {
                        if (beat.beat_usec != slot->beat.beat_usec)
                                slot->changed_at = clock_now(CLOCK_MONOTONIC);
                        slot->beat = beat;
                        slot->beat_waits = slot->pending > 0;
                        if (!slot->beat_waits)
                                tell_heartbeat(slot, &beat);
                }
        }
        poll_reply_done(ask.beats);
}

static void on_work_list(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = poll_reply(userdata, reply);
        struct redis_slot *slot = ask.slot;

        if (reply && slot->beat_waits) {
                struct heartbeat beat = slot->beat;
                slot->beat_waits = false;
                beat.work_list_known = reply->type == REDIS_REPLY_INTEGER;
                beat.work_list_empty = beat.work_list_known && reply->integer == 0;
                tell_heartbeat(slot, &beat);
        }
        poll_reply_done(ask.beats);
}

/* Asks for the slot's own heartbeat, or for a candidate's. Returns whether the command is out. */
static bool ask_heartbeat(struct redis_slot *slot, struct candidate *candidate, redis_reply_fn callback)
{
        struct redis_beats *beats = beats_of(slot);
        const char *identity = candidate ? candidate->identity : slot->base.identity;
        bool with_info = candidate ? !candidate->info : !slot->base.info;
        struct ask ask = {.beats = beats, .slot = slot, .candidate = candidate};
        struct beats_command command;

        if (beats->format->ask_beat(beats->namespace, identity, with_info, &command) < 0) {
                beats->failed = true;
                return false;
        }
        return poll_command(beats, callback, ask, &command);
}

/* The heartbeat first: a work list read after it is as new or newer, and so never too empty. */
static void ask_own(struct redis_slot *slot, usec_t now)
{
        struct redis_beats *beats = beats_of(slot);

        slot->beat_waits = false;
        if (!ask_heartbeat(slot, NULL, on_own_beat))
                return;
        if (!(slot->poll_items & POLL_WORK_LIST) || slot_is_lost(slot, now))
                return;
        struct ask ask = {.beats = beats, .slot = slot};
        struct beats_command command;

        if (beats->format->ask_work_list(beats->namespace, slot->base.identity, &command) < 0)
                beats->failed = true;
        else
                (void)poll_command(beats, on_work_list, ask, &command);
}

static void on_candidate(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = poll_reply(userdata, reply);
        struct candidate *candidate = ask.candidate;
        struct heartbeat beat;

        if (reply && !ask.beats->freed) {
                const struct beats *base = &ask.beats->base;
                bool found = ask.beats->format->take_beat(reply, &beat, &candidate->info) &&
                             (beat.start == 0 ||
                              base->ops->has_start(candidate->pid, beat.start, base->userdata) > 0);
                match_read(candidate, found ? &beat : NULL, clock_now(CLOCK_MONOTONIC));
        }
        poll_reply_done(ask.beats);
}

/* Asks for the candidates of workers that have no identity, or have lost it. */
static void ask_candidates(struct redis_beats *beats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next) {
                if (!slot->poll_items || !slot->base.worker)
                        continue;
                if (slot->base.identity && !slot_is_lost(slot, now) && !(slot->poll_items & POLL_SIBLINGS))
                        continue;
                while (slot->commands < COMMANDS_MAX) {
                        struct candidate *candidate =
                                match_next_unasked(&beats->match, slot, now, slot->base.identity);
                        if (!candidate || !ask_heartbeat(slot, candidate, on_candidate))
                                break;
                        candidate->asked_at = now;
                }
        }
}

static struct redis_slot *find_owner(struct redis_beats *beats, pid_t pid, unsigned *budget)
{
        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                if (slot->base.worker && slot->base.worker->process.pid == pid)
                        return slot;
        /* Most of what lingers in Redis is of processes long dead. */
        if (kill(pid, 0) < 0 && errno == ESRCH)
                return NULL;
        for (struct redis_slot *slot = beats->slots; slot && *budget > 0; slot = slot->next) {
                if (!slot->base.worker)
                        continue;
                (*budget)--;
                int r = beats->base.ops->is_descendant(pid, slot->base.worker, beats->base.userdata);
                if (r > 0)
                        return slot;
                if (is_shortage(r))
                        *budget = 0;
        }
        return NULL;
}

/* Finds out whose process each candidate is that is new. */
static void resolve_owners(struct redis_beats *beats)
{
        /* Enough for one candidate at the least, however many workers there are. */
        unsigned budget = DESCENDANTS_MAX + (unsigned)beats->n_slots;

        for (size_t i = 0; i < beats->match.n_candidates && !beats->freed; i++) {
                struct candidate *candidate = beats->match.candidates[i];
                if (candidate->resolved)
                        continue;
                candidate->owner = find_owner(beats, candidate->pid, &budget);
                /* Where the budget ran out, nobody knows. */
                candidate->resolved = candidate->owner || budget > 0;
        }
}

/* Returns whether there is another name under which identities are to be looked for. Where memory is short,
 * the look has failed. */
static bool scan_next_host(struct redis_beats *beats)
{
        const char *host = match_scan_host(&beats->match, &beats->scan_hosts);

        if (!host)
                return false;
        free(beats->pattern);
        beats->pattern = beats->format->take_list ? strdup("") : decode_host_pattern(host);
        beats->failed |= !beats->pattern;
        return beats->pattern;
}

static void scan_step(struct redis_beats *beats, const char *cursor);

static int scan_found(const struct match_found *found, void *userdata)
{
        struct redis_beats *beats = userdata;

        return match_scan_add(&beats->match, found, clock_now(CLOCK_MONOTONIC));
}

static void on_scan(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = poll_reply(userdata, reply);
        struct redis_beats *beats = ask.beats;

        if (reply && !beats->freed) {
                usec_t now = clock_now(CLOCK_MONOTONIC);
                usec_t took = usec_sub(now, beats->scan_began_at);
                const char *cursor;

                beats->scan_next_at = now + SCAN_DUTY * took;
                if (identity_scan_take(beats->format, reply, scan_found, beats, &cursor) < 0 ||
                    took > SCAN_MAX_USEC) {
                        beats->failed = true;
                } else if (cursor) {
                        scan_step(beats, cursor);
                } else if (scan_next_host(beats)) {
                        scan_step(beats, "0");
                } else if (!beats->failed) {
                        match_scan_end(&beats->match);
                        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                                if (slot->poll_items & POLL_SIBLINGS)
                                        slot->siblings_scan_at = now + RESCAN_USEC;
                        resolve_owners(beats);
                        ask_candidates(beats);
                }
        }
        poll_reply_done(beats);
}

/* Names that no worker can have any more are looked for no longer. */
static void forget_host_names(struct redis_beats *beats)
{
        usec_t oldest = USEC_INFINITY;

        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                if (slot->base.worker)
                        oldest = MIN(oldest, slot->base.worker->spawned_at);
        match_hosts_forget(&beats->match, oldest);
}

static void scan_begin(struct redis_beats *beats, usec_t now)
{
        if (observe_host_name(beats) < 0) {
                beats->failed = true;
                return;
        }
        forget_host_names(beats);
        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                if (slot->base.worker && slot_is_lost(slot, now))
                        beats->lost_scan_at = now + RESCAN_USEC;
        beats->scan_began_at = now;
        beats->scan_hosts = 0;
        match_scan_begin(&beats->match, now);
        if (scan_next_host(beats))
                scan_step(beats, "0");
}

static void scan_step(struct redis_beats *beats, const char *cursor)
{
        struct beats_command command;
        struct ask ask = {.beats = beats};

        identity_scan_ask(beats->format, beats->set_key, beats->pattern, cursor, &command);
        (void)poll_command(beats, on_scan, ask, &command);
}

static void on_scan_permit(bool open, void *userdata)
{
        struct redis_beats *beats = userdata;

        beats->pending--;
        if (!beats->freed && open) {
                scan_begin(beats, clock_now(CLOCK_MONOTONIC));
        } else if (!beats->freed) {
                resolve_owners(beats);
                ask_candidates(beats);
        }
        poll_reply_done(beats);
}

/* Others may walk, too: then it is asked whose turn it is. */
static void request_scan_permit(struct redis_beats *beats, usec_t now)
{
        int r = scan_permit_request(&beats->scan_permit, beats->set_key, match_n_hosts(&beats->match));

        if (r < 0) {
                beats->failed = true;
        } else if (r > 0) {
                scan_begin(beats, now);
        } else {
                beats->pending++;
                beats_enter(beats);
        }
}

/* The worker beats under this identity from now on. */
static void slot_adopt(struct redis_slot *slot, struct candidate *candidate)
{
        struct redis_beats *beats = beats_of(slot);
        struct heartbeat beat = candidate->beat;

        char *identity = strdup(candidate->identity);
        if (!identity)
                return;
        slot_lose_identity(slot);
        slot->base.identity = identity;
        slot->base.info = TAKE_PTR(candidate->info);
        slot->beat = beat;
        slot->changed_at = clock_now(CLOCK_MONOTONIC);
        beats->base.ops->on_identity(slot->base.worker, candidate->pid, beats->base.userdata);
        if (slot->base.identity)
                tell_heartbeat(slot, &beat);
}

/* What is of a process that has not booted by now was there before it. Returns false where that cannot be
 * told. */
static bool sort_out_unbooted(struct redis_slot *slot)
{
        struct redis_beats *beats = beats_of(slot);
        unsigned budget = BOOTS_MAX;
        size_t at = 0;
        pid_t pid;

        while (budget-- > 0 && (pid = match_pid(&beats->match, slot, &at)) != 0) {
                int r = beats->base.ops->has_booted(pid, slot->base.worker, beats->base.userdata);
                if (is_shortage(r))
                        return false;
                if (r == 0)
                        match_unbooted(&beats->match, slot, pid);
        }
        return true;
}

/* Under which identity does it beat? */
static void slot_decide(struct redis_slot *slot)
{
        struct redis_beats *beats = beats_of(slot);
        const struct worker *worker = slot->base.worker;
        bool ambiguous;

        if (!sort_out_unbooted(slot))
                return;
        const struct match_claim claim = {
                .owner = slot,
                .spawned_at = worker->spawned_at,
                .since = MAX(worker->spawned_at, slot->forgotten_at),
                /* The process that it is of has no other one. */
                .except = slot->base.identity ? worker->process.beat_pid : 0,
                .stale_usec = worker_outlived_usec(worker),
                .doubt_at = worker->fleet->world->doubt.since,
        };
        struct candidate *candidate = match_decide(&beats->match, &claim, &ambiguous);
        if (!slot->base.identity)
                beats->base.ops->on_ambiguous(slot->base.worker, ambiguous, beats->base.userdata);
        /* What is known gives way only to one that is seen to beat after it. */
        if (candidate && (!slot->base.identity || candidate->changed_at > slot->changed_at))
                slot_adopt(slot, candidate);
}

static void poll_decide(struct redis_beats *beats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct redis_slot *slot = beats->slots; slot && !beats->freed; slot = slot->next) {
                if (slot->poll_items && slot->base.worker && (!slot->base.identity || slot_is_lost(slot, now)))
                        slot_decide(slot);
        }
}

static void report_siblings(struct redis_beats *beats)
{
        for (struct redis_slot *slot = beats->slots; slot && !beats->freed; slot = slot->next) {
                size_t at = 0;

                if (!(slot->poll_items & POLL_SIBLINGS) || !slot->base.worker || !slot->base.identity ||
                    slot->siblings_scan_at == 0)
                        continue;
                const struct candidate *other = match_other(&beats->match, slot, slot->base.identity,
                                                            slot->base.worker->spawned_at, &at);
                beats->base.ops->on_sibling(slot->base.worker, other ? other->pid : 0, beats->base.userdata);
        }
}

static char *redis_beats_take_another(struct beats_slot *base, pid_t *ret_pid)
{
        struct redis_slot *slot = own_slot(base);
        struct match *match = &beats_of(slot)->match;
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

/* After each reply: is the look over? */
static void poll_advance(struct redis_beats *beats)
{
        if (!beats->looking || beats->pending > 0)
                return;
        beats_enter(beats);
        if (!beats->failed)
                poll_decide(beats);
        if (!beats->failed)
                report_siblings(beats);
        beats->looking = false;
        if (!beats->freed)
                beats->base.ops->on_done(&beats->base, beats->base.userdata);
        beats_leave(beats);
}

/* Moves the wishes to this look. Returns whether there are any. */
static bool take_wishes(struct redis_beats *beats)
{
        bool any = false;

        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next) {
                if (!beats->looking) {
                        slot->poll_items = slot->base.worker ? slot->wanted : 0;
                        slot->commands = 0;
                        any = any || slot->poll_items;
                }
                slot->wanted = 0;
        }
        return any;
}

/* Does a worker want a walk, that has no identity or has lost it? */
static bool slot_seeks(const struct redis_slot *slot, usec_t now)
{
        return !slot->base.identity || ((slot->poll_items & POLL_SIBLINGS) && now >= slot->siblings_scan_at) ||
               (slot_is_lost(slot, now) && now >= beats_of(slot)->lost_scan_at);
}

/* May one of them have beaten by now? Asked in a crowd alone. */
static bool one_may_beat(struct redis_beats *beats, usec_t now)
{
        const struct beats_ops *ops = beats->base.ops;
        unsigned budget = BOOTS_MAX;

        for (const struct redis_slot *slot = beats->slots; slot && budget > 0; slot = slot->next) {
                const struct worker *worker = slot->base.worker;

                if (!slot->poll_items || !slot_seeks(slot, now))
                        continue;
                /* One that was found is only waited for. */
                size_t at = 0;
                if (match_pid(&beats->match, slot, &at) != 0 &&
                    usec_sub(now, beats->scan_began_at) < RESCAN_USEC)
                        continue;
                budget--;
                if (slot->base.identity || usec_sub(now, worker->spawned_at) >= UNSEEN_BOOT_USEC ||
                    ops->has_booted(worker->process.pid, worker, beats->base.userdata) != 0)
                        return true;
        }
        return budget == 0;
}

/* Is a walk wished for at this look? */
static bool scan_is_due(struct redis_beats *beats, usec_t now)
{
        bool due = false, sought = false;

        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next) {
                const struct worker *worker = slot->base.worker;

                if (!worker)
                        continue;
                if (slot->poll_items)
                        slot->seeks_at = slot_seeks(slot, now) ? now : 0;
                due |= slot->seeks_at == now;
                /* Some are wanted at regular looks alone. */
                sought |= slot->seeks_at != 0 &&
                          usec_sub(now, slot->seeks_at) <= 2 * worker->fleet->world->settings->check_interval;
        }
        if (!sought)
                scan_permit_cancel(&beats->scan_permit);
        return due && now >= beats->scan_next_at &&
               scan_permit_want(&beats->scan_permit, now, !scan_permit_is_contended(&beats->scan_permit) || one_may_beat(beats, now));
}

static int redis_beats_poll(struct beats *base)
{
        struct redis_beats *beats = own(base);
        usec_t now = clock_now(CLOCK_MONOTONIC);
        bool wanted = take_wishes(beats);

        if (beats->looking)
                return BEATS_BUSY;
        if (!wanted)
                return BEATS_NOTHING;
        if (redis_state(beats->redis) != REDIS_STATE_CONNECTED)
                return -ENOTCONN;
        if (beats->connection != redis_connection_count(beats->redis)) {
                beats->connection = redis_connection_count(beats->redis);
                match_connected(&beats->match, now);
                scan_permit_connected(&beats->scan_permit);
        }

        beats_enter(beats);
        beats->looking = true;
        beats->failed = false;
        for (struct redis_slot *slot = beats->slots; slot; slot = slot->next)
                if (slot->poll_items && slot->base.identity)
                        ask_own(slot, now);
        if (scan_is_due(beats, now)) {
                request_scan_permit(beats, now);
        } else {
                resolve_owners(beats);
                ask_candidates(beats);
        }

        int r = BEATS_LOOKING;
        if (beats->pending == 0) {
                /* A worker without an identity may have no candidate yet, and the next walk is not due. */
                beats->looking = false;
                r = beats->failed ? -ENOMEM : BEATS_NOTHING;
        }
        beats_leave(beats);
        return r;
}

static const struct beats_kind redis_kind = {
        .free = redis_beats_free,
        .add = redis_beats_add,
        .drop = redis_beats_remove,
        .want = redis_beats_want,
        .look = redis_beats_poll,
        .forget = redis_beats_forget,
        .contended = redis_beats_contended,
        .know = redis_beats_know,
        .take_another = redis_beats_take_another,
};
