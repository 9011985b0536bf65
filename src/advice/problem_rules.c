/* SPDX-License-Identifier: MIT */
/* Judges all that is known; see the header. */
#include "advice/problem_rules.h"
#include "base/parse.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include <stdio.h>

/* How long a clock jump is reported. */
#define DOUBT_USEC USEC_PER_HOUR
/* Shorter waits of a complete fleet are part of normal operation. */
#define LASTS_USEC (30 * USEC_PER_SEC)
/* A single replacement over its threshold may be chance. */
#define CHURN_MIN 2

struct search {
        struct problems *problems;
        const struct problem_facts *facts;
        const struct world *world;
        usec_t now;
        const struct fleet *fleet;
        struct fleet_counts counts;
        unsigned target;
        bool is_short;  /* workers are missing, and no problem has said so yet */
        char lack[128]; /* "; 1 of 2 workers active" while workers are missing, else "" */
};

#define ADD(search, problem_code, at, ...) ADD_QUOTING(search, problem_code, at, NULL, __VA_ARGS__)
#define ADD_QUOTING(search, problem_code, at, quotes, ...)                                                   \
        problems_add((search)->problems,                                                                     \
                     &(struct problem){.code = (problem_code),                                               \
                                       .fleet = (search)->fleet,                                             \
                                       .since = (at),                                                        \
                                       .quoted = (quotes)},                                                  \
                     PROBLEM_ABOUT_FLEET, __VA_ARGS__)
#define ADD_ABOUT(search, problem_code, about, at, ...)                                                      \
        problems_add((search)->problems, &(struct problem){.code = (problem_code), .since = (at)}, about,    \
                     __VA_ARGS__)

/* Adds what the problem means for the fleets that use the connection. */
static void add_fleets(const struct search *search, const struct link *link, struct problem *problem)
{
        WORLD_FOREACH_FLEET(search->world, fleet) {
                if (fleet->redis_up || fleet->link != link)
                        continue;
                problem->since = MAX(problem->since, fleet->redis_at);
                problem->unready |= fleet_order(fleet) == ORDER_RUN &&
                                    fleet_count(fleet, search->now).active < fleet_target(fleet);
        }
}

/* A connection to a server in quarantine is opened for moments only. */
static bool is_up(const struct problem_redis *redis)
{
        return redis->state == READER_STATE_CONNECTED && !redis->quarantined;
}

/* Returns true if the URLs of two connections that are not up differ at most in the database. */
static bool same_server(const struct problem_redis *a, const struct problem_redis *b)
{
        size_t length = url_server_length(a->url);

        return !is_up(a) && !is_up(b) && strncmp(a->url, b->url, length) == 0 &&
               (b->url[length] == '\0' || strchr("/?", b->url[length]));
}

/* Reports each server once, however many connections to it there are. */
static void find_redis(const struct search *search)
{
        static const enum problem_code codes[2][_READER_STATE_MAX] = {
                {[READER_STATE_CONNECTING] = PROBLEM_REDIS_CONNECTING,
                 [READER_STATE_DOWN] = PROBLEM_REDIS_DOWN,
                 [READER_STATE_SLOW] = PROBLEM_REDIS_SLOW,
                 [READER_STATE_REFUSING] = PROBLEM_REDIS_REFUSES_WRITES},
                {[READER_STATE_CONNECTING] = PROBLEM_DATABASE_CONNECTING,
                 [READER_STATE_DOWN] = PROBLEM_DATABASE_DOWN},
        };
        const struct problem_redis *list = search->facts->redis;
        char about[300];

        for (size_t i = 0; i < search->facts->n_redis; i++) {
                const struct problem_redis *redis = &list[i];
                struct problem problem = {.code = codes[!!redis->database][redis->state],
                                          .quoted = redis->error ? &redis->error->quoted : NULL};
                bool for_queues = true;
                size_t first = 0;

                while (first < i && !same_server(&list[first], redis))
                        first++;
                if (is_up(redis) || first < i)
                        continue;
                for (size_t j = i; j < search->facts->n_redis; j++) {
                        if (!same_server(redis, &list[j]))
                                continue;
                        add_fleets(search, list[j].link, &problem);
                        for_queues &= list[j].for_queues;
                }
                if (for_queues && reader_state_answers(redis->state) && !redis->quarantined)
                        continue;
                if (for_queues)
                        problem.code = PROBLEM_BROKER_DOWN;
                if (redis->quarantined)
                        problem.code = PROBLEM_SERVER_CRASHES_SQMGR;
                const char *why = redis->error && !redis->quarantined ? redis->error->text : NULL;
                snprintf(about, sizeof(about), "%s %s", redis->database ?: "Redis", redis->url);
                problems_add(search->problems, &problem, about, "%s%s%s; %s",
                             redis->quarantined ? "its data has ended sqmgr twice; read once a minute at most"
                                                : reader_state_text(redis->state),
                             why ? ": " : "", why ?: "",
                             for_queues ? "its queues are unknown" : "workers are left as they are");
        }
}

