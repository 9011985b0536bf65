/* SPDX-License-Identifier: MIT */
/* Collects facts for advice/findings.h and answers GetDiagnosis. Each Redis is asked once. */
#include "daemon/api/doctor.h"
#include "advice/findings.h"
#include "base/fd.h"
#include "daemon/poll/pressure_watch.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/process.h"
#include "daemon/workers/release.h"
#include "io/clock.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/world.h"
#include "privileged/proc_inspect.h"
#include "wire/varlink.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Descriptors of a worker: its processes, their memory, and its log. */
#define FILES_OF_WORKER 5
/* Redis, /proc, event sources, and files that are open for a moment. */
#define FILES_APART 64

struct diagnosis;

/* The answers of one Redis. */
struct redis_diagnosis {
        struct diagnosis *diagnosis;
        struct reader *reader; /* asked; NULL: no answer is pending */
        char *url;             /* owned, like error */
        char *error;           /* NULL: it has answered */
        struct redis_facts facts;
        bool has_group;
};

/* The result of a rehearsal of a fleet's start. */
struct start_diagnosis {
        char *fleet; /* name; owned, like error */
        char *error; /* NULL: a start would succeed, or the rehearsal could not begin */
};

struct diagnosis {
        const struct persist *persist;
        struct doctor_readers readers;
        struct call *call;
        usec_t asked_at;
        struct redis_diagnosis *servers; /* NULL: not asked yet */
        size_t n_servers;
        size_t pending;                  /* servers that are asked */
        struct release_check *rehearsal; /* of the last of starts; NULL: none is in progress */
        struct start_diagnosis *starts;
        size_t n_starts;
        struct findings findings;
        sd_event_source *titles; /* until the titles are read */
        bool kept;               /* the call waits */
};

/* How often to check whether all titles are read, and all readers have tried to connect. */
#define TITLES_WAIT_USEC (20 * USEC_PER_MSEC)
/* After a start or a re-exec the readers need a moment to connect. */
#define READERS_WAIT_USEC USEC_PER_SEC
/* No further start is rehearsed later than this. With the last one, a client waits for less than 30 s. */
#define REHEARSALS_USEC (15 * USEC_PER_SEC)

static void diagnosis_free(struct diagnosis *diagnosis)
{
        for (size_t i = 0; i < diagnosis->n_servers; i++) {
                struct redis_diagnosis *redis = &diagnosis->servers[i];

                if (redis->reader)
                        reader_forget(redis->reader, redis);
                free(redis->url);
                free(redis->error);
        }
        free(diagnosis->servers);
        release_check_cancel(diagnosis->rehearsal);
        for (size_t i = 0; i < diagnosis->n_starts; i++) {
                free(diagnosis->starts[i].fleet);
                free(diagnosis->starts[i].error);
        }
        free(diagnosis->starts);
        findings_clear(&diagnosis->findings);
        sd_event_source_disable_unref(diagnosis->titles);
        free(diagnosis);
}

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        diagnosis_free(userdata);
}

static int overcommit(void)
{
        char text[16];

        return fd_read_file(AT_FDCWD, "/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0
                       ? (int)strtol(text, NULL, 10)
                       : -1;
}

static bool is_here(const char *url)
{
        const char *host = strstr(url, "://");

        return strncmp(url, "unix:", strlen("unix:")) == 0 ||
               (host && (strncmp(host, "://127.", strlen("://127.")) == 0 ||
                         strncmp(host, "://localhost", strlen("://localhost")) == 0 ||
                         strncmp(host, "://[::1]", strlen("://[::1]")) == 0));
}

/* Returns the traits of a fleet whose host name variable is set in our environment, which workers inherit; or
 * NULL. */
static const struct traits *renamed(const struct settings *settings)
{
        FOREACH_POINTER(fleet, settings->fleets, settings->n_fleets)
                if (fleet->traits->host_variable && getenv(fleet->traits->host_variable))
                        return fleet->traits;
        return NULL;
}

uint64_t doctor_files_needed(const struct world *world)
{
        uint64_t needed = FILES_APART + SERVER_CONNECTIONS_MAX;

        WORLD_FOREACH_FLEET(world, fleet)
                needed += (uint64_t)FILES_OF_WORKER * fleet_max_processes(fleet);
        return needed;
}

static struct doctor_machine machine_of(const struct diagnosis *diagnosis)
{
        const struct persist *persist = diagnosis->persist;
        const struct runtime *runtime = persist->runtime;
        struct rlimit limit;
        struct doctor_machine machine = {
                .is_root = geteuid() == 0,
                .renamed = renamed(runtime->world->settings),
                .overcommit = overcommit(),
                .files_needed = doctor_files_needed(runtime->world),
                .save_error = -persist->error,
                .pressure = pressure_watch_path(runtime->pressure),
                .has_readers = diagnosis->readers.may_connect,
                .trouble = subsystems_trouble,
                .userdata = &runtime->subsystems,
                .readers = diagnosis->readers.group,
        };

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                machine.files_limit = limit.rlim_cur;
        (void)proc_total_memory_bytes(runtime->host, &machine.memory_bytes);
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                machine.has_redis |= is_here(reader_url_text(link->reader));
        return machine;
}

/* True if the process is in another pid namespace than sqmgr. False if the process is gone. */
static int is_elsewhere(pid_t pid, void *userdata _unused_)
{
        _cleanup_proc_ struct proc *proc = NULL;

        return proc_open(pid, &proc) == 0 && proc_is_elsewhere(proc) > 0;
}

static struct doctor_worker poll_worker_at(const struct worker *worker)
{
        struct doctor_worker facts = {.worker = worker};
        const struct process *process = worker->handle;
        const struct proc *proc = process ? process_beating(process) : NULL;
        struct title title;

        if (proc && proc_evidence_read_title(process->runtime->proc_facts, proc, process_user(worker),
                                             framework_of(worker->fleet->settings->traits), &title) > 0)
                snprintf(facts.version, sizeof(facts.version), "%s", title.version);
        facts.stop_signal = execute_stop_signal(worker);
        facts.other_namespace = proc_tree_each(worker->process.pid, is_elsewhere, NULL) > 0;
        return facts;
}

static const char *start_error(const struct diagnosis *diagnosis, const char *fleet)
{
        for (size_t i = 0; i < diagnosis->n_starts; i++)
                if (strcmp(diagnosis->starts[i].fleet, fleet) == 0)
                        return diagnosis->starts[i].error;
        return NULL;
}

static int diagnose_fleet(struct diagnosis *diagnosis, const struct doctor_machine *machine,
                          const struct fleet *fleet)
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
        doctor_fleet(&diagnosis->findings, machine, &facts, clock_now(CLOCK_MONOTONIC));
        return 0;
}

