/* SPDX-License-Identifier: MIT */
/* Judges a release by its jobs; see the header. */
#include "rollout_trial/trial_rules.h"
#include "base/parse.h"
#include "continuity/codec.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"
#include <math.h>

/* The odds ratios that the evidence is a mixture of, and their weights. tests/sim/trials.c shows what they
 * find. */
static const struct {
        double ratio, weight;
} ratios[TRIAL_RATIOS] = {{2, 0.3}, {3.2, 0.5}, {8, 0.15}, {40, 0.05}};

/* Terms below this part of a sum change nothing. */
#define NEGLIGIBLE 1e-17

/* A window: of n new and m old jobs, `failed` failed. At least `least` and at most `most` of them are new. */
struct window {
        double n, m, failed, least, most;
};

static double log_gamma(double x)
{
        int sign;

        /* lgamma() writes a global variable. */
        return lgamma_r(x, &sign);
}

static double log_choose(double n, double k)
{
        return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
}

/* Returns C(n, k + 1) C(m, failed - k - 1) / (C(n, k) C(m, failed - k)), which falls with k. */
static double factor(const struct window *window, double k)
{
        return (window->n - k) * (window->failed - k) / ((k + 1) * (window->m - window->failed + k + 1));
}

/* Returns the k with the largest term C(n, k) C(m, failed - k) theta^k. */
static double find_mode(const struct window *window, double theta)
{
        double low = window->least, high = window->most;

        while (low < high) {
                double middle = floor((low + high) / 2);

                if (factor(window, middle) * theta >= 1)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Returns the logarithm of E(theta^K). The sum begins at its largest term, so it cannot overflow. */
static double log_expectation(const struct window *window, double theta)
{
        double mode = find_mode(window, theta), sum = 1, term = 1;

        for (double k = mode; k < window->most && term > NEGLIGIBLE * sum; k++)
                sum += term *= factor(window, k) * theta;
        term = 1;
        for (double k = mode; k > window->least && term > NEGLIGIBLE * sum; k--)
                sum += term /= factor(window, k - 1) * theta;
        return log_choose(window->n, mode) + log_choose(window->m, window->failed - mode) +
               mode * log(theta) + log(sum) - log_choose(window->n + window->m, window->failed);
}

static bool is_plausible(const struct trial_counts *counts)
{
        return counts->failed <= counts->processed && counts->processed <= TRIAL_WINDOW_MAX;
}

void trial_add(struct trial *trial, const struct trial_counts *new, const struct trial_counts *old)
{
        if (!is_plausible(new) || !is_plausible(old))
                return;
        trial->windows += new->processed > 0 && old->processed > 0;
        trial->new.processed += new->processed;
        trial->new.failed += new->failed;
        trial->old.processed += old->processed;
        trial->old.failed += old->failed;

        double n = (double)new->processed, m = (double)old->processed;
        double k = (double)new->failed, failed = k + (double)old->failed;
        const struct window window = {n, m, failed, fmax(0, failed - m), fmin(n, failed)};
        /* With one way to spread the failures, the window says nothing. */
        if (window.least >= window.most)
                return;
        for (size_t i = 0; i < TRIAL_RATIOS; i++) {
                double evidence = k * log(ratios[i].ratio) - log_expectation(&window, ratios[i].ratio);

                trial->evidence[i] += fmin(evidence, log(TRIAL_WINDOW_EVIDENCE_MAX));
        }
}

double trial_evidence(const struct trial *trial)
{
        double sum = 0;

        /* exp(700) is near the largest double; more is not needed. */
        for (size_t i = 0; i < TRIAL_RATIOS; i++)
                sum += ratios[i].weight * exp(fmin(trial->evidence[i], 700));
        return sum;
}

enum trial_verdict trial_judge(const struct trial *trial, usec_t duration, usec_t now)
{
        if (trial_evidence(trial) >= TRIAL_EVIDENCE)
                return TRIAL_WORSE;
        if (trial->windows >= TRIAL_WINDOWS && trial->new.processed >= TRIAL_ENOUGH &&
            trial->old.processed >= TRIAL_ENOUGH)
                return TRIAL_PASSED;
        if (now < usec_add(trial->begun_at, duration))
                return TRIAL_RUNNING;
        return trial->new.processed >= TRIAL_FEWEST && trial->old.processed >= TRIAL_FEWEST ? TRIAL_PASSED
                                                                                            : TRIAL_TOO_FEW;
}

/* Codecs write nonnegative numbers: evidence is written in millionths, and shifted. */
#define EVIDENCE_SHIFT 1e6
#define EVIDENCE_UNIT  1e6

static void pack_evidence(struct codec_writer *writer, double evidence)
{
        double shifted = fmin(fmax(evidence, -EVIDENCE_SHIFT), EVIDENCE_SHIFT) + EVIDENCE_SHIFT;

        codec_write_number(writer, (uint64_t)(shifted * EVIDENCE_UNIT));
}

static double unpack_evidence(struct codec_reader *reader)
{
        uint64_t shifted = codec_read_number(reader, 0, (uint64_t)(2 * EVIDENCE_SHIFT * EVIDENCE_UNIT));

        return (double)shifted / EVIDENCE_UNIT - EVIDENCE_SHIFT;
}

static const char *const verdict_names[] = {
        [TRIAL_RUNNING] = "running",
        [TRIAL_PASSED] = "passed",
        [TRIAL_WORSE] = "worse",
        [TRIAL_TOO_FEW] = "too_few",
};
DEFINE_ENUM_NAMES(trial_verdict_name, enum trial_verdict, _TRIAL_VERDICT_MAX, verdict_names)

static double percent(const struct trial_counts *counts)
{
        return counts->processed > 0 ? 100 * (double)counts->failed / (double)counts->processed : 0;
}

const char *trial_text(const struct trial *trial, char text[static TRIAL_TEXT_MAX])
{
        snprintf(text, TRIAL_TEXT_MAX,
                 "%llu of %llu jobs failed in new workers (%.1f%%), %llu of %llu in old ones (%.1f%%)",
                 (unsigned long long)trial->new.failed, (unsigned long long)trial->new.processed,
                 percent(&trial->new), (unsigned long long)trial->old.failed,
                 (unsigned long long)trial->old.processed, percent(&trial->old));
        return text;
}

bool fleet_is_tried(const struct fleet *fleet)
{
        return fleet->settings->rollout_trial > 0 && fleet_target(fleet) > 1;
}

/* At least one worker is replaced, and one remains. */
static unsigned share_of(const struct fleet *fleet)
{
        const struct share *share = &fleet->settings->rollout_trial_share;
        unsigned target = fleet_target(fleet);
        unsigned limit = share->percent ? (unsigned)((uint64_t)target * share->value / 100) : share->value;

        return MIN(MAX(limit, 1U), target - 1);
}

static const struct trial_seen *find_seen(const struct fleet_trial *trial, size_t *at,
                                          const struct worker *worker)
{
        while (*at < trial->n_seen && trial->seen[*at].index < worker->index)
                (*at)++;
        if (*at == trial->n_seen || trial->seen[*at].index != worker->index ||
            trial->seen[*at].pid != worker->process.pid || trial->seen[*at].start != worker->process.start)
                return NULL;
        return &trial->seen[*at];
}

/* A few windows must not decide: a trial has about 20 or more, unless the interval of reports is longer. */
static usec_t window_of(const struct fleet *fleet)
{
        return MAX(MIN(fleet->settings->rollout_trial / 20, TRIAL_WINDOW_USEC),
                   fleet->settings->traits->sent_usec);
}

/* Jobs that end soon after the start of a worker are the short ones, which fail more often or more seldom
 * than others: a worker counts once it has been active for the length of a window. */
static bool counts_now(const struct worker *worker, usec_t now)
{
        return worker->outcomes.known && worker->active_at != 0 &&
               usec_sub(now, worker->active_at) >= window_of(worker->fleet);
}

/* Records what all workers have reported so far. */
static bool begin_window(struct fleet *fleet, usec_t now)
{
        struct fleet_trial *trial = fleet->trial;
        struct trial_seen *seen = malloc((fleet->n_workers + 1) * sizeof(*seen));
        size_t n = 0;

        if (!seen)
                return false;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (counts_now(worker, now))
                        seen[n++] = (struct trial_seen){
                                .index = worker->index,
                                .pid = worker->process.pid,
                                .start = worker->process.start,
                                .counts = {worker->outcomes.processed, worker->outcomes.failed},
                        };
        free(trial->seen);
        trial->seen = seen;
        trial->n_seen = n;
        trial->window_at = now;
        return true;
}

/* Adds the jobs that have ended since the window began, of the workers that counted then. */
static void end_window(struct fleet *fleet)
{
        struct fleet_trial *trial = fleet->trial;
        struct trial_counts new = {0}, old = {0};
        size_t at = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                const struct trial_seen *seen = find_seen(trial, &at, worker);
                struct trial_counts *counts = worker_outdated(worker) ? &old : &new;

                /* The workers of a restart that did not end well are not to compare with. */
                if (!worker->outcomes.known || !seen || worker_is_of_failed_try(worker))
                        continue;
                counts->processed += usec_sub(worker->outcomes.processed, seen->counts.processed);
                counts->failed += usec_sub(worker->outcomes.failed, seen->counts.failed);
        }
        trial_add(&trial->trial, &new, &old);
}

/* Returns the class with the most failures in new workers, as each of them reports one; "": none is known. */
static const char *worst_class(const struct fleet *fleet)
{
        const char *worst = "";
        uint64_t most = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                uint64_t failed = 0;

                if (worker_outdated(worker) || worker->outcomes.class[0] == '\0')
                        continue;
                FLEET_FOREACH_WORKER(fleet, other)
                        if (!worker_outdated(other) &&
                            strcmp(other->outcomes.class, worker->outcomes.class) == 0)
                                failed += MIN(other->outcomes.class_failed, UINT32_MAX);
                if (failed > most) {
                        most = failed;
                        worst = worker->outcomes.class;
                }
        }
        return worst;
}