/* Returns what a host name that sqmgr has not given means for the heartbeats of the fleet. */
static const char *under_that_name(const struct fleet_settings *settings)
{
        return settings->namespaced ? "have that name instead of a unique one"
                                    : "under that name cannot be matched";
}

static void find_unknown(const struct search *search)
{
        for (size_t i = 0; i < search->facts->n_unknown; i++) {
                const struct problem_process *process = &search->facts->unknown[i];
                char about[32], command[32];
                struct quoted name;

                quoted_set(&name, process->command);
                snprintf(about, sizeof(about), "pid %d", (int)process->pid);
                snprintf(command, sizeof(command), "ps -fp %d", (int)process->pid);
                problems_add(search->problems,
                             &(struct problem){.code = PROBLEM_UNKNOWN_PROCESS,
                                               .severity = process->leads ? PROBLEM_WARNING : PROBLEM_NOTICE,
                                               .command = command,
                                               .quoted = &name},
                             about, "left by an earlier sqmgr and belongs to no worker%s",
                             process->leads ? "; it may run jobs" : "");
        }
}

static void find_of_machine(const struct search *search)
{
        const struct problem_facts *facts = search->facts;
        const struct world *world = search->world;
        usec_t ago = usec_sub(search->now, world->doubt.since);
        char text[256];

        if (world->shutting_down)
                problems_add(search->problems,
                             &(struct problem){.code = PROBLEM_SHUTTING_DOWN,
                                               .since = world->shutdown_at,
                                               .unready = true},
                             PROBLEM_ABOUT_FLEET, "shutting down, %s",
                             world_stopping_text(world, search->now, text, sizeof(text)));
        if (facts->save_error != 0)
                ADD_ABOUT(search, PROBLEM_STATE_UNWRITABLE, "state file", world->unsaved_since,
                          "'%s' cannot be written: %s", world->settings->state_file,
                          strerrordesc_np(facts->save_error));
        if (facts->orders_why)
                ADD_ABOUT(search, PROBLEM_STATE_UNWRITABLE, "orders", facts->orders_since,
                          "'%s' cannot be written, so a reboot undoes the last orders: %s",
                          facts->orders_file, facts->orders_why);
        if (facts->refused)
                ADD_ABOUT(search, PROBLEM_CONFIG_REFUSED, "config file", facts->refused_since,
                          "the next start of sqmgr would refuse '%s'", facts->refused);
        find_redis(search);
        if (world->settings->redis.tls_unverified)
                ADD_ABOUT(search, PROBLEM_TLS_UNVERIFIED, "tls_verify", 0,
                          "the certificate of Redis is not checked");
        if (facts->files_limit != 0 && facts->files_limit < facts->files_needed)
                ADD_ABOUT(search, PROBLEM_OPEN_FILES, "open files", 0,
                          "the limit is %llu, but max_processes of all fleets needs up to %llu",
                          (unsigned long long)facts->files_limit, (unsigned long long)facts->files_needed);
        if (facts->is_root)
                problems_add(
                        search->problems,
                        &(struct problem){.code = PROBLEM_RUNS_AS_ROOT,
                                          .severity = facts->in_container ? PROBLEM_NOTICE : PROBLEM_WARNING},
                        "user", "sqmgr and its workers run as root");
        if (facts->renamed)
                ADD_ABOUT(search, PROBLEM_HOST_NAME_OVERRIDDEN, "environment", 0,
                          "%s is set for sqmgr itself; heartbeats of %s %s",
                          facts->renamed->traits->host_variable, facts->renamed->traits->title,
                          under_that_name(facts->renamed));
        find_unknown(search);
        if (world->doubt.since != 0 && ago < DOUBT_USEC)
                ADD_ABOUT(search, PROBLEM_CLOCK_JUMP, "clock", world->doubt.since,
                          "jumped %s ago, or the machine was suspended, or sqmgr stalled",
                          FORMAT_DURATION(ago));
}

