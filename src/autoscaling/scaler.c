/* SPDX-License-Identifier: MIT */
/* Has the queues read of each fleet whose count follows them. */
#include "autoscaling/scaler.h"
#include "autoscaling/autoscale_rules.h"
#include "autoscaling/foreign_consumers.h"
#include "autoscaling/scaling_share.h"
#include "daemon/runtime/links.h"
#include "daemon/takeover/keep.h"
#include "daemon/workers/process.h"
#include "frameworks/heartbeat_format.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/fleet.h"
#include "model/world.h"
#include <string.h>

#define NAMES_MAX 16384

/* Names, each ended by a NUL, the last by two. */
struct names {
        char text[NAMES_MAX];
        size_t used, n;
};

/* Returns false where there is no room left for it. */
static bool names_add(struct names *names, const char *name)
{
        size_t length = strlen(name) + 1;

        if (queue_names_have(names->text, name))
                return true;
        if (names->n == AUTOSCALE_QUEUES_MAX || names->used + length >= sizeof(names->text))
                return false;
        memcpy(names->text + names->used, name, length);
        names->used += length;
        names->text[names->used] = '\0';
        names->n++;
        return true;
}

/* fleet: only those of the list that it looks at; NULL: all. */
static bool names_add_list(struct names *names, const char *list, const struct fleet *fleet)
{
        bool all = true;

        for (; list && *list != '\0'; list += strlen(list) + 1)
                if (!fleet || autoscale_target(fleet, list) > 0)
                        all &= names_add(names, list);
        return all;
}

/* From which queues the workers of a fleet take, as far as any of them has told. Returns false where that are
 * too many. */
static bool look_served(struct fleet *fleet)
{
        const struct framework *framework = fleet->link->framework;
        struct names names = {0};
        bool all = true;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_ACTIVE && worker->handle && worker->handle->slot)
                        all &= names_add_list(&names,
                                              framework->queue_names(beats_info(worker->handle->slot)), NULL);
        }
        if (names.n == 0)
                return true;
        char *copy = malloc(names.used + 1);
        if (copy) {
                memcpy(copy, names.text, names.used + 1);
                autoscale_serves(fleet, copy);
        }
        return all;
}

static bool is_ours(const char *identity, size_t len, void *userdata)
{
        const struct link *link = userdata;
        const struct world *world = link->links->world;
        size_t host_len;
        pid_t pid;

        if (!link->framework->beats->identity_parse(identity, len, &host_len, &pid))
                return false;
        /* One that has just booted may not be known by its identity yet: by its pid it is. */
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++) {
                        const struct worker *worker = world->fleets[i]->workers[j];
                        const char *own = process_identity(worker->handle);

                        if (own ? strlen(own) == len && memcmp(own, identity, len) == 0
                                : worker->process.pid == pid || worker->process.beat_pid == pid)
                                return true;
                }
        return false;
}

static void end_scaled_link(struct link_user *user)
{
        struct scaled_link *scaled = (struct scaled_link *)user;

        queue_reader_free(scaled->demand);
        foreign_consumers_free(scaled->foreign);
        sharing_free(scaled->sharing);
        queues_free(scaled->demanded.queues);
        free(scaled);
}

struct scaled_link *scaled_link_of(const struct link *link)
{
        return (struct scaled_link *)link_find_user(link, end_scaled_link);
}

static void on_demand(struct queues_reading *reading, void *userdata)
{
        const struct link *link = userdata;
        struct scaled_link *scaled = scaled_link_of(link);

        queues_free(scaled->demanded.queues);
        scaled->demanded = *reading;
        reading->queues = NULL;
        scaled->answered = true;
        if (reading->error && !scaled->error_told)
                log_warning("Redis %s: the queues that counts of workers follow cannot be read: %s",
                            redis_url_text(link->redis), reading->error);
        scaled->error_told = reading->error;
        turn_arm(link->links->turn);
}

static bool scales_on(const struct link *link)
{
        const struct world *world = link->links->world;

        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->link == link && fleet_scales(world->fleets[i]))
                        return true;
        return false;
}

/* NULL: memory is short. */
static struct scaled_link *join_link(struct link *link)
{
        struct scaled_link *scaled = scaled_link_of(link);

        if (scaled)
                return scaled;
        scaled = calloc(1, sizeof(*scaled));
        if (!scaled)
                return NULL;
        scaled->user = (struct link_user){.end = end_scaled_link, .next = link->users};
        scaled->link = link;
        link->users = &scaled->user;
        return scaled;
}

