/* SPDX-License-Identifier: MIT */
/* Decodes the replies of the script for rollouts of a group; see the header. */
#include "rollout_hosts/reply_rules.h"
#include "base/parse.h"
#include "base/printable.h"
#include <stdio.h>
#include <string.h>

/* The largest integer below which doubles have no gaps; Lua's numbers are doubles. */
#define NUMBER_MAX ((UINT64_C(1) << 53) - 1)
#define SPAN_MAX   ((uint64_t)365 * 24 * 3600)

static const char *const verdicts[] = {
        [ROLLOUT_VERDICT_OK] = "ok",         [ROLLOUT_VERDICT_OLD] = "old",
        [ROLLOUT_VERDICT_BEHIND] = "behind", [ROLLOUT_VERDICT_TAKEN] = "taken",
        [ROLLOUT_VERDICT_FULL] = "full",     [ROLLOUT_VERDICT_UNKNOWN] = "unknown",
};
static_assert(ELEMENTSOF(verdicts) == _ROLLOUT_VERDICT_MAX, "a name for each");

static const char *const group_states[] = {
        [GROUP_NONE] = "none", [GROUP_RUNNING] = "running", [GROUP_HALTED] = "halted",
        [GROUP_DONE] = "done", [GROUP_ABORTED] = "aborted",
};
DEFINE_ENUM_NAMES(group_state_name, enum group_state, _GROUP_STATE_MAX, group_states)

static const char *const host_leases[] = {
        [HOST_LEASE_WAITING] = "waiting", [HOST_LEASE_ROLLING] = "rolling", [HOST_LEASE_LOST] = "lost",
        [HOST_LEASE_FAILED] = "failed",   [HOST_LEASE_DONE] = "done",
};
static_assert(ELEMENTSOF(host_leases) == _HOST_LEASE_MAX, "a name for each");

const char *host_lease_name(enum host_lease lease)
{
        return lease == HOST_LEASE_NONE ? "none" : host_leases[lease];
}

/* Returns the index of the word, or -1. */
static int find(const struct field *word, const char *const names[], size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strlen(names[i]) == word->len && memcmp(names[i], word->text, word->len) == 0)
                        return (int)i;
        return -1;
}

/* Copies a text, truncated to size - 1 bytes and made printable. */
static void take_text(const struct field *word, char *text, size_t size)
{
        size_t len = MIN(word->len, size - 1);

        memcpy(text, word->text, len);
        text[len] = '\0';
        printable_replace(text, len, false);
}

/* Copies a token; "" if the token is too long or contains anything but printable ASCII without blanks. */
static void take_token(const struct field *word, char *text, size_t size)
{
        bool fits = word->len < size && !memchr(word->text, '\0', word->len);

        memcpy(text, word->text, fits ? word->len : 0);
        text[fits ? word->len : 0] = '\0';
        for (const char *c = text; *c != '\0'; c++)
                if (*c <= ' ' || *c > '~')
                        text[0] = '\0';
}

static int take_number(const struct field *word, uint64_t max, uint64_t *ret)
{
        char digits[24];

        take_token(word, digits, sizeof(digits));
        return parse_unsigned(digits, 0, max, ret) < 0 ? -EBADMSG : 0;
}

/* Returns 0 for a forged or missing number. */
static uint32_t take_count(const struct field *word, uint32_t max)
{
        uint64_t value;

        return take_number(word, max, &value) < 0 ? 0 : (uint32_t)value;
}

static int take_lease(const struct field *word, enum host_lease *ret)
{
        uint64_t value;

        *ret = HOST_LEASE_NONE;
        if (word->len == 2 && memcmp(word->text, "-1", 2) == 0)
                return 0;
        if (take_number(word, _HOST_LEASE_MAX - 1, &value) < 0)
                return -EBADMSG;
        *ret = (enum host_lease)value;
        return 0;
}

/* Decodes seconds with six decimal places. */
static int take_span(const struct field *word, usec_t *ret)
{
        const char *point = word->len > 7 ? word->text + word->len - 7 : NULL;
        uint64_t seconds, micros;

        if (!point || *point != '.')
                return -EBADMSG;
        const struct field whole = {word->text, word->len - 7}, part = {point + 1, 6};
        if (take_number(&whole, NUMBER_MAX, &seconds) < 0 ||
            take_number(&part, USEC_PER_SEC - 1, &micros) < 0)
                return -EBADMSG;
        *ret = MIN(seconds, SPAN_MAX) * USEC_PER_SEC + micros;
        return 0;
}

