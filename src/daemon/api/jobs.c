/* SPDX-License-Identifier: MIT */
/* Answers GetJobs with the lists of heartbeat files, and with one reading per Redis. Calls are kept until all
 * replies have arrived. Calls for the same fleets share one answer; viewers share a separate one. A server
 * may hold 65,536 jobs for a worker, so the answer is rendered as text, a slice per iteration of the loop. */
#include "base/memstream.h"
#include "daemon/api/handler.h"
#include "daemon/poll/local_heartbeats.h"
#include "daemon/workers/process.h"
#include "frameworks/framework.h"
#include "model/world.h"
#include <stdarg.h>

/* Limit for names that jobs contain. */
#define NAME_MAX_BYTES 200
/* Maximum of concurrent readings, each of which holds job lists in memory. Read-only clients share one
 * reading, which starts at most once per VIEW_EACH_USEC: their number must not load Redis. */
#define QUERIES_MAX    8
#define VIEW_EACH_USEC USEC_PER_SEC
/* Rendering this many jobs takes about a millisecond. Everything else comes first, calls of clients, too. */
#define SLICE_JOBS ((size_t)256)
#define PRIORITY   (SD_EVENT_PRIORITY_NORMAL + 20)
/* The limit of a reply's jobs in bytes, of VARLINK_REPLY_MAX; their number is limited by JOBS_MAX. */
#define JOBS_TEXT_MAX (VARLINK_REPLY_MAX - ((size_t)1 << 20))
/* The text before the first job. */
#define REPLY_BEGIN "{\"parameters\":{\"jobs\":["

/* A worker. It may be gone when the jobs have been read. */
struct place {
        const struct traits *traits; /* of its framework */
        char fleet[FLEET_NAME_MAX + 1];
        unsigned index;
        pid_t pid;
};

/* The workers of one Redis, or all with heartbeat files. */
struct reading {
        struct jobs_query *query;
        struct reader *reader; /* NULL: no reading in progress */
        char *server;          /* NULL: files */
        struct place *places;
        struct job_list *lists; /* of the places, as read; NULL: in files */
        size_t n;
        size_t next, next_job; /* the place and job to be rendered next */
};

struct jobs_query {
        struct control *control;
        struct jobs_query *next;
        sd_event_source *slice; /* timer, armed anew for each slice */
        char *names; /* names of the fleets, one per line; calls with the same names join. NULL: the reply is
                        complete */
        struct call *calls[API_CONNECTIONS_MAX];
        size_t n_calls;
        struct reading *readings;
        size_t n_readings;
        size_t pending;
        size_t n_read; /* number of readings without an error */
        struct shared_reply reply;
        FILE *out;                       /* of the reply's text, until that is complete */
        size_t n_jobs, size, n_left_out; /* of the jobs rendered, and not */
        json_t *errors;
        struct quoted quoted; /* text that the last error quotes */
        bool failed;          /* memory was short */
};

