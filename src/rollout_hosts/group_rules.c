/* SPDX-License-Identifier: MIT */
/* Decides what this host does in a rollout of a group; see the header. */
#include "rollout_hosts/group_rules.h"
#include "base/parse.h"
#include "continuity/codec.h"
#include <stdio.h>
#include <string.h>

#define LEASE_USEC (ROLLOUT_LEASE_SECONDS * USEC_PER_SEC)
#define IDLE_USEC  (ROLLOUT_IDLE_SECONDS * USEC_PER_SEC)
/* A host adopts at most one rollout in this time, so that numbers that change all the time cost little. */
#define ADOPT_USEC USEC_PER_SEC

static const char *const words[] = {
        [ROLLOUT_REQUEST_SEE] = "see",   [ROLLOUT_REQUEST_WANT] = "want", [ROLLOUT_REQUEST_ROLL] = "roll",
        [ROLLOUT_REQUEST_WAIT] = "wait", [ROLLOUT_REQUEST_DONE] = "done", [ROLLOUT_REQUEST_FAIL] = "fail",
};
DEFINE_ENUM_NAMES(rollout_request_name, enum rollout_request, _ROLLOUT_REQUEST_MAX, words)

struct rollout_group rollout_group_new(void)
{
        return (struct rollout_group){.lease = HOST_LEASE_WAITING, .mine = HOST_LEASE_NONE};
}

struct saved_group {
        char *name; /* of the group */
        struct rollout_group group;
};

static const struct codec_field saved_fields[] = {
        CODEC_FIELD(STRING, struct saved_group, name),
        CODEC_FIELD(NUMBER, struct saved_group, group.number),
        CODEC_FIELD(ARRAY, struct saved_group, group.id),
        CODEC_RANGE(struct saved_group, group.lease, 0, _HOST_LEASE_MAX - 1),
        CODEC_FIELD(NUMBER, struct saved_group, group.begun),
        CODEC_FIELD(NUMBER, struct saved_group, group.trusted),
        CODEC_FIELD(NUMBER, struct saved_group, group.drain_reported),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.counted[0]),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.counted[1]),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.stopped[0]),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.stopped[1]),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.stopped[2]),
        CODEC_FIELD(TIME, struct saved_group, group.begun_at.stopped[3]),
        CODEC_FIELD(NUMBER, struct saved_group, group.begun_at.last_counts),
        CODEC_FIELD(TIME, struct saved_group, group.done_at),
        CODEC_FIELD(ARRAY, struct saved_group, group.error),
};
static const struct record saved_record = RECORD(saved_fields);
static_assert(ROLLOUT_COUNTED_MAX == 2 && ROLLOUT_STOPPED_MAX == 4, "saved_fields has a row for each");

void rollout_group_pack(const struct rollout_group *group, const char *name, struct codec_writer *writer)
{
        const struct saved_group saved = {.name = (char *)name, .group = *group};

        if (group->number > 0)
                codec_write(writer, &saved_record, &saved);
}

bool rollout_group_unpack(struct codec_reader *reader, const char *name, struct rollout_group *ret)
{
        struct saved_group saved = {.group = rollout_group_new()};

        int r = codec_read(reader, &saved_record, &saved);
        bool is_it = r == 0 && !reader->wrong && reader->left == 0 && strcmp(saved.name, name) == 0;
        if (is_it)
                *ret = saved.group;
        free(saved.name);
        return is_it;
}

