/* SPDX-License-Identifier: MIT */
/* The fields of the model that the record keeps (record_rules.h): all that a plan depends on. Only numbers:
 * no text of the model is recorded. */
#pragma once

#include "base/macro.h"

struct model_field {
        const char
                *name; /* in the file: never changed. A renamed field of the model keeps its old name here */
        size_t offset, size; /* 1, 4 or 8 bytes */
        uint64_t max;        /* a larger value is refused when read */
};

enum model_part { MODEL_WORLD, MODEL_FLEET, MODEL_TEMPLATE, MODEL_WORKER, _MODEL_PART_MAX };

/* The largest number of fields of a part. */
#define MODEL_FIELDS_MAX 128

struct model_table {
        const struct model_field *fields;
        size_t n;
};

extern const struct model_table model_tables[_MODEL_PART_MAX];
