/* SPDX-License-Identifier: MIT */
/* Collects facts about this sqmgr and its servers, and answers GetDiagnosis. Each Redis is asked once. */
#include "base/fd.h"
#include "daemon/api/handler.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/side_start.h"
#include "io/clock.h"
#include "io/timer.h"
#include "model/counts.h"
#include "model/world.h"
#include <fcntl.h>

/* Descriptors of a worker: its processes, their memory, and its log. */
#define FILES_OF_WORKER 5
/* Other descriptors of sqmgr: Redis, /proc, event sources, and files that are open for a moment. */
#define FILES_APART 64

uint64_t problems_files_needed(const struct world *world)
{
        uint64_t needed = FILES_APART + API_CONNECTIONS_MAX;

        WORLD_FOREACH_FLEET(world, fleet)
                needed += (uint64_t)FILES_OF_WORKER * fleet_max_processes(fleet);
        return needed;
}

/* Returns a fleet whose host name variable is set in our environment, which workers inherit: rather one whose
 * heartbeats cannot be matched because of it; or NULL. */
static const struct fleet_settings *renamed(const struct settings *settings)
{
        const struct fleet_settings *found = NULL;

        FOREACH_POINTER(fleet, settings->fleets, settings->n_fleets)
                if (fleet->traits->host_variable && getenv(fleet->traits->host_variable) &&
                    (!found || !fleet->namespaced))
                        found = fleet;
        return found;
}

static size_t collect_redis(const struct links *links, struct problem_redis list[static PROBLEM_REDIS_MAX])
{
        size_t n = MIN((size_t)PROBLEM_REDIS_MAX, links->n);

        for (size_t i = 0; i < n; i++) {
                const struct link *link = links->list[i];
                const struct reader *reader = link->reader;

                list[i] = (struct problem_redis){.kind = link_kind(link),
                                                 .database = link_is_database(link) ? link_noun(link) : NULL,
                                                 .url = reader_url_text(reader),
                                                 .server = reader_server_text(reader),
                                                 .state = reader_state(reader),
                                                 .rtt_usec = reader_rtt_usec(reader),
                                                 .queues = link->queues,
                                                 .link = link,
                                                 .for_queues = !link->heartbeats,
                                                 .quarantined = link->quarantine.lasts,
                                                 .error = reader_error(reader)};
        }
        return n;
}

/* Lists the unknown processes that still run. */
static size_t collect_unknown(const struct unknown *unknown, struct problem_process list[static UNKNOWN_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < unknown->n; i++) {
                _cleanup_proc_ struct proc *proc = NULL;
                struct proc_place place;

                if (proc_find(unknown->list[i].pid, unknown->list[i].start, &proc) < 0 || !proc ||
                    proc_has_exited(proc) || proc_place(proc, &place) < 0)
                        continue;
                list[n] = (struct problem_process){.pid = unknown->list[i].pid,
                                                   .leads = place.session == unknown->list[i].pid};
                memcpy(list[n++].command, place.comm, sizeof(place.comm));
        }
        return n;
}

void problems_collect(const struct control *control, struct problem_storage *ret, usec_t now)
{
        const struct runtime *runtime = control->runtime;
        struct rlimit limit;

        ret->facts = (struct problem_facts){
                .redis = ret->redis,
                .n_redis = collect_redis(&runtime->links, ret->redis),
                .unknown = ret->unknown,
                .n_unknown = collect_unknown(&runtime->unknown, ret->unknown),
                .is_root = geteuid() == 0,
                .in_container = host_is_container(),
                .renamed = renamed(runtime->world->settings),
                .files_needed = problems_files_needed(runtime->world),
                .save_error = -runtime->save_error,
                .orders_why = order_writer_why(&runtime->orders),
                .orders_file = runtime->orders.path,
                .orders_since = runtime->orders.since,
                .instance = control->selector,
                .config_path = control->config->config_path,
                .refused = config_check_refused(control->config, now),
                .refused_since = control->config->refused_at,
                .stop_signal = execute_stop_signal,
                .features = subsystems_problems,
                .userdata = &runtime->subsystems,
        };
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                ret->facts.files_limit = limit.rlim_cur;
        (void)proc_total_memory_bytes(runtime->host, &ret->facts.memory_bytes);
}

struct diagnosis;

/* The answers of one Redis. */
struct redis_diagnosis {
        struct diagnosis *diagnosis;
        struct reader *reader;     /* the connection that was asked; NULL: no answer is pending */
        char *about;               /* kind and URL of the server; owned; NULL: memory was short */
        struct error_report error; /* the text is "" if Redis has answered */
        struct answer_diagnosis facts;
        const struct traits *traits; /* of the framework that keeps its data there */
};

