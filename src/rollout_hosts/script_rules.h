/* SPDX-License-Identifier: MIT */
/* The script that assigns leases to restart to the hosts of a group; its keys, requests and replies.
 *
 * In sqmgr, only this script writes these keys. A call is one operation with the group's five keys. All times
 * are of Redis' own clock. Each call first marks leases that were not renewed in time as lost. Each call last
 * decides whether the rollout is running, halted or done. A halt ends by itself when its reason does.
 *
 * The keys, below `sqmgr:rollout:GROUP`, with the namespace in front:
 *
 * no suffix  hash: the newest rollout; see the fields below
 * `:hosts`   hash: host -> `INSTANCE SINCE TEXT`; SINCE: when its state last changed. `HOST progress` -> the
 *            COUNTS of a tick. Hosts of earlier versions neither write nor read that field, and delete the
 *            hash when they begin a rollout.
 * `:seen`    sorted set: host -> when the host last reported its presence
 * `:states`  sorted set: host -> its state as a number, so that states are counted without reading all hosts
 * `:turns`   sorted set: host -> when the host last renewed its lease
 *
 * The fields of the rollout:
 *
 * `number`, `id`, `state`, `error`
 * `by`, `at`           who began the rollout, and when
 * `asked`, `canary`, `failures`, `release`, `mac`
 *                      the parameters of `begin`
 * `hosts`              the number of hosts that `asked` results in
 * `endmac`             the HMAC of the abort
 * `taken`              when a lease was last taken
 * `from`               no lease may be taken before
 * `first`, `first_at`  the first host that was done, and when
 * `left`               hosts that were forgotten
 * `high`               the highest number that a host has seen
 * `server`             the Redis as the host calls it on which the rollout was begun
 *
 * All keys expire 30 days after the last tick of the last host. At the limit of 1,024 hosts they take about
 * half a megabyte (tests/unit/test_rollout_script).
 *
 * Redis answers before it replicates, so a failover may undo the last calls. Leases are taken at least a
 * second apart: at most one of them is undone. */
#pragma once

#include "model/group_key.h"

/* Lua 5.1 with the functions of Redis 4 and later. */
extern const char rollout_script[];

/* Suffixes of the script's keys, in this order. */
#define ROLLOUT_SCRIPT_KEYS 5
extern const char *const rollout_script_suffixes[ROLLOUT_SCRIPT_KEYS];

#define ROLLOUT_LEASE_SECONDS 30 /* a lease that is not renewed for this long is lost */
#define ROLLOUT_RENEW_SECONDS 10 /* how often a lease is renewed */
#define ROLLOUT_IDLE_SECONDS  60 /* how often a host reports its presence while no rollout is running */
#define ROLLOUT_GONE_SECONDS  (24 * 3600) /* a host silent for this long is no longer waited for */
/* A number later than Redis' clock by more than this is not believed. The clocks of servers that take over
 * from each other must differ by less. */
#define ROLLOUT_SLACK_SECONDS (24 * 3600)
/* A host that knows no rollout takes part in none whose number is earlier than Redis' clock by more than
 * this: a party that can write to Redis may have kept it, with its HMAC, to replay it. */
#define ROLLOUT_AGE_SECONDS (24 * 3600)

/* The operations and their arguments. Before these, each call has the calling host, its instance, and the
 * number and id of the newest rollout that the host knows (0 and "": none).
 *
 *   tick    WORD TEXT COUNTS
 *                      the request of the host. WORD is one of the requests below. TEXT is for people.
 *                      COUNTS: `TOTAL REPLACED DRAINING FAILED`, the workers of its fleet, with "roll",
 *                      "done" and "fail"; "" if its restart has not begun.
 *                      "see"   reports presence; TEXT is why the host begins no restart yet
 *                      "want"  requests a lease; TEXT as for "see", so "" clears the reason
 *                      "roll"  holds and renews a lease; TEXT is the progress
 *                      "wait"  gives back a lease that is not used
 *                      "done"  ends the lease; repeated once no old worker drains. Until then, TEXT is
 *                              ROLLOUT_DRAINING for hosts up to 0.2, which read no COUNTS.
 *                      "fail"  ends the lease, or takes back the "done" of the canary; TEXT is the reason
 *   begin   HOSTS CANARY FAILURES RELEASE MAC SERVER LOST NUMBER ID
 *                      begins the rollout whose number and id precede the arguments, if Redis still has the
 *                      rollout NUMBER ID. HOSTS: `3` or `10%`. CANARY: seconds. LOST: "1" if Redis has lost
 *                      a newer rollout. Without a MAC the new number must be higher than all numbers in
 *                      Redis. With a MAC it need not be: a host with the key has found these unsigned.
 *   abort   MAC        ends this rollout
 *   forget  HOST       removes HOST from this rollout. No MAC: any writer to Redis can do the same without
 *                      the script.
 *   show               returns all hosts
 *
 * The reply is an array of words: the words of enum rollout_script_reply; for `show` then nine words per
 * host: name, state, seconds in that state, seconds since it was seen, text, and the four COUNTS, each "" if
 * the host has reported none. */
#define ROLLOUT_HOST_WORDS 9
#define ROLLOUT_DRAINING   "draining"
enum rollout_script_reply {
        ROLLOUT_REPLY_VERDICT, /* "ok"; "old": Redis has a newer rollout than this;
                                * "behind": Redis has an older rollout than the host; "taken": another
                                * instance has this host's name; "full": too many hosts or name too long;
                                * "unknown": no such host */
        ROLLOUT_REPLY_NUMBER,
        ROLLOUT_REPLY_HIGH,
        ROLLOUT_REPLY_ID,
        ROLLOUT_REPLY_STATE, /* "none", "running", "halted", "done", "aborted" */
        ROLLOUT_REPLY_ERROR,
        ROLLOUT_REPLY_MINE, /* the lease of the calling host; -1: none */
        ROLLOUT_REPLY_ASKED,
        ROLLOUT_REPLY_CANARY,
        ROLLOUT_REPLY_FAILURES,
        ROLLOUT_REPLY_RELEASE,
        ROLLOUT_REPLY_MAC,
        ROLLOUT_REPLY_END_MAC,
        ROLLOUT_REPLY_LEFT,
        ROLLOUT_REPLY_BY,
        ROLLOUT_REPLY_AGE,
        ROLLOUT_REPLY_NOW,
        ROLLOUT_REPLY_SERVER,
        _ROLLOUT_REPLY_MAX,
};
