/* SPDX-License-Identifier: MIT */
/* The one script by which hosts agree in Redis whose turn it is to restart; what it keeps, and how it is
 * asked.
 *
 * It is the only writer. A call is one operation with the group's five keys, and what Redis' own clock says
 * is the time of all. Each call first takes note of the turns that were not renewed in time, and last says
 * anew whether the rollout runs, is halted or done: so a halt ends by itself when its reason does.
 *
 * The keys, below `sqmgr:rollout:GROUP`, with the namespace in front:
 *
 * itself     hash: the newest rollout, an epoch: `number` and `id`, `state` and `error`, who began it (`by`)
 *            and when (`at`), what it was begun with (`asked`, and `hosts` which that makes, `canary`,
 *            `failures`, `release`, `mac`), the seal of its end (`endmac`), when a turn was last taken
 *            (`taken`), from when one may be (`from`), the first host that was done and when (`first`,
 *            `first_at`), hosts that were forgotten (`left`), and the highest number that a host has seen
 *            (`high`)
 * `:hosts`   hash: host -> `INSTANCE SINCE TEXT`; since: when its state was last another one
 * `:seen`    sorted set: host -> when it last said that it is there
 * `:states`  sorted set: host -> its state as a number, so that states are counted without reading all hosts
 * `:turns`   sorted set: host -> when it last renewed its turn
 *
 * All of them expire with the last word of the last host after 30 days. At the bound of 1,024 hosts they take
 * about half a megabyte (tests/unit/test_rollout_script).
 *
 * Redis replicates it later than it answers, so a failover may undo the last calls. Turns are taken at least
 * a second apart: what is undone is one of them at most. */
#pragma once

#include "model/group_key.h"

/* Lua 5.1, with what Redis 4 and later lend to it. */
extern const char rollout_script[];

/* Its keys, in this order. */
#define ROLLOUT_SCRIPT_KEYS 5
extern const char *const rollout_script_suffixes[ROLLOUT_SCRIPT_KEYS];

#define ROLLOUT_LEASE_SECONDS 30          /* a turn that was not renewed for so long is lost */
#define ROLLOUT_RENEW_SECONDS 10          /* how often it is */
#define ROLLOUT_IDLE_SECONDS  60          /* how often a host says that it is there while nothing is rolled */
#define ROLLOUT_GONE_SECONDS  (24 * 3600) /* one that did not for so long is waited for no longer */

/* What is asked, and the words behind it. All begin with the host that asks, its instance, and the number and
 * id of the newest epoch that it knows (0 and "": none); see the table of the text.
 *
 *   tick    WORD TEXT  "see": it is there. "want": it asks for a turn. "roll": it holds one, and goes on,
 *                      with how far it is. "wait": it gives back what it does not roll with. "done", with
 *                      "draining" while old workers are left, and said again once they are gone. "fail" with
 *                      why.
 *   begin   HOSTS CANARY FAILURES RELEASE MAC  with the number and id of the new epoch, which must be beyond
 *                      any that is known. HOSTS: `3` or `10%`; CANARY: seconds.
 *   abort   MAC        ends this epoch.
 *   forget  HOST       of this epoch. No seal: who may write to Redis can take a host out without it.
 *   show               all hosts, too.
 *
 * The reply is an array of words: the verdict, then as enum rollout_script_reply has them, then for `show`
 * five of each host: name, state, seconds in it, seconds since it was seen, text. */
#define ROLLOUT_HOST_WORDS 5
enum rollout_script_reply {
        ROLLOUT_REPLY_VERDICT, /* "ok"; "old": Redis has a newer epoch, or another; "behind": an older one
                                * than the host; "taken": another instance speaks for that host; "full";
                                * "unknown": there is no such host */
        ROLLOUT_REPLY_NUMBER,
        ROLLOUT_REPLY_HIGH,
        ROLLOUT_REPLY_ID,
        ROLLOUT_REPLY_STATE, /* "none", "running", "halted", "done", "aborted" */
        ROLLOUT_REPLY_ERROR,
        ROLLOUT_REPLY_MINE, /* the host's own state; -1: none */
        ROLLOUT_REPLY_ASKED,
        ROLLOUT_REPLY_CANARY,
        ROLLOUT_REPLY_FAILURES,
        ROLLOUT_REPLY_RELEASE,
        ROLLOUT_REPLY_MAC,
        ROLLOUT_REPLY_END_MAC,
        ROLLOUT_REPLY_LEFT,
        ROLLOUT_REPLY_BY,
        ROLLOUT_REPLY_AGE,
        _ROLLOUT_REPLY_MAX,
};
