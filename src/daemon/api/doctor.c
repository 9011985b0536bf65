/* SPDX-License-Identifier: MIT */
/* Collects facts for advice/findings.h and answers GetDiagnosis. Each Redis is queried in one round trip. */
#include "daemon/api/doctor.h"
#include "advice/findings.h"
#include "base/fd.h"
#include "daemon/poll/pressure_watch.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/process.h"
#include "io/clock.h"
#include "io/redis_batch.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/world.h"
#include "wire/varlink.h"
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Descriptors of a worker: its processes, their memory, and its log. */
#define FILES_OF_WORKER 5
/* Redis, /proc, event sources, and files that are open for a moment. */
#define FILES_APART 64

/* Texts for struct doctor_redis. */
enum text {
        TEXT_URL,
        TEXT_ERROR,
        TEXT_INFO,
        TEXT_INFO_ERROR,
        TEXT_SAVE,
        TEXT_CONFIG_ERROR,
        TEXT_MIN_REPLICAS,
        TEXTS,
};

/* The answers of one Redis. */
struct answers {
        char *texts[TEXTS]; /* owned; NULL: none */
        bool has_group;
};

struct diagnosis {
        const struct persist *persist;
        struct doctor_readers readers;
        struct call *call;
        struct redis_batch *redis_batch;
        struct answers *answers;
        size_t n_answers;
        struct findings findings;
        sd_event_source *titles; /* until the titles are read */
        bool kept;               /* the call waits */
};

/* How often to look whether all titles are read. */
#define TITLES_WAIT_USEC (20 * USEC_PER_MSEC)

/* Queries for each Redis. The tag also identifies the entry in diagnosis.answers. */
enum redis_query { QUESTION_INFO, QUESTION_SAVE, QUESTION_REPLICAS, QUESTIONS };
static const struct {
        int argc;
        const char *argv[3];
} questions[] = {
        [QUESTION_INFO] = {1, {"INFO"}},
        [QUESTION_SAVE] = {3, {"CONFIG", "GET", "save"}},
        [QUESTION_REPLICAS] = {3, {"CONFIG", "GET", "min-replicas-to-write"}},
};

static void diagnosis_free(struct diagnosis *diagnosis)
{
        for (size_t i = 0; i < diagnosis->n_answers; i++)
                for (enum text text = 0; text < TEXTS; text++)
                        free(diagnosis->answers[i].texts[text]);
        free(diagnosis->answers);
        findings_clear(&diagnosis->findings);
        sd_event_source_disable_unref(diagnosis->titles);
        redis_batch_free(diagnosis->redis_batch);
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
                machine.has_redis |= is_here(redis_url_text(link->redis));
        return machine;
}

/* True if the process is in another pid namespace than sqmgr. False if the process is gone. */
static int is_elsewhere(pid_t pid, void *userdata)
{
        const struct stat *own = userdata;
        struct stat its;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
        return stat(path, &its) == 0 && its.st_ino != own->st_ino;
}

static struct doctor_worker poll_worker_at(const struct worker *worker)
{
        struct doctor_worker facts = {.worker = worker};
        const struct process *process = worker->handle;
        const struct proc *proc = process ? process_beating(process) : NULL;
        struct title title;
        struct stat own;

        if (proc && proc_evidence_read_title(process->runtime->proc_facts, proc, process_user(worker),
                                             framework_of(worker->fleet->settings->traits), &title) > 0)
                snprintf(facts.version, sizeof(facts.version), "%s", title.version);
        facts.stop_signal = execute_stop_signal(worker);
        if (stat("/proc/self/ns/pid", &own) == 0)
                facts.other_namespace = proc_tree_each(worker->process.pid, is_elsewhere, &own) > 0;
        return facts;
}

static int diagnose_fleet(struct findings *findings, const struct doctor_machine *machine,
                          const struct fleet *fleet)
{
        _cleanup_free_ struct doctor_worker *workers = calloc(fleet->n_workers + 1, sizeof(*workers));
        size_t n = 0;

        if (!workers)
                return -ENOMEM;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE)
                        workers[n++] = poll_worker_at(worker);
        doctor_fleet(findings, machine, fleet, workers, n, clock_now(CLOCK_MONOTONIC));
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

static void finish(void *userdata);

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

