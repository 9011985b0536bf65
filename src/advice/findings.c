/* SPDX-License-Identifier: MIT */
/* Checks the environment; see the header. */
#include "advice/findings.h"
#include "base/parse.h"
#include "model/counts.h"
#include "model/crash.h"
#include "model/describe.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/queues.h"
#include "model/redis_facts.h"
#include "model/world.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long a doubt about time is reported. */
#define DOUBT_USEC USEC_PER_HOUR

static const char *const level_names[] = {
        [FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_PROBLEM] = "problem"};
DEFINE_ENUM_NAMES(finding_level_name, enum finding_level, _FINDING_LEVEL_MAX, level_names)

static void finding_free(struct finding *finding)
{
        free(finding->about);
        free(finding->text);
        free(finding->remedy);
}

void findings_clear(struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++)
                finding_free(&findings->list[i]);
        free(findings->list);
        *findings = (struct findings){0};
}

void findings_add(struct findings *findings, enum finding_level level, const char *about, const char *remedy,
                  const char *format, ...)
{
        struct finding *list = reallocarray(findings->list, findings->n + 1, sizeof(*list));
        va_list arguments;

        findings->lost |= !list;
        if (!list)
                return;
        findings->list = list;
        struct finding *finding = &list[findings->n];
        *finding = (struct finding){.level = level, .about = strdup(about)};
        finding->remedy = remedy ? strdup(remedy) : NULL;
        va_start(arguments, format);
        if (vasprintf(&finding->text, format, arguments) < 0)
                finding->text = NULL;
        va_end(arguments);
        if (finding->about && finding->text && (!remedy || finding->remedy)) {
                findings->n++;
                return;
        }
        findings->lost = true;
        finding_free(finding);
}

static void check_eviction(struct findings *findings, const char *about, const struct redis_facts *facts)
{
        if (facts->policy[0] == '\0')
                findings_add(findings, FINDING_WARNING, about,
                             "see its maxmemory-policy: noeviction is right",
                             "it does not tell whether it may throw jobs away");
        else if (strcmp(facts->policy, "noeviction") != 0)
                findings_add(findings, facts->has_limit ? FINDING_PROBLEM : FINDING_WARNING, about,
                             "set maxmemory-policy to noeviction",
                             "its maxmemory-policy is %s: it %s throw jobs away when its memory is full",
                             facts->policy, facts->has_limit ? "may" : "would, once maxmemory is set,");
        else
                findings_add(findings, FINDING_OK, about, NULL, "it throws nothing away (noeviction)");
        if (facts->evicted > 0)
                findings_add(
                        findings, FINDING_PROBLEM, about,
                        "give the jobs a Redis of their own, and a cache another one",
                        "it has thrown away %llu keys since it started: it is shared with a cache, or too "
                        "small",
                        (unsigned long long)facts->evicted);
}

static void check_persistence(struct findings *findings, const struct redis_facts *facts, const char *about)
{
        if (facts->snapshot_failed)
                findings_add(findings, FINDING_PROBLEM, about, "see its log, and whether its disk is full",
                             "its last snapshot failed: it may refuse to take jobs");
        if (facts->is_appending)
                findings_add(findings, FINDING_OK, about, NULL, "it writes all to disk (appendonly)");
        else if (!facts->has_save)
                findings_add(findings, FINDING_WARNING, about,
                             "see its settings 'appendonly' and 'save' yourself",
                             "whether it writes anything to disk is not known, since it refuses CONFIG: %s",
                             facts->config_error);
        else if (facts->save[0] == '\0')
                findings_add(findings, FINDING_PROBLEM, about, "set appendonly to yes",
                             "it writes nothing to disk: all jobs are lost when it restarts");
        else
                findings_add(findings, FINDING_OK, about, NULL, "it writes snapshots to disk (save %s)",
                             facts->save);
}

