/* SPDX-License-Identifier: MIT */
/* Connections to servers, Redis and databases; see the header. */
#include "base/environment.h"
#include "base/text.h"
#include "continuity/quarantine.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/runtime/runtime.h"
#include "frameworks/backends.h"
#include "frameworks/server_heartbeats.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/timer.h"
#include "model/world.h"
#include "observe/match.h"
#include "observe/observe.h"
#include <limits.h>

const char *link_noun(const struct link *link)
{
        return link->engine == _DATABASE_ENGINE_MAX ? "Redis" : database_engine_title(link->engine);
}

const char *link_kind(const struct link *link)
{
        static const char *const kinds[] = {
                [DATABASE_POSTGRESQL] = "postgresql",
                [DATABASE_SQLITE] = "sqlite",
                [_DATABASE_ENGINE_MAX] = "redis",
        };

        return kinds[link->engine];
}

/* server_text is the master if Sentinels named it, else NULL. */
static void connected(struct link *link, const char *server_text)
{
        const struct world *world = link->runtime->world;
        char *before = link->server_text;

        if (!server_text) {
                log_info("%s %s: connected", link_noun(link), reader_url_text(link->reader));
                return;
        }
        log_info("Redis %s: connected to the master, %s", reader_url_text(link->reader), server_text);
        if (before && strcmp(before, server_text) == 0)
                return;
        WORLD_FOREACH_FLEET(world, fleet)
                if (before && fleet->link == link)
                        observe_failover(fleet, before, server_text);
        /* If memory is short, the next failover is reported as one from the older master. */
        char *copy = strdup(server_text);
        if (copy) {
                free(before);
                link->server_text = copy;
        }
}

static void on_reader_state(struct reader *reader, enum reader_state state, const struct error_report *error,
                            void *userdata)
{
        struct link *link = userdata;
        const struct world *world = link->runtime->world;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (link->quarantine.lasts) {
                if (state == READER_STATE_CONNECTED)
                        wakeup_poll_now(link->runtime->wakeup, now);
                return;
        }
        if (state == READER_STATE_CONNECTED) {
                connected(link, reader_server_text(reader));
                /* Poll now: heartbeats that exist before a new worker could send one are not its own. */
                wakeup_poll_now(link->runtime->wakeup, now);
        } else if (error)
                log_quoted(LOG_ERR, &error->quoted, "%s %s: %s", link_noun(link), reader_url_text(reader),
                           error->text);
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->link == link)
                        observe_server(fleet, state, now);
        wakeup_arm(link->runtime->wakeup);
}

/* The host name may change while sqmgr runs, for example when a machine gets its name late during boot. */
const char *links_host_name(struct runtime *runtime)
{
        struct links *links = &runtime->links;
        char name[sizeof(links->host_name)] = "";

        if (gethostname(name, sizeof(name) - 1) < 0 || strcmp(name, links->host_name) == 0)
                return links->host_name;
        if (links->host_name[0] != '\0')
                world_event(runtime->world, EVENT_HOST_NAME, NULL, NULL,
                            "the host is now called '%s' (before: '%s'); workers send heartbeats under the "
                            "name of their boot, and both names are recognized",
                            name, links->host_name);
        memcpy(links->host_name, name, sizeof(name));
        return links->host_name;
}

const char *links_unique_host(struct runtime *runtime, const struct fleet_settings *fleet, unsigned index,
                              usec_t started_at, char text[static UNIQUE_HOST_MAX])
{
        const struct unique_host unique = {
                .boot_id = runtime->boot_id,
                .instance = runtime->instance,
                .fleet = fleet->name,
                .index = index,
                .started_at = started_at,
        };

        text[0] = '\0';
        return fleet->namespaced && fleet->traits->host_variable
                       ? unique_host(&unique, links_host_name(runtime), text)
                       : text;
}

static const char *host_name(void *userdata)
{
        const struct link *link = userdata;

        return links_host_name(link->runtime);
}

static_assert(PROC_HOST_NAME_MAX == INSIDE_HOST_MAX, "the same name");