static void query_free(struct jobs_query *query)
{
        LIST_UNLINK(query->control->jobs_queries, query);
        assert(query->n_calls == 0);
        for (size_t i = 0; query->readings && i < query->n_readings; i++) {
                struct reading *reading = &query->readings[i];

                if (reading->reader)
                        reader_forget(reading->reader, reading);
                if (reading->lists)
                        job_lists_free(reading->lists, reading->n);
                free(reading->server);
                free(reading->places);
        }
        sd_event_source_disable_unref(query->slice);
        if (query->out)
                fclose(query->out);
        shared_reply_clear(&query->reply);
        free(query->readings);
        free(query->names);
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

static void query_continue(struct jobs_query *query)
{
        (void)sd_event_source_set_enabled(query->slice, SD_EVENT_ONESHOT);
}

static _printf_(2, 3) void add_error(struct jobs_query *query, const char *format, ...)
{
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        query->failed |= json_array_append_new(query->errors, varlink_text(text)) < 0;
}

static void add_unread(struct reading *reading, const char *why, const struct quoted *quoted)
{
        if (quoted)
                reading->query->quoted = *quoted;
        add_error(reading->query, "running jobs are unknown (%s: %s)", reading->server, why);
}

static json_t *cut_name(const char *text)
{
        char cut[NAME_MAX_BYTES + 1];

        snprintf(cut, sizeof(cut), "%s", text);
        return varlink_name(cut);
}

static void render_job(struct jobs_query *query, const struct place *place, const struct job *job)
{
        json_t *object =
                json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "class", cut_name(job->class), "jid",
                          cut_name(job->jid), "queue", cut_name(job->queue), "worker",
                          varlink_text(WORKER_ID_OF(place->fleet, place->index)), "pid",
                          (json_int_t)place->pid, "thread", cut_name(job->thread), "started_at",
                          job->started_usec > 0 ? json_integer((json_int_t)(job->started_usec / USEC_PER_SEC))
                                                : json_null());
        _cleanup_free_ char *text = json_text(object, JSON_COMPACT);

        json_decref(object);
        query->failed |= !text;
        if (text && query->n_jobs < JOBS_MAX && query->size + strlen(text) < JOBS_TEXT_MAX)
                query->size +=
                        (size_t)fprintf(query->out, "%s%s", query->n_jobs++ > 0 ? "," : REPLY_BEGIN, text);
        else
                query->n_left_out++;
}

/* Returns the jobs of the reading's next worker; NULL: not known. */
static const struct job_list *next_list(const struct reading *reading)
{
        const struct place *place = &reading->places[reading->next];

        if (reading->lists)
                return &reading->lists[reading->next];
        const struct fleet *fleet = world_fleet(reading->query->control->runtime->world, place->fleet);
        if (fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->index == place->index && worker->state != WORKER_GONE &&
                            worker->process.heartbeat_pid == place->pid && worker->handle &&
                            worker->handle->slot)
                                return local_heartbeats_jobs(worker->handle->slot);
        return NULL;
}

/* Renders jobs of the reading's next worker. *left: the jobs left for this slice. The list of a file, which
 * is short, is rendered at once: the next slice may find another. */
static void render_list(struct reading *reading, size_t *left)
{
        struct jobs_query *query = reading->query;
        const struct place *place = &reading->places[reading->next];
        const struct job_list *list = next_list(reading);
        const char *worker = WORKER_ID_OF(place->fleet, place->index);

        for (; list && reading->next_job < list->n_jobs; reading->next_job++) {
                if (*left == 0 && reading->lists)
                        return;
                *left -= *left > 0;
                render_job(query, place, &list->jobs[reading->next_job]);
        }
        if (list && list->n_unreadable > 0)
                add_error(query, "%s (pid %d): %zu more running, unreadable (not in the format of %s)",
                          worker, (int)place->pid, list->n_unreadable, place->traits->title);
        if (list && list->n_oversized > 0)
                add_error(query, "%s (pid %d): %zu more running, too large to read (over %zu KiB)", worker,
                          (int)place->pid, list->n_oversized, JOB_ENTRY_MAX / 1024);
        if (reading->lists)
                job_list_clear(&reading->lists[reading->next]);
        *left -= *left > 0;
        reading->next_job = 0;
        reading->next++;
}

/* Completes the reply. It has no text if memory was short. */
static void complete(struct jobs_query *query)
{
        json_t *first = json_array_get(query->errors, 0);
        size_t begin = query->n_jobs > 0 ? strlen(REPLY_BEGIN) : 0;
        struct shared_reply rest;

        free(TAKE_PTR(query->names));
        if (query->n_left_out > 0)
                add_error(query, "%zu more running, left out: the reply is full", query->n_left_out);
        if (first && query->n_read == 0 && query->n_jobs == 0)
                shared_reply_make(
                        &rest, query->reply.is_view, CONTROL_REFUSED,
                        quoted_put(json_pack("{s:O, s:[]}", "reason", first, "details"), &query->quoted));
        else
                shared_reply_make(&rest, query->reply.is_view, NULL,
                                  quoted_put(json_pack("{s:[], s:O}", "jobs", "errors", query->errors),
                                             &query->quoted));
        if (rest.text)
                fwrite(rest.text + begin, 1, rest.size - begin, query->out);
        int r = memstream_close(TAKE_PTR(query->out), &query->reply.text);
        if (r < 0 || !rest.text || query->failed)
                shared_reply_clear(&query->reply);
        shared_reply_clear(&rest);
}