static void conclude(struct fleet *fleet, enum trial_verdict verdict, usec_t now)
{
        char counts[TRIAL_TEXT_MAX], why[TRIAL_TEXT_MAX + 160], worst[JOB_CLASS_MAX + 64];
        const char *class = verdict == TRIAL_WORSE ? worst_class(fleet) : "";
        struct quoted quoted = {0};

        fleet->trial->verdict = verdict;
        trial_text(&fleet->trial->trial, counts);
        if (verdict == TRIAL_WORSE) {
                snprintf(why, sizeof(why), "jobs fail more often in the new release: %s", counts);
                snprintf(worst, sizeof(worst), "class with the most failures: %s", class);
                quoted_set(&quoted, class[0] != '\0' ? worst : NULL);
                rollout_reject(fleet, why, &quoted, now);
        } else if (verdict == TRIAL_TOO_FEW && fleet->settings->rollout_trial_default == TRIAL_DEFAULT_HALT) {
                snprintf(why, sizeof(why),
                         "too few jobs ended in %s (rollout_trial, rollout_trial_default = halt): %s",
                         FORMAT_DURATION(fleet->settings->rollout_trial), counts);
                rollout_reject(fleet, why, NULL, now);
        } else {
                fleet_event(fleet, EVENT_TRIAL, ": the trial of generation %llu has ended%s: %s",
                            (unsigned long long)fleet->generation,
                            verdict == TRIAL_TOO_FEW ? " with too few jobs" : "", counts);
                fleet->rollout.limit = 0;
                rollout_observe_progress(fleet, now);
        }
}