/* Called when all answers of Redis have arrived: replies and frees the diagnosis once the titles are read. */
static void finish(void *userdata)
{
        struct diagnosis *diagnosis = userdata;

        if (awaits_titles(diagnosis) && await_titles(diagnosis) >= 0) {
                if (!diagnosis->kept)
                        server_keep(diagnosis->call, on_cancelled, diagnosis);
                diagnosis->kept = true;
                return;
        }
        const struct world *world = diagnosis->persist->runtime->world;
        struct doctor_machine machine = machine_of(diagnosis);
        struct findings *findings = &diagnosis->findings;

        for (size_t i = 0; i < diagnosis->n_answers; i++) {
                char *const *texts = diagnosis->answers[i].texts;

                doctor_redis(findings, &(struct doctor_redis){
                                               .url = texts[TEXT_URL],
                                               .error = texts[TEXT_ERROR],
                                               .info = texts[TEXT_INFO],
                                               .info_error = texts[TEXT_INFO_ERROR],
                                               .save = texts[TEXT_SAVE],
                                               .config_error = texts[TEXT_CONFIG_ERROR],
                                               .has_group = diagnosis->answers[i].has_group,
                                               .min_replicas = texts[TEXT_MIN_REPLICAS],
                                       });
        }
        doctor_machine(findings, &machine, world, clock_now(CLOCK_MONOTONIC));
        WORLD_FOREACH_FLEET(world, fleet) {
                findings->lost |= diagnose_fleet(findings, &machine, fleet) < 0;
                subsystems_diagnose(&diagnosis->persist->runtime->subsystems, fleet, findings);
        }
        server_reply(diagnosis->call, render(findings), false);
        diagnosis_free(diagnosis);
}

/* Replaces a text of an answer: an answer may come twice when a connection ends. */
static void set(struct answers *answers, enum text text, const char *value)
{
        free(answers->texts[text]);
        answers->texts[text] = strdup(value);
}

/* Returns the value from a reply to CONFIG GET, or NULL: an error, or an older Redis without the setting. */
static const char *setting_of(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                               reply->element[1]->type == REDIS_REPLY_STRING
                       ? reply->element[1]->str
                       : NULL;
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        const struct diagnosis *diagnosis = userdata;
        struct answers *answers = &diagnosis->answers[tag / QUESTIONS];
        const char *error = reply && reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;

        if (!reply)
                set(answers, TEXT_ERROR, "it went away or did not answer in time");
        else if (tag % QUESTIONS == QUESTION_INFO && reply->type == REDIS_REPLY_STRING)
                set(answers, TEXT_INFO, reply->str);
        else if (tag % QUESTIONS == QUESTION_INFO)
                set(answers, TEXT_INFO_ERROR, error ?: "no text");
        else if (setting_of(reply))
                set(answers, tag % QUESTIONS == QUESTION_SAVE ? TEXT_SAVE : TEXT_MIN_REPLICAS,
                    setting_of(reply));
        /* A Redis that refuses CONFIG has already reported that for the first setting. */
        else if (tag % QUESTIONS == QUESTION_SAVE)
                set(answers, TEXT_CONFIG_ERROR, error ?: "it has no such setting");
}

static void ask_redis(struct diagnosis *diagnosis, size_t i, struct redis *redis)
{
        struct answers *answers = &diagnosis->answers[i];
        const char *error = redis_error(redis);
        int r = redis_state(redis) == REDIS_STATE_CONNECTED ? 0 : -ENOTCONN;

        set(answers, TEXT_URL, redis_url_text(redis));
        for (enum redis_query q = 0; q < QUESTIONS && r == 0; q++)
                if (q != QUESTION_REPLICAS || answers->has_group)
                        r = redis_batch_add(diagnosis->redis_batch, redis, i * QUESTIONS + q,
                                            questions[q].argc, questions[q].argv, NULL);
        if (r < 0)
                set(answers, TEXT_ERROR,
                    r == -ENOMEM ? "memory is short"
                    : error      ? error
                                 : "it is not connected yet");
}

void doctor_request(const struct persist *persist, const struct doctor_readers *readers, struct call *call)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = finish};
        const struct links *links = &persist->runtime->links;
        struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));

        if (diagnosis)
                diagnosis->answers = calloc(links->n + 1, sizeof(*diagnosis->answers));
        if (!diagnosis || !diagnosis->answers ||
            redis_batch_new(&ops, diagnosis, &diagnosis->redis_batch) < 0) {
                if (diagnosis)
                        diagnosis_free(diagnosis);
                server_reply(call, NULL, false);
                return;
        }
        diagnosis->persist = persist;
        diagnosis->readers = *readers;
        diagnosis->call = call;
        diagnosis->n_answers = links->n;
        for (size_t i = 0; i < links->n; i++) {
                struct link *link = links->list[i];

                subsystems_diagnose_link(&persist->runtime->subsystems, link, &diagnosis->findings,
                                         clock_now(CLOCK_MONOTONIC));
                WORLD_FOREACH_FLEET(links->world, fleet)
                        diagnosis->answers[i].has_group |= fleet->group && fleet->link == link;
                ask_redis(diagnosis, i, link->redis);
        }
        (void)awaits_titles(diagnosis);
        diagnosis->kept = redis_batch_pending(diagnosis->redis_batch) > 0;
        if (diagnosis->kept)
                server_keep(call, on_cancelled, diagnosis);
        else
                finish(diagnosis);
}