/* Renders some jobs, or answers one call: copying a reply takes milliseconds, too. */
static int on_slice(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct jobs_query *query = userdata;
        size_t left = SLICE_JOBS;

        if (!query->names) {
                call_reply_shared(query->calls[--query->n_calls], &query->reply);
                if (query->n_calls == 0)
                        query_free(query);
                else
                        query_continue(query);
                return 0;
        }
        for (size_t i = 0; i < query->n_readings; i++)
                for (struct reading *reading = &query->readings[i];
                     !query->failed && !reading->reader && reading->next < reading->n && left > 0;)
                        render_list(reading, &left);
        if (!query->failed && left > 0 && query->pending > 0)
                return 0;
        if (query->failed || left > 0)
                complete(query);
        query_continue(query);
        return 0;
}

static void on_running_jobs(struct answer *read, void *userdata)
{
        struct reading *reading = userdata;
        struct jobs_query *query = reading->query;
        const struct error_report *error;
        struct job_list *lists = link_running_jobs(read, reading->n, &error);

        reading->reader = NULL;
        query->pending--;
        if (error)
                add_unread(reading, error->text, &error->quoted);
        else
                query->n_read++;
        if (lists) {
                memcpy(reading->lists, lists, reading->n * sizeof(*lists));
                memset(lists, 0, reading->n * sizeof(*lists));
        }
        query_continue(query);
}

/* Returns the link that the fleet's jobs are read from; NULL: they are in files, or unknown. */
static const struct link *link_of(const struct fleet *fleet)
{
        return fleet->settings->traits->has_work_list ? fleet->link : NULL;
}

static void add_workers(struct reading *reading, const struct fleet *fleet, const char **identities)
{
        FLEET_FOREACH_WORKER(fleet, worker) {
                struct place *place = &reading->places[reading->n];

                identities[reading->n] = process_identity(worker->handle);
                if (worker->state == WORKER_GONE || (link_of(fleet) && !identities[reading->n]))
                        continue;
                place->traits = fleet->settings->traits;
                snprintf(place->fleet, sizeof(place->fleet), "%s", fleet->settings->name);
                place->index = worker->index;
                place->pid = worker->process.heartbeat_pid;
                reading->n++;
        }
}

/* Reads the jobs of the reading's workers at link. Returns false when memory is short. */
static bool read_link(struct reading *reading, const struct link *link, const char *const *identities)
{
        const struct running_jobs_request request = {.identities = identities, .n = reading->n};
        const struct error_report *error = reader_error(link->reader);

        if (asprintf(&reading->server, "%s %s", link_noun(link), reader_url_text(link->reader)) < 0) {
                reading->server = NULL;
                return false;
        }
        reading->lists = calloc(reading->n + 1, sizeof(*reading->lists));
        if (!reading->lists)
                return false;
        if (!reader_state_answers(reader_state(link->reader))) {
                add_unread(reading, error ? error->text : "not connected yet", error ? &error->quoted : NULL);
        } else if (reading->n == 0) {
                reading->query->n_read++;
        } else {
                int r = link_read_running_jobs(link, &request, on_running_jobs, reading);
                if (r < 0) {
                        add_unread(reading, strerrordesc_np(-r), NULL);
                } else {
                        reading->reader = link->reader;
                        reading->query->pending++;
                }
        }
        return true;
}

/* Reads the jobs of the fleets of this link; NULL: of those that are in files. Returns false when memory is
 * short. */
