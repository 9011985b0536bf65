/* SPDX-License-Identifier: MIT */
/* What is ordered of a group on this host; see the header. */
#include "rollout_hosts/group_orders.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/world.h"
#include "rollout_hosts/seal.h"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SHOW_USEC USEC_PER_SEC
/* So many others may begin at the same time. */
#define TRIES_MAX 4

struct order {
        struct host_group *group;
        struct rollout_reply epoch; /* that is begun, or that it is of */
        char by[ORDERER_TEXT_MAX];
        char host[ROLLOUT_TEXT_MAX + 1]; /* to be forgotten */
        unsigned tries;
        group_order_fn fn;
        void *userdata;
};

static usec_t now_is(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

static struct order *order_new(struct host_group *group, const char *by, group_order_fn fn, void *userdata)
{
        struct order *order = calloc(1, sizeof(*order));

        if (!order)
                return NULL;
        order->group = group;
        order->fn = fn;
        order->userdata = userdata;
        snprintf(order->by, sizeof(order->by), "%s", by);
        return order;
}

static void finish(struct order *order, const char *error, bool ended)
{
        const struct group_outcome outcome = {.error = error, .number = order->epoch.number, .ended = ended};

        order->fn(&outcome, order->userdata);
        free(order);
}

/* Of an answer: goes on with the order, or ends it. */
static bool is_answered(struct order *order, const struct rollout_answer *answer)
{
        if (!group_answered(order->group))
                finish(order, "the fleet has left its group meanwhile", false);
        else if (!answer->reply)
                finish(order, answer->error, false);
        else
                return true;
        return false;
}

static void finish_failed(struct order *order, int error)
{
        finish(order, error == -ENOTCONN ? "the connection to Redis was lost" : "memory is short", false);
}

static void tell_order(const struct host_group *group, const char *what, const char *by)
{
        struct fleet *fleet = group->fleet;

        world_event(fleet->world, EVENT_ORDER, fleet, NULL, "fleet '%s': %s of group '%s' by %s",
                    fleet->settings->name, what, group->name, by);
}

/* Seals the order, where there is a key. Returns 0, or -errno. */
static int seal(const struct host_group *group, const char *what, const struct rollout_reply *epoch,
                char mac[static SEAL_MAX])
{
        const char *key = group->fleet->settings->rollout_key;

        mac[0] = '\0';
        if (!key)
                return 0;
        _cleanup_free_ char *text = rollout_reply_seal_text(what, group->name, epoch);
        return text ? seal_make(key, strlen(key), text, mac) : -ENOMEM;
}

static int send_begin(struct order *order, const struct rollout_reply *there);

static void on_begun(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;
        usec_t now = now_is();

        if (!is_answered(order, answer))
                return;
        if (answer->reply->verdict == ROLLOUT_VERDICT_OLD && ++order->tries < TRIES_MAX) {
                int r = send_begin(order, answer->reply);
                if (r < 0)
                        finish_failed(order, r);
                return;
        }
        if (answer->reply->verdict != ROLLOUT_VERDICT_OK) {
                finish(order, "others begin one at the same time: try again", false);
                return;
        }
        tell_order(group, "restart of all hosts", order->by);
        group_observe_ordered(group, answer->reply, now);
        finish(order, NULL, false);
        group_ask(group, now);
}

/* there: what Redis was seen to hold. */
static int send_begin(struct order *order, const struct rollout_reply *there)
{
        struct host_group *group = order->group;
        struct rollout_reply *epoch = &order->epoch;
        struct redis *redis = group_redis(group, now_is());
        uint64_t random[2];

        if (!redis)
                return -ENOTCONN;
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return -EAGAIN;
        epoch->number = rollout_group_next(&group->rule, there);
        snprintf(epoch->id, sizeof(epoch->id), "%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
        int r = seal(group, "begin", epoch, epoch->mac);
        if (r < 0)
                return r;
        struct rollout_caller caller = group_caller(group, redis);
        caller.number = epoch->number;
        caller.id = epoch->id;
        r = rollout_call_begin(&caller, epoch, on_begun, order);
        group->n_calls += r == 0;
        return r;
}

int group_begin(struct host_group *group, const char *release, const char *by, group_order_fn fn,
                void *userdata)
{
        const struct fleet_settings *settings = group->fleet->settings;
        struct order *order = order_new(group, by, fn, userdata);

        if (!order)
                return -ENOMEM;
        static_assert(sizeof(order->epoch.mac) >= SEAL_MAX, "room for a seal");
        snprintf(order->epoch.asked, sizeof(order->epoch.asked), "%u%s", settings->rollout_hosts.value,
                 settings->rollout_hosts.percent ? "%" : "");
        order->epoch.canary_seconds = (uint32_t)(settings->rollout_canary / USEC_PER_SEC);
        order->epoch.failures = settings->rollout_failures;
        snprintf(order->epoch.release, sizeof(order->epoch.release), "%s", release);
        int r = send_begin(order, &group->last);
        if (r < 0)
                free(order);
        return r;
}

static void on_aborted(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;

        if (!is_answered(order, answer))
                return;
        bool ended = answer->reply->verdict == ROLLOUT_VERDICT_OK && answer->reply->state == EPOCH_ABORTED;
        if (ended)
                tell_order(group, "abort of the restart of all hosts", order->by);
        group_forget_view(group);
        finish(order, NULL, ended);
        group_ask(group, now_is());
}

/* The order is one of the epoch that Redis shows. */
static void on_found(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;
        char mac[SEAL_MAX];

        if (!is_answered(order, answer))
                return;
        order->epoch = *answer->reply;
        if (order->epoch.state != EPOCH_RUNNING && order->epoch.state != EPOCH_HALTED) {
                finish(order, NULL, false);
                return;
        }
        struct redis *redis = group_redis(group, now_is());
        int r = redis ? seal(group, "abort", &order->epoch, mac) : -ENOTCONN;
        if (r == 0) {
                struct rollout_caller caller = group_caller(group, redis);

                caller.number = order->epoch.number;
                caller.id = order->epoch.id;
                r = rollout_call_abort(&caller, mac, on_aborted, order);
        }
        if (r < 0)
                finish_failed(order, r);
        else
                group->n_calls++;
}

/* What an order is of is asked for first. */
static int find(struct order *order, rollout_call_fn fn)
{
        struct host_group *group = order->group;
        struct redis *redis = group_redis(group, now_is());
        int r = -ENOTCONN;

        if (redis) {
                const struct rollout_caller caller = group_caller(group, redis);

                r = rollout_call_show(&caller, fn, order);
        }
        if (r < 0)
                free(order);
        else
                group->n_calls++;
        return r;
}

int group_abort(struct host_group *group, const char *by, group_order_fn fn, void *userdata)
{
        struct order *order = order_new(group, by, fn, userdata);

        return order ? find(order, on_found) : -ENOMEM;
}

static void on_forgotten(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        char what[ROLLOUT_TEXT_MAX + 32], error[ROLLOUT_TEXT_MAX + 128];

        if (!is_answered(order, answer))
                return;
        if (answer->reply->verdict == ROLLOUT_VERDICT_OK) {
                snprintf(what, sizeof(what), "host '%s' forgotten", order->host);
                tell_order(order->group, what, order->by);
                group_forget_view(order->group);
                finish(order, NULL, true);
                return;
        }
        if (answer->reply->verdict == ROLLOUT_VERDICT_UNKNOWN)
                snprintf(error, sizeof(error),
                         "host '%s' is not in the group: 'sqmgrctl rollout' shows those that are",
                         order->host);
        else
                snprintf(error, sizeof(error), "another restart has begun meanwhile: try again");
        finish(order, error, false);
}

static void on_shown_to_forget(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;

        if (!is_answered(order, answer))
                return;
        order->epoch = *answer->reply;
        struct redis *redis = group_redis(group, now_is());
        int r = -ENOTCONN;
        if (redis) {
                struct rollout_caller caller = group_caller(group, redis);

                caller.number = order->epoch.number;
                caller.id = order->epoch.id;
                r = rollout_call_forget(&caller, order->host, on_forgotten, order);
        }
        if (r < 0)
                finish_failed(order, r);
        else
                group->n_calls++;
}

int group_forget(struct host_group *group, const char *host, const char *by, group_order_fn fn,
                 void *userdata)
{
        struct order *order = order_new(group, by, fn, userdata);

        if (!order)
                return -ENOMEM;
        snprintf(order->host, sizeof(order->host), "%s", host);
        return find(order, on_shown_to_forget);
}

static void on_shown(const struct rollout_answer *answer, void *userdata)
{
        struct host_group *group = userdata;
        struct group_view view = {.at = now_is()};

        if (!group_answered(group))
                return;
        group->shows = false;
        group->view.at = view.at;
        turn_arm(group->groups->keeper->crew->turn);
        snprintf(group->error, sizeof(group->error), "%s", answer->error ?: "");
        if (!answer->reply)
                return;
        const size_t n = (answer->n - _ROLLOUT_REPLY_MAX) / ROLLOUT_HOST_WORDS;
        view.epoch = *answer->reply;
        view.hosts = calloc(n + 1, sizeof(*view.hosts));
        if (!view.hosts)
                return;
        for (size_t i = 0; i < n; i++) {
                int r = rollout_reply_host(answer->words, answer->n, i, &view.hosts[view.n_hosts]);

                if (r == -ENOENT)
                        break;
                view.n_hosts += r == 0;
        }
        free(group->view.hosts);
        group->view = view;
}

void group_show(struct host_group *group, usec_t now)
{
        struct redis *redis = group_redis(group, now);

        if (!redis || group->shows || (group->view.at > 0 && now < usec_add(group->view.at, SHOW_USEC)))
                return;
        const struct rollout_caller caller = group_caller(group, redis);
        group->shows = rollout_call_show(&caller, on_shown, group) == 0;
        group->n_calls += group->shows;
}
