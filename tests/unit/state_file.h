/* SPDX-License-Identifier: MIT */
/* What the tests of the state share: the files of tests/state, whose names begin with their version. */
#pragma once

#include "model/fleet.h"
#include "unit.h"

#define STATE_FILE_VERSION 1 /* the one that is written */
#define STATE_FILE_WRITTEN "1"
#define STATE_FILE_MAX     (16 * 1024)

/* Returns its size. */
static inline size_t state_file_read(const char *name, uint8_t bytes[static STATE_FILE_MAX])
{
        const char *source = getenv("srcdir");
        char path[512];

        snprintf(path, sizeof(path), "%s/tests/state/%s", source ? source : ".", name);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size_t size = fread(bytes, 1, STATE_FILE_MAX, file);
        ck_assert_uint_lt(size, STATE_FILE_MAX);
        fclose(file);
        ck_assert_int_eq(bytes[8], atoi(name));
        return size;
}

/* In what the state keeps. */
static inline void assert_template_equal(const struct template *a, const struct template *b)
{
        ck_assert_int_eq(a->state, b->state);
        ck_assert_uint_eq(a->generation, b->generation);
        ck_assert_int_eq(a->pid, b->pid);
        ck_assert_uint_eq(a->pid_start, b->pid_start);
        ck_assert_int_eq(a->serving_pid, b->serving_pid);
        ck_assert_uint_eq(a->serving_start, b->serving_start);
        ck_assert_uint_eq(a->started_at, b->started_at);
        ck_assert_uint_eq(a->state_at, b->state_at);
        ck_assert_uint_eq(a->memory_bytes, b->memory_bytes);
}