static bool read_fleets(struct jobs_query *query, const struct link *link, struct fleet *const *fleets,
                        size_t n_fleets)
{
        struct reading *reading = &query->readings[query->n_readings++];
        size_t max = 1;

        reading->query = query;
        FOREACH_POINTER(fleet, fleets, n_fleets)
                max += link_of(fleet) == link ? fleet->n_workers : 0;
        _cleanup_free_ const char **identities = calloc(max, sizeof(*identities));
        reading->places = calloc(max, sizeof(*reading->places));
        if (!identities || !reading->places)
                return false;
        FOREACH_POINTER(fleet, fleets, n_fleets) {
                if (link_of(fleet) != link)
                        continue;
                add_workers(reading, fleet, identities);
                query->n_read += !link && fleet_settings_list_jobs(fleet->settings);
        }
        return !link || read_link(reading, link, identities);
}

/* Returns a string to be freed, or NULL when memory is short. */
static char *names_of(struct fleet *const *fleets, size_t n_fleets)
{
        char *names = NULL;
        size_t size;
        FILE *file = open_memstream(&names, &size);

        for (size_t i = 0; file && i < n_fleets; i++)
                fprintf(file, "%s\n", fleets[i]->settings->name);
        (void)memstream_close(file, &names);
        return names;
}

/* Takes names, also on failure. Returns NULL when memory is short. */
static struct jobs_query *query_new(struct control *control, size_t n_fleets, char *names)
{
        struct jobs_query *query = calloc(1, sizeof(*query));

        if (!query) {
                free(names);
                return NULL;
        }
        query->control = control;
        query->names = names;
        query->errors = json_array();
        query->readings = calloc(n_fleets + 1, sizeof(*query->readings));
        query->out = open_memstream(&query->reply.text, &query->reply.size);
        sd_event *event = control->runtime->event;
        int r = sd_event_add_time(event, &query->slice, CLOCK_MONOTONIC, 0, 1, on_slice, query);
        if (r >= 0)
                r = sd_event_source_set_priority(query->slice, PRIORITY);
        if (r >= 0 && names && query->errors && query->readings && query->out)
                return query;
        query_free(query);
        return NULL;
}

/* Returns why no further reading may start, or NULL if it may. */
static const char *refuses(struct control *control, bool view, usec_t now)
{
        size_t n = 0;

        for (const struct jobs_query *i = control->jobs_queries; i; i = i->next)
                n += i->reply.is_view == view;
        if (!view)
                return n == QUERIES_MAX ? "too many callers already wait for the jobs; try again later"
                                        : NULL;
        if (n > 0 || (control->jobs_view_at != 0 && usec_sub(now, control->jobs_view_at) < VIEW_EACH_USEC))
                return "the jobs are being read, or were read within the last second; try again in a second";
        control->jobs_view_at = now;
        return NULL;
}

static void query_join(struct jobs_query *query, struct call *call)
{
        query->calls[query->n_calls++] = call;
        call_keep(call, on_cancelled, query);
}

void jobs_calls_add(struct control *control, struct call *call, struct fleet *const *fleets, size_t n_fleets,
                    usec_t now)
{
        bool is_view = call_is_view(call);
        _cleanup_free_ char *names = names_of(fleets, n_fleets);

        for (struct jobs_query *i = control->jobs_queries; names && i; i = i->next)
                if (i->reply.is_view == is_view && i->names && strcmp(i->names, names) == 0) {
                        query_join(i, call);
                        return;
                }
        const char *reason = refuses(control, is_view, now);
        if (reason) {
                call_reply_error(call, CONTROL_REFUSED,
                                 json_pack("{s:s, s:[]}", "reason", reason, "details"));
                return;
        }
        struct jobs_query *query = query_new(control, n_fleets, TAKE_PTR(names));
        if (!query) {
                call_reply(call, NULL, false);
                return;
        }
        query->reply.is_view = is_view;
        for (size_t i = 0; !query->failed && i < n_fleets; i++) {
                const struct link *link = link_of(fleets[i]);
                bool seen = false;

                for (size_t j = 0; j < i; j++)
                        seen |= link_of(fleets[j]) == link;
                query->failed |= !seen && !read_fleets(query, link, fleets, n_fleets);
        }
        query->next = control->jobs_queries;
        control->jobs_queries = query;
        query_join(query, call);
}