static json_t *render(const struct findings *findings)
{
        _cleanup_json_ json_t *list = json_array();

        if (findings->lost)
                return NULL;
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *finding = &findings->list[i];
                json_t *entry =
                        json_pack("{s:s, s:o, s:o, s:o}", "level", finding_level_name(finding->level),
                                  "about", varlink_text(finding->about), "text", varlink_text(finding->text),
                                  "remedy", varlink_text(finding->remedy));

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return json_pack("{s:O}", "findings", list);
}

/* Returns true while the readers read a title (daemon/runtime/proc_facts.h). */
static bool awaits_titles(const struct diagnosis *diagnosis)
{
        struct runtime *runtime = diagnosis->persist->runtime;
        bool awaits = false;

        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        const struct proc *proc = worker->handle ? process_beating(worker->handle) : NULL;
                        struct title title;

                        awaits |= proc &&
                                  proc_evidence_read_title(runtime->proc_facts, proc, process_user(worker),
                                                           framework_of(fleet->settings->traits),
                                                           &title) == -EINPROGRESS;
                }
        return awaits;
}

static bool awaits_readers(const struct diagnosis *diagnosis)
{
        const struct links *links = &diagnosis->persist->runtime->links;
        bool awaits = false;

        FOREACH_POINTER(link, links->list, links->n)
                awaits |= reader_state(link->reader) == READER_STATE_CONNECTING;
        return awaits && usec_sub(clock_now(CLOCK_MONOTONIC), diagnosis->asked_at) < READERS_WAIT_USEC;
}

static void keep(struct diagnosis *diagnosis)
{
        if (!diagnosis->kept)
                server_keep(diagnosis->call, on_cancelled, diagnosis);
        diagnosis->kept = true;
}

static void finish(struct diagnosis *diagnosis);

static void on_rehearsed(const char *error, void *userdata)
{
        struct diagnosis *diagnosis = userdata;
        struct start_diagnosis *start = &diagnosis->starts[diagnosis->n_starts - 1];

        diagnosis->rehearsal = NULL;
        start->error = error ? strdup(error) : NULL;
        diagnosis->findings.lost |= error && !start->error;
        finish(diagnosis);
}

/* Rehearses the starts of all fleets, one after another. Returns true until that is done, or took too long.
 */