/* The result of a rehearsal of a fleet's start. */
struct start_diagnosis {
        char fleet[FLEET_NAME_MAX + 1];
        struct error_report error; /* the text is "" if a start would succeed, or no rehearsal could begin */
};

struct diagnosis {
        const struct control *control;
        struct call *call;
        usec_t asked_at;
        struct redis_diagnosis *servers; /* NULL: not asked yet */
        size_t n_servers;
        size_t pending;               /* servers that are asked */
        struct side_start *rehearsal; /* for the last entry of starts; NULL: none is in progress */
        struct start_diagnosis *starts;
        size_t n_starts;
        struct problems findings;
        sd_event_source *titles; /* timer that calls finish() again */
};

/* How often to check whether all titles are read, and all connections were tried. */
#define TITLES_WAIT_USEC (20 * USEC_PER_MSEC)
/* After a start or a re-exec, connecting needs a moment. */
#define CONNECTIONS_WAIT_USEC USEC_PER_SEC
/* No rehearsal begins later than this after the call. With the last rehearsal, a client waits for less than
 * 30 s. */
#define REHEARSALS_USEC (15 * USEC_PER_SEC)

static void diagnosis_free(struct diagnosis *diagnosis)
{
        for (size_t i = 0; i < diagnosis->n_servers; i++) {
                struct redis_diagnosis *redis = &diagnosis->servers[i];

                if (redis->reader)
                        reader_forget(redis->reader, redis);
                free(redis->about);
        }
        free(diagnosis->servers);
        release_check_cancel(diagnosis->rehearsal);
        free(diagnosis->starts);
        problems_clear(&diagnosis->findings);
        sd_event_source_disable_unref(diagnosis->titles);
        free(diagnosis);
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        diagnosis_free(userdata);
}

static bool is_here(const char *url)
{
        const char *host = strstr(url, "://");

        return strncmp(url, "unix:", strlen("unix:")) == 0 ||
               (host && (strncmp(host, "://127.", strlen("://127.")) == 0 ||
                         strncmp(host, "://localhost", strlen("://localhost")) == 0 ||
                         strncmp(host, "://[::1]", strlen("://[::1]")) == 0));
}

/* Returns vm.overcommit_memory; -1 if it is not known, or no Redis is on this machine. */
static int overcommit(const struct links *links)
{
        bool has_redis = false;
        char text[16];

        FOREACH_POINTER(link, links->list, links->n)
                has_redis |= !link_is_database(link) && is_here(reader_url_text(link->reader));
        return has_redis && fd_read_file(AT_FDCWD, "/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0
                       ? (int)strtol(text, NULL, 10)
                       : -1;
}

/* True if the process is in another pid namespace than sqmgr. False if the process is gone. */
static int is_elsewhere(pid_t pid, void *userdata _unused_)
{
        _cleanup_proc_ struct proc *proc = NULL;

        return proc_open(pid, &proc) == 0 && proc_is_elsewhere(proc) > 0;
}

/* Returns as proc_evidence_read_title(). */
static int read_title(const struct worker *worker, struct title *ret)
{
        const struct process *process = worker->handle;
        const struct proc *proc = process ? process_beating(process) : NULL;

        return proc ? proc_evidence_read_title(process->runtime->proc_facts, proc,
                                               framework_of(worker->fleet->settings->traits), ret)
                    : 0;
}

static struct doctor_worker poll_worker_at(const struct worker *worker)
{
        struct doctor_worker facts = {.worker = worker};
        struct title title;

        if (read_title(worker, &title) > 0)
                snprintf(facts.version, sizeof(facts.version), "%s", title.version);
        facts.other_namespace = proc_tree_each(worker->process.pid, is_elsewhere, NULL) > 0;
        return facts;
}

static const struct error_report *start_error(const struct diagnosis *diagnosis, const char *fleet)
{
        for (size_t i = 0; i < diagnosis->n_starts; i++)
                if (strcmp(diagnosis->starts[i].fleet, fleet) == 0)
                        return diagnosis->starts[i].error.text[0] != '\0' ? &diagnosis->starts[i].error
                                                                          : NULL;
        return NULL;
}

static int diagnose_fleet(struct diagnosis *diagnosis, struct problems *problems, const struct fleet *fleet)
{
        _cleanup_free_ struct doctor_worker *workers = calloc(fleet->n_workers + 1, sizeof(*workers));
        size_t n = 0;

        if (!workers)
                return -ENOMEM;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE)
                        workers[n++] = poll_worker_at(worker);
        const struct doctor_fleet facts = {
                .fleet = fleet,
                .workers = workers,
                .n_workers = n,
                .start_error = start_error(diagnosis, fleet->settings->name),
        };
        doctor_fleet(&diagnosis->findings, problems, &facts);
        return 0;
}