const char *rollout_group_trouble_text(const struct rollout_group *group, const struct rollout_reply *reply,
                                       const char *host, char *text, size_t size)
{
        unsigned long long known = group->number, there = reply->number;

        text[0] = '\0';
        switch (group->trouble) {
        case ROLLOUT_TROUBLE_LOST:
                snprintf(text, size,
                         "Redis has lost rollout %llu, which this host has seen. Run 'sqmgrctl restart "
                         "--everywhere' to start a new one",
                         known);
                break;
        case ROLLOUT_TROUBLE_TAKEN:
                snprintf(text, size,
                         "another machine has host name '%s' in this group. Give each machine a host name of "
                         "its own",
                         host);
                break;
        case ROLLOUT_TROUBLE_FULL:
                snprintf(text, size,
                         "the group has %d hosts already, or the name of this host is longer than %d bytes. "
                         "Remove hosts that are gone with 'sqmgrctl rollout forget'",
                         ROLLOUT_HOSTS_MAX, ROLLOUT_TEXT_MAX);
                break;
        case ROLLOUT_TROUBLE_UNSIGNED:
                snprintf(text, size,
                         "rollout %llu in Redis was started or aborted without a signature of this host's "
                         "rollout_key_file. Give all hosts the same key, or check who else writes to Redis",
                         there);
                break;
        case ROLLOUT_TROUBLE_FORGED:
                snprintf(text, size,
                         "Redis shows rollout %llu, a number that no host has reached. Check who else writes "
                         "to Redis, then run 'sqmgrctl restart --everywhere'",
                         there);
                break;
        case ROLLOUT_TROUBLE_ELSEWHERE:
                snprintf(text, size,
                         "rollout %llu in Redis was ordered for the Redis at '%.200s'. Name the Redis of "
                         "this group the same on each host, in 'url' or 'redis_url'",
                         there, reply->server[0] != '\0' ? reply->server : "?");
                break;
        case ROLLOUT_TROUBLE_OLD:
                snprintf(text, size,
                         "rollout %llu in Redis was ordered more than a day ago, and this host knows of no "
                         "rollout. Run 'sqmgrctl restart --everywhere' to start a new one",
                         there);
                break;
        default:
                break;
        }
        return text;
}

/* Returns the end of the pause that follows this restart. */
static usec_t pause_end(usec_t begun_at)
{
        return begun_at > 0 ? usec_add(begun_at, ROLLOUT_PAUSE_USEC) : 0;
}

/* Returns the time before which this host begins no restart for the rollout that it knows. */
static usec_t may_begin_at(const struct rollout_group *group)
{
        const struct rollout_begun *begun = &group->begun_at;

        return group->trusted ? 0
                              : MAX(pause_end(begun->counted[ROLLOUT_COUNTED_MAX - 1]),
                                    pause_end(begun->stopped[ROLLOUT_STOPPED_MAX - 1]));
}

static bool may_begin(const struct rollout_group *group, usec_t now)
{
        return now >= may_begin_at(group);
}

/* Puts a time before the others; the oldest is dropped. */
static void put_first(usec_t list[], size_t n, usec_t at)
{
        memmove(list + 1, list, (n - 1) * sizeof(*list));
        list[0] = at;
}

/* Moves the restart for the newest rollout, which was halted or aborted, from `counted` to `stopped`: another
 * one may then follow sooner. */
static void count_stopped(struct rollout_begun *begun)
{
        if (!begun->last_counts)
                return;
        put_first(begun->stopped, ROLLOUT_STOPPED_MAX, begun->counted[0]);
        memmove(begun->counted, begun->counted + 1, (ROLLOUT_COUNTED_MAX - 1) * sizeof(*begun->counted));
        begun->counted[ROLLOUT_COUNTED_MAX - 1] = 0;
        begun->last_counts = false;
}

const char *rollout_group_pause_text(const struct rollout_group *group, usec_t now, char *text, size_t size)
{
        char span[FORMAT_MAX];
        usec_t until = MAX(group->hold_until, may_begin_at(group));

        text[0] = '\0';
        if (group->state != GROUP_RUNNING || group->lease != HOST_LEASE_WAITING ||
            (now >= until && !group->unsaved))
                return text;
        if (group->unsaved) {
                snprintf(text, size, "does not start while its state file cannot be written; see its log");
                return text;
        }
        format_duration(until - now, span, sizeof(span));
        if (may_begin(group, now))
                snprintf(text, size,
                         "waits %s more (reason: hosts that are rolling may be missing in Redis, and report "
                         "within this time)",
                         span);
        else
                snprintf(text, size,
                         "waits %s more (reason: restarted recently, and the order is not signed). Set "
                         "rollout_key_file, or order on this host, to start without waiting",
                         span);
        return text;
}

static void hold(struct rollout_group *group, usec_t now)
{
        group->hold_until = MAX(group->hold_until, usec_add(now, LEASE_USEC));
}

void rollout_group_observe_connection(struct rollout_group *group, usec_t now)
{
        hold(group, now);
        group->asked_at = 0;
        group->said = ROLLOUT_REQUEST_SEE;
}

static bool is_known(const struct rollout_group *group, uint64_t number, const char *id)
{
        return number == group->number && strcmp(id, group->id) == 0;
}

