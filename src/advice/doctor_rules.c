/* SPDX-License-Identifier: MIT */
/* Checks of doctor; see the header. */
#include "advice/doctor_rules.h"
#include "advice/problem_rules.h"
#include "base/parse.h"
#include "model/server_facts.h"
#include "model/world.h"
#include <stdio.h>

static void check_eviction(struct problems *findings, const char *about, const struct redis_facts *facts)
{
        if (facts->policy[0] == '\0')
                problems_note(findings, PROBLEM_WARNING, about,
                              "Check maxmemory-policy in Redis; it must be noeviction",
                              "maxmemory-policy is not reported: whether Redis may evict jobs is unknown");
        else if (strcmp(facts->policy, "noeviction") != 0)
                problems_note(findings, facts->has_limit ? PROBLEM_ERROR : PROBLEM_WARNING, about,
                              "Set maxmemory-policy to noeviction",
                              "maxmemory-policy is %s: Redis may evict jobs %s", facts->policy,
                              facts->has_limit ? "when its memory is full"
                                               : "once maxmemory is set and reached");
        else
                problems_note(findings, PROBLEM_OK, about, NULL, "no eviction (maxmemory-policy noeviction)");
        if (facts->evicted > 0)
                problems_note(findings, PROBLEM_ERROR, about,
                              "Give the jobs a Redis of their own, separate from any cache",
                              "%llu keys evicted since Redis started (reason: shared with a cache, or too "
                              "little memory)",
                              (unsigned long long)facts->evicted);
}

static void check_persistence(struct problems *findings, const struct redis_facts *facts, const char *about)
{
        if (facts->snapshot_failed)
                problems_note(findings, PROBLEM_ERROR, about,
                              "Check the log of Redis, and whether its disk is full",
                              "last snapshot failed; Redis may refuse new jobs");
        if (facts->is_appending)
                problems_note(findings, PROBLEM_OK, about, NULL,
                              "persistence by append-only file (appendonly)");
        else if (!facts->has_save) {
                problems_note(findings, PROBLEM_WARNING, about,
                              "Check 'appendonly' and 'save' in the settings of Redis",
                              "persistence is unknown (reason: Redis refuses CONFIG)");
                problems_quote(findings, &facts->config_error);
        } else if (facts->save[0] == '\0')
                problems_note(findings, PROBLEM_ERROR, about, "Set appendonly to yes",
                              "no persistence: all jobs are lost when Redis restarts");
        else
                problems_note(findings, PROBLEM_OK, about, NULL, "persistence by snapshots (save %s)",
                              facts->save);
}

void doctor_redis(struct problems *findings, const char *about, const struct error_report *error,
                  const struct redis_facts *facts)
{
        if (error) {
                problems_note(findings, PROBLEM_ERROR, about,
                              "Check that Redis runs, and compare its address with [redis] and redis_url",
                              "unreachable: %s", error->text);
                problems_quote(findings, &error->quoted);
                return;
        }
        if (!facts->has_info) {
                problems_note(findings, PROBLEM_WARNING, about,
                              "Allow INFO for this user, or check the settings of Redis yourself",
                              "settings are unknown (reason: Redis refuses INFO)");
                problems_quote(findings, &facts->info_error);
                return;
        }
        check_eviction(findings, about, facts);
        check_persistence(findings, facts, about);
}

/* Returns the remedy for a command that lacks an option. */
static const char *missing_option(const struct traits *traits)
{
        const struct command_flaw *flaw = traits->command_flaws;

        while (flaw && flaw->text && flaw->options[0])
                flaw++;
        return flaw && flaw->text ? flaw->remedy : NULL;
}

/* Checks the processes of the framework that do not run jobs. */
static void check_roles(struct problems *findings, const struct database_facts *facts, const char *title,
                        const char *about)
{
        if (facts->dispatchers == 0)
                problems_note(
                        findings, PROBLEM_ERROR, about,
                        "Run a dispatcher in one of the fleets: 'dispatchers' in its config/queue.yml",
                        "no dispatcher of %s has a current heartbeat: jobs that wait for their time, or for "
                        "another job, do not run",
                        title);
        if (facts->recurring > 0 && facts->schedulers == 0)
                problems_note(
                        findings, PROBLEM_WARNING, about, "Run one process without '--skip-recurring'",
                        "no scheduler of %s has a current heartbeat, so %llu recurring task%s not enqueued",
                        title, (unsigned long long)facts->recurring, facts->recurring == 1 ? " is" : "s are");
}

void doctor_database(struct problems *findings, const char *about, const struct error_report *error,
                     const struct database_facts *facts, const struct traits *traits)
{
        const char *title = traits->title;
        size_t before = findings->n;

        if (error) {
                problems_note(findings, PROBLEM_ERROR, about,
                              "Fix what the error names; check that the database runs and that "
                              "database_url fits it",
                              "cannot be read: %s", error->text);
                problems_quote(findings, &error->quoted);
                return;
        }
        if (facts->read_only)
                problems_note(findings, PROBLEM_ERROR, about, "Give sqmgr the primary in database_url",
                              "the server refuses writes, so it may lag behind the one that %s writes to",
                              title);
        if (facts->forking > 0)
                problems_note(
                        findings, PROBLEM_ERROR, about, missing_option(traits),
                        "%llu supervisor%s of %s on this host fork%s workers, which sqmgr does not supervise",
                        (unsigned long long)facts->forking, plural(facts->forking), title,
                        facts->forking == 1 ? "s its" : " their");
        if (facts->has_roles)
                check_roles(findings, facts, title, about);
        if (facts->paused_queues > 0)
                problems_note(findings, PROBLEM_WARNING, about,
                              "Resume the queues if nobody paused them on purpose",
                              "%llu paused queue%s of %s: jobs there wait",
                              (unsigned long long)facts->paused_queues, plural(facts->paused_queues), title);
        if (facts->failed > 0)
                problems_note(
                        findings, PROBLEM_WARNING, about,
                        "Retry the jobs, and set rescue_jobs = requeue to have sqmgr re-enqueue such jobs",
                        "jobs that %s failed in the last hour because their process died: %llu", title,
                        (unsigned long long)facts->failed);
        if (findings->n == before)
                problems_note(findings, PROBLEM_OK, about, NULL, "reachable%s%s",
                              facts->version[0] != '\0' ? ", version " : "", facts->version);
}