/* Checks what a rollout of many hosts depends on. */
static void check_group(struct findings *findings, const struct redis_facts *facts, const char *about)
{
        if (facts->is_cluster)
                findings_add(findings, FINDING_PROBLEM, about,
                             "use a Redis without it, with Sentinels for a failover",
                             "restarts of many hosts (rollout_group) do not work on Redis Cluster");
        else if (facts->replicas > 0 && strcmp(facts->min_replicas, "0") == 0)
                findings_add(
                        findings, FINDING_WARNING, about,
                        "set min-replicas-to-write to 1, where losing jobs at a failover is worse than "
                        "taking "
                        "none while no replica is there",
                        "a master that is cut off from its replicas goes on to take writes, which a failover "
                        "undoes: of jobs, and of one turn in a restart of many hosts");
}

void doctor_redis(struct findings *findings, const struct doctor_redis *redis)
{
        char about[300];

        snprintf(about, sizeof(about), "Redis %s", redis->url);
        if (redis->left_out)
                findings_add(findings, FINDING_PROBLEM, about,
                             "see what stands in that key, and who may write to it",
                             "the reply to '%s' was too large%s: it is left out for some minutes, for the "
                             "connection "
                             "was "
                             "lost by it",
                             redis->left_out, redis->n_left_out > 1 ? ", and more of them" : "");
        if (redis->error) {
                findings_add(findings, FINDING_PROBLEM, about, "see whether it runs, and the section [redis]",
                             "it cannot be asked: %s", redis->error);
                return;
        }
        if (!redis->facts->has_info) {
                findings_add(findings, FINDING_WARNING, about,
                             "allow INFO to this user, or see its settings yourself",
                             "nothing is known of its settings, since it refuses INFO: %s",
                             redis->facts->info_error);
                return;
        }
        check_eviction(findings, about, redis->facts);
        check_persistence(findings, redis->facts, about);
        if (redis->has_group)
                check_group(findings, redis->facts, about);
}

/* Reports whether orders are signed, and how the key gets to the other hosts: in one line. */
static void check_key(struct findings *findings, const struct fleet *fleet, const char *about,
                      const struct doctor_group *facts)
{
        const char *group = fleet->settings->rollout_group, *file = fleet->settings->rollout_key_file;
        const char *key = facts->default_key;
        char how[512], remedy[1024];

        if (file) {
                findings_add(findings, FINDING_OK, about, NULL,
                             "orders of group '%s' are signed with the key in '%s'; bring it to a host that "
                             "lacks it with 'scp -p %s root@HOST:%s'",
                             group, file, file, file);
                return;
        }
        if (facts->has_default_key)
                snprintf(how, sizeof(how), "run 'scp -p %.200s root@HOST:%.200s' for each other host", key,
                         key);
        else
                snprintf(how, sizeof(how),
                         "run '(umask 077; openssl rand -hex 32 >%.200s)', copy that file to each other host",
                         key);
        snprintf(remedy, sizeof(remedy),
                 "%s, set rollout_key_file = %.200s on all, and run 'sqmgrctl reload' on each", how, key);
        findings_add(findings, FINDING_WARNING, about, remedy,
                     "orders of group '%s' are not signed: whoever may write to its Redis can give them, and "
                     "a host delays what it cannot tell from theirs",
                     group);
}

void doctor_group(struct findings *findings, const struct fleet *fleet, const struct doctor_group *facts)
{
        const char *group = fleet->settings->rollout_group, *file = fleet->settings->rollout_key_file;
        char about[FLEET_NAME_MAX + 16], remedy[1024] = "see sqmgr-rollout(7)";

        snprintf(about, sizeof(about), "fleet '%s'", fleet->settings->name);
        if (facts->is_unsigned && file)
                snprintf(remedy, sizeof(remedy),
                         "if a host lacks this key, run 'scp -p %.200s root@HOST:%.200s', and 'sqmgrctl "
                         "reload' "
                         "there; see sqmgr-rollout(7)",
                         file, file);
        if (facts->trouble[0] != '\0')
                findings_add(findings, FINDING_PROBLEM, about, remedy,
                             "this host takes no part in restarts of group '%s': %s", group, facts->trouble);
        else
                findings_add(findings, FINDING_OK, about, NULL,
                             "this host takes part in restarts of group '%s'", group);
        check_key(findings, fleet, about, facts);
}