/* Adds a problem that explains why workers are missing. Only the first such problem says how many are
 * missing. */
static void add_explaining(struct search *search, enum problem_code code, usec_t since,
                           const struct quoted *quoted, const char *text)
{
        bool enough_start = search->counts.active + search->counts.starting >= search->target;

        problems_add(search->problems,
                     &(struct problem){
                             .code = code,
                             .fleet = search->fleet,
                             .since = since,
                             .unready = search->is_short,
                             .severity = search->is_short && !enough_start ? PROBLEM_ERROR : PROBLEM_NOTICE,
                             .quoted = quoted,
                     },
                     PROBLEM_ABOUT_FLEET, "%s%s", text, search->is_short ? search->lack : "");
        search->is_short = false;
}

/* Reports the operator's orders: a quieted or stopped fleet stays so until an operator starts it. */
static void find_orders(const struct search *search)
{
        const struct fleet *fleet = search->fleet;
        char ordered[FLEET_ORDERED_MAX], scaled[FLEET_SCALED_MAX];

        if (fleet->order != ORDER_RUN) {
                fleet_ordered_text(fleet, search->now, ordered);
                ADD(search, fleet->order == ORDER_STOP ? PROBLEM_FLEET_STOPPED : PROBLEM_FLEET_QUIETED,
                    fleet->order_at, "%s%s%s; %s", fleet->order == ORDER_STOP ? "stopped" : "quieted",
                    ordered[0] != '\0' ? " " : "", ordered,
                    fleet_settings_write_heartbeats(fleet->settings) ? "accepts no jobs"
                                                                     : "starts no workers");
        }
        if (!fleet_is_scaled(fleet))
                return;
        fleet_scaled_text(fleet, search->now, scaled);
        if (fleet_scales(fleet))
                ADD(search, PROBLEM_AUTOSCALING_OVERRIDDEN, fleet->scale_at,
                    "%s to %u; the count does not follow the queues", scaled, fleet_current_count(fleet));
        else
                ADD(search, PROBLEM_COUNT_ORDERED, fleet->scale_at,
                    "%s to %u, but active_process_count is %u", scaled, fleet_current_count(fleet),
                    fleet->settings->active_process_count);
}

static void find_in_environment(const struct search *search)
{
        const struct fleet_settings *settings = search->fleet->settings;
        const char *name = settings->traits->host_variable;
        size_t length = name ? strlen(name) : 0;

        for (char **entry = settings->environment_list; name && entry && *entry; entry++)
                if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
                        ADD(search, PROBLEM_ENVIRONMENT_HOST_NAME, 0,
                            "environment sets %s; heartbeats of %s %s", name, settings->traits->title,
                            under_that_name(settings));
}

static void find_in_settings(const struct search *search)
{
        const struct fleet_settings *settings = search->fleet->settings;
        const struct traits *traits = settings->traits;
        uint64_t places = fleet_max_processes(search->fleet), machine = search->facts->memory_bytes;
        usec_t timeout = 0;

        if (traits->stand_in)
                ADD(search, PROBLEM_FRAMEWORK_UNTRIED, 0,
                    "framework '%s' is tested with a stand-in; %s itself was run by hand only", traits->name,
                    traits->title);
        FLEET_FOREACH_WORKER(search->fleet, worker)
                timeout = MAX(timeout, worker->process.shutdown_usec);
        if (timeout > 0 && settings->stop_timeout < timeout + SETTINGS_STOP_MARGIN_USEC)
                ADD(search, PROBLEM_STOP_TIMEOUT_SHORT, 0,
                    "stop_timeout is %s, but %s needs up to %llus (%s) to re-enqueue its jobs; it would be "
                    "killed first",
                    FORMAT_DURATION(settings->stop_timeout), traits->title,
                    (unsigned long long)(timeout / USEC_PER_SEC), traits->shutdown_option);
        if (machine > 0 && settings->memory_threshold > machine / places)
                ADD(search, PROBLEM_MEMORY_OVERCOMMITTED, 0,
                    "memory_threshold %s x max_processes %llu exceeds the machine's memory of %s",
                    FORMAT_SIZE(settings->memory_threshold), (unsigned long long)places,
                    FORMAT_SIZE(machine));
        find_in_environment(search);
}