static bool rehearses(struct diagnosis *diagnosis)
{
        struct runtime *runtime = diagnosis->persist->runtime;
        const struct world *world = runtime->world;

        while (!diagnosis->rehearsal && diagnosis->n_starts < world->n_fleets &&
               usec_sub(clock_now(CLOCK_MONOTONIC), diagnosis->asked_at) < REHEARSALS_USEC) {
                const struct fleet *fleet = world->fleets[diagnosis->n_starts];
                struct start_diagnosis *larger =
                        reallocarray(diagnosis->starts, diagnosis->n_starts + 1, sizeof(*larger));
                char *name = strdup(fleet->settings->name);

                if (larger)
                        diagnosis->starts = larger;
                if (!larger || !name) {
                        free(name);
                        diagnosis->findings.lost = true;
                        return false;
                }
                diagnosis->starts[diagnosis->n_starts++] = (struct start_diagnosis){.fleet = name};
                /* Without resources for a process nothing is known of the fleet. */
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

/* Calls finish() again in a moment. Returns 0 or -errno. */
static int await_titles(struct diagnosis *diagnosis)
{
        usec_t at = usec_add(clock_now(CLOCK_MONOTONIC), TITLES_WAIT_USEC);

        if (!diagnosis->titles)
                return sd_event_add_time(diagnosis->persist->runtime->event, &diagnosis->titles,
                                         CLOCK_MONOTONIC, at, 0, on_titles, diagnosis);
        int r = sd_event_source_set_time(diagnosis->titles, at);
        return r < 0 ? r : sd_event_source_set_enabled(diagnosis->titles, SD_EVENT_ONESHOT);
}

static void on_answer(struct answer *answer, void *userdata)
{
        struct redis_diagnosis *redis = userdata;
        struct diagnosis *diagnosis = redis->diagnosis;

        redis->reader = NULL;
        if (answer->status == ANSWER_OK)
                redis->facts = answer->diagnosis;
        else
                redis->error = strdup(answer->error);
        diagnosis->findings.lost |= answer->status != ANSWER_OK && !redis->error;
        if (--diagnosis->pending == 0)
                finish(diagnosis);
}

static void ask_redis(struct redis_diagnosis *redis, struct reader *reader)
{
        const struct query query = {.kind = QUERY_DIAGNOSIS, .numbers = {redis->has_group}};
        const char *error = reader_error(reader);
        int r = reader_ask(reader, &query, on_answer, redis);

        redis->url = strdup(reader_url_text(reader));
        if (r >= 0) {
                redis->reader = reader;
                redis->diagnosis->pending++;
                return;
        }
        redis->error = strdup(r == -ENOMEM ? "memory is short" : error ?: "it is not connected yet");
        redis->diagnosis->findings.lost |= !redis->error;
}

static void ask_servers(struct diagnosis *diagnosis)
{
        const struct links *links = &diagnosis->persist->runtime->links;

        diagnosis->servers = calloc(links->n + 1, sizeof(*diagnosis->servers));
        if (!diagnosis->servers) {
                diagnosis->findings.lost = true;
                return;
        }
        diagnosis->n_servers = links->n;
        for (size_t i = 0; i < links->n; i++) {
                struct link *link = links->list[i];

                subsystems_diagnose_link(&diagnosis->persist->runtime->subsystems, link, &diagnosis->findings,
                                         clock_now(CLOCK_MONOTONIC));
                diagnosis->servers[i].diagnosis = diagnosis;
                WORLD_FOREACH_FLEET(links->world, fleet)
                        diagnosis->servers[i].has_group |= fleet->group && fleet->link == link;
                ask_redis(&diagnosis->servers[i], link->reader);
        }
}

/* Replies and frees the diagnosis once the titles are read, all servers have answered and all starts are
 * rehearsed. */
static void finish(struct diagnosis *diagnosis)
{
        if (((!diagnosis->servers && awaits_readers(diagnosis)) || awaits_titles(diagnosis)) &&
            await_titles(diagnosis) >= 0) {
                keep(diagnosis);
                return;
        }
        if (!diagnosis->servers)
                ask_servers(diagnosis);
        if (diagnosis->pending > 0 || rehearses(diagnosis)) {
                keep(diagnosis);
                return;
        }
        const struct world *world = diagnosis->persist->runtime->world;
        struct doctor_machine machine = machine_of(diagnosis);
        struct findings *findings = &diagnosis->findings;

        for (size_t i = 0; i < diagnosis->n_servers; i++) {
                const struct redis_diagnosis *redis = &diagnosis->servers[i];

                findings->lost |= !redis->url;
                if (redis->url)
                        doctor_redis(findings, &(struct doctor_redis){
                                                       .url = redis->url,
                                                       .error = redis->error,
                                                       .facts = &redis->facts,
                                                       .has_group = redis->has_group,
                                               });
        }
        doctor_machine(findings, &machine, world, clock_now(CLOCK_MONOTONIC));
        WORLD_FOREACH_FLEET(world, fleet) {
                findings->lost |= diagnose_fleet(diagnosis, &machine, fleet) < 0;
                subsystems_diagnose(&diagnosis->persist->runtime->subsystems, fleet, findings);
        }
        server_reply(diagnosis->call, render(findings), false);
        diagnosis_free(diagnosis);
}

void doctor_request(const struct persist *persist, const struct doctor_readers *readers, struct call *call)
{
        struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));

        if (!diagnosis) {
                server_reply(call, NULL, false);
                return;
        }
        diagnosis->persist = persist;
        diagnosis->readers = *readers;
        diagnosis->call = call;
        diagnosis->asked_at = clock_now(CLOCK_MONOTONIC);
        finish(diagnosis);
}