/* Reports who has read-only access. */
static void check_readers(struct findings *findings, const struct doctor_machine *machine,
                          const struct settings *settings)
{
        static const char about[] = "read socket";
        const char *path = settings_read_socket(settings);

        if (!path)
                findings_add(findings, FINDING_OK, about, NULL, "there is none");
        else if (!machine->has_readers)
                findings_add(findings, FINDING_PROBLEM, about,
                             "mend what the log says of read_socket, and restart sqmgr itself, its workers "
                             "live on",
                             "'%s' could not be opened: nobody can look there", path);
        else if (machine->readers)
                findings_add(findings, FINDING_OK, about, NULL,
                             "members of the group '%s' may look on '%s', and give no order",
                             machine->readers, path);
        else
                findings_add(findings, FINDING_OK, about, NULL,
                             "root and sqmgr's own user alone may look on '%s', and give no order there",
                             path);
}

static void check_pressure(struct findings *findings, const struct doctor_machine *machine,
                           const struct world *world)
{
        static const char about[] = "memory pressure";
        char text[PRESSURE_RESPONSE_TEXT_MAX];

        if (world->settings->pressure_limit == 0)
                return;
        if (!machine->pressure)
                findings_add(findings, FINDING_PROBLEM, about,
                             "start the kernel with psi=1, or take pressure_limit out",
                             "this kernel does not tell of it: pressure_limit has no effect");
        else if (pressure_response_holds(world))
                findings_add(
                        findings, FINDING_PROBLEM, about,
                        "see in 'sqmgrctl status' what the workers hold: run fewer, or give the machine more "
                        "memory",
                        "%s", pressure_response_text(world, text));
        else
                findings_add(findings, FINDING_OK, about, NULL, "it is below pressure_limit %u%%, by '%s'",
                             world->settings->pressure_limit, machine->pressure);
}

/* Checks whether the descriptors suffice before a start fails. */
static void check_files(struct findings *findings, const struct doctor_machine *machine)
{
        static const char about[] = "open files";
        char remedy[256];

        if (machine->files_limit == 0)
                return;
        snprintf(remedy, sizeof(remedy),
                 "raise LimitNOFILE= of its service, or 'ulimit -Hn', to %llu, and restart "
                 "sqmgr itself, its workers live on",
                 (unsigned long long)machine->files_needed);
        if (machine->files_limit < machine->files_needed)
                findings_add(findings, FINDING_WARNING, about, remedy,
                             "sqmgr may open %llu, and needs up to %llu for max_processes of its fleets: "
                             "starts of "
                             "workers would fail",
                             (unsigned long long)machine->files_limit,
                             (unsigned long long)machine->files_needed);
        else
                findings_add(findings, FINDING_OK, about, NULL, "sqmgr may open %llu, and needs up to %llu",
                             (unsigned long long)machine->files_limit,
                             (unsigned long long)machine->files_needed);
}

void doctor_machine(struct findings *findings, const struct doctor_machine *machine,
                    const struct world *world, usec_t now)
{
        static const char about[] = "machine", state[] = "state file";
        char remedy[256], span[FORMAT_MAX];

        if (machine->has_redis && machine->overcommit == 0)
                findings_add(findings, FINDING_WARNING, about,
                             "run 'sysctl vm.overcommit_memory=1', and set it in /etc/sysctl.d",
                             "vm.overcommit_memory is 0: Redis may be unable to save while memory is short");
        else if (machine->has_redis && machine->overcommit > 0)
                findings_add(findings, FINDING_OK, about, NULL, "vm.overcommit_memory is %d",
                             machine->overcommit);
        if (machine->renamed) {
                snprintf(remedy, sizeof(remedy), "unset %s for sqmgr and its workers",
                         machine->renamed->host_variable);
                findings_add(findings, FINDING_WARNING, about, remedy,
                             "%s is in the environment: %s beats under that name, and cannot be matched",
                             machine->renamed->host_variable, machine->renamed->title);
        }
        if (world->doubt.since != 0 && usec_sub(now, world->doubt.since) < DOUBT_USEC)
                findings_add(findings, FINDING_WARNING, about,
                             "see 'sqmgrctl events', and the machine's load and clock",
                             "the time was in doubt %s ago",
                             format_duration(usec_sub(now, world->doubt.since), span, sizeof(span)));
        else
                findings_add(findings, FINDING_OK, about, NULL, "the clocks agree");
        if (machine->save_error != 0)
                findings_add(findings, FINDING_PROBLEM, state,
                             "make its folder writable, and see whether its disk is full",
                             "'%s' cannot be written: %s", world->settings->state_file,
                             strerrordesc_np(machine->save_error));
        else
                findings_add(findings, FINDING_OK, state, NULL, "'%s' is written",
                             world->settings->state_file);
        check_files(findings, machine);
        check_pressure(findings, machine, world);
        check_readers(findings, machine, world->settings);
}

