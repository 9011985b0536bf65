/* SPDX-License-Identifier: MIT */
/* Trials: the evidence of windows, the verdict, and what a fleet makes of it. */
/* promises: P7 */
#include "continuity/codec.h"
#include "daemon/runtime/subsystem.h"
#include "decide/command.h"
#include "model/rollout.h"
#include "model/worker_facts.h"
#include "observe/observe.h"
#include "rollout_trial/trial_rules.h"
#include "world.h"
#include <math.h>

TEST_WORLD(5)
{
        t.fleet_settings.ready_after = 0;
        t.fleet_settings.rollout_trial = 10 * USEC_PER_MIN;
        t.fleet_settings.rollout_trial_share = (struct share){.value = 20, .percent = true};
        test_settle(&t);
}

static double log_choose(double n, double k)
{
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* The expectation, by its definition. */
static double naive(double n, double m, double failed, double ratio)
{
        double sum = 0;

        for (double k = fmax(0, failed - m); k <= fmin(n, failed); k++)
                sum += exp(log_choose(n, k) + log_choose(m, failed - k) - log_choose(n + m, failed) +
                           k * log(ratio));
        return log(sum);
}

TEST(the_evidence_is_the_likelihood_ratio)
{
        static const struct trial_counts cases[][2] = {
                {{10, 0}, {50, 1}},    {{10, 3}, {50, 10}},  {{1, 0}, {1, 1}},
                {{200, 2}, {900, 90}}, {{30, 29}, {40, 39}}, {{5, 0}, {1000, 999}},
        };

        FOREACH_ELEMENT(pair, cases) {
                const struct trial_counts *new = *pair, *old = new + 1;
                struct trial trial = {.begun_at = 1};

                trial_add(&trial, new, old);
                for (size_t i = 0; i < TRIAL_RATIOS; i++) {
                        /* The ratio follows from the mixture of one window: see it for each. */
                        static const double ratios[TRIAL_RATIOS] = {2, 3.2, 8, 40};
                        double expected = (double)new->failed *log(ratios[i]) -
                                          naive((double)new->processed, (double)old->processed,
                                                (double)(new->failed + old->failed), ratios[i]);

                        expected = fmin(expected, log(TRIAL_WINDOW_EVIDENCE_MAX));
                        ck_assert_msg(fabs(trial.evidence[i] - expected) < 1e-9, "%g, not %g",
                                      trial.evidence[i], expected);
                }
        }
}

TEST(a_window_that_can_say_nothing_says_nothing)
{
        static const struct trial_counts cases[][2] = {
                {{0, 0}, {0, 0}},           {{10, 0}, {50, 0}},
                {{10, 10}, {50, 50}},       {{0, 0}, {50, 10}},
                {{10, 5}, {0, 0}},          {{10, 11}, {50, 2}},
                {{10, 1}, {50, 51}},        {{TRIAL_WINDOW_MAX + 1, 9}, {50, 1}},
                {{10, 1}, {UINT64_MAX, 1}},
        };

        FOREACH_ELEMENT(pair, cases) {
                struct trial trial = {.begun_at = 1};

                trial_add(&trial, *pair, *pair + 1);
                ck_assert(fabs(trial_evidence(&trial) - 1) < 1e-9);
        }
}

TEST(the_largest_windows_are_finite)
{
        static const struct trial_counts large[][2] = {
                {{TRIAL_WINDOW_MAX, TRIAL_WINDOW_MAX}, {TRIAL_WINDOW_MAX, 0}},
                {{TRIAL_WINDOW_MAX, 0}, {TRIAL_WINDOW_MAX, TRIAL_WINDOW_MAX}},
                {{TRIAL_WINDOW_MAX, TRIAL_WINDOW_MAX / 2}, {TRIAL_WINDOW_MAX, TRIAL_WINDOW_MAX / 2}},
        };

        FOREACH_ELEMENT(pair, large) {
                struct trial trial = {.begun_at = 1};

                trial_add(&trial, *pair, *pair + 1);
                ck_assert(isfinite(trial_evidence(&trial)));
                ck_assert(trial_evidence(&trial) <= TRIAL_WINDOW_EVIDENCE_MAX + 1e-9);
        }
}

/* 100 workers of 50 jobs in a second. */
TEST(a_fleet_that_ends_thousands_of_jobs_in_a_second_is_judged)
{
        struct trial trial = {.begun_at = 1};

        for (unsigned i = 0; i < 4; i++) {
                ck_assert_int_eq(trial_judge(&trial, USEC_PER_HOUR, 2), TRIAL_RUNNING);
                trial_add(&trial, &(struct trial_counts){15000, 450}, &(struct trial_counts){135000, 1350});
        }
        ck_assert_int_eq(trial_judge(&trial, USEC_PER_HOUR, 2), TRIAL_WORSE);
}

TEST(one_window_decides_nothing_and_four_do)
{
        struct trial trial = {.begun_at = 1};
        static const struct trial_counts new = {500, 400}, old = {2500, 20};

        for (unsigned i = 1; i <= 4; i++) {
                ck_assert_int_eq(trial_judge(&trial, USEC_PER_HOUR, 2), TRIAL_RUNNING);
                trial_add(&trial, &new, &old);
        }
        ck_assert_int_eq(trial_judge(&trial, USEC_PER_HOUR, 2), TRIAL_WORSE);
}

TEST(the_verdict_at_the_end)
{
        struct trial trial = {.begun_at = 1000};

        trial_add(&trial, &(struct trial_counts){99, 0}, &(struct trial_counts){5000, 1});
        ck_assert_int_eq(trial_judge(&trial, 10, 1009), TRIAL_RUNNING);
        ck_assert_int_eq(trial_judge(&trial, 10, 1010), TRIAL_TOO_FEW);
        trial_add(&trial, &(struct trial_counts){1, 0}, &(struct trial_counts){0, 0});
        ck_assert_int_eq(trial_judge(&trial, 10, 1010), TRIAL_PASSED);
        ck_assert_int_eq(trial_judge(&trial, 10, 1009), TRIAL_RUNNING);
        /* Enough jobs are not enough windows. */
        trial_add(&trial, &(struct trial_counts){900, 0}, &(struct trial_counts){0, 0});
        for (unsigned i = 1; i < TRIAL_WINDOWS; i++) {
                ck_assert_int_eq(trial_judge(&trial, 10, 1009), TRIAL_RUNNING);
                trial_add(&trial, &(struct trial_counts){1, 0}, &(struct trial_counts){1, 0});
        }
        ck_assert_int_eq(trial_judge(&trial, 10, 1009), TRIAL_PASSED);
}

/* The jobs that the process of each worker has ended. Heartbeats of this world do not report them. */
static struct worker_outcomes done[64];
static pid_t pids[ELEMENTSOF(done)];

/* Each second every active worker ends two jobs. new_failed and old_failed are percentages. */
static void work(unsigned seconds, unsigned new_failed, unsigned old_failed, bool known)
{
        for (unsigned i = 0; i < seconds; i++) {
                FLEET_FOREACH_WORKER(t.fleet, worker) {
                        unsigned percent = worker_outdated(worker) ? old_failed : new_failed;
                        struct worker_outcomes *outcomes = &done[worker->index];

                        if (pids[worker->index] != worker->process.pid)
                                *outcomes = (struct worker_outcomes){0};
                        pids[worker->index] = worker->process.pid;
                        if (worker->state == WORKER_ACTIVE) {
                                outcomes->known = known;
                                outcomes->processed += 2;
                                outcomes->failed = outcomes->processed * percent / 100;
                        }
                        if (new_failed > old_failed && !worker_outdated(worker)) {
                                strcpy(outcomes->class, "ReportJob");
                                outcomes->class_failed = outcomes->failed;
                        }
                        worker->outcomes = *outcomes;
                }
                fleet_trial_observe(t.fleet, t.now);
                test_tick(&t, 1);
        }
}

static void restart(void)
{
        work(40, 0, 2, true);
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), COMMAND_DONE);
        fleet_trial_observe(t.fleet, t.now);
        ck_assert_uint_eq(t.fleet->rollout.limit, 1);
}

