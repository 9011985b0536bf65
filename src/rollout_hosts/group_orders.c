/* SPDX-License-Identifier: MIT */
/* Handles RestartEverywhere, AbortEverywhere and ForgetHost. */
#include "rollout_hosts/group_orders.h"
#include "daemon/api/handler.h"
#include "io/clock.h"
#include "model/names.h"
#include "model/world.h"
#include "rollout_hosts/group.h"
#include "rollout_hosts/hmac.h"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Attempts if other hosts begin a rollout at the same time. */
#define TRIES_MAX 5

enum order_kind { ORDER_BEGIN, ORDER_ABORT, ORDER_FORGET };

/* An order that Redis has not answered yet. */
struct order {
        enum order_kind kind;
        struct call *call; /* NULL: the client has disconnected */
        struct host_group *group;
        char name[ROLLOUT_GROUP_MAX + 1]; /* of the group, which may have been freed */
        struct rollout_reply rollout;     /* the rollout that is begun, aborted, or contains the host */
        char by[ORDERER_TEXT_MAX];
        char host[ROLLOUT_TEXT_MAX + 1]; /* the host to forget */
        unsigned tries;
};

static usec_t now_is(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* Answers the call and frees the order. error: a sentence; NULL: success. quoted: what it quotes; NULL:
 * nothing. ended: an abort had a rollout to end. */
static void finish_quoted(struct order *order, const char *error, const struct quoted *quoted, bool ended)
{
        struct call *call = order->call;

        if (call && error)
                handler_refuse_quoted(call, quoted, "group '%s': %s", order->name, error);
        else if (call && order->kind == ORDER_BEGIN)
                server_reply(call,
                             json_pack("{s:I, s:s}", "epoch", (json_int_t)order->rollout.number, "group",
                                       order->name),
                             false);
        else if (call && order->kind == ORDER_ABORT)
                server_reply(call, json_pack("{s:b}", "aborted", (int)ended), false);
        else if (call)
                server_reply(call, json_object(), false);
        free(order);
}

static void finish(struct order *order, const char *error, bool ended)
{
        finish_quoted(order, error, NULL, ended);
}

/* Returns true if the order may continue; otherwise the order was finished with an error. */
static bool is_answered(struct order *order, const struct rollout_answer *answer)
{
        if (!group_answered(order->group))
                finish(order, "the fleet has left its group meanwhile", false);
        else if (!answer->reply)
                finish_quoted(order, answer->error->text, &answer->error->quoted, false);
        else
                return true;
        return false;
}

static void finish_failed(struct order *order, int error)
{
        finish(order, error == -ENOTCONN ? "connection to Redis lost" : "out of memory", false);
}

static void report_order(const struct host_group *group, const char *what, const char *by)
{
        struct fleet *fleet = group->fleet;

        world_event(fleet->world, EVENT_ORDER, fleet, NULL, "fleet '%s': %s of group '%s' ordered by %s",
                    fleet->settings->name, what, group->name, by);
}

/* Writes the HMAC of the order, or "" without a key. Returns 0 or -errno. */
static int sign(const struct host_group *group, const char *what, const struct rollout_reply *rollout,
                char mac[static HMAC_MAX])
{
        const char *key = group->fleet->settings->rollout_key;

        mac[0] = '\0';
        if (!key)
                return 0;
        const struct rollout_place place = group_place(group);
        _cleanup_free_ char *text = rollout_signed_text(what, &place, rollout);
        if (!text)
                return -ENOMEM;
        hmac_make(key, strlen(key), text, mac);
        return 0;
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
                finish(order, "another host started a rollout at the same time. Try again", false);
                return;
        }
        report_order(group, "rollout", order->by);
        group_observe_ordered(group, answer->reply, now);
        finish(order, NULL, false);
        group_ask(group, now);
}

/* Sends a `begin`. there: the rollout in Redis, whose number must still be the same; NULL: unknown, so the
 * call is refused and its reply shows that rollout. */