static void check_environment(struct findings *findings, const struct fleet_settings *settings,
                              const char *about)
{
        const char *name = settings->traits->host_variable;
        size_t length = name ? strlen(name) : 0;
        char remedy[256];

        for (char **entry = settings->environment_list; name && entry && *entry; entry++)
                if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
                        snprintf(remedy, sizeof(remedy), "take %s out of 'environment'", name);
                        findings_add(
                                findings, FINDING_WARNING, about, remedy,
                                "%s is in its environment: %s beats under that name, and cannot be matched",
                                name, settings->traits->title);
                }
}

static void check_settings(struct findings *findings, const struct doctor_machine *machine,
                           const struct fleet *fleet, const char *about)
{
        const struct fleet_settings *settings = fleet->settings;
        const struct traits *traits = settings->traits;
        uint64_t places = fleet_max_processes(fleet);
        char a[FORMAT_MAX], b[FORMAT_MAX], remedy[256];

        if (machine->is_root && !settings->user)
                findings_add(findings, FINDING_WARNING, about, "set 'user' to the application's",
                             "its workers run as root");
        if (traits->untried)
                findings_add(findings, FINDING_WARNING, about,
                             "try a restart under load, and one worker's death, before you rely on it",
                             "framework '%s' is untried: the tests of this version run a stand-in for %s",
                             traits->name, traits->title);
        usec_t timeout = 0;
        FLEET_FOREACH_WORKER(fleet, worker)
                timeout = MAX(timeout, worker->process.shutdown_usec);
        if (timeout > 0 && settings->stop_timeout < timeout + SETTINGS_STOP_MARGIN_USEC) {
                snprintf(remedy, sizeof(remedy), "set stop_timeout to at least 5s more than %s's own timeout",
                         traits->title);
                findings_add(findings, FINDING_PROBLEM, about, remedy,
                             "stop_timeout is %s, but its %s takes up to %llus (%s) to put its jobs back: it "
                             "would be "
                             "killed meanwhile",
                             format_duration(settings->stop_timeout, a, sizeof(a)), traits->title,
                             (unsigned long long)(timeout / USEC_PER_SEC), traits->shutdown_option);
        }
        if (machine->memory_bytes > 0 && settings->memory_threshold > machine->memory_bytes / places)
                findings_add(findings, FINDING_WARNING, about,
                             "lower memory_threshold or max_processes, or add memory",
                             "memory_threshold %s x max_processes %llu is above the machine's memory of %s",
                             format_size(settings->memory_threshold, a, sizeof(a)),
                             (unsigned long long)places, format_size(machine->memory_bytes, b, sizeof(b)));
        check_environment(findings, settings, about);
}

static void check_elsewhere(struct findings *findings, const struct worker *worker)
{
        const struct redis_comparison *redis = &worker->process.redis;
        char remedy[256] = "compare redis_url, namespace and host name with what the application uses";
        char why[WORKER_ELSEWHERE_MAX];

        if (redis->difference == REDIS_OTHER_DATABASE)
                snprintf(remedy, sizeof(remedy),
                         "set redis_url to database %u, or REDIS_URL in 'environment' or environment_file to "
                         "database %u",
                         redis->db, redis->other_db);
        else if (redis->difference == REDIS_OTHER_SERVER)
                snprintf(remedy, sizeof(remedy),
                         "set redis_url, and REDIS_URL in 'environment' or environment_file, to the same "
                         "server");
        findings_add(findings, FINDING_PROBLEM, WORKER_ID(worker), remedy,
                     "it has booted, but its heartbeat is not to be found%s%s",
                     redis->difference != REDIS_SAME     ? ": "
                     : worker->evidence.peers[0] != '\0' ? "; it is connected to "
                                                         : "",
                     redis->difference != REDIS_SAME ? worker_elsewhere_text(worker, why)
                                                     : worker->evidence.peers);
}