void doctor_machine(struct problems *findings, int overcommit, const struct problem_facts *facts,
                    struct problems *problems, const struct world *world)
{
        static const char about[] = "machine";

        if (overcommit == 0)
                problems_note(findings, PROBLEM_WARNING, about,
                              "Run 'sysctl vm.overcommit_memory=1', and set it in /etc/sysctl.d",
                              "vm.overcommit_memory is 0; Redis may fail to save while memory is short");
        else if (overcommit > 0)
                problems_note(findings, PROBLEM_OK, about, NULL, "vm.overcommit_memory is %d", overcommit);
        problems_move(problems, NULL, findings);
        if (!problems_find(findings, PROBLEM_CLOCK_JUMP))
                problems_note(findings, PROBLEM_OK, about, NULL,
                              "no clock jump or suspend within the last hour");
        if (!problems_find(findings, PROBLEM_STATE_UNWRITABLE))
                problems_note(findings, PROBLEM_OK, "state file", NULL, "'%s' can be written",
                              world->settings->state_file);
        if (facts->files_limit != 0 && !problems_find(findings, PROBLEM_OPEN_FILES))
                problems_note(
                        findings, PROBLEM_OK, "open files", NULL, "the limit is %llu, up to %llu are needed",
                        (unsigned long long)facts->files_limit, (unsigned long long)facts->files_needed);
}

static void check_worker(struct problems *findings, const struct doctor_worker *facts)
{
        const struct worker *worker = facts->worker;
        const struct traits *traits = worker->fleet->settings->traits;
        char remedy[256];

        if (facts->other_namespace && !worker->fleet->settings->namespaced &&
            fleet_settings_write_heartbeats(worker->fleet->settings))
                problems_note(findings, PROBLEM_ERROR, WORKER_ID(worker),
                              "Set namespaced = yes, then run 'sqmgrctl restart'",
                              "runs in a PID namespace of its own; heartbeats cannot be matched");
        if (facts->version[0] != '\0' && strtoul(facts->version, NULL, 10) < traits->oldest_version) {
                snprintf(remedy, sizeof(remedy), "Upgrade to %s %u or newer", traits->title,
                         traits->oldest_version);
                problems_note(findings, PROBLEM_ERROR, WORKER_ID(worker), remedy,
                              "runs %s %s, which does not support the quiet signal", traits->title,
                              facts->version);
        }
}

/* Checks the options of the command. */
static void check_command(struct problems *findings, const struct fleet *fleet, const char *about)
{
        const struct command_flaw *flaw = fleet->settings->traits->command_flaws;
        char text[COMMAND_FLAW_MAX];

        for (; flaw && flaw->text; flaw++)
                if (command_has_flaw(fleet->settings, flaw))
                        problems_note(findings, flaw->prevents ? PROBLEM_ERROR : PROBLEM_WARNING, about,
                                      flaw->remedy, "%s", command_flaw_text(flaw, text));
}

/* After a failed start: until then, a worker may still be loading its application. */
static void check_heard(struct problems *findings, const struct fleet *fleet, const char *about)
{
        const struct fleet_settings *settings = fleet->settings;
        const char *remedy = settings->traits->unheard_remedy;
        unsigned n = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->heartbeat.seen)
                        return;
                n += worker->state == WORKER_STARTING;
        }
        if (remedy && fleet->redis_up && n > 0 && fleet->crash.count > 0)
                problems_note(findings, PROBLEM_ERROR, about, remedy,
                              "workers run, but no heartbeat of them is heard in %s",
                              fleet_settings_server(settings));
}

static void check_drains(struct problems *findings, const struct fleet *fleet, const char *about)
{
        if (fleet->abandoned.jobs > 0)
                problems_note(findings, PROBLEM_ERROR, about, fleet->settings->traits->drain_remedy,
                              "workers that were asked to exit have exited in the middle of jobs, the first "
                              "of them after %s; jobs: %zu (run again: %zu)",
                              FORMAT_DURATION(fleet->abandoned.after), fleet->abandoned.jobs,
                              fleet->abandoned.released);
}

void doctor_fleet(struct problems *findings, struct problems *problems, const struct doctor_fleet *facts)
{
        const struct fleet *fleet = facts->fleet;
        size_t before = findings->n;
        char about[PROBLEM_ABOUT_MAX];

        problems_move(problems, fleet, findings);
        problem_about(&(struct problem){.fleet = fleet}, about);
        check_command(findings, fleet, about);
        check_heard(findings, fleet, about);
        check_drains(findings, fleet, about);
        if (facts->start_error) {
                problems_note(findings, PROBLEM_ERROR, about,
                              "Fix the reason before the next worker has to start",
                              "workers cannot start: %s", facts->start_error->text);
                problems_quote(findings, &facts->start_error->quoted);
        }
        for (size_t i = 0; i < facts->n_workers; i++)
                check_worker(findings, &facts->workers[i]);
        if (findings->n == before)
                problems_note(findings, PROBLEM_OK, about, NULL, "settings and %zu worker%s checked",
                              facts->n_workers, plural(facts->n_workers));
}