/* Also where no heartbeat is found of any worker: such a trial ends by rollout_trial_default. */
static bool has_new(const struct fleet *fleet)
{
        return FLEET_COUNT_WORKERS(fleet, worker,
                                   !worker_outdated(worker) &&
                                           (worker->state == WORKER_ACTIVE ||
                                            (fleet->rollout.elsewhere && worker->state == WORKER_STARTING &&
                                             worker->process.elsewhere))) > 0;
}

/* Returns false if memory is short. */
static bool attach(struct fleet *fleet)
{
        if (!fleet->trial)
                fleet->trial = calloc(1, sizeof(*fleet->trial));
        if (!fleet->trial)
                return false;
        if (fleet->trial->generation == fleet->generation)
                return true;
        free(fleet->trial->seen);
        *fleet->trial = (struct fleet_trial){.generation = fleet->generation};
        return true;
}

void fleet_trial_observe(struct fleet *fleet, usec_t now)
{
        if (fleet->rollout.state != ROLLOUT_RUNNING || fleet->settings->removed)
                return;
        if (!fleet_is_tried(fleet)) {
                fleet->rollout.limit = 0;
                return;
        }
        /* The limit holds also while memory is short. */
        bool attached = attach(fleet);
        struct fleet_trial *trial = fleet->trial;
        if (attached && trial->verdict != TRIAL_RUNNING) {
                fleet->rollout.limit = 0;
                return;
        }
        fleet->rollout.limit = share_of(fleet);
        if (!attached || !has_new(fleet))
                return;
        if (trial->window_at == 0) {
                /* An earlier sqmgr may have begun the trial. */
                if (begin_window(fleet, now) && trial->trial.begun_at == 0)
                        trial->trial.begun_at = now;
                return;
        }
        bool over = now >= usec_add(trial->trial.begun_at, fleet->settings->rollout_trial);
        if (!over && now < usec_add(trial->window_at, window_of(fleet)))
                return;
        end_window(fleet);
        if (!begin_window(fleet, now))
                /* Counted jobs must not be counted again. */
                trial->window_at = 0;
        enum trial_verdict verdict = trial_judge(&trial->trial, fleet->settings->rollout_trial, now);
        if (verdict != TRIAL_RUNNING)
                conclude(fleet, verdict, now);
}