static void find_preload(const struct search *search)
{
        const char *refused = fleet_preload_refused(search->fleet);

        if (!search->fleet->settings->preload || !fleet_serves(search->fleet))
                return;
        if (refused[0] != '\0')
                ADD_QUOTING(search, PROBLEM_PRELOAD_REFUSED, 0,
                            fleet_preload_is_refused(search->fleet) ? &search->fleet->preload.quoted : NULL,
                            "workers boot separately despite preload = yes: %s", refused);
        /* With scale to zero, the template lets the first job begin at once. */
        else if (fleet_target(search->fleet) == 1 && search->fleet->settings->active_process_count > 0)
                ADD(search, PROBLEM_PRELOAD_SINGLE, 0,
                    "preload with one worker shares no memory; the template needs memory of its own");
}

static void find_return(const struct search *search)
{
        const struct fleet *fleet = search->fleet;
        const struct template *template = fleet_template(fleet);
        char where[FORMAT_MAX + 96];

        if (!fleet->rollout.returned)
                return;
        if (template)
                snprintf(where, sizeof(where), "runs from the template in memory (%s) until the next restart",
                         FORMAT_SIZE(template->memory_bytes));
        else
                snprintf(where, sizeof(where), "%s",
                         rollout_withholds(fleet)
                                 ? "no worker is started until the next restart"
                                 : "that release is not in memory; the next worker starts from the command");
        ADD(search, PROBLEM_ROLLED_BACK, 0, "rolled back from generation %llu to %llu; %s",
            (unsigned long long)fleet->newest_generation, (unsigned long long)fleet->generation, where);
}

static void find_rollout(const struct search *search)
{
        const struct fleet *fleet = search->fleet;
        const struct rollout *rollout = &fleet->rollout;
        usec_t blocked = usec_sub(search->now, rollout->progress_at);

        if (rollout->state == ROLLOUT_HALTED)
                ADD_QUOTING(search, PROBLEM_ROLLOUT_HALTED,
                            MIN(MAX(rollout->failed_at, rollout->progress_at), search->now), &rollout->quoted,
                            "restart halted; %s (reason: %s)",
                            search->counts.outdated > 0 || rollout->returned ? "old workers keep running"
                                                                             : "no old workers are left",
                            rollout->error);
        if (rollout->state != ROLLOUT_RUNNING || search->world->shutting_down)
                return;
        if (rollout->failures > 0)
                ADD(search, PROBLEM_ROLLOUT_SLOW, rollout->failed_at,
                    "restart is slow: %u new workers in a row failed; waiting for one that stays active",
                    rollout->failures);
        else if (search->counts.outdated > 0 && blocked >= fleet->settings->rollout_timeout / 2)
                ADD(search, PROBLEM_ROLLOUT_SLOW, rollout->progress_at,
                    "restart has made no progress for %s; halts after %s (rollout_timeout)",
                    FORMAT_DURATION(blocked - blocked % USEC_PER_SEC),
                    FORMAT_DURATION(fleet->settings->rollout_timeout));
}