/* Returns 0 to continue, or 1 once the list is full. */
static int add_process(pid_t pid, void *userdata)
{
        struct inside *inside = userdata;
        struct inside_process process = {.pid = pid};
        _cleanup_proc_ struct proc *proc = NULL;

        if (inside->n == INSIDE_PROCESSES_MAX) {
                inside->complete = false;
                return 1;
        }
        /* A process that has exited is not needed. */
        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_own_pid(proc, &process.own_pid);
        if (r < 0) {
                inside->complete &= r == -ESRCH || r == -ENODATA;
                return 0;
        }
        /* Without the right to read the host name, workers are matched by their unique name alone. */
        if (proc_host_name(proc, process.host) < 0)
                process.host[0] = '\0';
        inside->list[inside->n++] = process;
        return 0;
}

/* Returns true if the names differ by that of the host at most, which may have been renamed meanwhile. */
static bool is_same_unique(const char *value, const char *unique)
{
        size_t a = unique_host_base(value, strlen(value)), b = unique_host_base(unique, strlen(unique));

        return unique[b] != '\0' && strcmp(value + a, unique + b) == 0;
}

/* Reads the value of the variable for the host name in the environment with which the worker was started. */
static int read_variable(struct proc_facts *facts, const struct worker *worker, struct inside *inside)
{
        const char *name = worker->fleet->settings->traits->host_variable;
        _cleanup_proc_ struct proc *proc = NULL;
        char text[PROC_ENVIRONMENT_MAX];
        size_t length = 0;

        if (!name)
                return 0;
        int r = proc_find(worker->process.pid, worker->process.start, &proc);
        if (r < 0 || !proc)
                return r < 0 ? r : -ESRCH;
        ssize_t n = proc_facts_environment(facts, proc, text, &length);
        if (n < 0)
                return (int)n;
        const char *value = environment_find(text, length, name);
        if (!value)
                return 0;
        if (is_same_unique(value, inside->unique))
                snprintf(inside->unique, sizeof(inside->unique), "%s", value);
        else if (strlen(value) < sizeof(inside->variable))
                snprintf(inside->variable, sizeof(inside->variable), "%s", value);
        return 0;
}

/* Reads the processes of a worker in namespaces of its own. */
static int read_inside(const struct worker *worker, struct inside *ret, void *userdata)
{
        struct runtime *runtime = ((const struct link *)userdata)->runtime;

        static_assert(sizeof(ret->unique) >= UNIQUE_HOST_MAX, "the same name");
        *ret = (struct inside){.complete = true};
        links_unique_host(runtime, worker->fleet->settings, worker->index, worker->spawned_at, ret->unique);
        int r = read_variable(runtime->proc_facts, worker, ret);
        if (r >= 0)
                r = proc_tree_each(worker->process.pid, add_process, ret);
        return r < 0 ? r : 0;
}

static int is_descendant(pid_t pid, const struct worker *worker, void *userdata _unused_)
{
        return proc_has_ancestor(pid, worker->process.pid, worker->process.start);
}

/* Returns true if each worker that runs the program of this process sets a title. */
static bool sets_titles(const struct proc *proc, const struct framework *framework)
{
        char path[PATH_MAX];

        if (!framework->title_program)
                return true;
        if (proc_program(proc, path, sizeof(path)) < 0)
                return false;
        const char *slash = strrchr(path, '/');
        return strncmp(slash ? slash + 1 : path, framework->title_program,
                       strlen(framework->title_program)) == 0;
}

static int has_booted(pid_t pid, const struct worker *worker, void *userdata)
{
        const struct link *link = userdata;
        struct proc_facts *facts = link->runtime->proc_facts;
        const struct framework *framework = framework_of(worker->fleet->settings->traits);
        _cleanup_proc_ struct proc *proc = NULL;

        if ((!framework->title_parse || framework->title_may_lack) && !framework->thread_is_processor)
                return 1;
        /* The ledger names this process. A quiet worker may have ended the threads that show that it has
         * booted.
         */
        if (worker->heartbeat.seen && pid == worker->process.heartbeat_pid)
                return 1;
        int r = proc_open(pid, &proc);
        if (r < 0)
                return r;
        /* A process that had not booted before its heartbeats were read may have booted since. */
        proc_facts_expire(facts, proc, link->heartbeats ? link->heartbeats->decides_at : 0);
        r = proc_evidence_has_booted(facts, proc, framework);
        if (r > 0)
                observe_boot_in_proc(worker);
        return r != 0 || worker->fleet->boot_in_proc || sets_titles(proc, framework) ? r : -ENODATA;
}

