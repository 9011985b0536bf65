/* SPDX-License-Identifier: MIT */
/* The file that keeps the history over restarts: of fixed size, the bytes of history.h as they are.
 *
 * What has changed is written in place, record by record, without fsync(): a death of the program loses no
 * more than what it had not handed to the kernel, one of the machine what this had not written yet, and a
 * record of which only a part came to the disk is known by its checksum. */
#pragma once

#include "web/history.h"

struct history_file;

enum history_file_outcome {
        HISTORY_FILE_READ,    /* or made, where there was none */
        HISTORY_FILE_ANEW,    /* it was of another version: begun anew */
        HISTORY_FILE_DAMAGED, /* some records were dropped, the rest was read */
        HISTORY_FILE_REFUSED, /* it is used by another program, is no history, or cannot be trusted or opened
                               */
};

#define HISTORY_FILE_WHY_MAX 512

/* Opens the file at path, made 0600 where there is none, locks it and reads it into history, which is one of
 * nothing. why: a sentence, where the outcome is none of HISTORY_FILE_READ. *ret: to be closed by
 * history_file_close(); NULL where it was refused: what is there stays as it is, and history goes on without
 * a file. Returns the outcome or -ENOMEM. */
int history_file_open(const char *path, struct history *history, struct history_file **ret,
                      char why[static HISTORY_FILE_WHY_MAX]);
/* Saves nothing. Returns NULL, as file may be. */
struct history_file *history_file_close(struct history_file *file);

DEFINE_CLEANUP(struct history_file *, history_file_close)
#define _cleanup_history_file_ _cleanup_(history_file_close_pointer)

enum history_file_change {
        HISTORY_FILE_AS_BEFORE, /* nothing is to be told */
        HISTORY_FILE_FAILS, /* since now: why says how. What is not written is tried anew with each call */
        HISTORY_FILE_WORKS, /* again: why says so, and all of it has been written */
};

/* Writes what has changed since it was called last. To be called after history_add() and history_mark(). */
enum history_file_change history_file_save(struct history_file *file, struct history *history,
                                           char why[static HISTORY_FILE_WHY_MAX]);
