/* SPDX-License-Identifier: MIT */
/* Rows of a database, written as texts; NULL: SQL NULL. */
#pragma once

#include "database/database.h"
#include <string.h>

#define ROW_COLUMNS_MAX 12

/* Calls take(userdata, row) with the row of these texts. */
#define row_of(...)                                                                                          \
        (&(const struct database_row){.values =                                                              \
                                              row_fields((const char *const[]){__VA_ARGS__},                 \
                                                         ELEMENTSOF(((const char *const[]){__VA_ARGS__}))),  \
                                      .n = ELEMENTSOF(((const char *const[]){__VA_ARGS__}))})

/* Valid until the next call. */
static inline const struct field *row_fields(const char *const *texts, size_t n)
{
        static struct field fields[ROW_COLUMNS_MAX];

        for (size_t i = 0; i < n; i++)
                fields[i] = (struct field){.text = texts[i], .len = texts[i] ? strlen(texts[i]) : 0};
        return fields;
}