static unsigned new_workers(void)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(t.fleet, worker)
                n += worker->state == WORKER_ACTIVE && !worker_outdated(worker);
        return n;
}

TEST(a_release_that_is_not_worse_passes_after_enough_jobs)
{
        restart();
        work(60, 2, 2, true);
        ck_assert_uint_eq(new_workers(), 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_TRIAL);
        work(600, 2, 2, true);
        ck_assert_int_eq(t.fleet->trial->verdict, TRIAL_PASSED);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
        ck_assert_uint_eq(new_workers(), 5);
        ck_assert_uint_eq(test_events(&t, EVENT_TRIAL), 1);
}

TEST(a_worse_release_halts_and_leaves)
{
        restart();
        work(400, 20, 2, true);
        ck_assert_int_eq(t.fleet->trial->verdict, TRIAL_WORSE);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_ptr_nonnull(strstr(t.fleet->rollout.error, "jobs fail more often in the new release"));
        ck_assert_str_eq(quoted_reveal(&t.fleet->rollout.quoted), "class with the most failures: ReportJob");
        /* Generation 1 is current again. */
        ck_assert_uint_eq(t.fleet->generation, 1);
        ck_assert_uint_eq(new_workers(), 4);
}

TEST(without_counts_the_default_decides)
{
        restart();
        work(590, 20, 2, false);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_RUNNING);
        work(200, 20, 2, false);
        ck_assert_int_eq(t.fleet->trial->verdict, TRIAL_TOO_FEW);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_DONE);
}

