/* SPDX-License-Identifier: MIT */
/* Registers trials as a subsystem of the daemon. */
#include "daemon/runtime/runtime.h"
#include "io/clock.h"
#include "model/world.h"
#include "rollout_trial/trial_rules.h"

static int begin(struct runtime *runtime, void **ret)
{
        *ret = runtime->world;
        return 0;
}

static void observe(void *self, usec_t now)
{
        const struct world *world = self;

        WORLD_FOREACH_FLEET(world, fleet)
                fleet_trial_observe(fleet, now);
}

/* The world frees a removed fleet later, and calls nothing here. */
static void join(void *self)
{
        const struct world *world = self;

        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->settings->removed)
                        fleet_trial_forget(fleet);
}

static void end(void *self)
{
        const struct world *world = self;

        WORLD_FOREACH_FLEET(world, fleet)
                fleet_trial_forget(fleet);
}

static json_t *render_counts(const struct trial_counts *counts)
{
        return json_pack("{s:I, s:I}", "processed", (json_int_t)counts->processed, "failed",
                         (json_int_t)counts->failed);
}

static int status(const void *self _unused_, const struct fleet *fleet, json_t *object)
{
        const struct fleet_trial *trial = fleet->trial;
        char text[TRIAL_TEXT_MAX];

        /* A trial without a verdict ends with its restart. The next one begins with the next pass. */
        if (!fleet_is_tried(fleet) || !trial || trial->trial.begun_at == 0 ||
            (trial->verdict == TRIAL_RUNNING &&
             (fleet->rollout.state != ROLLOUT_RUNNING || trial->generation != fleet->generation)))
                return 0;
        usec_t ends_at = usec_add(trial->trial.begun_at, fleet->settings->rollout_trial);
        json_t *left =
                trial->verdict == TRIAL_RUNNING
                        ? json_real((double)usec_sub(ends_at, clock_now(CLOCK_MONOTONIC)) / USEC_PER_SEC)
                        : json_null();
        json_t *rendered = json_pack(
                "{s:I, s:s, s:o, s:o, s:f, s:o, s:s}", "generation", (json_int_t)trial->generation, "verdict",
                trial_verdict_name(trial->verdict), "new", render_counts(&trial->trial.new), "old",
                render_counts(&trial->trial.old), "evidence", trial_evidence(&trial->trial), "left_seconds",
                left, "text", trial_text(&trial->trial, text));

        return rendered && json_object_set_new(object, "trial", rendered) == 0 ? 0 : -ENOMEM;
}

/* Without counts, each trial ends by rollout_trial_default. */
static void diagnose(const void *self _unused_, const struct fleet *fleet, struct problems *findings)
{
        unsigned active = 0, known = 0;
        char about[PROBLEM_ABOUT_MAX];

        if (fleet->settings->rollout_trial == 0)
                return;
        problem_about(&(struct problem){.fleet = fleet}, about);
        FLEET_FOREACH_WORKER(fleet, worker) {
                active += worker->state == WORKER_ACTIVE;
                known += worker->state == WORKER_ACTIVE && worker->outcomes.known;
        }
        if (active > 0 && known == 0)
                problems_note(
                        findings, PROBLEM_WARNING, about,
                        "Restart the fleet if its workers were started before rollout_trial was set; else "
                        "see \"What is counted\" in docs/rollout-trial.md",
                        "no active worker reports how many jobs it has done and failed: each trial of a "
                        "release ends by rollout_trial_default");
        if (active > 0 && !fleet_is_tried(fleet))
                problems_note(
                        findings, PROBLEM_WARNING, about, "Run two workers or more, or remove rollout_trial",
                        "releases are not judged: no old worker would remain to compare a new one with");
}

const struct subsystem rollout_trial_subsystem = {
        .name = "trial",
        .begin = begin,
        .join = join,
        .observe = observe,
        .diagnose = diagnose,
        .status = status,
        .pack = fleet_trial_pack,
        .unpack = fleet_trial_unpack,
        .end = end,
};