static int has_start(pid_t pid, uint64_t start, void *userdata _unused_)
{
        _cleanup_proc_ struct proc *proc = NULL;
        int r = proc_open(pid, &proc);

        return r < 0 ? r : proc_start_time(proc) == start;
}

static int is_born(pid_t pid, const struct heartbeat *heartbeat, const struct worker *worker, void *userdata)
{
        const struct link *link = userdata;
        const struct traits *traits = worker->fleet->settings->traits;
        _cleanup_proc_ struct proc *proc = NULL;
        const struct world *world = worker->fleet->world;
        struct birth birth = {.born_usec = heartbeat->born_usec, .sent_usec = heartbeat->sent_usec};

        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_evidence_has_booted(link->runtime->proc_facts, proc, framework_of(traits));
        if (r < 0)
                return r;
        if (proc_has_exited(proc))
                return -ESRCH;
        birth.booted = r > 0;
        birth.started_at = proc_start_time(proc) * (USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK));
        birth.monotonic = clock_now(CLOCK_MONOTONIC);
        birth.boottime = clock_now(CLOCK_BOOTTIME);
        birth.realtime = clock_now(CLOCK_REALTIME);
        return birth_is_foreign(&birth, world) ? -EREMOTE : birth_is_own(&birth, world, traits->stale_usec);
}

static void on_identity(struct worker *worker, pid_t pid, bool remote, void *userdata)
{
        const struct link *link = userdata;

        link->runtime->links.found(worker, pid, clock_now(CLOCK_MONOTONIC));
        if (remote)
                observe_remote(worker);
}

/* Without a title, assume that the worker runs a job. Returns false while the title is being read. */
static bool complete(const struct link *link, const struct worker *worker, struct heartbeat *heartbeat)
{
        struct title title = {.busy = 1};
        _cleanup_proc_ struct proc *proc = NULL;

        if (proc_open(worker_pid(worker), &proc) >= 0 &&
            proc_evidence_read_title(link->runtime->proc_facts, proc,
                                     framework_of(worker->fleet->settings->traits), &title) == -EINPROGRESS)
                return false;
        *heartbeat = heartbeat_complete(worker, heartbeat, title.busy, title.quiet);
        return true;
}

static void on_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, void *userdata)
{
        const struct link *link = userdata;
        struct heartbeat reported = *heartbeat;

        if (worker->fleet->settings->traits->title_completes && !complete(link, worker, &reported)) {
                link->heartbeats->deferred = true;
                return;
        }
        observe_heartbeat(worker, &reported, clock_now(CLOCK_MONOTONIC));
}

static void on_sibling(struct worker *worker, pid_t pid, void *userdata _unused_)
{
        observe_sibling(worker, pid, clock_now(CLOCK_MONOTONIC));
}

static void on_done(struct heartbeats *heartbeats _unused_, void *userdata)
{
        const struct link *link = userdata;

        /* The connection is closed again. */
        if (link->quarantine.lasts && link->quarantine.open)
                (void)sd_event_source_set_time(link->quarantine.timer, 0);
        wakeup_arm(link->runtime->wakeup);
}

static bool is_same(const char *a, const char *b)
{
        return !a || !b ? a == b : strcmp(a, b) == 0;
}

static struct link *find_link(const struct runtime *runtime, const struct fleet_settings *fleet)
{
        const struct framework *framework = framework_of(fleet->traits);
        const char *url = settings_fleet_url(runtime->world->settings, fleet);

        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                if (link->framework == framework && is_same(link->url, url))
                        return link;
        return NULL;
}

static struct link *free_link(struct link *link)
{
        if (!link)
                return NULL;
        /* Clear the member first: callbacks during the frees below must not find the user. */
        struct link_user *user = TAKE_PTR(link->user);
        if (user)
                user->end(user);
        if (link->reader)
                reader_forget(link->reader, link);
        queues_free(link->queues);
        queue_watch_clear(&link->queue_watch);
        heartbeats_free(link->heartbeats);
        reader_free(link->reader);
        sd_event_source_disable_unref(link->quarantine.timer);
        free(link->url);
        free(link->server_text);
        free(link);
        return NULL;
}

DEFINE_CLEANUP(struct link *, free_link)

static enum database_engine engine_of(const char *url)
{
        _cleanup_database_url_ struct database_url parsed = {.engine = DATABASE_POSTGRESQL};