TEST(the_default_may_be_to_halt)
{
        t.fleet_settings.rollout_trial_default = TRIAL_DEFAULT_HALT;
        restart();
        work(700, 0, 0, false);
        ck_assert_int_eq(test_rollout(&t), ROLLOUT_HALTED);
        ck_assert_uint_eq(t.fleet->generation, 1);
}

TEST(a_trial_of_an_aborted_restart_is_not_shown_as_running)
{
        restart();
        work(60, 2, 2, true);
        for (unsigned i = 0; i < 3; i++) {
                json_t *object = json_object();

                ck_assert_int_eq(rollout_trial_subsystem.status(NULL, t.fleet, object), 0);
                ck_assert_uint_eq(json_object_size(object), i == 0);
                json_decref(object);
                /* The second time: before the first pass of the next restart. */
                if (i == 0)
                        command_abort(t.fleet, NULL, t.now);
                else
                        command_restart(t.fleet, NULL, t.now);
        }
}

TEST(a_fleet_of_one_worker_is_not_judged)
{
        ck_assert(fleet_is_tried(t.fleet));
        t.fleet_settings.active_process_count = 1;
        ck_assert(!fleet_is_tried(t.fleet));
        command_restart(t.fleet, NULL, t.now);
        fleet_trial_observe(t.fleet, t.now);
        ck_assert_uint_eq(t.fleet->rollout.limit, 0);
        ck_assert_ptr_null(t.fleet->trial);
}

TEST(doctor_reports_workers_without_counts_and_fleets_of_one_worker)
{
        struct problems findings = {0};

        rollout_trial_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_ptr_nonnull(strstr(findings.list[0].text, "no active worker reports"));
        problems_clear(&findings);

        t.fleet->workers[0]->outcomes.known = true;
        rollout_trial_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 0);
        t.fleet_settings.active_process_count = 1;
        rollout_trial_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_ptr_nonnull(strstr(findings.list[0].text, "releases are not judged"));
        problems_clear(&findings);
        t.fleet_settings.rollout_trial = 0;
        rollout_trial_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 0);
}

TEST(the_next_sqmgr_continues_a_trial_and_counts_nothing_twice)
{
        struct codec_writer writer = {.now = 0};

        restart();
        work(200, 2, 2, true);
        const struct trial before = t.fleet->trial->trial;
        writer.now = t.now;
        fleet_trial_pack(NULL, t.fleet, &writer);
        fleet_trial_forget(t.fleet);
        for (size_t cut = 0; cut < writer.size; cut++) {
                struct codec_reader reader = {.at = writer.bytes, .left = cut, .now = t.now};

                fleet_trial_unpack(NULL, t.fleet, &reader);
                ck_assert_ptr_null(t.fleet->trial);
        }
        struct codec_reader reader = {.at = writer.bytes, .left = writer.size, .now = t.now};
        t.fleet_settings.removed = true;
        fleet_trial_unpack(NULL, t.fleet, &reader);
        ck_assert_ptr_null(t.fleet->trial);
        t.fleet_settings.removed = false;
        reader = (struct codec_reader){.at = writer.bytes, .left = writer.size, .now = t.now};
        fleet_trial_unpack(NULL, t.fleet, &reader);
        ck_assert_uint_eq(reader.left, 0);
        ck_assert_uint_eq(t.fleet->trial->trial.new.processed, before.new.processed);
        ck_assert_uint_eq(t.fleet->trial->trial.begun_at, before.begun_at);
        ck_assert(fabs(trial_evidence(&t.fleet->trial->trial) - trial_evidence(&before)) < 1e-3);
        work(33, 2, 2, true);
        ck_assert_uint_ge(t.fleet->trial->trial.new.processed, before.new.processed + 40);
        ck_assert_uint_le(t.fleet->trial->trial.new.processed, before.new.processed + 70);
        free(writer.bytes);
}

/* Their heartbeats are in another Redis, as were those of the old ones. */
TEST(the_trial_of_workers_whose_heartbeats_are_not_found_ends)
{
        struct worker *worker = NULL;

        t.newborn.silent = true;
        restart();
        t.fleet->rollout.elsewhere = true;
        test_run(&t, 2);
        FLEET_FOREACH_WORKER(t.fleet, other)
                if (other->state == WORKER_STARTING)
                        worker = other;
        if (!worker)
                ck_abort_msg("no new worker");
        observe_booted(worker, true, t.now);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t.now);
        observe_elsewhere(worker);
        for (unsigned i = 0; i < 3600; i++) {
                t.now += USEC_PER_SEC;
                observe_title(worker, true, 0, false);
                observe_title_elsewhere(worker, 5, t.now);
                fleet_trial_observe(t.fleet, t.now);
                rollout_observe_time(t.fleet, t.now);
        }
        ck_assert_int_eq(t.fleet->trial->verdict, TRIAL_TOO_FEW);
        ck_assert_uint_eq(t.fleet->rollout.limit, 0);
}

TEST_MAIN("trial", .each = {setup, teardown})
