/* SPDX-License-Identifier: MIT */
/* Fuzzes the reply of the script for rollouts of a group, a word per line: any writer to Redis may have
 * written the keys. */
#include "base/printable.h"
#include "fuzz.h"
#include "rollout_hosts/group_rules.h"
#include "rollout_hosts/signature_rules.h"

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1)
#define SPAN_MAX   (366 * 24 * USEC_PER_HOUR)

/* Checks that the text ends within its array and is printable. */
static void check_text(const char *text, size_t size)
{
        char again[ROLLOUT_TEXT_MAX + 1];

        fuzz_check(size <= sizeof(again) && memchr(text, '\0', size));
        snprintf(again, sizeof(again), "%s", text);
        printable_replace(again, strlen(again), false);
        fuzz_check(strcmp(again, text) == 0);
}

static void check_token(const char *token, size_t size)
{
        fuzz_check(memchr(token, '\0', size));
        for (; *token != '\0'; token++)
                fuzz_check(*token > ' ' && *token <= '~');
}

static size_t count_lines(const char *text)
{
        size_t n = 0;

        for (; *text != '\0'; text++)
                n += *text == '\n';
        return n;
}

/* Checks that no value of a rollout can pass for another one in the signed text. */
static void check_signature(const struct rollout_reply *reply)
{
        const struct rollout_reply none = {0};
        const struct rollout_place place = rollout_place("redis://r", NULL, NULL, "group");
        char *text = rollout_signed_text("begin", &place, reply);
        char *other = rollout_signed_text("begin", &place, &none);

        fuzz_check(text && other && count_lines(text) == count_lines(other));
        free(text);
        free(other);
}

static void check_reply(const struct rollout_reply *reply)
{
        fuzz_check(reply->verdict < _ROLLOUT_VERDICT_MAX && reply->state < _GROUP_STATE_MAX);
        fuzz_check(reply->mine >= HOST_LEASE_NONE && reply->mine < _HOST_LEASE_MAX);
        fuzz_check(reply->number <= NUMBER_MAX && reply->high <= NUMBER_MAX);
        fuzz_check(reply->canary_seconds * USEC_PER_SEC <= SPAN_MAX && reply->failures <= ROLLOUT_HOSTS_MAX);
        check_token(reply->id, sizeof(reply->id));
        check_token(reply->asked, sizeof(reply->asked));
        check_token(reply->mac, sizeof(reply->mac));
        check_token(reply->end_mac, sizeof(reply->end_mac));
        check_text(reply->release, sizeof(reply->release));
        check_text(reply->error, sizeof(reply->error));
        check_text(reply->left, sizeof(reply->left));
        check_text(reply->by, sizeof(reply->by));
        check_text(reply->server, sizeof(reply->server));
        fuzz_check(reply->age_usec <= SPAN_MAX);
        fuzz_check(*group_state_name(reply->state) != '\0' && *host_lease_name(reply->mine) != '\0');
}

/* Checks that this host sends only known requests and can begin a new rollout, whatever Redis replies. */
static void check_group(const struct rollout_reply *reply)
{
        struct rollout_group group = rollout_group_new();
        usec_t now = USEC_PER_HOUR;

        for (unsigned i = 0; i < 3; i++, now += USEC_PER_MIN) {
                enum rollout_request word = rollout_group_next_request(&group, now);

                fuzz_check(word < _ROLLOUT_REQUEST_MAX && *rollout_request_name(word) != '\0');
                if (rollout_group_observe(&group, reply, ROLLOUT_SIGNATURE_UNASKED, now) ==
                    ROLLOUT_ACT_RESTART) {
                        fuzz_check(reply->state == GROUP_RUNNING && reply->mine == HOST_LEASE_ROLLING);
                        rollout_group_observe_begun(&group, now);
                }
        }
        uint64_t next = rollout_group_next(&group, reply, ROLLOUT_SIGNATURE_UNASKED).number;
        fuzz_check(next > group.number && next <= NUMBER_MAX + 1);
}

static void take(const struct field words[], size_t n)
{
        struct rollout_reply reply, before;
        struct rollout_host host;
        size_t i;
        int r;

        memset(&reply, 'x', sizeof(reply));
        memset(&before, 'x', sizeof(before));
        if (rollout_reply_decode(words, n, &reply) < 0) {
                fuzz_check(memcmp(&reply, &before, sizeof(reply)) == 0);
                fuzz_check(rollout_reply_host(words, n, n, &host) == -ENOENT);
                return;
        }
        check_reply(&reply);
        check_group(&reply);
        check_signature(&reply);
        for (i = 0; (r = rollout_reply_host(words, n, i, &host)) != -ENOENT; i++) {
                fuzz_check(r == 0 || r == -EBADMSG);
                if (r < 0)
                        continue;
                check_text(host.name, sizeof(host.name));
                check_text(host.text, sizeof(host.text));
                fuzz_check(host.lease >= HOST_LEASE_NONE && host.lease < _HOST_LEASE_MAX);
                fuzz_check(host.state_usec <= SPAN_MAX && host.seen_usec <= SPAN_MAX);
        }
        fuzz_check(i <= ROLLOUT_HOSTS_MAX && i <= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field *words = calloc(size + 1, sizeof(*words));
        size_t n = 0;

        fuzz_check(words);
        while (input.left > 0) {
                struct field line = input_line(&input);

                words[n++] = (struct field){line.text, line.len};
        }
        take(words, n);
        while (n-- > 0)
                free((char *)words[n].text);
        free(words);
        return 0;
}
