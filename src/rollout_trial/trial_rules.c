/* SPDX-License-Identifier: MIT */
/* Judges a release by its jobs; see the header. */
#include "rollout_trial/trial_rules.h"
#include "base/macro.h"
#include "continuity/codec.h"
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

void trial_pack(const struct trial *trial, struct codec_writer *writer)
{
        codec_write_number(writer, usec_sub(writer->now, trial->begun_at));
        codec_write_number(writer, trial->new.processed);
        codec_write_number(writer, trial->new.failed);
        codec_write_number(writer, trial->old.processed);
        codec_write_number(writer, trial->old.failed);
        codec_write_number(writer, trial->windows);
        FOREACH_ELEMENT(evidence, trial->evidence)
                pack_evidence(writer, *evidence);
}

bool trial_unpack(struct trial *ret, struct codec_reader *reader)
{
        struct trial trial = {.begun_at = reader->now - codec_read_number(reader, 0, reader->now - 1)};

        trial.new.processed = codec_read_number(reader, 0, INT64_MAX);
        trial.new.failed = codec_read_number(reader, 0, trial.new.processed);
        trial.old.processed = codec_read_number(reader, 0, INT64_MAX);
        trial.old.failed = codec_read_number(reader, 0, trial.old.processed);
        trial.windows = (unsigned)codec_read_number(reader, 0, UINT32_MAX);
        FOREACH_ELEMENT(evidence, trial.evidence)
                *evidence = unpack_evidence(reader);
        if (reader->wrong)
                trial = (struct trial){0};
        *ret = trial;
        return !reader->wrong;
}