/* Returns true if Redis must still be told that no old workers are left. */
static bool owes_drained(const struct rollout_group *group)
{
        return group->lease == HOST_LEASE_DONE && group->drain_reported && !group->draining;
}

/* True if this host has nothing to report: it has not begun, its rollout is lost, or Redis knows how its
 * lease ended. */
static bool is_settled(const struct rollout_group *group)
{
        return group->lease != HOST_LEASE_ROLLING &&
               (group->lease == HOST_LEASE_WAITING || group->trouble == ROLLOUT_TROUBLE_LOST ||
                (group->lease == group->mine && !owes_drained(group)));
}

/* True if this host knows a rollout that it has not yet found lost. Another host may already have reported
 * the loss to Redis. */
static bool misses_rollout(const struct rollout_group *group)
{
        return group->number > 0 && group->trouble != ROLLOUT_TROUBLE_LOST;
}

bool rollout_group_is_due(const struct rollout_group *group, uint64_t number, const char *id,
                          enum group_state state, usec_t now)
{
        return group->asked_at == 0 || now >= usec_add(group->asked_at, IDLE_USEC) || !is_settled(group) ||
               state == GROUP_RUNNING || state == GROUP_HALTED || state != group->state ||
               (number > group->too_old ? !is_known(group, number, id)
                                        : number == 0 && misses_rollout(group));
}

static bool is_held(enum host_lease lease)
{
        return lease == HOST_LEASE_ROLLING || lease == HOST_LEASE_LOST;
}

static enum rollout_request next_request(const struct rollout_group *group, usec_t now)
{
        switch (group->lease) {
        case HOST_LEASE_ROLLING:
                return ROLLOUT_REQUEST_ROLL;
        case HOST_LEASE_DONE:
                return group->mine == HOST_LEASE_DONE && !owes_drained(group) ? ROLLOUT_REQUEST_SEE
                                                                              : ROLLOUT_REQUEST_DONE;
        case HOST_LEASE_FAILED:
                return group->mine == HOST_LEASE_FAILED ? ROLLOUT_REQUEST_SEE : ROLLOUT_REQUEST_FAIL;
        default:
                if (group->trouble != ROLLOUT_TROUBLE_NONE)
                        return ROLLOUT_REQUEST_SEE;
                /* The lease is of the previous rollout, or was granted by a call whose answer was lost. A
                 * host that is not rolling gives it back and requests a new one. */
                if (is_held(group->mine))
                        return ROLLOUT_REQUEST_WAIT;
                return group->state == GROUP_RUNNING && group->mine != HOST_LEASE_NONE && !group->unsaved &&
                                       now >= group->hold_until && may_begin(group, now)
                               ? ROLLOUT_REQUEST_WANT
                               : ROLLOUT_REQUEST_SEE;
        }
}

enum rollout_request rollout_group_next_request(struct rollout_group *group, usec_t now)
{
        group->said = next_request(group, now);
        group->said_draining = group->said == ROLLOUT_REQUEST_DONE && group->draining;
        group->drain_reported |= group->said_draining;
        return group->said;
}

/* Returns the number of the newest rollout that this host knows; 0: none. A known number may be twice as far
 * beyond Redis' clock as rollout_believed() allows: a failover to a server whose clock is behind must not
 * bring back an older rollout. A number beyond that is ignored: it was forged, or Redis' clock was wrong. */
static uint64_t known_number(const struct rollout_group *group, const struct rollout_reply *reply)
{
        return group->number <= reply->now_seconds + UINT64_C(2) * ROLLOUT_SLACK_SECONDS ? group->number : 0;
}

struct rollout_next rollout_group_next(const struct rollout_group *group, const struct rollout_reply *reply,
                                       enum rollout_signature signature)
{
        uint64_t known = known_number(group, reply), there = rollout_believed(reply->number, reply), high = 0;

        /* With a key, numbers that are not signed are ignored. */
        if (signature == ROLLOUT_SIGNATURE_UNASKED)
                high = rollout_believed(reply->high, reply);
        else if (signature != ROLLOUT_SIGNATURE_GOOD)
                there = 0;
        bool is_shown = there > known || (there == known && strcmp(reply->id, group->id) >= 0);
        uint64_t top = MAX(MAX(known, there), high);
        return (struct rollout_next){
                .number = MAX(top + 1, reply->now_seconds),
                .lost = high > there || (known > 0 && !is_shown),
        };
}

