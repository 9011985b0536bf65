/* SPDX-License-Identifier: MIT */
/* A SQLite file, opened for one batch. Another user writes it, schema included: what the file says must cost
 * bounded memory and time, and runs nothing. */
#pragma once

#include "base/macro.h"
#include "wire/quoted.h"
#include <sys/types.h>

struct sqlite3;

struct sqlite_identity {
        dev_t device;
        ino_t inode; /* 0: there is none */
};

struct sqlite_path {
        char *path; /* owned; absolute */
        char *uri;  /* owned; opens the file to read it, and makes no file */
};

struct sqlite_file {
        struct sqlite3 *handle;
        struct sqlite_identity identity;
        usec_t deadline;
        bool writes;
};

bool sqlite_identity_equal(const struct sqlite_identity *a, const struct sqlite_identity *b);

/* Takes the path of a URL. The file need not exist. Returns 0 with *ret, to be
 * cleared by sqlite_path_clear(); -EINVAL if the URL names no file; or -ENOMEM. */
int sqlite_path_make(const char *url, struct sqlite_path *ret);
void sqlite_path_clear(struct sqlite_path *path);

/* Opens a file that exists. Where the user of this process may not write, the file is opened to be read, and
 * no log is made beside it. Locks of others are waited for, and statements run, for timeout at most.
 * writes: statements may change rows of tables; otherwise nothing. *file must not be moved in memory until it
 * is closed. Returns 0; or -EIO with the error. */
int sqlite_file_open(struct sqlite_file *file, const struct sqlite_path *path, usec_t timeout, bool writes,
                     struct error_report *error);
void sqlite_file_close(struct sqlite_file *file);
/* Sets the sentence for an error code of SQLite. Call before the file is closed. */
void sqlite_file_explain(const struct sqlite_file *file, int code, struct error_report *error);
