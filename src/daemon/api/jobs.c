/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now: one reading of each Redis that holds some of them, and the call is kept
 * until all are in. */
#include "daemon/api/jobs.h"
#include "daemon/run/process.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names that jobs bring along are cut at this. */
#define NAME_MAX_BYTES 200

struct place {
        const struct traits *traits; /* of its framework */
        char worker[WORKER_ID_MAX];
        pid_t pid;
};

/* The workers of one Redis. */
struct reading {
        struct query *query;
        const struct works_ops *reader; /* of works */
        struct works *works;            /* NULL: none is under way */
        char *url;
        const char **identities; /* borrowed, until they are asked for */
        struct place *places;
        size_t n;
};

struct query {
        struct call *call;
        struct reading *readings;
        size_t n_readings;
        size_t pending;
        size_t n_read; /* of the readings, without an error */
        json_t *jobs;
        json_t *errors;
};

static void query_free(struct query *query)
{
        for (size_t i = 0; i < query->n_readings; i++) {
                struct reading *reading = &query->readings[i];

                if (reading->works)
                        reading->reader->free(reading->works);
                free(reading->url);
                free(reading->identities);
                free(reading->places);
        }
        free(query->readings);
        json_decref(query->jobs);
        json_decref(query->errors);
        free(query);
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        query_free(userdata);
}

/* Returns false where memory is short. */
static bool add_error(struct query *query, const char *format, ...) _printf_(2, 3);
static bool add_error(struct query *query, const char *format, ...)
{
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        return json_array_append_new(query->errors, varlink_text(text)) >= 0;
}

static bool add_unread(struct query *query, const char *url, const char *why)
{
        return add_error(query, "the jobs are not known, Redis %s: %s", url, why);
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

/* Answers with what could be learned, and frees the query. enough: memory. */
static void answer(struct query *query, bool enough)
{
        struct call *call = query->call;
        json_t *first = json_array_get(query->errors, 0);

        if (!enough)
                server_reply(call, NULL, false);
        else if (first && query->n_read == 0 && json_array_size(query->jobs) == 0)
                server_reply_error(call, CONTROL_REFUSED,
                                   json_pack("{s:O, s:[]}", "reason", first, "details"));
        else
                server_reply(call, json_pack("{s:O, s:O}", "jobs", query->jobs, "errors", query->errors),
                             false);
        query_free(query);
}

static bool render_list(struct query *query, const struct place *place, const struct job_list *list)
{
        for (size_t i = 0; i < list->n_jobs; i++)
                if (json_array_append_new(query->jobs, render_job(place, &list->jobs[i])) < 0)
                        return false;
        return list->n_unreadable == 0 ||
               add_error(query, "%s (pid %d) runs %zu more that cannot be read: not as %s writes it",
                         place->worker, (int)place->pid, list->n_unreadable, place->traits->title);
}

static void on_works(struct job_list *lists, const char *error, void *userdata)
{
        struct reading *reading = userdata;
        struct query *query = reading->query;
        bool enough = true;

        reading->works = NULL;
        query->pending--;
        if (error)
                enough = add_unread(query, reading->url, error);
        else
                query->n_read++;
        for (size_t i = 0; enough && i < reading->n; i++)
                enough = render_list(query, &reading->places[i], &lists[i]);
        if (!enough || query->pending == 0)
                answer(query, enough);
}

static bool add_worker(struct reading *reading, const struct worker *worker)
{
        const char *identity = process_identity(worker->process);

        if (!worker->fleet->settings->traits->has_work_list || !identity || worker->state == WORKER_GONE)
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
        worker_id(worker->fleet->settings->name, worker->index, places[reading->n].worker);
        places[reading->n].traits = worker->fleet->settings->traits;
        places[reading->n++].pid = worker->beat_pid;
        return true;
}

/* Begins the reading of what fleet's Redis holds of these fleets. Returns false where memory is short. */
static bool read_link(struct query *query, const struct link *link, struct fleet *const *fleets,
                      size_t n_fleets)
{
        struct reading *reading = &query->readings[query->n_readings++];
        const char *url = redis_url_text(link->redis);

        reading->query = query;
        if (!(reading->url = strdup(url)))
                return false;
        if (redis_state(link->redis) != REDIS_STATE_CONNECTED)
                return add_unread(query, url, redis_error(link->redis) ?: "there is no connection yet");
        for (size_t i = 0; i < n_fleets; i++)
                for (size_t j = 0; fleets[i]->link == link && j < fleets[i]->n_workers; j++)
                        if (!add_worker(reading, fleets[i]->workers[j]))
                                return false;
        if (reading->n == 0) {
                query->n_read++;
                return true;
        }
        const struct links *links = link->links;
        const struct works_request request = {
                .event = links->event,
                .redis = link->redis,
                .namespace = links->world->settings->redis.namespace,
                .identities = reading->identities,
                .n = reading->n,
        };
        reading->reader = link->framework->works;
        int r = reading->reader->read(&request, on_works, reading, &reading->works);
        if (r < 0)
                return add_unread(query, url, strerrordesc_np(-r));
        query->pending++;
        return true;
}

void jobs_reply(struct call *call, struct fleet *const *fleets, size_t n_fleets)
{
        struct query *query = calloc(1, sizeof(*query));

        if (!query) {
                server_reply(call, NULL, false);
                return;
        }
        query->call = call;
        query->jobs = json_array();
        query->errors = json_array();
        query->readings = calloc(n_fleets + 1, sizeof(*query->readings));
        bool enough = query->jobs && query->errors && query->readings;
        for (size_t i = 0; enough && i < n_fleets; i++) {
                bool seen = false;

                for (size_t j = 0; j < i; j++)
                        seen |= fleets[j]->link == fleets[i]->link;
                enough = seen || read_link(query, fleets[i]->link, fleets, n_fleets);
        }
        if (enough && query->pending > 0)
                server_keep(call, on_cancelled, query);
        else
                answer(query, enough);
}