void rollout_group_observe_failure(struct rollout_group *group, const char *why)
{
        group->lease = HOST_LEASE_FAILED;
        count_stopped(&group->begun_at);
        snprintf(group->error, sizeof(group->error), "%s", why);
}

/* Adopts a newer rollout. A rolling host keeps its place there, and restarts again as soon as it may. */
static void adopt(struct rollout_group *group, const struct rollout_reply *reply, bool trusted, usec_t now)
{
        /* Another rollout with the same number: Redis has lost the known one. Its rolling hosts get time to
         * report. */
        if (reply->number == group->number)
                hold(group, now);
        group->adopted_at = now;
        group->too_old = 0;
        group->begun_at.last_counts = false;
        group->number = reply->number;
        snprintf(group->id, sizeof(group->id), "%s", reply->id);
        group->error[0] = '\0';
        group->trusted = trusted;
        group->done_at = 0;
        group->said = ROLLOUT_REQUEST_SEE;
        group->begun = group->drain_reported = false;
        if (group->lease != HOST_LEASE_ROLLING)
                group->lease = HOST_LEASE_WAITING;
}

/* Evaluates a reply for the rollout that this host knows. */
static enum rollout_act follow(struct rollout_group *group, const struct rollout_reply *reply, usec_t now)
{
        switch (group->lease) {
        case HOST_LEASE_ROLLING:
                if (reply->state == GROUP_ABORTED) {
                        rollout_group_observe_failure(group, reply->error);
                        return ROLLOUT_ACT_ABORT;
                }
                return !group->begun && reply->state == GROUP_RUNNING && may_begin(group, now)
                               ? ROLLOUT_ACT_RESTART
                               : ROLLOUT_ACT_NONE;
        case HOST_LEASE_FAILED:
                /* The failure came too late to count: this host was done, and no longer the canary. The
                 * answer to an earlier request does not say that. */
                if (reply->mine == HOST_LEASE_DONE && group->said == ROLLOUT_REQUEST_FAIL)
                        group->lease = HOST_LEASE_DONE;
                return ROLLOUT_ACT_NONE;
        case HOST_LEASE_DONE:
                return ROLLOUT_ACT_NONE;
        default:
                if (reply->mine == HOST_LEASE_DONE || reply->mine == HOST_LEASE_FAILED)
                        group->lease = reply->mine;
                if (reply->mine != HOST_LEASE_ROLLING || group->said != ROLLOUT_REQUEST_WANT)
                        return ROLLOUT_ACT_NONE;
                group->lease = HOST_LEASE_ROLLING;
                return ROLLOUT_ACT_RESTART;
        }
}

static bool is_newer(const struct rollout_group *group, const struct rollout_reply *reply)
{
        uint64_t known = known_number(group, reply);

        return reply->number > known || (reply->number == known && strcmp(reply->id, group->id) > 0);
}

/* True if this host knows no rollout, and the one in Redis is so old that it may be a replayed one. */
static bool is_too_old(const struct rollout_group *group, const struct rollout_reply *reply)
{
        return known_number(group, reply) == 0 &&
               reply->number + UINT64_C(1) * ROLLOUT_AGE_SECONDS < reply->now_seconds;
}

/* Returns what an operator must know of such a rollout: nothing if it has ended. */
static enum rollout_trouble trouble_of_old(enum group_state state)
{
        return state == GROUP_RUNNING || state == GROUP_HALTED ? ROLLOUT_TROUBLE_OLD : ROLLOUT_TROUBLE_NONE;
}

/* True if the rollout that Redis shows may replace the known one now. ordered: it was begun on this host. */
static bool may_adopt(struct rollout_group *group, const struct rollout_reply *reply, bool ordered,
                      usec_t now)
{
        if (reply->number > 0 && !ordered && !rollout_is_believed(reply)) {
                group->trouble = ROLLOUT_TROUBLE_FORGED;
                return false;
        }
        if (reply->number > 0 && !ordered && is_too_old(group, reply)) {
                group->too_old = reply->number;
                group->trouble = trouble_of_old(reply->state);
                return false;
        }
        if (reply->number > 0 && is_newer(group, reply))
                return ordered || group->adopted_at == 0 || now >= usec_add(group->adopted_at, ADOPT_USEC);
        /* Redis has lost the known rollout. A rollout with a lower number, or with the same number and a
         * lower id, is never adopted: it could be a replay. */
        if (group->number > 0 && group->trouble != ROLLOUT_TROUBLE_LOST)
                hold(group, now);
        group->trouble = group->number > 0 ? ROLLOUT_TROUBLE_LOST : ROLLOUT_TROUBLE_NONE;
        return false;
}

