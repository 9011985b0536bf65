/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now: one reading of each Redis that holds some of them, and the call is kept
 * until all are in. */
#include "daemon/jobs.h"
#include "daemon/supervisor.h"
#include "io/works.h"
#include <stdio.h>
#include <string.h>

/* Names that jobs bring along are cut at this. */
#define NAME_MAX_BYTES 200

struct place {
        char worker[300];
        pid_t pid;
};

/* The workers of one Redis. */
struct reading {
        struct query *query;
        struct works *works; /* NULL: none is under way */
        char *url;
        const char **identities; /* borrowed, until they are asked for */
        struct place *places;
        size_t n;
};

struct query {
        struct call *call; /* NULL: answered, or the caller is gone */
        struct reading *readings;
        size_t n_readings;
        size_t pending;
        json_t *jobs;
};

static void query_free(struct query *query)
{
        for (size_t i = 0; i < query->n_readings; i++) {
                struct reading *reading = &query->readings[i];

                works_free(reading->works);
                free(reading->url);
                free(reading->identities);
                free(reading->places);
        }
        free(query->readings);
        json_decref(query->jobs);
        free(query);
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        query_free(userdata);
}

static void refuse(struct call *call, const char *url, const char *why)
{
        char reason[512];

        snprintf(reason, sizeof(reason), "the jobs are not known, Redis %s: %s", url, why);
        server_reply_error(call, CONTROL_REFUSED,
                           json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details"));
}

static json_t *cut_name(const char *text)
{
        char cut[NAME_MAX_BYTES + 1];

        snprintf(cut, sizeof(cut), "%s", text);
        return varlink_name(cut);
}

static json_t *render_job(const struct place *place, const struct job *job)
{
        return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "class", cut_name(job->class), "jid",
                         cut_name(job->jid), "queue", cut_name(job->queue), "worker",
                         varlink_text(place->worker), "pid", (json_int_t)place->pid, "thread",
                         cut_name(job->thread), "started_at",
                         job->started_usec > 0 ? json_integer((json_int_t)(job->started_usec / USEC_PER_SEC))
                                               : json_null());
}

static void on_works(struct job_list *lists, const char *error, void *userdata)
{
        struct reading *reading = userdata;
        struct query *query = reading->query;
        bool failed = false;

        reading->works = NULL;
        query->pending--;
        if (error) {
                refuse(query->call, reading->url, error);
                query_free(query);
                return;
        }
        for (size_t i = 0; i < reading->n; i++)
                for (size_t j = 0; j < lists[i].n_jobs; j++)
                        failed |= json_array_append_new(query->jobs, render_job(&reading->places[i],
                                                                                &lists[i].jobs[j])) < 0;
        if (!failed && query->pending > 0)
                return;
        server_reply(query->call, failed ? NULL : json_pack("{s:O}", "jobs", query->jobs), false);
        query_free(query);
}

static bool add_worker(struct reading *reading, const struct worker *worker)
{
        const struct worker_io *io = worker->io;
        const char *identity = io && io->slot ? beats_identity(io->slot) : NULL;

        if (!identity || worker->state == WORKER_GONE)
                return true;
        const char **identities = reallocarray(reading->identities, reading->n + 1, sizeof(*identities));
        if (!identities)
                return false;
        reading->identities = identities;
        struct place *places = reallocarray(reading->places, reading->n + 1, sizeof(*places));
        if (!places)
                return false;
        reading->places = places;
        identities[reading->n] = identity;
        snprintf(places[reading->n].worker, sizeof(places[0].worker), "%s/%u", worker->fleet->settings->name,
                 worker->index);
        places[reading->n++].pid = worker->beat_pid;
        return true;
}

/* Begins the reading of what fleet's Redis holds of these fleets. Returns false where the call was answered.
 */
static bool read_link(struct query *query, const struct link *link, struct fleet *const *fleets,
                      size_t n_fleets)
{
        struct reading *reading = &query->readings[query->n_readings++];
        bool enough = (reading->url = strdup(redis_url_text(link->redis))) != NULL;

        reading->query = query;
        if (redis_state(link->redis) != REDIS_STATE_CONNECTED) {
                refuse(query->call, redis_url_text(link->redis),
                       redis_error(link->redis) ?: "there is no connection yet");
                return false;
        }
        for (size_t i = 0; enough && i < n_fleets; i++)
                for (size_t j = 0; enough && fleets[i]->io == link && j < fleets[i]->n_workers; j++)
                        enough = add_worker(reading, fleets[i]->workers[j]);
        if (enough && reading->n == 0)
                return true;
        int r = enough ? works_read(link->redis, link->supervisor->settings->redis.namespace,
                                    reading->identities, reading->n, on_works, reading, &reading->works)
                       : -ENOMEM;
        if (r < 0) {
                refuse(query->call, redis_url_text(link->redis), strerrordesc_np(-r));
                return false;
        }
        query->pending++;
        return true;
}

void jobs_reply(struct call *call, struct fleet *const *fleets, size_t n_fleets)
{
        struct query *query = calloc(1, sizeof(*query));

        if (query) {
                query->call = call;
                query->jobs = json_array();
                query->readings = calloc(n_fleets + 1, sizeof(*query->readings));
        }
        if (!query || !query->jobs || !query->readings) {
                if (query)
                        query_free(query);
                server_reply(call, NULL, false);
                return;
        }
        for (size_t i = 0; i < n_fleets; i++) {
                bool seen = false;

                for (size_t j = 0; j < i; j++)
                        seen |= fleets[j]->io == fleets[i]->io;
                if (!seen && !read_link(query, fleets[i]->io, fleets, n_fleets)) {
                        query_free(query);
                        return;
                }
        }
        if (query->pending > 0) {
                server_keep(call, on_cancelled, query);
                return;
        }
        server_reply(call, json_pack("{s:O}", "jobs", query->jobs), false);
        query_free(query);
}
