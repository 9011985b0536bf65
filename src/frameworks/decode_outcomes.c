/* SPDX-License-Identifier: MIT */
/* Decodes the outcomes of the jobs of a process; see the header. */
#include "frameworks/decode_outcomes.h"
#include "base/macro.h"
#include "base/printable.h"
#include "frameworks/decode.h"

static bool decode_number(const struct field *field, unsigned long long max, unsigned long long *ret)
{
        return field->text && decode_count(field->text, field->len, max, ret);
}

struct worker_outcomes decode_outcomes(const struct field *processed, const struct field *failed)
{
        unsigned long long n_processed, n_failed;

        if (!decode_number(processed, WORKER_PROCESSED_MAX, &n_processed) ||
            !decode_number(failed, n_processed, &n_failed))
                return (struct worker_outcomes){0};
        return (struct worker_outcomes){.known = true, .processed = n_processed, .failed = n_failed};
}

struct worker_outcomes decode_outcomes_apart(const struct field *succeeded, const struct field *failed)
{
        unsigned long long n_succeeded = 0, n_failed = 0;

        if ((succeeded->text && !decode_number(succeeded, WORKER_PROCESSED_MAX / 2, &n_succeeded)) ||
            (failed->text && !decode_number(failed, WORKER_PROCESSED_MAX / 2, &n_failed)))
                return (struct worker_outcomes){0};
        return (struct worker_outcomes){
                .known = true, .processed = n_succeeded + n_failed, .failed = n_failed};
}

void decode_outcomes_class(const struct field *class, const struct field *failures,
                           struct worker_outcomes *outcomes)
{
        unsigned long long n;

        if (!class->text || class->len == 0 || !decode_number(failures, outcomes->failed, &n) || n == 0)
                return;
        size_t length = MIN(class->len, sizeof(outcomes->class) - 1);
        memcpy(outcomes->class, class->text, length);
        outcomes->class[length] = '\0';
        printable_replace(outcomes->class, length, false);
        outcomes->class_failed = n;
}
