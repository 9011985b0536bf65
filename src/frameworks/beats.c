/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers; see the header.
 *
 * A look has up to two rounds. The first asks for the heartbeats of the workers whose identity is known and,
 * where one is not, walks the set of identities. The second asks for the heartbeats of the candidates that
 * the roster (model/match.h) holds for a worker. Then the roster decides. */
#include "frameworks/beats.h"
#include "base/fd.h"
#include "io/clock.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <string.h>

/* Commands for one worker in one look. */
#define COMMANDS_MAX 2
/* Walks through /proc in one look; what is left waits for the next. */
#define DESCENDANTS_MAX 512
/* Identities that one step of the walk through the set covers. */
#define SCAN_COUNT "1000"
/* A walk may take this share of the time. */
#define SCAN_DUTY 10
/* A walk that lasts longer is given up: the heartbeats that are known must not wait for it. */
#define SCAN_MAX_USEC (5 * USEC_PER_SEC)
/* A worker whose known heartbeat is gone or stands still is looked for anew this often. */
#define LOST_SCAN_USEC (30 * USEC_PER_SEC)

struct beats_slot {
        struct beats *beats;
        struct worker *worker; /* NULL: removed */
        unsigned wanted;       /* of the next look */
        unsigned looks;        /* of this one */
        unsigned commands;     /* asked for it in this look */
        unsigned pending;      /* of them, without a reply */

        char *identity;         /* NULL: not known */
        struct beat_info *info; /* owned; NULL: not known */
        bool beat_missing;      /* the last reading found no heartbeat */
        usec_t changed_at;      /* its beat was last seen to change */
        struct heartbeat beat;  /* the last reading; beat_usec 0: none */
        bool beat_waits;        /* for the reading of its work list */
};

struct beats {
        struct redis *redis;
        const struct beats_format *format;
        char *namespace;
        char *hostname;
        char *set_key;
        char *pattern;
        const struct beats_ops *ops;
        void *userdata;

        struct beats_slot **slots; /* removed ones too, until nothing refers to them */
        size_t n_slots;
        size_t allocated;

        struct match match;
        uint64_t connection; /* that the roster is of */

        bool looking;
        bool failed;      /* this look */
        unsigned pending; /* commands of this look without a reply */
        usec_t scan_began_at;
        usec_t scan_next_at; /* no walk before this */
        usec_t lost_scan_at; /* no walk for a lost heartbeat before this */

        unsigned entered; /* calls of ours on the stack, and commands that will call us */
        bool freed;
};

/* One command that is under way. */
struct ask {
        struct beats *beats;
        struct beats_slot *slot;     /* NULL: the walk */
        struct candidate *candidate; /* NULL: the slot's own heartbeat */
};

static void slot_free(struct beats_slot *slot)
{
        free(slot->identity);
        free(slot->info);
        free(slot);
}

static void beats_destroy(struct beats *beats)
{
        for (size_t i = 0; i < beats->n_slots; i++)
                slot_free(beats->slots[i]);
        free(beats->slots);
        match_clear(&beats->match);
        free(beats->namespace);
        free(beats->hostname);
        free(beats->set_key);
        free(beats->pattern);
        free(beats);
}

/* Removed slots stay while somebody may still refer to them. */
static void sweep_slots(struct beats *beats)
{
        size_t kept = 0;

        for (size_t i = 0; i < beats->n_slots; i++) {
                if (beats->slots[i]->worker)
                        beats->slots[kept++] = beats->slots[i];
                else
                        slot_free(beats->slots[i]);
        }
        beats->n_slots = kept;
}

static void beats_enter(struct beats *beats)
{
        beats->entered++;
}

static void beats_leave(struct beats *beats)
{
        if (--beats->entered > 0)
                return;
        if (beats->freed)
                beats_destroy(beats);
        else
                sweep_slots(beats);
}

int beats_new(const struct beats_source *source, const struct beats_ops *ops, void *userdata,
              struct beats **ret)
{
        struct beats *beats = calloc(1, sizeof(*beats));
        if (!beats)
                return -ENOMEM;
        beats->redis = source->redis;
        beats->format = source->format;
        beats->ops = ops;
        beats->userdata = userdata;
        beats->namespace = strdup(source->namespace ?: "");
        beats->hostname = strdup(source->hostname);
        beats->set_key = source->format->set_key(source->namespace);
        beats->pattern = source->format->identity_pattern(source->hostname);
        if (!beats->namespace || !beats->hostname || !beats->set_key || !beats->pattern) {
                beats_destroy(beats);
                return -ENOMEM;
        }
        *ret = beats;
        return 0;
}