static enum rollout_act observe(struct rollout_group *group, const struct rollout_reply *reply, bool trusted,
                                bool ordered, usec_t now)
{
        if (!is_known(group, reply->number, reply->id) || known_number(group, reply) == 0) {
                if (!may_adopt(group, reply, ordered, now)) {
                        group->state = reply->state;
                        group->mine = HOST_LEASE_NONE;
                        return ROLLOUT_ACT_NONE;
                }
                adopt(group, reply, trusted, now);
        }
        group->trouble = ROLLOUT_TROUBLE_NONE;
        group->state = reply->state;
        group->mine = reply->mine;
        group->canary_seconds = reply->canary_seconds;
        if (reply->state == GROUP_HALTED || reply->state == GROUP_ABORTED)
                count_stopped(&group->begun_at);
        return follow(group, reply, now);
}

enum rollout_act rollout_group_observe(struct rollout_group *group, const struct rollout_reply *reply,
                                       enum rollout_signature signature, usec_t now)
{
        group->asked_at = now;
        if (reply->verdict == ROLLOUT_VERDICT_TAKEN || reply->verdict == ROLLOUT_VERDICT_FULL) {
                group->trouble = reply->verdict == ROLLOUT_VERDICT_TAKEN ? ROLLOUT_TROUBLE_TAKEN
                                                                         : ROLLOUT_TROUBLE_FULL;
                return ROLLOUT_ACT_NONE;
        }
        if (signature == ROLLOUT_SIGNATURE_BAD || signature == ROLLOUT_SIGNATURE_ELSEWHERE) {
                group->trouble = signature == ROLLOUT_SIGNATURE_BAD ? ROLLOUT_TROUBLE_UNSIGNED
                                                                    : ROLLOUT_TROUBLE_ELSEWHERE;
                return ROLLOUT_ACT_NONE;
        }
        bool done = group->said == ROLLOUT_REQUEST_DONE && is_known(group, reply->number, reply->id);
        enum rollout_act act = observe(group, reply, signature == ROLLOUT_SIGNATURE_GOOD, false, now);
        if (done && !group->said_draining)
                group->drain_reported = false;
        group->said = ROLLOUT_REQUEST_SEE;
        return act;
}

enum rollout_act rollout_group_observe_ordered(struct rollout_group *group, const struct rollout_reply *reply,
                                               usec_t now)
{
        group->asked_at = now;
        if (reply->verdict != ROLLOUT_VERDICT_OK)
                return ROLLOUT_ACT_NONE;
        enum rollout_act act = observe(group, reply, true, true, now);
        /* A tick may have seen the rollout before the answer to `begin` came. */
        group->trusted |= is_known(group, reply->number, reply->id);
        return act;
}

void rollout_group_observe_unsaved(struct rollout_group *group)
{
        group->unsaved = true;
        group->lease = HOST_LEASE_WAITING;
}

void rollout_group_observe_begun(struct rollout_group *group, usec_t now)
{
        group->begun = group->lease == HOST_LEASE_ROLLING;
        if (group->trusted)
                return;
        put_first(group->begun_at.counted, ROLLOUT_COUNTED_MAX, now);
        group->begun_at.last_counts = true;
}

void rollout_group_observe_fleet(struct rollout_group *group, enum rollout_state state, const char *error,
                                 usec_t now)
{
        if (group->lease != HOST_LEASE_ROLLING || !group->begun || state == ROLLOUT_RUNNING)
                return;
        if (state == ROLLOUT_HALTED || state == ROLLOUT_ABORTED) {
                rollout_group_observe_failure(group, error);
                return;
        }
        group->lease = HOST_LEASE_DONE;
        group->done_at = now;
}

void rollout_group_observe_trouble(struct rollout_group *group, const char *why, usec_t now)
{
        if (group->lease == HOST_LEASE_DONE && group->done_at > 0 &&
            now < usec_add(group->done_at, group->canary_seconds * USEC_PER_SEC))
                rollout_group_observe_failure(group, why);
}