/* Returns a new reference; NULL: memory is short. */
static json_t *render_finding(const struct problem *problem, const struct problem_facts *facts)
{
        static const char *const levels[] = {[PROBLEM_OK] = "ok",
                                             [PROBLEM_NOTICE] = "warning",
                                             [PROBLEM_WARNING] = "warning",
                                             [PROBLEM_ERROR] = "problem"};
        static const struct quoted nothing;
        _cleanup_free_ char *command = problem_command(problem, facts->instance, facts->config_path),
                            *remedy = NULL;
        char about[PROBLEM_ABOUT_MAX];

        static_assert(ELEMENTSOF(levels) == _PROBLEM_SEVERITY_MAX, "a level for each severity");
        if (!command || asprintf(&remedy, "%s%s%s", problem_remedy(problem) ?: "",
                                 command[0] != '\0' ? ": " : "", command) < 0)
                return NULL;
        json_t *entry = json_pack("{s:s, s:o, s:o, s:o}", "level", levels[problem->severity], "about",
                                  varlink_text(problem_about(problem, about)), "text",
                                  varlink_text(problem->text), "remedy", varlink_text(remedy));
        return quoted_put(entry, problem->quoted ?: &nothing);
}

static json_t *render(const struct problems *findings, const struct problem_facts *facts)
{
        _cleanup_json_ json_t *list = json_array();

        if (findings->lost)
                return NULL;
        for (size_t i = 0; i < findings->n; i++)
                if (json_array_append_new(list, render_finding(&findings->list[i], facts)) < 0)
                        return NULL;
        return json_pack("{s:O}", "findings", list);
}

/* Returns true while the proc reader reads a title (daemon/runtime/proc_facts.h). */
static bool awaits_titles(const struct world *world)
{
        struct title title;
        bool awaits = false;

        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        awaits |= read_title(worker, &title) == -EINPROGRESS;
        return awaits;
}

static bool awaits_connections(const struct diagnosis *diagnosis)
{
        const struct links *links = &diagnosis->control->runtime->links;
        bool awaits = false;

        FOREACH_POINTER(link, links->list, links->n)
                awaits |= reader_state(link->reader) == READER_STATE_CONNECTING;
        return awaits && usec_sub(clock_now(CLOCK_MONOTONIC), diagnosis->asked_at) < CONNECTIONS_WAIT_USEC;
}

static void finish(struct diagnosis *diagnosis);

static void on_rehearsed(const struct error_report *error, void *userdata)
{
        struct diagnosis *diagnosis = userdata;

        diagnosis->rehearsal = NULL;
        if (error)
                diagnosis->starts[diagnosis->n_starts - 1].error = *error;
        finish(diagnosis);
}

/* Rehearses the starts of all fleets, one after another. Returns true until all are done, or the time is
 * up. */
static bool rehearses(struct diagnosis *diagnosis)
{
        struct runtime *runtime = diagnosis->control->runtime;
        const struct world *world = runtime->world;

        while (!diagnosis->rehearsal && diagnosis->n_starts < world->n_fleets &&
               usec_sub(clock_now(CLOCK_MONOTONIC), diagnosis->asked_at) < REHEARSALS_USEC) {
                const struct fleet *fleet = world->fleets[diagnosis->n_starts];

                if (!ARRAY_RESIZE(diagnosis->starts, diagnosis->n_starts + 1)) {
                        diagnosis->findings.lost = true;
                        return false;
                }
                struct start_diagnosis *start = &diagnosis->starts[diagnosis->n_starts++];
                start->error.text[0] = '\0';
                snprintf(start->fleet, sizeof(start->fleet), "%s", fleet->settings->name);
                /* If no process can be started, the result of the fleet stays unknown. */
                if (!fleet->settings->removed)
                        (void)release_check_begin(runtime, fleet, NULL, on_rehearsed, diagnosis,
                                                  &diagnosis->rehearsal);
        }
        return diagnosis->rehearsal;
}

static int on_titles(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        finish(userdata);
        return 0;
}

static void on_answer(struct answer *answer, void *userdata)
{
        struct redis_diagnosis *redis = userdata;
        struct diagnosis *diagnosis = redis->diagnosis;

        redis->reader = NULL;
        if (answer->status == ANSWER_OK)
                redis->facts = answer->diagnosis;
        else
                redis->error = answer->error;
        if (--diagnosis->pending == 0)
                finish(diagnosis);
}