static void check_worker(struct findings *findings, const struct doctor_worker *facts)
{
        const struct worker *worker = facts->worker;
        const struct traits *traits = worker->fleet->settings->traits;
        const char *about = WORKER_ID(worker);
        char remedy[256], command[STOP_COMMAND_MAX];

        if (facts->other_namespace && fleet_settings_write_heartbeats(worker->fleet->settings))
                findings_add(findings, FINDING_PROBLEM, about, "start it in the same pid namespace as sqmgr",
                             "it runs in a pid namespace of its own: its heartbeats cannot be matched");
        else if (worker->heartbeat.ambiguous)
                findings_add(
                        findings, FINDING_PROBLEM, about,
                        "give each machine and container a host name of its own",
                        worker->heartbeat.seen
                                ? "its process title denies what its heartbeat says: that may be another's"
                                : "several processes beat under its host name and pid: which is its own "
                                  "cannot be told");
        else if ((worker->process.booted || worker->process.elsewhere) && !worker->heartbeat.seen)
                check_elsewhere(findings, worker);
        else if (worker->heartbeat.fault != HEARTBEAT_FAULT_NONE &&
                 (!worker->heartbeat.seen || worker->heartbeat.stale_reported))
                findings_add(findings, FINDING_PROBLEM, about,
                             "see sqmgr-heartbeat(7) for how it must be written, and by whom",
                             "its heartbeat does not count: %s",
                             heartbeat_fault_text(worker->heartbeat.fault));
        else if (worker->orders.succeeded || worker->evidence.sibling_reported)
                findings_add(findings, FINDING_WARNING, about,
                             "let its command start one, in the foreground, and leave it to sqmgr to start "
                             "it again",
                             "a worker is one %s: its command has started another one, which takes jobs, too",
                             traits->title);
        else if (worker->heartbeat.stale_reported)
                findings_add(findings, FINDING_WARNING, about, "see its log: it may hang",
                             "its heartbeat has stopped");
        if (worker->orders.unconfirmed) {
                snprintf(remedy, sizeof(remedy), "if it still accepts jobs, run '%s'",
                         worker_stop_command(worker, facts->stop_signal, command, sizeof(command)));
                findings_add(findings, FINDING_WARNING, about, remedy,
                             "it may not have received its stop signal: sqmgr ended while sending it, and a "
                             "second one would end its jobs");
        }
        if (facts->version[0] != '\0' && strtoul(facts->version, NULL, 10) < traits->oldest_version) {
                snprintf(remedy, sizeof(remedy), "upgrade to %s %u or newer", traits->title,
                         traits->oldest_version);
                findings_add(findings, FINDING_PROBLEM, about, remedy,
                             "it is %s %s, which does not know the signal that quiets it", traits->title,
                             facts->version);
        }
}

/* A quieted or stopped fleet stays so until an operator starts it. */
static void check_order(struct findings *findings, const struct fleet *fleet, const char *about, usec_t now)
{
        char ordered[FLEET_ORDERED_MAX], remedy[300];

        if (fleet->settings->removed || fleet->order == ORDER_RUN)
                return;
        fleet_ordered_text(fleet, now, ordered);
        snprintf(remedy, sizeof(remedy), "run 'sqmgrctl start %s'", fleet->settings->name);
        findings_add(findings, FINDING_WARNING, about, remedy, "%s%s%s: it %s",
                     fleet->order == ORDER_STOP ? "stopped" : "quieted", ordered[0] != '\0' ? " " : "",
                     ordered,
                     fleet_settings_write_heartbeats(fleet->settings) ? "takes no jobs" : "starts no worker");
}