static void find_failed_starts(struct search *search)
{
        const struct fleet *fleet = search->fleet;
        enum crash_state state = fleet_crash_state(fleet, search->now);
        char text[CRASH_TEXT_MAX];

        /* A server that is down has a problem of its own. */
        if (fleet_order(fleet) != ORDER_RUN || !fleet->redis_up ||
            (state != CRASH_FAILING && state != CRASH_RECOVERING))
                return;
        fleet_crash_text(fleet, search->now, text, sizeof(text));
        if (state == CRASH_RECOVERING)
                ADD_QUOTING(search, PROBLEM_CRASH_RECOVERING, fleet->crash.since, fleet_crash_quoted(fleet),
                            "%s", text);
        else
                add_explaining(search,
                               fleet->crash.count >= FLEET_CRASH_LOOP ? PROBLEM_CRASH_LOOP
                                                                      : PROBLEM_START_FAILED,
                               fleet->crash.since, fleet_crash_quoted(fleet), text);
}

static void find_churn(const struct search *search)
{
        const struct fleet *fleet = search->fleet;

        if (fleet->churn.count >= CHURN_MIN)
                ADD(search, PROBLEM_MEMORY_CHURN, fleet->churn.since,
                    "%u replacements in a row exceeded memory_threshold %s soon after boot",
                    fleet->churn.count, FORMAT_SIZE(fleet->settings->memory_threshold));
}

static enum problem_code problem_of_wait(enum wait wait)
{
        switch (wait) {
        case WAIT_PLACES:
                return PROBLEM_PLACES_HELD;
        case WAIT_MEMORY:
                return PROBLEM_MEMORY_SHORT;
        case WAIT_FORK:
                return PROBLEM_START_IMPOSSIBLE;
        case WAIT_HUNG:
                return PROBLEM_FLEET_SILENT;
        default:
                return PROBLEM_NONE;
        }
}

/* Reports waits of the fleet that are not part of normal operation, once they last. */
static void find_wait(struct search *search)
{
        const struct fleet *fleet = search->fleet;
        enum problem_code code = problem_of_wait(fleet->wait_reported);
        char text[512];

        if (code == PROBLEM_NONE || fleet->waits_for != fleet->wait_reported ||
            (!search->is_short && usec_sub(search->now, fleet->wait_at) < LASTS_USEC))
                return;
        add_explaining(search, code, fleet->wait_at, NULL,
                       fleet_waits_for(fleet, search->now, text, sizeof(text)));
}

/* Reports missing workers, unless another problem has reported them. */
static void find_shortage(struct search *search)
{
        const struct fleet *fleet = search->fleet;
        bool starts = search->counts.active + search->counts.starting >= search->target;
        char waits[512], text[640];

        if (!search->is_short)
                return;
        fleet_waits_for(fleet, search->now, waits, sizeof(waits));
        snprintf(text, sizeof(text), "%u of %u worker%s active, %u starting%s%s", search->counts.active,
                 search->target, plural(search->target), search->counts.starting,
                 waits[0] != '\0' ? "; " : "", waits);
        search->lack[0] = '\0';
        add_explaining(search, starts ? PROBLEM_FLEET_STARTING : PROBLEM_FLEET_SHORT, fleet->short_since,
                       NULL, text);
}

enum problem_code problem_of_worker(const struct worker *worker)
{
        const struct worker_heartbeat *heartbeat = &worker->heartbeat;

        if (worker->state == WORKER_GONE)
                return PROBLEM_NONE;
        if (heartbeat->hung)
                return PROBLEM_WORKER_HUNG;
        if (heartbeat->ambiguous)
                return PROBLEM_WORKER_AMBIGUOUS;
        if ((worker->process.booted || worker->process.elsewhere) && !heartbeat->seen)
                return PROBLEM_WORKER_ELSEWHERE;
        if (worker_is_unseen(worker))
                return worker->fleet->settings->traits->shim && heartbeat->fault == HEARTBEAT_FAULT_NONE
                               ? PROBLEM_SHIM_NOT_LOADED
                               : PROBLEM_WORKER_UNSEEN;
        if (heartbeat->fault > HEARTBEAT_FAULT_BEGUN && (!heartbeat->seen || heartbeat->stale_reported))
                return PROBLEM_HEARTBEAT_REFUSED;
        if (worker->orders.unconfirmed)
                return PROBLEM_STOP_UNCONFIRMED;
        if (worker->process.shimless)
                return PROBLEM_SHIM_NOT_LOADED;
        if (worker->state == WORKER_QUIET && heartbeat->polling_usec > 0)
                return PROBLEM_POLL_DOES_NOT_END;
        if (worker->verdict.waits_for == WAIT_SIGNAL)
                return PROBLEM_SIGNAL_REFUSED;
        if (worker->orders.succeeded || worker->evidence.sibling_reported)
                return PROBLEM_WORKER_SEVERAL;
        if (worker_is_deaf(worker))
                return PROBLEM_WORKER_DEAF;
        return heartbeat->stale_reported ? PROBLEM_WORKER_STALE : PROBLEM_NONE;
}

