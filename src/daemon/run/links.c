/* SPDX-License-Identifier: MIT */
/* The connections to Redis: one for each server that fleets name. */
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/observe.h"
#include "settings/redis_url.h"
#include <string.h>

/* server_text: the master, where Sentinels named it; NULL else. */
static void connected(struct link *link, const char *server_text)
{
        const struct world *world = link->supervisor->world;
        char *before = link->server_text;

        if (server_text == NULL) {
                log_info("Redis %s: connected", redis_url_text(link->redis));
                return;
        }
        log_info("Redis %s: connected to the master, %s", redis_url_text(link->redis), server_text);
        if (before != NULL && strcmp(before, server_text) == 0)
                return;
        for (size_t i = 0; before != NULL && i < world->n_fleets; i++)
                if (world->fleets[i]->link == link)
                        observe_failover(world->fleets[i], before, server_text);
        /* Where memory is short, the next move is told as one from the master before. */
        char *copy = strdup(server_text);
        if (copy != NULL) {
                free(before);
                link->server_text = copy;
        }
}

static void on_redis_state(struct redis *redis, enum redis_state state, const char *error, void *userdata)
{
        struct link *link = userdata;
        const struct world *world = link->supervisor->world;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (state == REDIS_STATE_CONNECTED) {
                connected(link, redis_server_text(redis));
                /* At once: what is there before a new worker can have beaten is not its own. */
                link->supervisor->pass.look_at = now;
        } else if (error != NULL)
                log_error("Redis %s: %s", redis_url_text(redis), error);
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->link == link)
                        observe_redis(world->fleets[i], state == REDIS_STATE_CONNECTED, now);
        supervisor_arm_turn(link->supervisor);
}

static int is_descendant(pid_t pid, const struct worker *worker, void *userdata)
{
        (void)userdata;
        return proc_has_ancestor(pid, worker->pid, worker->pid_start);
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
                if (url == NULL || link->url == NULL ? url == link->url : strcmp(link->url, url) == 0)
                        return link;
        }
        return NULL;
}

static struct link *free_link(struct link *link)
{
        if (link == NULL)
                return NULL;
        queues_forget(link);
        beats_free(link->beats);
        redis_free(link->redis);
        free(link->url);
        free(link->server_text);
        free(link);
        return NULL;
}

static void free_link_pointer(struct link **link)
{
        free_link(*link);
}

static int make_link(struct supervisor *supervisor, const char *url)
{
        static const struct beats_ops ops = {
                .is_descendant = is_descendant,
                .on_identity = on_identity,
                .on_heartbeat = on_heartbeat,
                .on_done = on_done,
        };
        const struct redis_settings *settings = &supervisor->settings->redis;
        struct link **links =
                reallocarray(supervisor->links, supervisor->n_links + 1, sizeof(*supervisor->links));
        _cleanup_(free_link_pointer) struct link *link = calloc(1, sizeof(*link));

        if (links != NULL)
                supervisor->links = links;
        if (links == NULL || link == NULL)
                return -ENOMEM;
        link->supervisor = supervisor;
        if (url != NULL && (link->url = strdup(url)) == NULL)
                return -ENOMEM;
        int r = redis_new(supervisor->event, url, settings, on_redis_state, link, &link->redis);
        if (r >= 0)
                r = beats_new(link->redis, settings->namespace, supervisor->host_name, &ops, link,
                              &link->beats);
        if (r < 0)
                return r;
        links[supervisor->n_links++] = TAKE_PTR(link);
        return 0;
}

/* NULL: the Sentinels name it. Those are not asked for a Redis of the fleet's own. */
static const char *fleet_url(const struct supervisor *supervisor, const struct fleet_settings *fleet)
{
        const struct redis_settings *settings = &supervisor->settings->redis;

        return fleet->redis_url ?: (settings->sentinels ? NULL : settings->url);
}

int links_make(struct supervisor *supervisor, const struct settings *settings)
{
        int r = 0;

        for (size_t i = 0; i < settings->n_fleets && r >= 0; i++) {
                const char *url = fleet_url(supervisor, settings->fleets[i]);

                if (find_link(supervisor, url) == NULL)
                        r = make_link(supervisor, url);
        }
        return r;
}

void links_join(struct supervisor *supervisor)
{
        const struct world *world = supervisor->world;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        size_t kept = 0;

        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];
                struct link *link = find_link(supervisor, fleet_url(supervisor, fleet->settings));

                if (fleet->link != NULL)
                        continue;
                fleet->link = link;
                if (redis_state(link->redis) == REDIS_STATE_CONNECTED)
                        observe_redis(fleet, true, now);
        }
        for (size_t i = 0; i < supervisor->n_links; i++) {
                struct link *link = supervisor->links[i];
                bool used = false;

                for (size_t j = 0; j < world->n_fleets; j++)
                        used |= world->fleets[j]->link == link;
                if (used)
                        supervisor->links[kept++] = link;
                else
                        free_link(link);
        }
        supervisor->n_links = kept;
}

void links_free(struct supervisor *supervisor)
{
        for (size_t i = 0; i < supervisor->n_links; i++)
                free_link(supervisor->links[i]);
        free(supervisor->links);
}