void fleet_trial_forget(struct fleet *fleet)
{
        if (fleet->trial)
                free(fleet->trial->seen);
        free(fleet->trial);
        fleet->trial = NULL;
}

void fleet_trial_pack(const void *self _unused_, const struct fleet *fleet, struct codec_writer *writer)
{
        const struct fleet_trial *of_fleet = fleet->trial;
        const struct trial *trial = of_fleet ? &of_fleet->trial : NULL;

        if (!trial || of_fleet->generation != fleet->generation || fleet->rollout.state != ROLLOUT_RUNNING ||
            trial->begun_at == 0)
                return;
        codec_write_number(writer, of_fleet->generation);
        codec_write_number(writer, of_fleet->verdict);
        codec_write_number(writer, usec_sub(writer->now, trial->begun_at));
        codec_write_number(writer, trial->new.processed);
        codec_write_number(writer, trial->new.failed);
        codec_write_number(writer, trial->old.processed);
        codec_write_number(writer, trial->old.failed);
        codec_write_number(writer, trial->windows);
        FOREACH_ELEMENT(evidence, trial->evidence)
                pack_evidence(writer, *evidence);
}

/* Bytes that are wrong are ignored. */
void fleet_trial_unpack(void *self _unused_, struct fleet *fleet, struct codec_reader *reader)
{
        uint64_t generation = codec_read_number(reader, 1, UINT64_MAX - 1);
        enum trial_verdict verdict = (enum trial_verdict)codec_read_number(reader, 0, _TRIAL_VERDICT_MAX - 1);
        struct trial trial = {.begun_at = reader->now - codec_read_number(reader, 0, reader->now - 1)};

        trial.new.processed = codec_read_number(reader, 0, INT64_MAX);
        trial.new.failed = codec_read_number(reader, 0, trial.new.processed);
        trial.old.processed = codec_read_number(reader, 0, INT64_MAX);
        trial.old.failed = codec_read_number(reader, 0, trial.old.processed);
        trial.windows = (unsigned)codec_read_number(reader, 0, UINT32_MAX);
        FOREACH_ELEMENT(evidence, trial.evidence)
                *evidence = unpack_evidence(reader);
        /* join() has freed the trials of removed fleets. */
        if (reader->wrong || generation != fleet->generation || fleet->settings->removed || !attach(fleet))
                return;
        fleet->trial->verdict = verdict;
        fleet->trial->trial = trial;
}
