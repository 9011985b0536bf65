/* SPDX-License-Identifier: MIT */
/* Answers GetJobs with the lists of heartbeat files, and with one reading per Redis. Calls are kept until all
 * replies have arrived. Calls for the same fleets share one answer; viewers share a separate one. */
#include "daemon/api/handler.h"
#include "daemon/poll/local_heartbeats.h"
#include "daemon/runtime/runtime.h"
#include "daemon/workers/process.h"
#include "frameworks/framework.h"
#include "model/names.h"
#include "model/world.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Limit for names that jobs contain. */
#define NAME_MAX_BYTES 200
/* Maximum of concurrent readings, each of which holds job lists in memory. Read-only clients share one
 * reading, which starts at most once per VIEW_EACH_USEC: their number must not load Redis. */
#define QUERIES_MAX    8
#define VIEW_EACH_USEC USEC_PER_SEC

struct place {
        const struct traits *traits; /* of its framework */
        char worker[WORKER_ID_MAX];
        pid_t pid;
};

/* The workers of one Redis. */
struct reading {
        struct jobs_query *query;
        struct reader *reader; /* NULL: no reading in progress */
        char *server;
        const char **identities; /* borrowed until the reading starts */
        struct place *places;
        size_t n;
};

struct jobs_query {
        struct jobs_calls *list;
        struct jobs_query *next;
        bool is_view; /* for read-only clients */
        char *names;  /* names of the fleets, one per line; calls with the same names join */
        struct call *calls[SERVER_CONNECTIONS_MAX];
        size_t n_calls;
        struct reading *readings;
        size_t n_readings;
        size_t pending;
        size_t n_read; /* number of readings without an error */
        json_t *jobs;
        json_t *errors;
        struct quoted quoted; /* text that the last error quotes */
};

static void query_free(struct jobs_query *query)
{
        LIST_UNLINK(query->list->first, query);
        assert(query->n_calls == 0);
        for (size_t i = 0; i < query->n_readings; i++) {
                struct reading *reading = &query->readings[i];

                if (reading->reader)
                        reader_forget(reading->reader, reading);
                free(reading->server);
                free(reading->identities);
                free(reading->places);
        }
        free(query->readings);
        free(query->names);
        json_decref(query->jobs);
        json_decref(query->errors);
        free(query);
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct jobs_query *query = userdata;
        size_t i = 0;

        while (query->calls[i] != call)
                i++;
        query->calls[i] = query->calls[--query->n_calls];
        if (query->n_calls == 0)
                query_free(query);
}

/* Returns false when memory is short. */
static _printf_(2, 3) bool add_error(struct jobs_query *query, const char *format, ...)
{
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        return json_array_append_new(query->errors, varlink_text(text)) >= 0;
}