/* A scale order outlives its cause: an operator must remove it or change the file. */
static void check_scale(struct findings *findings, const struct fleet *fleet, const char *about, usec_t now)
{
        unsigned count = fleet->settings->active_process_count;
        char scaled[FLEET_SCALED_MAX], remedy[300];

        if (!fleet_is_scaled(fleet))
                return;
        if (fleet_scales(fleet)) {
                snprintf(remedy, sizeof(remedy), "run 'sqmgrctl scale %s auto' once that is no longer wanted",
                         fleet->settings->name);
                findings_add(findings, FINDING_WARNING, about, remedy,
                             "its count does not follow its queues: %s, to %u",
                             fleet_scaled_text(fleet, now, scaled), fleet_current_count(fleet));
                return;
        }
        snprintf(remedy, sizeof(remedy), "set active_process_count to %u, or run 'sqmgrctl scale %s %u'",
                 fleet_current_count(fleet), fleet->settings->name, count);
        findings_add(findings, FINDING_WARNING, about, remedy,
                     "active_process_count is %u, but the count in force is %u: %s", count,
                     fleet_current_count(fleet), fleet_scaled_text(fleet, now, scaled));
}

static void check_preload(struct findings *findings, const struct fleet *fleet, const char *about)
{
        const char *refused = fleet_preload_refused(fleet);

        if (!fleet->settings->preload || fleet_target(fleet) == 0)
                return;
        if (refused[0] != '\0')
                findings_add(findings, FINDING_WARNING, about,
                             "mend that and run 'sqmgrctl restart', or set preload = no: see sqmgr.ini(5)",
                             "preload: its workers boot separately: %s", refused);
        else if (fleet_target(fleet) == 1)
                findings_add(findings, FINDING_WARNING, about,
                             "set preload = no, unless a quick replacement is worth that",
                             "preload: its one worker shares with nobody, and the template costs memory "
                             "besides it");
}

static void check_crashes(struct findings *findings, const struct fleet *fleet, usec_t now, const char *about)
{
        enum crash_state state = fleet_crash_state(fleet, now);
        char remedy[FLEET_NAME_MAX + 128], text[CRASH_TEXT_MAX];

        if (fleet->rollout.state == ROLLOUT_HALTED) {
                snprintf(remedy, sizeof(remedy),
                         "mend the release, then run 'sqmgrctl restart %s'; or go back to the old one, then "
                         "run "
                         "'sqmgrctl abort %s'",
                         fleet->settings->name, fleet->settings->name);
                findings_add(findings, FINDING_PROBLEM, about, remedy, "its restart halted: %s",
                             fleet->rollout.error);
        }
        /* A quieted or stopped fleet starts no worker, and a restart does not start a stopped one. */
        if (fleet_order(fleet) != ORDER_RUN || fleet->crash.count < FLEET_CRASH_LOOP)
                return;
        fleet_crash_text(fleet, now, text, sizeof(text));
        if (state == CRASH_FAILING)
                findings_add(findings, FINDING_PROBLEM, about, "mend that, then run 'sqmgrctl restart'", "%s",
                             text);
        else if (state == CRASH_RECOVERING)
                findings_add(findings, FINDING_WARNING, about, "see to what it died of", "%s", text);
}

void doctor_fleet(struct findings *findings, const struct doctor_machine *machine, const struct fleet *fleet,
                  const struct doctor_worker *workers, size_t n_workers, usec_t now)
{
        size_t before = findings->n;
        char about[300];

        snprintf(about, sizeof(about), "fleet '%s'", fleet->settings->name);
        check_order(findings, fleet, about, now);
        check_scale(findings, fleet, about, now);
        if (machine->trouble)
                machine->trouble(machine->userdata, fleet, about, now, findings);
        check_settings(findings, machine, fleet, about);
        check_crashes(findings, fleet, now, about);
        check_preload(findings, fleet, about);
        for (size_t i = 0; i < n_workers; i++)
                check_worker(findings, &workers[i]);
        if (findings->n == before)
                findings_add(findings, FINDING_OK, about, NULL, "its settings and %zu worker%s", n_workers,
                             n_workers == 1 ? "" : "s");
}