struct beats *beats_free(struct beats *beats)
{
        if (!beats || beats->freed)
                return NULL;
        beats->freed = true;
        for (size_t i = 0; i < beats->n_slots; i++)
                beats->slots[i]->worker = NULL;
        if (beats->entered == 0)
                beats_destroy(beats);
        return NULL;
}

int beats_add(struct beats *beats, struct worker *worker, struct beats_slot **ret)
{
        if (beats->n_slots == beats->allocated) {
                size_t allocated = MAX(2 * beats->allocated, 16U);
                struct beats_slot **slots = reallocarray(beats->slots, allocated, sizeof(beats->slots[0]));
                if (!slots)
                        return -ENOMEM;
                beats->slots = slots;
                beats->allocated = allocated;
        }
        struct beats_slot *slot = calloc(1, sizeof(*slot));
        if (!slot)
                return -ENOMEM;
        slot->beats = beats;
        slot->worker = worker;
        beats->slots[beats->n_slots++] = slot;
        match_owner_added(&beats->match);
        *ret = slot;
        return 0;
}

static void slot_lose_identity(struct beats_slot *slot)
{
        free(slot->identity);
        slot->identity = NULL;
        free(slot->info);
        slot->info = NULL;
        slot->beat_missing = false;
        slot->beat = (struct heartbeat){0};
        slot->beat_waits = false;
}

void beats_remove(struct beats_slot *slot)
{
        struct beats *beats = slot->beats;

        slot->worker = NULL;
        match_owner_removed(&beats->match, slot);
        if (beats->entered == 0)
                sweep_slots(beats);
}

int beats_know(struct beats_slot *slot, const char *identity)
{
        char *copy = strdup(identity);
        if (!copy)
                return -ENOMEM;
        slot_lose_identity(slot);
        slot->identity = copy;
        slot->changed_at = clock_now(CLOCK_MONOTONIC);
        return 0;
}

void beats_forget(struct beats_slot *slot)
{
        if (!slot->identity)
                return;
        match_distrust(&slot->beats->match, slot->identity);
        slot_lose_identity(slot);
}

const struct beat_info *beats_info(const struct beats_slot *slot)
{
        return slot->info;
}

const char *beats_identity(const struct beats_slot *slot)
{
        return slot->identity;
}

void beats_want(struct beats_slot *slot, unsigned looks)
{
        slot->wanted |= looks & (LOOK_BEAT | LOOK_WORK_LIST);
}

/* Its known heartbeat is gone or stands still: perhaps it goes on under another identity. */
static bool slot_is_lost(const struct beats_slot *slot, usec_t now)
{
        /* Looked for without the margin that evidence is given: before the silent one counts as hung, and
         * while its work list has not expired either. */
        return slot->identity &&
               (slot->beat_missing ||
                usec_sub(now, slot->changed_at) > slot->worker->fleet->settings->traits->stale_usec);
}

static void look_advance(struct beats *beats);