static void ask_redis(struct redis_diagnosis *redis, struct link *link)
{
        struct reader *reader = link->reader;
        const struct field host = QUERY_TEXT(links_host_name(link->runtime));
        const struct query query = {
                .kind = QUERY_DIAGNOSIS,
                .texts = &host,
                .n_texts = redis->traits->heartbeat == HEARTBEAT_DATABASE,
        };
        const struct error_report *error = reader_error(reader);
        int r = reader_ask(reader, &query, on_answer, redis);

        if (asprintf(&redis->about, "%s %s", link_noun(link), reader_url_text(reader)) < 0)
                redis->about = NULL;
        if (r >= 0) {
                redis->reader = reader;
                redis->diagnosis->pending++;
                return;
        }
        if (error && r != -ENOMEM)
                redis->error = *error;
        else
                error_report_set(&redis->error, r == -ENOMEM ? "out of memory" : "not connected yet");
}

static void ask_servers(struct diagnosis *diagnosis)
{
        const struct links *links = &diagnosis->control->runtime->links;

        diagnosis->servers = calloc(links->n + 1, sizeof(*diagnosis->servers));
        if (!diagnosis->servers) {
                diagnosis->findings.lost = true;
                return;
        }
        diagnosis->n_servers = links->n;
        for (size_t i = 0; i < links->n; i++) {
                struct link *link = links->list[i];

                SUBSYSTEMS_CALL(&diagnosis->control->runtime->subsystems, diagnose_link, link,
                                &diagnosis->findings);
                diagnosis->servers[i].diagnosis = diagnosis;
                diagnosis->servers[i].traits = link->framework->traits;
                ask_redis(&diagnosis->servers[i], link);
        }
}

static void report_redis(struct diagnosis *diagnosis, const struct problems *problems)
{
        /* Skip servers without an answer if a problem reports lost connections already. */
        bool known[] = {problems_find(problems, PROBLEM_REDIS_DOWN) ||
                                problems_find(problems, PROBLEM_REDIS_SLOW) ||
                                problems_find(problems, PROBLEM_REDIS_CONNECTING) ||
                                problems_find(problems, PROBLEM_BROKER_DOWN),
                        problems_find(problems, PROBLEM_DATABASE_DOWN) ||
                                problems_find(problems, PROBLEM_DATABASE_CONNECTING)};

        for (size_t i = 0; i < diagnosis->n_servers; i++) {
                const struct redis_diagnosis *redis = &diagnosis->servers[i];

                diagnosis->findings.lost |= !redis->about;
                const struct error_report *error = redis->error.text[0] != '\0' ? &redis->error : NULL;
                bool is_database = redis->traits->heartbeat == HEARTBEAT_DATABASE;
                if (!redis->about || (error && known[is_database]))
                        continue;
                if (is_database)
                        doctor_database(&diagnosis->findings, redis->about, error, &redis->facts.database,
                                        redis->traits);
                else
                        doctor_redis(&diagnosis->findings, redis->about, error, &redis->facts.redis);
        }
}

/* Returns the reply; NULL: memory is short. */
static json_t *report(struct diagnosis *diagnosis)
{
        const struct runtime *runtime = diagnosis->control->runtime;
        const struct world *world = runtime->world;
        struct problems *findings = &diagnosis->findings;
        struct problem_storage storage;
        struct problems problems = {0};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        problems_collect(diagnosis->control, &storage, now);
        problems_judge(&problems, &storage.facts, world, world->fleets, world->n_fleets, now);
        report_redis(diagnosis, &problems);
        doctor_machine(findings, overcommit(&runtime->links), &storage.facts, &problems, world);
        WORLD_FOREACH_FLEET(world, fleet) {
                findings->lost |= diagnose_fleet(diagnosis, &problems, fleet) < 0;
                SUBSYSTEMS_CALL(&runtime->subsystems, diagnose, fleet, findings);
        }
        problems_clear(&problems);
        return render(findings, &storage.facts);
}

/* Replies and frees the diagnosis once the titles are read, all servers have answered and all starts are
 * rehearsed. */
static void finish(struct diagnosis *diagnosis)
{
        call_keep(diagnosis->call, on_cancelled, diagnosis);
        if ((!diagnosis->servers && awaits_connections(diagnosis)) ||
            awaits_titles(diagnosis->control->runtime->world)) {
                timer_set(diagnosis->titles, usec_add(clock_now(CLOCK_MONOTONIC), TITLES_WAIT_USEC));
                return;
        }
        if (!diagnosis->servers)
                ask_servers(diagnosis);
        if (diagnosis->pending > 0 || rehearses(diagnosis))
                return;
        call_reply(diagnosis->call, report(diagnosis), false);
        diagnosis_free(diagnosis);
}

void doctor_request(const struct control *control, struct call *call)
{
        struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));

        if (!diagnosis || timer_new(control->runtime->event, on_titles, diagnosis, &diagnosis->titles) < 0) {
                free(diagnosis);
                call_reply(call, NULL, false);
                return;
        }
        diagnosis->control = control;
        diagnosis->call = call;
        diagnosis->asked_at = clock_now(CLOCK_MONOTONIC);
        finish(diagnosis);
}