static int open_demand(struct scaled_link *scaled)
{
        struct link *link = scaled->link;
        int r = link_open_queues(link, on_demand, &scaled->demand);

        if (r >= 0 && !scaled->foreign)
                r = foreign_consumers_new(link->framework, link->redis,
                                          link->links->world->settings->redis.namespace, is_ours, link,
                                          &scaled->foreign);
        return r;
}

static void poll_link(struct scaled_link *scaled, usec_t now)
{
        struct link *link = scaled->link;
        const struct world *world = link->links->world;
        struct names names = {0};
        int r = open_demand(scaled);

        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];

                if (fleet->link != link || fleet->settings->removed)
                        continue;
                bool all = look_served(fleet);
                if (fleet_scales(fleet) && fleet->autoscale)
                        fleet->autoscale->queues_left_out =
                                !names_add_list(&names, fleet->autoscale->served, fleet) || !all;
        }
        /* The others are but shown: they take no place from these. */
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->link == link && fleet_scales(world->fleets[i]))
                        names_add_list(&names, autoscale_of(world->fleets[i])->served, NULL);
        sharing_look(scaled, now);
        if (r >= 0) {
                foreign_consumers_look(scaled->foreign, now);
                r = queue_reader_read(scaled->demand, names.text, clock_now(CLOCK_REALTIME));
        }
        if (r < 0 && r != -EBUSY) {
                scaled->demanded.queues = queues_free(scaled->demanded.queues);
                scaled->answered = true;
                turn_arm(link->links->turn);
        }
}

void scaler_poll(void *self, usec_t now)
{
        const struct links *links = self;

        for (size_t i = 0; i < links->n; i++) {
                struct link *link = links->list[i];

                if (!link->framework->queue_names || !scales_on(link))
                        continue;
                struct scaled_link *scaled = join_link(link);

                if (scaled)
                        poll_link(scaled, now);
        }
}

/* Those that the fleet serves. NULL: they could not be read, or memory is short. */
static struct queues *pick(const struct queues *read, const char *served)
{
        struct queues *picked = read ? calloc(1, sizeof(*picked)) : NULL;

        for (size_t i = 0; picked && i < read->n; i++) {
                const struct queue *from = &read->list[i];

                if (!queue_names_have(served, from->name))
                        continue;
                struct queue *queue = queues_add(picked, from->name, strlen(from->name));

                if (!queue)
                        return queues_free(picked);
                char *name = queue->name;
                *queue = *from;
                queue->name = name;
        }
        return picked;
}

static bool observe(const struct scaled_link *scaled, struct fleet *fleet, usec_t now)
{
        const char *served = autoscale_of(fleet)->served;
        struct autoscale_reading reading = {
                .queues = pick(scaled->demanded.queues, served),
                .done_known = scaled->demanded.done_known,
                .done = scaled->demanded.done,
        };

        if (scaled->demand)
                reading.service = queue_reader_service(scaled->demand, served);
        sharing_take(scaled, fleet, &reading, now);
        return autoscale_observe(fleet, &reading, now);
}

void scaler_observe(void *self, usec_t now)
{
        const struct links *links = self;
        const struct world *world = links->world;
        bool changed = false;

        for (size_t i = 0; i < links->n; i++) {
                struct scaled_link *scaled = scaled_link_of(links->list[i]);

                if (!scaled || !scaled->answered)
                        continue;
                scaled->answered = false;
                for (size_t j = 0; j < world->n_fleets; j++)
                        if (world->fleets[j]->link == scaled->link && fleet_scales(world->fleets[j]))
                                changed |= observe(scaled, world->fleets[j], now);
                scaled->demanded.queues = queues_free(scaled->demanded.queues);
        }
        if (changed)
                turn_changed(links->turn);
}

/* Nothing is kept of a fleet whose count is fixed, nor of one that is removed: the fleet is freed without
 * asking. */
void scaler_join(void *self)
{
        const struct links *links = self;

        for (size_t i = 0; i < links->world->n_fleets; i++)
                if (!fleet_scales(links->world->fleets[i]))
                        autoscale_forget(links->world->fleets[i]);
}

void scaler_end(void *self)
{
        const struct links *links = self;

        for (size_t i = 0; i < links->world->n_fleets; i++)
                autoscale_forget(links->world->fleets[i]);
}

int scaler_begin(struct keeper *keeper, void **ret)
{
        *ret = &keeper->crew->links;
        return 0;
}