int rollout_reply_decode(const struct field words[], size_t n, struct rollout_reply *ret)
{
        struct rollout_reply reply = {0};

        if (n < _ROLLOUT_REPLY_MAX || n > ROLLOUT_REPLY_WORDS_MAX)
                return -EBADMSG;
        int verdict = find(&words[ROLLOUT_REPLY_VERDICT], verdicts, ELEMENTSOF(verdicts));
        int state = find(&words[ROLLOUT_REPLY_STATE], group_states, ELEMENTSOF(group_states));
        if (verdict < 0 || state < 0 ||
            take_number(&words[ROLLOUT_REPLY_NUMBER], NUMBER_MAX, &reply.number) < 0 ||
            take_number(&words[ROLLOUT_REPLY_HIGH], NUMBER_MAX, &reply.high) < 0 ||
            take_number(&words[ROLLOUT_REPLY_NOW], NUMBER_MAX, &reply.now_seconds) < 0 ||
            take_lease(&words[ROLLOUT_REPLY_MINE], &reply.mine) < 0 ||
            take_span(&words[ROLLOUT_REPLY_AGE], &reply.age_usec) < 0)
                return -EBADMSG;
        reply.verdict = (enum rollout_verdict)verdict;
        reply.state = (enum group_state)state;
        reply.canary_seconds = take_count(&words[ROLLOUT_REPLY_CANARY], SPAN_MAX);
        reply.failures = take_count(&words[ROLLOUT_REPLY_FAILURES], ROLLOUT_HOSTS_MAX);
        take_token(&words[ROLLOUT_REPLY_ID], reply.id, sizeof(reply.id));
        take_token(&words[ROLLOUT_REPLY_ASKED], reply.asked, sizeof(reply.asked));
        take_token(&words[ROLLOUT_REPLY_MAC], reply.mac, sizeof(reply.mac));
        take_token(&words[ROLLOUT_REPLY_END_MAC], reply.end_mac, sizeof(reply.end_mac));
        take_text(&words[ROLLOUT_REPLY_ERROR], reply.error, sizeof(reply.error));
        take_text(&words[ROLLOUT_REPLY_RELEASE], reply.release, sizeof(reply.release));
        take_text(&words[ROLLOUT_REPLY_LEFT], reply.left, sizeof(reply.left));
        take_text(&words[ROLLOUT_REPLY_BY], reply.by, sizeof(reply.by));
        take_text(&words[ROLLOUT_REPLY_SERVER], reply.server, sizeof(reply.server));
        *ret = reply;
        return 0;
}

uint64_t rollout_believed(uint64_t number, const struct rollout_reply *reply)
{
        return number <= reply->now_seconds + ROLLOUT_SLACK_SECONDS ? number : 0;
}

bool rollout_is_believed(const struct rollout_reply *reply)
{
        return rollout_believed(reply->number, reply) > 0 && reply->id[0] != '\0';
}

void rollout_reply_glance(const struct field *number, const struct field *id, const struct field *state,
                          struct rollout_reply *ret)
{
        int found = find(state, group_states, ELEMENTSOF(group_states));

        *ret = (struct rollout_reply){.state = found < 0 ? GROUP_NONE : (enum group_state)found};
        if (take_number(number, NUMBER_MAX, &ret->number) < 0)
                ret->number = 0;
        take_token(id, ret->id, sizeof(ret->id));
}

/* Decodes four numbers; each of them is "" if they are not known. */
static bool take_counts(const struct field words[], struct rollout_counts *ret)
{
        uint32_t *const counts[] = {&ret->total, &ret->replaced, &ret->draining, &ret->failed};

        for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
                uint64_t value;

                if (take_number(&words[i], UINT32_MAX, &value) < 0)
                        return false;
                *counts[i] = (uint32_t)value;
        }
        return true;
}

bool rollout_host_drains(const struct rollout_host *host)
{
        /* Hosts up to 0.2 report this word instead of numbers. */
        return host->counts_known ? host->counts.draining > 0 : strcmp(host->text, ROLLOUT_DRAINING) == 0;
}

int rollout_reply_host(const struct field words[], size_t n, size_t index, struct rollout_host *ret)
{
        struct rollout_host host;

        if (n < _ROLLOUT_REPLY_MAX || index >= (n - _ROLLOUT_REPLY_MAX) / ROLLOUT_HOST_WORDS ||
            index >= ROLLOUT_HOSTS_MAX)
                return -ENOENT;
        words += _ROLLOUT_REPLY_MAX + index * ROLLOUT_HOST_WORDS;
        if (take_lease(&words[1], &host.lease) < 0 || take_span(&words[2], &host.state_usec) < 0 ||
            take_span(&words[3], &host.seen_usec) < 0)
                return -EBADMSG;
        take_text(&words[0], host.name, sizeof(host.name));
        take_text(&words[4], host.text, sizeof(host.text));
        host.counts_known = take_counts(&words[5], &host.counts);
        *ret = host;
        return 0;
}

usec_t rollout_reply_left_usec(const struct rollout_reply *rollout, const struct rollout_host hosts[],
                               size_t n_hosts)
{
        usec_t newest = USEC_INFINITY;
        size_t n_done = 0, n_left = 0;

        for (size_t i = 0; i < n_hosts; i++) {
                n_left += hosts[i].lease == HOST_LEASE_WAITING || hosts[i].lease == HOST_LEASE_ROLLING;
                if (hosts[i].lease != HOST_LEASE_DONE)
                        continue;
                n_done++;
                newest = MIN(newest, hosts[i].state_usec);
        }
        if (n_done == 0 || n_left == 0)
                return n_left == 0 ? 0 : USEC_INFINITY;
        return usec_sub(usec_sub(rollout->age_usec, newest) / n_done * n_left, newest);
}