        (void)database_url_parse(url, &parsed, NULL);
        return parsed.engine;
}

static void on_decoding(const struct reader *reader, void *userdata)
{
        struct ledger *ledger = userdata;

        if (ledger->header)
                quarantine_decoding(ledger, reader ? reader_quarantine_key(reader) : 0);
}

static struct reader_options options_of(struct link *link)
{
        struct runtime *runtime = link->runtime;

        return (struct reader_options){
                .backend = link_is_database(link) ? &database_backend : &redis_backend,
                .framework = link->framework->traits->id,
                .settings = &runtime->world->settings->redis,
                .url = link->url,
                .starter = &runtime->database_helpers.starter,
                .on_state = on_reader_state,
                .userdata = link,
                .decoding = on_decoding,
                .decoding_userdata = &runtime->ledger.ledger,
        };
}

static int make_link(struct runtime *runtime, const struct fleet_settings *fleet)
{
        static const struct heartbeats_ops ops = {
                .host_name = host_name,
                .is_descendant = is_descendant,
                .read_inside = read_inside,
                .has_booted = has_booted,
                .has_start = has_start,
                .is_born = is_born,
                .on_identity = on_identity,
                .on_heartbeat = on_heartbeat,
                .on_sibling = on_sibling,
                .on_done = on_done,
        };
        struct links *links = &runtime->links;
        _cleanup_(free_link_pointer) struct link *link = calloc(1, sizeof(*link));

        if (!link || !ARRAY_RESIZE(links->list, links->n + 1))
                return -ENOMEM;
        link->runtime = runtime;
        link->framework = framework_of(fleet->traits);
        int r = text_copy(settings_fleet_url(runtime->world->settings, fleet), &link->url);
        link->engine = link->framework->traits->heartbeat == HEARTBEAT_DATABASE ? engine_of(link->url ?: "")
                                                                                : _DATABASE_ENGINE_MAX;
        const struct reader_options options = options_of(link);
        if (r >= 0)
                r = reader_new(runtime->event, &options, &link->reader);
        if (r >= 0 && fleet_settings_need_server(fleet))
                r = server_heartbeats_new(link->reader, link->framework, &ops, link, &link->heartbeats);
        if (r < 0)
                return r;
        links->list[links->n++] = TAKE_PTR(link);
        return 0;
}

static bool needs_link(const struct fleet_settings *fleet)
{
        return fleet_settings_need_server(fleet) || fleet_settings_need_broker(fleet);
}

int links_make(struct runtime *runtime, const struct settings *settings)
{
        int r = 0;

        for (size_t i = 0; i < settings->n_fleets && r >= 0; i++) {
                const struct fleet_settings *fleet = settings->fleets[i];

                if (needs_link(fleet) && !find_link(runtime, fleet))
                        r = make_link(runtime, fleet);
        }
        return r;
}

void links_join(struct runtime *runtime)
{
        const struct world *world = runtime->world;
        struct links *links = &runtime->links;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        size_t kept = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                struct link *link = needs_link(fleet->settings) ? find_link(runtime, fleet->settings) : NULL;

                if (fleet->link)
                        continue;
                fleet->queue_link = link;
                if (!fleet_settings_need_server(fleet->settings)) {
                        /* A fleet without a server has nothing to wait for. */
                        observe_redis(fleet, true, now);
                        continue;
                }
                /* links_make() has created a link for each fleet. */
                assert(link);
                fleet->link = link;
                if (reader_state(link->reader) == READER_STATE_CONNECTED && !link->quarantine.lasts)
                        observe_redis(fleet, true, now);
        }
        for (size_t i = 0; i < links->n; i++) {
                struct link *link = links->list[i];
                bool used = false;

                WORLD_FOREACH_FLEET(world, fleet)
                        used |= fleet->queue_link == link;
                if (!used)
                        continue;
                links->list[i] = links->list[kept];
                links->list[kept++] = link;
        }
        /* Freeing a link calls its waiting callbacks at once, which may iterate over the remaining links. */
        size_t n = links->n;
        links->n = kept;
        for (size_t i = kept; i < n; i++)
                free_link(links->list[i]);
}

void links_end(struct runtime *runtime)
{
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                free_link(link);
        free(runtime->links.list);
        runtime->links = (struct links){0};
}