static bool add_unread(struct jobs_query *query, const char *server, const char *why,
                       const struct quoted *quoted)
{
        if (quoted)
                query->quoted = *quoted;
        return add_error(query, "running jobs are unknown (%s: %s)", server, why);
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

/* Replies to all calls with the results so far, and frees the query. enough: memory was sufficient. */
static void answer(struct jobs_query *query, bool enough)
{
        json_t *first = json_array_get(query->errors, 0);
        struct shared_reply reply = {0};

        if (enough && first && query->n_read == 0 && json_array_size(query->jobs) == 0)
                shared_reply_make(
                        &reply, query->is_view, CONTROL_REFUSED,
                        quoted_put(json_pack("{s:O, s:[]}", "reason", first, "details"), &query->quoted));
        else if (enough)
                shared_reply_make(
                        &reply, query->is_view, NULL,
                        quoted_put(json_pack("{s:O, s:O}", "jobs", query->jobs, "errors", query->errors),
                                   &query->quoted));
        while (query->n_calls > 0)
                server_reply_shared(query->calls[--query->n_calls], &reply);
        shared_reply_clear(&reply);
        query_free(query);
}

static bool render_list(struct jobs_query *query, const struct place *place, const struct job_list *list)
{
        for (size_t i = 0; i < list->n_jobs; i++)
                if (json_array_append_new(query->jobs, render_job(place, &list->jobs[i])) < 0)
                        return false;
        bool enough = list->n_unreadable == 0 ||
                      add_error(query, "%s (pid %d): %zu more running, unreadable (not in the format of %s)",
                                place->worker, (int)place->pid, list->n_unreadable, place->traits->title);
        return enough && (list->n_oversized == 0 ||
                          add_error(query, "%s (pid %d): %zu more running, too large to read (over %zu KiB)",
                                    place->worker, (int)place->pid, list->n_oversized, JOB_ENTRY_MAX / 1024));
}

static void on_running_jobs(struct answer *read, void *userdata)
{
        struct reading *reading = userdata;
        struct jobs_query *query = reading->query;
        const struct error_report *error;
        const struct job_list *lists = link_running_jobs(read, reading->n, &error);
        bool enough = true;

        reading->reader = NULL;
        query->pending--;
        if (error)
                enough = add_unread(query, reading->server, error->text, &error->quoted);
        else
                query->n_read++;
        for (size_t i = 0; enough && lists && i < reading->n; i++)
                enough = render_list(query, &reading->places[i], &lists[i]);
        if (!enough || query->pending == 0)
                answer(query, enough);
}

static struct place place_of(const struct worker *worker)
{
        struct place place = {.traits = worker->fleet->settings->traits,
                              .pid = worker->process.heartbeat_pid};

        worker_id(worker->fleet->settings->name, worker->index, place.worker);
        return place;
}

/* Adds the jobs that heartbeat files name. Returns false when memory is short. */
static bool render_local(struct jobs_query *query, const struct fleet *fleet)
{
        bool enough = true;

        query->n_read += fleet_settings_list_jobs(fleet->settings);
        FLEET_FOREACH_WORKER(fleet, worker) {
                const struct job_list *list =
                        worker->handle && worker->handle->slot && worker->state != WORKER_GONE
                                ? local_heartbeats_jobs(worker->handle->slot)
                                : NULL;
                const struct place place = place_of(worker);

                enough = enough && (!list || render_list(query, &place, list));
        }
        return enough;
}

/* Returns the link that the fleet's jobs are read from; NULL: they are in files, or unknown. */
static const struct link *link_of(const struct fleet *fleet)
{
        return fleet->settings->traits->has_work_list ? fleet->link : NULL;
}

static void add_worker(struct reading *reading, const struct worker *worker)
{
        const char *identity = process_identity(worker->handle);

        if (!identity || worker->state == WORKER_GONE)
                return;
        reading->places[reading->n] = place_of(worker);
        reading->identities[reading->n++] = identity;
}

/* Starts a reading of the workers of these fleets at link. Returns false when memory is short. */
static bool read_link(struct jobs_query *query, const struct link *link, struct fleet *const *fleets,
                      size_t n_fleets)
{
        struct reading *reading = &query->readings[query->n_readings++];
        size_t max = 0;

        reading->query = query;
        if (asprintf(&reading->server, "%s %s", link_noun(link), reader_url_text(link->reader)) < 0) {
                reading->server = NULL;
                return false;
        }
        const struct error_report *error = reader_error(link->reader);
        if (!reader_state_answers(reader_state(link->reader)))
                return add_unread(query, reading->server, error ? error->text : "not connected yet",
                                  error ? &error->quoted : NULL);
        FOREACH_POINTER(fleet, fleets, n_fleets)
                max += link_of(fleet) == link ? fleet->n_workers : 0;
        reading->identities = calloc(max + 1, sizeof(*reading->identities));
        reading->places = calloc(max + 1, sizeof(*reading->places));
        if (!reading->identities || !reading->places)
                return false;
        FOREACH_POINTER(fleet, fleets, n_fleets)
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (link_of(fleet) == link)
                                add_worker(reading, worker);
        if (reading->n == 0) {
                query->n_read++;
                return true;
        }
        const struct running_jobs_request request = {.identities = reading->identities, .n = reading->n};
        int r = link_read_running_jobs(link, &request, on_running_jobs, reading);
        if (r < 0)
                return add_unread(query, reading->server, strerrordesc_np(-r), NULL);
        reading->reader = link->reader;
        query->pending++;
        return true;
}

/* Returns a string to be freed, or NULL when memory is short. */
static char *names_of(struct fleet *const *fleets, size_t n_fleets)
{
        char *names = NULL;
        size_t size;
        FILE *file = open_memstream(&names, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; i < n_fleets; i++)
                fprintf(file, "%s\n", fleets[i]->settings->name);
        if (fclose(file) == 0)
                return names;
        free(names);
        return NULL;
}

static struct jobs_query *query_new(struct jobs_calls *list, size_t n_fleets, char *names)
{
        struct jobs_query *query = calloc(1, sizeof(*query));

        if (!query)
                return NULL;
        *query = (struct jobs_query){
                .list = list,
                .jobs = json_array(),
                .errors = json_array(),
                .readings = calloc(n_fleets + 1, sizeof(*query->readings)),
                .names = names,
        };
        return query;
}

/* Returns why no further reading may start, or NULL if it may. */
static const char *refuses(struct jobs_calls *list, bool view, usec_t now)
{
        size_t n = 0;

        for (const struct jobs_query *i = list->first; i; i = i->next)
                n += i->is_view == view;
        if (!view)
                return n == QUERIES_MAX ? "too many callers already wait for the jobs; try again later"
                                        : NULL;
        if (n > 0 || (list->view_at != 0 && usec_sub(now, list->view_at) < VIEW_EACH_USEC))
                return "the jobs are being read, or were read within the last second; try again in a second";
        list->view_at = now;
        return NULL;
}

void jobs_calls_add(struct jobs_calls *list, struct call *call, struct fleet *const *fleets, size_t n_fleets,
                    usec_t now)
{
        _cleanup_free_ char *names = names_of(fleets, n_fleets);

        for (struct jobs_query *i = list->first; names && i; i = i->next)
                if (i->is_view == call_is_view(call) && strcmp(i->names, names) == 0) {
                        i->calls[i->n_calls++] = call;
                        server_keep(call, on_cancelled, i);
                        return;
                }
        const char *reason = refuses(list, call_is_view(call), now);
        if (reason) {
                server_reply_error(call, CONTROL_REFUSED,
                                   json_pack("{s:s, s:[]}", "reason", reason, "details"));
                return;
        }
        struct jobs_query *query = names ? query_new(list, n_fleets, names) : NULL;
        if (!query) {
                server_reply(call, NULL, false);
                return;
        }
        names = NULL;
        query->is_view = call_is_view(call);
        query->calls[query->n_calls++] = call;
        bool enough = query->jobs && query->errors && query->readings;
        for (size_t i = 0; enough && i < n_fleets; i++) {
                const struct link *link = link_of(fleets[i]);
                bool seen = false;

                for (size_t j = 0; j < i; j++)
                        seen |= link_of(fleets[j]) == link;
                if (!link)
                        enough = render_local(query, fleets[i]);
                else if (!seen)
                        enough = read_link(query, link, fleets, n_fleets);
        }
        if (!enough || query->pending == 0) {
                answer(query, enough);
                return;
        }
        server_keep(call, on_cancelled, query);
        query->next = list->first;
        list->first = query;
}