static int send_begin(struct order *order, const struct rollout_reply *there)
{
        static const struct rollout_reply nothing;
        struct host_group *group = order->group;
        struct rollout_reply *rollout = &order->rollout;
        const enum rollout_signature signature =
                there ? group_signature(group, there) : ROLLOUT_SIGNATURE_BAD;
        const struct rollout_next next = rollout_group_next(&group->rule, there ?: &nothing, signature);
        char canary[16], failures[16], seen[24];
        uint64_t random[2];

        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return -EAGAIN;
        rollout->number = there ? next.number : 0;
        snprintf(rollout->id, sizeof(rollout->id), "%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
        int r = sign(group, "begin", rollout, rollout->mac);
        if (r < 0)
                return r;
        snprintf(canary, sizeof(canary), "%u", rollout->canary_seconds);
        snprintf(failures, sizeof(failures), "%u", rollout->failures);
        snprintf(seen, sizeof(seen), "%llu", there ? (unsigned long long)there->number : 0);
        const char *const words[] = {"begin",
                                     rollout->asked,
                                     canary,
                                     failures,
                                     rollout->release,
                                     rollout->mac,
                                     rollout->server,
                                     next.lost ? "1" : "0",
                                     seen,
                                     there ? there->id : "",
                                     NULL};
        return group_call(group, rollout, words, on_begun, order);
}

/* Begins a rollout with the settings of the fleet. */
static int begin(struct order *order, const char *release)
{
        const struct fleet_settings *settings = order->group->fleet->settings;
        struct rollout_reply *rollout = &order->rollout;

        static_assert(sizeof(rollout->mac) >= HMAC_MAX, "room for a signature");
        snprintf(rollout->asked, sizeof(rollout->asked), "%u%s", settings->rollout_hosts.value,
                 settings->rollout_hosts.percent ? "%" : "");
        rollout->canary_seconds = (uint32_t)(settings->rollout_canary / USEC_PER_SEC);
        rollout->failures = settings->rollout_failures;
        snprintf(rollout->release, sizeof(rollout->release), "%s", release);
        const struct rollout_place place = group_place(order->group);
        snprintf(rollout->server, sizeof(rollout->server), "%s", place.server);
        return send_begin(order, NULL);
}

static void on_aborted(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;

        if (!is_answered(order, answer))
                return;
        bool ended = answer->reply->verdict == ROLLOUT_VERDICT_OK && answer->reply->state == GROUP_ABORTED;
        if (ended)
                report_order(group, "abort of the rollout", order->by);
        group_forget_view(group);
        finish(order, NULL, ended);
        group_ask(group, now_is());
}

static void on_forgotten(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        char what[ROLLOUT_TEXT_MAX + 32], error[ROLLOUT_TEXT_MAX + 128];

        if (!is_answered(order, answer))
                return;
        if (answer->reply->verdict == ROLLOUT_VERDICT_OK) {
                snprintf(what, sizeof(what), "removal of host '%s'", order->host);
                report_order(order->group, what, order->by);
                group_forget_view(order->group);
                finish(order, NULL, true);
                return;
        }
        if (answer->reply->verdict == ROLLOUT_VERDICT_UNKNOWN)
                snprintf(error, sizeof(error),
                         "host '%s' is not in the group. 'sqmgrctl rollout' lists its hosts", order->host);
        else
                snprintf(error, sizeof(error), "another rollout was started meanwhile. Try again");
        finish(order, error, false);
}

/* Handles the reply that shows the current rollout, for abort and forget. */
static void on_found(const struct rollout_answer *answer, void *userdata)
{
        struct order *order = userdata;
        struct host_group *group = order->group;
        bool aborts = order->kind == ORDER_ABORT;
        char mac[HMAC_MAX];

        if (!is_answered(order, answer))
                return;
        order->rollout = *answer->reply;
        if (aborts && order->rollout.state != GROUP_RUNNING && order->rollout.state != GROUP_HALTED) {
                finish(order, NULL, false);
                return;
        }
        int r = aborts ? sign(group, "abort", &order->rollout, mac) : 0;
        const char *const words[] = {aborts ? "abort" : "forget", aborts ? mac : order->host, NULL};
        if (r == 0)
                r = group_call(group, &order->rollout, words, aborts ? on_aborted : on_forgotten, order);
        if (r < 0)
                finish_failed(order, r);
}

static void on_order_cancelled(struct call *call _unused_, void *userdata)
{
        struct order *order = userdata;

        order->call = NULL;
}

void group_refuse_none(struct call *call, const struct fleet *fleet)
{
        handler_refuse(call,
                       "fleet '%s' has no rollout_group. Set one in its section on each host, then run "
                       "'sqmgrctl reload'",
                       fleet->settings->name);
}

/* Returns the group of the fleet in the parameters; NULL: the call was answered with an error. */
static struct host_group *parse_group(struct control *control, struct call *call, json_t *parameters)
{
        const struct fleet *fleet = handler_parse_fleet(control, call, parameters);
        struct host_group *group = fleet ? fleet->group : NULL;

        if (fleet && !group)
                group_refuse_none(call, fleet);
        return group;
}

/* text: the release of a new rollout, or the host to forget. */
static void give_order(struct control *control, struct call *call, json_t *parameters, enum order_kind kind,
                       const char *text)
{
        static const char *const show[] = {"show", NULL};
        struct host_group *group = parse_group(control, call, parameters);
        const struct orderer orderer = handler_orderer(call);
        struct error_report trouble;

        if (!group)
                return;
        struct order *order = calloc(1, sizeof(*order));
        if (!order) {
                server_reply(call, NULL, false);
                return;
        }
        order->kind = kind;
        order->call = call;
        order->group = group;
        snprintf(order->name, sizeof(order->name), "%s", group->name);
        orderer_text(&orderer, order->by);
        if (kind == ORDER_FORGET)
                snprintf(order->host, sizeof(order->host), "%s", text);
        /* The other orders first read the current rollout. */
        int r = kind == ORDER_BEGIN ? begin(order, text) : group_call(group, NULL, show, on_found, order);
        if (r >= 0) {
                server_keep(call, on_order_cancelled, order);
                return;
        }
        if (r == -ENOTCONN)
                group_trouble(group, &trouble);
        else
                error_report_set(&trouble, "%s", strerrordesc_np(-r));
        handler_refuse_quoted(call, &trouble.quoted, "group '%s': %s", group->name, trouble.text);
        free(order);
}

/* True if text has no control characters, which could forge the lines that the HMAC covers. */
static bool is_line(const char *text)
{
        while (*text != '\0' && (unsigned char)*text >= ' ' && *text != 0x7f)
                text++;
        return *text == '\0';
}

void handle_restart_everywhere(struct control *control, struct call *call, json_t *parameters,
                               usec_t now _unused_)
{
        const char *release;

        if (!handler_parse_text(call, parameters, "release", &release))
                return;
        if (release && (strlen(release) > ROLLOUT_TEXT_MAX || !is_line(release)))
                handler_refuse_parameter(call, "release");
        else if (!handler_refuse_at_shutdown(control, call) && !handler_refuse_unrecorded(control, call))
                give_order(control, call, parameters, ORDER_BEGIN, release ?: "");
}

void handle_abort_everywhere(struct control *control, struct call *call, json_t *parameters,
                             usec_t now _unused_)
{
        give_order(control, call, parameters, ORDER_ABORT, NULL);
}

void handle_forget_host(struct control *control, struct call *call, json_t *parameters, usec_t now _unused_)
{
        const char *host = json_string_value(json_object_get(parameters, "host"));

        if (!host || host[0] == '\0' || strlen(host) > ROLLOUT_TEXT_MAX)
                handler_refuse_parameter(call, "host");
        else
                give_order(control, call, parameters, ORDER_FORGET, host);
}
