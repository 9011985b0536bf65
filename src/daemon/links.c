/* SPDX-License-Identifier: MIT */
/* The connections to Redis: one for each server that fleets name. */
#include "core/observe.h"
#include "core/redis_url.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include <string.h>

static void on_redis_state(struct redis *redis, enum redis_state state, const char *error, void *userdata)
{
        struct link *link = userdata;
        const struct world *world = link->supervisor->world;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (state == REDIS_STATE_CONNECTED) {
                log_info("Redis %s: connected", redis_url_text(redis));
                /* At once: what is there before a new worker can have beaten is not its own. */
                link->supervisor->look_at = now;
        } else if (error != NULL)
                log_error("Redis %s: %s", redis_url_text(redis), error);
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->io == link)
                        observe_redis(world->fleets[i], state == REDIS_STATE_CONNECTED, now);
        supervisor_arm_turn(link->supervisor);
}

static bool is_descendant(pid_t pid, const struct worker *worker, void *userdata)
{
        (void)userdata;
        return proc_has_ancestor(pid, worker->pid, worker->pid_start) > 0;
}

static void on_identity(struct worker *worker, pid_t pid, void *userdata)
{
        (void)userdata;
        worker_io_set_beat(worker, pid, clock_now(CLOCK_MONOTONIC));
}

static void on_heartbeat(struct worker *worker, const struct heartbeat *beat, void *userdata)
{
        (void)userdata;
        observe_heartbeat(worker, beat, clock_now(CLOCK_MONOTONIC));
}

static void on_done(struct beats *beats, void *userdata)
{
        const struct link *link = userdata;

        (void)beats;
        supervisor_arm_turn(link->supervisor);
}

static struct link *find_link(const struct supervisor *supervisor, const char *url)
{
        for (size_t i = 0; i < supervisor->n_links; i++) {
                struct link *link = supervisor->links[i];

                assert(link != NULL);
                if (strcmp(link->url, url) == 0)
                        return link;
        }
        return NULL;
}

static int make_link(struct supervisor *supervisor, const char *url, struct link **ret)
{
        static const struct beats_ops ops = {
                .is_descendant = is_descendant,
                .on_identity = on_identity,
                .on_heartbeat = on_heartbeat,
                .on_done = on_done,
        };
        const struct redis_settings *settings = &supervisor->settings->redis;
        struct link *link = calloc(1, sizeof(*link));

        if (link == NULL)
                return -ENOMEM;
        /* In the list at once: links_free() frees what there is of it. */
        supervisor->links[supervisor->n_links++] = link;
        link->supervisor = supervisor;
        link->url = strdup(url);
        if (link->url == NULL)
                return -ENOMEM;
        int r = redis_new(supervisor->event, url, settings, on_redis_state, link, &link->redis);
        if (r >= 0)
                r = beats_new(link->redis, settings->namespace, supervisor->host_name, &ops, link,
                              &link->beats);
        *ret = link;
        return r;
}

int links_make(struct supervisor *supervisor)
{
        const struct world *world = supervisor->world;

        supervisor->links = calloc(world->n_fleets + 1, sizeof(struct link *));
        if (supervisor->links == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < world->n_fleets; i++) {
                const char *url = world->fleets[i]->settings->redis_url ?: supervisor->settings->redis.url;
                struct link *link = find_link(supervisor, url);

                if (link == NULL) {
                        int r = make_link(supervisor, url, &link);
                        if (r < 0)
                                return r;
                }
                world->fleets[i]->io = link;
        }
        return 0;
}

void links_free(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->n_links; i++) {
                struct link *link = supervisor->links[i];

                beats_free(link->beats);
                redis_free(link->redis);
                free(link->url);
                free(link);
        }
        free(supervisor->links);
}