static void elsewhere_text(const struct search *search, const struct worker *worker, char *text, size_t size)
{
        const struct redis_comparison *redis = &worker->process.redis;
        char differs[REDIS_DIFFERENCE_MAX];
        const char *peers = worker->evidence.peers;

        if (redis->difference != REDIS_SAME)
                snprintf(text, size, "has booted, but its heartbeat was not found: %s%s",
                         redis_difference_text(redis, differs), search->lack);
        else
                snprintf(text, size, "has booted, but its heartbeat was not found%s%s%s%s",
                         worker->fleet->settings->namespaced
                                 ? ", or another worker has the same host name and pid"
                                 : "",
                         peers[0] != '\0' ? "; connected to " : "", peers, search->lack);
}

static void shimless_text(const struct search *search, const struct worker *worker, char *text, size_t size)
{
        char why[WORKER_SHIMLESS_MAX];

        snprintf(text, size, "%s: %s%s",
                 worker->orders.signal_error == ENOTSUP
                         ? "is not known to catch its stop signal, and is kept until it exits"
                 : worker_is_unseen(worker)
                         ? "no heartbeat was found within boot_timeout, and it may run jobs"
                         : "only its exit shows the end of its jobs",
                 worker_shimless_text(worker, why), worker_is_unseen(worker) ? search->lack : "");
}

static const char *worker_text(const struct search *search, const struct worker *worker,
                               enum problem_code code, char *text, size_t size)
{
        char span[FORMAT_MAX], why[WORKER_UNSEEN_MAX];
        usec_t silent = usec_sub(search->now, worker->heartbeat.changed_at);

        format_duration(silent - silent % USEC_PER_SEC, span, sizeof(span));
        switch (code) {
        case PROBLEM_WORKER_HUNG:
                snprintf(text, size, "hung: no heartbeat for %s (hang_after); no longer counts as active%s",
                         span, search->lack);
                break;
        case PROBLEM_WORKER_AMBIGUOUS:
                snprintf(text, size, "%s",
                         worker->heartbeat.seen
                                 ? "process title contradicts the heartbeat, which may belong to another "
                                   "process"
                                 : "several processes send heartbeats under the same host name and pid");
                break;
        case PROBLEM_WORKER_ELSEWHERE:
                elsewhere_text(search, worker, text, size);
                break;
        case PROBLEM_WORKER_UNSEEN:
                snprintf(text, size, "no heartbeat was found within boot_timeout, and it may run jobs: %s%s",
                         worker_unseen_text(worker, why), search->lack);
                break;
        case PROBLEM_SHIM_NOT_LOADED:
                shimless_text(search, worker, text, size);
                break;
        case PROBLEM_HEARTBEAT_REFUSED:
                snprintf(text, size, "heartbeat does not count: %s",
                         heartbeat_fault_text(worker->heartbeat.fault));
                break;
        case PROBLEM_STOP_UNCONFIRMED:
                snprintf(text, size,
                         "may not have received its stop signal: sqmgr ended while sending the signal; a "
                         "second signal would end running jobs");
                break;
        case PROBLEM_SIGNAL_REFUSED:
                worker_waits_for(worker, search->now, text, size);
                break;
        case PROBLEM_WORKER_SEVERAL:
                snprintf(text, size, "command has started a second process of %s, which accepts jobs, too",
                         worker->fleet->settings->traits->title);
                break;
        case PROBLEM_POLL_DOES_NOT_END:
                snprintf(text, size,
                         "quieted, and has waited for %s for the end of a request to its broker, which may "
                         "still bring a job",
                         FORMAT_DURATION(worker->heartbeat.polling_usec));
                break;
        case PROBLEM_WORKER_DEAF:
                format_duration(usec_sub(search->now, worker->deaf.since), span, sizeof(span));
                if (worker->deaf.loop_stands) {
                        snprintf(text, size, "deaf: its loop that fetches jobs has not turned for %s", span);
                        break;
                }
                snprintf(text, size,
                         "deaf: ran no job for %s, although jobs wait in a queue that it serves and other "
                         "workers run such jobs",
                         span);
                break;
        default:
                snprintf(text, size, "no heartbeat for %s; kept, no signal sent", span);
        }
        return text;
}

