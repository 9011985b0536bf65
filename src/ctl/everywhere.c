/* SPDX-License-Identifier: MIT */
/* Orders to all hosts of a group. */
#include "ctl/everywhere.h"
#include "ctl/await.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/grouped.h"
#include "ctl/reply.h"
#include "ctl/say.h"

#define ORDER_USEC (30 * USEC_PER_SEC)

/* The order itself is answered at once, however long its end is waited for. */
static int begin(struct ctl *ctl, const char *fleet, json_t **ret)
{
        enum ctl_wait wait = ctl->wait;
        usec_t timeout = ctl->timeout;

        ctl->wait = CTL_WAIT_NONE;
        ctl->timeout = MIN(timeout, ORDER_USEC);
        int r = client_call(ctl, "RestartEverywhere",
                            json_pack("{s:s, s:s?}", "fleet", fleet, "release", ctl->release), ret);
        ctl->wait = wait;
        ctl->timeout = timeout;
        client_close(ctl);
        return r;
}

int everywhere_restart(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = grouped_find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = begin(ctl, fleet, &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl->wait != CTL_WAIT_NONE)
                return await_rollout(ctl, fleet, reply_integer(reply, "epoch"));
        if (ctl->json)
                reply_print_json(reply);
        else
                say_line("%s: rollout %lld over the hosts of group '%s' has begun: 'sqmgrctl rollout %s "
                         "--watch' "
                         "shows it",
                         fleet, reply_integer(reply, "epoch"), reply_string(reply, "group"), fleet);
        return CTL_DONE;
}

int everywhere_abort(struct ctl *ctl)
{
        _cleanup_free_ char *fleet = NULL;
        _cleanup_json_ json_t *reply = NULL;
        int r = grouped_find_fleet(ctl, &fleet);

        if (r == CTL_DONE)
                r = client_ask(ctl, "AbortEverywhere", json_pack("{s:s}", "fleet", fleet), &reply);
        if (r != CTL_DONE || !reply)
                return r;
        if (reply_is_true(reply, "aborted"))
                say_line("%s: the rollout is ended on all hosts, no further old worker is quieted", fleet);
        else
                say_line("%s: no rollout over many hosts is in progress", fleet);
        return CTL_DONE;
}
