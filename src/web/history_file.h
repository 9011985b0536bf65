/* SPDX-License-Identifier: MIT */
/* The file that keeps the history across restarts: fixed size, the bytes of history.h.
 *
 * Changed records are written in place, without fsync(). If the program crashes, only changes that it had not
 * written are lost. If the machine crashes, changes that the kernel had not written to disk are lost, too.
 * Partially written records are detected by their checksum. */
#pragma once

#include "web/history.h"

struct history_file;

enum history_file_outcome {
        HISTORY_FILE_READ,    /* read, or created if missing */
        HISTORY_FILE_ANEW,    /* of another version: started empty */
        HISTORY_FILE_DAMAGED, /* some records were dropped, the others were read */
        HISTORY_FILE_REFUSED, /* used by another program, no history, not trusted, or cannot be opened */
};

#define HISTORY_FILE_WHY_MAX 512

/* Opens, locks and reads the file at path into an empty history. Creates the file with mode 0600 if it is
 * missing. Unless the outcome is HISTORY_FILE_READ, why is set to a sentence. If the outcome is
 * HISTORY_FILE_REFUSED, *ret is NULL, the file is unchanged and the history continues in memory. Otherwise
 * close *ret with history_file_close(). Returns the outcome, or -ENOMEM. */
int history_file_open(const char *path, struct history *history, struct history_file **ret,
                      char why[static HISTORY_FILE_WHY_MAX]);
/* Closes without saving; file may be NULL. Returns NULL. */
struct history_file *history_file_close(struct history_file *file);

DEFINE_CLEANUP(struct history_file *, history_file_close)
#define _cleanup_history_file_ _cleanup_(history_file_close_pointer)

enum history_file_change {
        HISTORY_FILE_AS_BEFORE, /* nothing to report */
        HISTORY_FILE_FAILS,     /* writing fails from now on, see why; each call retries unwritten changes */
        HISTORY_FILE_WORKS,     /* writing works again, see why; all changes were written */
};

/* Writes the changes since the last successful call. Call after history_add() and history_mark(). */
enum history_file_change history_file_save(struct history_file *file, struct history *history,
                                           char why[static HISTORY_FILE_WHY_MAX]);