/* Sends a command of this look, whose keys are freed. Where that fails, so does the look. */
static bool look_command(struct beats *beats, redis_reply_fn callback, struct ask ask,
                         const struct beats_command *command)
{
        bool sent = false;

        struct ask *copy = malloc(sizeof(*copy));
        if (copy) {
                *copy = ask;
                sent = redis_command(beats->redis, callback, copy, command->argc, command->argv, NULL) == 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(command->keys); i++)
                free(command->keys[i]);
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
static struct ask look_reply(void *userdata, const redisReply *reply)
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

static void look_reply_done(struct beats *beats)
{
        if (!beats->freed)
                look_advance(beats);
        beats_leave(beats);
}

static void tell_heartbeat(struct beats_slot *slot, const struct heartbeat *beat)
{
        struct beats *beats = slot->beats;

        if (slot->worker && !beats->freed)
                beats->ops->on_heartbeat(slot->worker, beat, beats->userdata);
}

static void on_own_beat(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = look_reply(userdata, reply);
        struct beats_slot *slot = ask.slot;
        struct heartbeat beat;

        /* Without its identity it was forgotten meanwhile; without a reply nothing is known. */
        if (reply && slot->worker && slot->identity) {
                bool found = ask.beats->format->take_beat(reply, &beat, &slot->info);
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
        look_reply_done(ask.beats);
}

static void on_work_list(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = look_reply(userdata, reply);
        struct beats_slot *slot = ask.slot;

        if (reply && slot->beat_waits) {
                struct heartbeat beat = slot->beat;
                slot->beat_waits = false;
                ask.beats->format->take_work_list(reply, &beat);
                tell_heartbeat(slot, &beat);
        }
        look_reply_done(ask.beats);
}

/* Asks for the slot's own heartbeat, or for a candidate's. Returns whether the command is out. */
static bool ask_heartbeat(struct beats_slot *slot, struct candidate *candidate, redis_reply_fn callback)
{
        struct beats *beats = slot->beats;
        const char *identity = candidate ? candidate->identity : slot->identity;
        bool with_info = beats->format->has_info && (candidate ? !candidate->info : !slot->info);
        struct ask ask = {.beats = beats, .slot = slot, .candidate = candidate};
        struct beats_command command;

        if (beats->format->ask_beat(beats->namespace, identity, with_info, &command) < 0) {
                beats->failed = true;
                return false;
        }
        return look_command(beats, callback, ask, &command);
}

/* The heartbeat first: a work list read after it is as new or newer, and so never too empty. */
static void ask_own(struct beats_slot *slot, usec_t now)
{
        struct beats *beats = slot->beats;

        slot->beat_waits = false;
        if (!ask_heartbeat(slot, NULL, on_own_beat))
                return;
        if (!(slot->looks & LOOK_WORK_LIST) || slot_is_lost(slot, now))
                return;
        struct ask ask = {.beats = beats, .slot = slot};
        struct beats_command command;

        if (beats->format->ask_work_list(beats->namespace, slot->identity, &command) < 0)
                beats->failed = true;
        else
                (void)look_command(beats, on_work_list, ask, &command);
}

static void on_candidate(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = look_reply(userdata, reply);
        struct candidate *candidate = ask.candidate;
        struct heartbeat beat;

        if (reply && !ask.beats->freed) {
                bool found = ask.beats->format->take_beat(reply, &beat, &candidate->info);
                match_read(candidate, found ? &beat : NULL, clock_now(CLOCK_MONOTONIC));
        }
        look_reply_done(ask.beats);
}

/* Asks for the candidates of workers that have no identity, or have lost it. */
static void ask_candidates(struct beats *beats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (size_t i = 0; i < beats->n_slots; i++) {
                struct beats_slot *slot = beats->slots[i];
                if (!slot->looks || !slot->worker || (slot->identity && !slot_is_lost(slot, now)))
                        continue;
                while (slot->commands < COMMANDS_MAX) {
                        struct candidate *candidate =
                                match_next_unasked(&beats->match, slot, now, slot->identity);
                        if (!candidate || !ask_heartbeat(slot, candidate, on_candidate))
                                break;
                        candidate->asked_at = now;
                }
        }
}

static struct beats_slot *find_owner(struct beats *beats, pid_t pid, unsigned *budget)
{
        for (size_t i = 0; i < beats->n_slots; i++)
                if (beats->slots[i]->worker && beats->slots[i]->worker->pid == pid)
                        return beats->slots[i];
        /* Most of what lingers in Redis is of processes long dead. */
        if (kill(pid, 0) < 0 && errno == ESRCH)
                return NULL;
        for (size_t i = 0; *budget > 0 && i < beats->n_slots; i++) {
                struct beats_slot *slot = beats->slots[i];
                if (!slot->worker)
                        continue;
                (*budget)--;
                int r = beats->ops->is_descendant(pid, slot->worker, beats->userdata);
                if (r > 0)
                        return slot;
                if (is_shortage(r))
                        *budget = 0;
        }
        return NULL;
}

/* Finds out whose process each candidate is that is new. */
static void resolve_owners(struct beats *beats)
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

static void scan_step(struct beats *beats, const char *cursor);

/* Takes one page of identities. Returns whether it was one, and whether it is the last. */
static bool scan_take(struct beats *beats, const redisReply *reply, bool *ret_last)
{
        size_t hostname_len = strlen(beats->hostname), len;
        pid_t pid;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
            reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_ARRAY)
                return false;
        const redisReply *page = reply->element[1];
        for (size_t i = 0; i < page->elements; i++) {
                const redisReply *member = page->element[i];
                if (member->type != REDIS_REPLY_STRING ||
                    !beats->format->identity_parse(member->str, member->len, &len, &pid) ||
                    len != hostname_len || memcmp(member->str, beats->hostname, len) != 0)
                        continue;
                if (match_scan_add(&beats->match, member->str, member->len, pid) < 0)
                        return false;
        }
        *ret_last = strcmp(reply->element[0]->str, "0") == 0;
        return true;
}

static void on_scan(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct ask ask = look_reply(userdata, reply);
        struct beats *beats = ask.beats;

        if (reply && !beats->freed) {
                usec_t now = clock_now(CLOCK_MONOTONIC);
                usec_t took = usec_sub(now, beats->scan_began_at);
                bool is_last = false;

                beats->scan_next_at = now + SCAN_DUTY * took;
                if (!scan_take(beats, reply, &is_last) || took > SCAN_MAX_USEC) {
                        beats->failed = true;
                } else if (!is_last) {
                        scan_step(beats, reply->element[0]->str);
                } else {
                        match_scan_end(&beats->match);
                        resolve_owners(beats);
                        ask_candidates(beats);
                }
        }
        look_reply_done(beats);
}

static void scan_step(struct beats *beats, const char *cursor)
{
        const struct beats_command command = {
                .argv = {"SSCAN", beats->set_key, cursor, "MATCH", beats->pattern, "COUNT", SCAN_COUNT},
                .argc = 7,
        };
        struct ask ask = {.beats = beats};

        (void)look_command(beats, on_scan, ask, &command);
}

/* The worker beats under this identity from now on. */
static void slot_adopt(struct beats_slot *slot, struct candidate *candidate)
{
        struct beats *beats = slot->beats;
        struct heartbeat beat = candidate->beat;

        char *identity = strdup(candidate->identity);
        if (!identity)
                return;
        slot_lose_identity(slot);
        slot->identity = identity;
        slot->info = TAKE_PTR(candidate->info);
        slot->beat = beat;
        slot->changed_at = clock_now(CLOCK_MONOTONIC);
        beats->ops->on_identity(slot->worker, candidate->pid, beats->userdata);
        if (slot->identity)
                tell_heartbeat(slot, &beat);
}

static void look_decide(struct beats *beats)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (size_t i = 0; i < beats->n_slots && !beats->freed; i++) {
                struct beats_slot *slot = beats->slots[i];
                if (!slot->looks || !slot->worker || (slot->identity && !slot_is_lost(slot, now)))
                        continue;
                struct candidate *candidate = match_decide(&beats->match, slot, slot->worker->spawned_at);
                /* What is known gives way only to one that is seen to beat after it. */
                if (candidate && (!slot->identity || candidate->changed_at > slot->changed_at))
                        slot_adopt(slot, candidate);
        }
}

