/* SPDX-License-Identifier: MIT */
/* The share that each host of a group takes of the need of its queues; see the header. */
#include "autoscaling/scaling_share.h"
#include "autoscaling/autoscale_rules.h"
#include "autoscaling/foreign_consumers.h"
#include "autoscaling/scaled_link.h"
#include "autoscaling/scaling_exchange.h"
#include "autoscaling/scaling_peer_rules.h"
#include "daemon/runtime/links.h"
#include "io/log.h"
#include "model/fleet.h"
#include "model/world.h"
#include <string.h>

/* A share expires after this time or three poll intervals, whichever is longer. */
#define LAST_SECONDS 60

/* The share of one fleet. */
struct scaling_share {
        const struct fleet *fleet;                 /* only for comparison: the fleet may have been freed */
        struct scaling_exchange *scaling_exchange; /* owned */
        bool error_reported;
        struct scaling_share *next;
};

void scaling_share_free(struct scaling_share *scaling_share)
{
        while (scaling_share) {
                struct scaling_share *next = scaling_share->next;

                scaling_exchange_free(scaling_share->scaling_exchange);
                free(scaling_share);
                scaling_share = next;
        }
}

static bool shares(const struct fleet *fleet, const struct link *link)
{
        return fleet->link == link && fleet_scales(fleet) && fleet->settings->rollout_group;
}

static struct scaling_share *find(const struct scaled_link *scaled, const struct fleet *fleet)
{
        struct scaling_share *scaling_share = scaled->scaling_share;

        while (scaling_share && scaling_share->fleet != fleet)
                scaling_share = scaling_share->next;
        return scaling_share;
}

static bool is_needed(const struct link *link, const struct scaling_share *scaling_share)
{
        WORLD_FOREACH_FLEET(link->links->world, fleet)
                if (fleet == scaling_share->fleet)
                        return shares(scaling_share->fleet, link) &&
                               strcmp(scaling_share->fleet->settings->rollout_group,
                                      scaling_share->scaling_exchange->group) == 0;
        return false;
}

static void end_unneeded(struct scaled_link *scaled)
{
        for (struct scaling_share **at = &scaled->scaling_share; *at;) {
                struct scaling_share *scaling_share = *at;

                if (is_needed(scaled->link, scaling_share)) {
                        at = &scaling_share->next;
                        continue;
                }
                *at = scaling_share->next;
                scaling_share->next = NULL;
                scaling_share_free(scaling_share);
        }
}

static struct scaling_share *begin(struct scaled_link *scaled, const struct fleet *fleet)
{
        const struct link *link = scaled->link;
        struct scaling_share *scaling_share = calloc(1, sizeof(*scaling_share));

        if (!scaling_share || scaling_exchange_new(link->reader, fleet->settings->rollout_group,
                                                   &scaling_share->scaling_exchange) < 0) {
                free(scaling_share);
                return NULL;
        }
        scaling_share->fleet = fleet;
        scaling_share->next = scaled->scaling_share;
        scaled->scaling_share = scaling_share;
        return scaling_share;
}

static bool is_elsewhere(const char *host, const char *queues _unused_, void *userdata)
{
        return strcmp(host, userdata) != 0;
}

/* Returns the idle threads of processes on this host that are not sqmgr's workers. Other hosts know all
 * processes here only from this host's report. */
static double count_idle_here(const struct scaled_link *scaled, const struct fleet *fleet, usec_t now)
{
        struct foreign_count count = {0};

        if (scaled->foreign)
                (void)foreign_consumers_count(scaled->foreign, autoscale_of(fleet)->served, now, is_elsewhere,
                                              (void *)links_host_name(scaled->link->links), &count);
        return count.idle;
}

static void report_error(const struct link *link, struct scaling_share *scaling_share)
{
        const struct error_report *error = &scaling_share->scaling_exchange->error;

        if (error->text[0] != '\0' && !scaling_share->error_reported)
                log_quoted(LOG_WARNING, &error->quoted,
                           "Redis %s: hosts of group '%s' cannot share the load of fleet '%s'; each may "
                           "start workers for all of it. See PERMISSIONS in sqmgr-rollout(7): %s",
                           reader_url_text(link->reader), scaling_share->scaling_exchange->group,
                           scaling_share->fleet->settings->name, error->text);
        scaling_share->error_reported = error->text[0] != '\0';
}

static void poll_fleet(struct scaled_link *scaled, struct fleet *fleet, usec_t now)
{
        const struct link *link = scaled->link;
        const usec_t interval = link->links->world->settings->check_interval;
        struct scaling_share *scaling_share = find(scaled, fleet) ?: begin(scaled, fleet);
        struct peer_share share;

        if (!scaling_share)
                return;
        report_error(link, scaling_share);
        autoscale_share(fleet, count_idle_here(scaled, fleet, now), &share);
        /* Writes no share if another machine has the name of this host: the share would count as that
         * machine's. */
        bool is_other = fleet->name_taken;
        scaling_exchange_poll(scaling_share->scaling_exchange, links_host_name(link->links),
                              is_other ? NULL : &share,
                              (unsigned)MAX((usec_t)LAST_SECONDS, 3 * interval / USEC_PER_SEC), now);
}

void scaling_share_poll(struct scaled_link *scaled, usec_t now)
{
        end_unneeded(scaled);
        WORLD_FOREACH_FLEET(scaled->link->links->world, fleet)
                if (shares(fleet, scaled->link))
                        poll_fleet(scaled, fleet, now);
}

/* True if the process is among the threads that its host has reported. */
static bool is_reported(const char *host, const char *queues, void *userdata)
{
        const struct peer *peer = userdata ? peers_find(userdata, host) : NULL;

        for (; peer && *queues != '\0'; queues += strlen(queues) + 1)
                if (queue_names_have(peer->share.queues, queues))
                        return true;
        return false;
}

void scaling_share_take(const struct scaled_link *scaled, const struct fleet *fleet,
                        struct autoscale_reading *reading, usec_t now)
{
        const struct scaling_share *scaling_share = find(scaled, fleet);
        struct foreign_count count = {0};

        reading->peers_unread = scaling_share && !scaling_share->scaling_exchange->known;
        reading->peers = scaling_share ? &scaling_share->scaling_exchange->peers : NULL;
        if (scaled->foreign)
                reading->foreign_known =
                        foreign_consumers_count(scaled->foreign, autoscale_of(fleet)->served, now,
                                                is_reported, (void *)reading->peers, &count);
        reading->foreign_any = count.any;
        reading->foreign_consumers = count.serving;
        reading->foreign_idle = count.idle;
}