static usec_t worker_since(const struct worker *worker, enum problem_code code)
{
        switch (code) {
        case PROBLEM_WORKER_HUNG:
        case PROBLEM_WORKER_STALE:
                return worker->heartbeat.changed_at;
        case PROBLEM_WORKER_DEAF:
                return worker->deaf.since;
        case PROBLEM_WORKER_ELSEWHERE:
                return worker->process.boot_seen_at ?: worker->spawned_at;
        default:
                return worker->state_at;
        }
}

static void find_in_worker(struct search *search, const struct worker *worker)
{
        const struct fleet_counts *counts = &search->counts;
        enum problem_code code = problem_of_worker(worker);
        char text[512], command[STOP_COMMAND_MAX];
        /* Workers that hang or whose heartbeat is elsewhere explain the shortage if no other is missing. */
        bool explains =
                search->is_short &&
                ((code == PROBLEM_WORKER_HUNG && counts->hung > 0 &&
                  counts->active + counts->starting + counts->hung >= search->target) ||
                 (code == PROBLEM_WORKER_ELSEWHERE && counts->active + counts->elsewhere >= search->target) ||
                 ((code == PROBLEM_WORKER_UNSEEN || code == PROBLEM_SHIM_NOT_LOADED) &&
                  worker_is_unseen(worker) && counts->active + counts->starting >= search->target));
        struct problem problem = {.code = code,
                                  .fleet = worker->fleet,
                                  .worker = worker,
                                  .unready = explains,
                                  .since = code == PROBLEM_NONE ? 0 : worker_since(worker, code)};

        if (code == PROBLEM_NONE)
                return;
        if (code == PROBLEM_STOP_UNCONFIRMED && search->facts->stop_signal)
                problem.command = worker_stop_command(worker, search->facts->stop_signal(worker), command,
                                                      sizeof(command));
        problems_add(search->problems, &problem, PROBLEM_ABOUT_FLEET, "%s",
                     worker_text(search, worker, code, text, sizeof(text)));
        search->is_short &= !explains;
}

static void find_in_fleet(struct search *search)
{
        const struct fleet *fleet = search->fleet;

        search->counts = fleet_count(fleet, search->now);
        search->target = fleet_target(fleet);
        search->is_short =
                fleet_order(fleet) == ORDER_RUN && fleet->redis_up && search->counts.active < search->target;
        search->lack[0] = '\0';
        if (search->is_short)
                snprintf(search->lack, sizeof(search->lack), "; %u of %u worker%s active",
                         search->counts.active, search->target, plural(search->target));
        if (!fleet->settings->removed) {
                find_orders(search);
                if (search->facts->features)
                        search->facts->features(search->facts->userdata, fleet, search->now,
                                                search->problems);
                find_in_settings(search);
                find_rollout(search);
                find_return(search);
                find_failed_starts(search);
                find_preload(search);
                find_churn(search);
        }
        FLEET_FOREACH_WORKER(fleet, worker)
                find_in_worker(search, worker);
        find_wait(search);
        find_shortage(search);
}

void problems_judge(struct problems *problems, const struct problem_facts *facts, const struct world *world,
                    struct fleet *const *fleets, size_t n_fleets, usec_t now)
{
        struct search search = {.problems = problems, .facts = facts, .world = world, .now = now};

        find_of_machine(&search);
        FOREACH_POINTER(fleet, fleets, n_fleets) {
                search.fleet = fleet;
                find_in_fleet(&search);
        }
}