/* After each reply: is the look over? */
static void look_advance(struct beats *beats)
{
        if (!beats->looking || beats->pending > 0)
                return;
        beats_enter(beats);
        if (!beats->failed)
                look_decide(beats);
        beats->looking = false;
        if (!beats->freed)
                beats->ops->on_done(beats, beats->userdata);
        beats_leave(beats);
}

/* Moves the wishes to this look. Returns whether there are any. */
static bool take_wishes(struct beats *beats)
{
        bool any = false;

        for (size_t i = 0; i < beats->n_slots; i++) {
                struct beats_slot *slot = beats->slots[i];
                if (!beats->looking) {
                        slot->looks = slot->worker ? slot->wanted : 0;
                        slot->commands = 0;
                        any = any || slot->looks;
                }
                slot->wanted = 0;
        }
        return any;
}

/* Is a walk due, for a worker without an identity or one that has lost it? */
static bool scan_is_due(struct beats *beats, usec_t now)
{
        bool unknown = false, lost = false;

        for (size_t i = 0; i < beats->n_slots; i++) {
                const struct beats_slot *slot = beats->slots[i];
                if (!slot->looks)
                        continue;
                unknown = unknown || !slot->identity;
                lost = lost || slot_is_lost(slot, now);
        }
        lost = lost && now >= beats->lost_scan_at;
        if (now < beats->scan_next_at || (!unknown && !lost))
                return false;
        if (lost)
                beats->lost_scan_at = now + LOST_SCAN_USEC;
        return true;
}

int beats_look(struct beats *beats)
{
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
                match_connected(&beats->match);
        }

        beats_enter(beats);
        beats->looking = true;
        beats->failed = false;
        for (size_t i = 0; i < beats->n_slots; i++)
                if (beats->slots[i]->looks && beats->slots[i]->identity)
                        ask_own(beats->slots[i], now);
        if (scan_is_due(beats, now)) {
                beats->scan_began_at = now;
                match_scan_begin(&beats->match, now);
                scan_step(beats, "0");
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