/* Links whose server is in quarantine (continuity/quarantine.h). Their connection is opened once per
 * QUARANTINE_PERIOD_USEC, for one poll of the heartbeats. Their fleets count as fleets whose server is down:
 * what was read is shown, and no worker is signaled. */

/* How long a connection is open at most, if no poll ends. */
#define QUARANTINE_OPEN_USEC (10 * USEC_PER_SEC)
/* After memory was short. */
#define QUARANTINE_RETRY_USEC USEC_PER_SEC

static const char in_quarantine[] = "its data has ended sqmgr twice; read once a minute at most";

static int on_quarantine_timer(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct link *link = userdata;
        struct link_quarantine *quarantine = &link->quarantine;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (quarantine->open) {
                quarantine->open = false;
                timer_set(quarantine->timer,
                          quarantine->lasts ? quarantine->opened_at + QUARANTINE_PERIOD_USEC : now);
                reader_pause(link->reader, quarantine->lasts ? in_quarantine : "reload");
                return 0;
        }
        const struct reader_options options = options_of(link);
        quarantine->opened_at = now;
        quarantine->open = reader_resume(link->reader, &options) >= 0;
        if (!quarantine->open)
                timer_set(quarantine->timer, now + QUARANTINE_RETRY_USEC);
        else if (quarantine->lasts)
                timer_set(quarantine->timer, now + QUARANTINE_OPEN_USEC);
        return 0;
}

static int quarantine_begin(struct link *link, usec_t now)
{
        int r = sd_event_add_time(link->runtime->event, &link->quarantine.timer, CLOCK_MONOTONIC,
                                  now + QUARANTINE_PERIOD_USEC, 1, on_quarantine_timer, link);

        if (r < 0)
                return r;
        /* Reported as a server that is down. */
        reader_pause(link->reader, in_quarantine);
        link->quarantine.lasts = true;
        return 0;
}

int links_judge_crash(struct runtime *runtime, usec_t now)
{
        const struct links *links = &runtime->links;
        uint32_t ended = quarantine_take_over(&runtime->ledger.ledger, now);
        int r = 0;

        for (size_t i = 0; i < links->n && r >= 0; i++) {
                struct link *link = links->list[i];
                const char *url = reader_url_text(link->reader);
                uint32_t key = reader_quarantine_key(link->reader);

                if (key == ended)
                        log_error("%s %s: the last sqmgr ended while it read data of this server",
                                  link_noun(link), url);
                if (quarantine_holds(&runtime->ledger.ledger, key))
                        r = quarantine_begin(link, now);
        }
        return r;
}

void links_end_quarantine(struct runtime *runtime)
{
        if (runtime->ledger.ledger.header)
                quarantine_end(&runtime->ledger.ledger);
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n) {
                if (!link->quarantine.lasts)
                        continue;
                link->quarantine.lasts = false;
                timer_set(link->quarantine.timer, 0);
        }
}

int link_read_queues(const struct link *link, const char *names, bool due, reader_answer_fn callback,
                     void *userdata)
{
        const struct field text = {.text = names, .len = names ? queue_names_length(names) : 0};
        const struct query query = {
                .kind = QUERY_QUEUES, .numbers = {due}, .texts = &text, .n_texts = names ? 1 : 0};

        return reader_ask(link->reader, &query, callback, userdata);
}

struct job_list *link_running_jobs(struct answer *answer, size_t n, const struct error_report **ret_error)
{
        static const struct error_report unanswered = {.text = "the server did not answer this query"};
        bool is_complete = answer->status == ANSWER_OK && answer->jobs.n == n;

        *ret_error = answer->error.text[0] != '\0' ? &answer->error : is_complete ? NULL : &unanswered;
        return is_complete ? answer->jobs.lists : NULL;
}

int link_read_running_jobs(const struct link *link, const struct running_jobs_request *request,
                           reader_answer_fn callback, void *userdata)
{
        _cleanup_free_ struct field *texts = calloc(request->n, sizeof(*texts));
        const struct query query = {.kind = QUERY_JOBS,
                                    .numbers = {request->with_entries},
                                    .texts = texts,
                                    .n_texts = request->n};

        if (!texts)
                return -ENOMEM;
        for (size_t i = 0; i < request->n; i++)
                texts[i] = (struct field)QUERY_TEXT(request->identities[i]);
        return reader_ask(link->reader, &query, callback, userdata);
}
