/* SPDX-License-Identifier: MIT */
/* The file that holds the ledger (continuity/ledger.h), mapped into memory. The file lies beside the state
 * file, and belongs to our own user (mode 0600). */
#pragma once

#include "continuity/ledger.h"

struct ledger_file {
        struct ledger ledger;
        size_t mapped; /* bytes; 0: none */
        int fd;        /* -1: the memory has no file, and ends with this process */
        char *path;    /* owned; NULL: no file */
        ino_t inode;
};

/* Returns true if a store failed (see ledger_guard.h): the memory has no file any more, and slots may have
 * become free that are in use. */
bool ledger_file_is_lost(const struct ledger_file *file);
/* Returns false if there is another file at the path by now, or none, or if the file is lost. */
bool ledger_file_is_in_place(const struct ledger_file *file);

#define LEDGER_FILE_INIT ((struct ledger_file){.fd = -1})

/* The result of opening the file. */
enum ledger_file_outcome {
        LEDGER_FILE_KEPT, /* the ledger of an earlier sqmgr */
        LEDGER_FILE_NEW,  /* no usable ledger was found: the ledger is empty */
        LEDGER_FILE_NONE, /* the file cannot be had: the ledger is empty, and not durable. why says why */
};

/* Opens or makes the file at path, with this number of slots at least. Only for the holder of the lock beside
 * the state file. May block. Returns an enum ledger_file_outcome, or -errno if memory or descriptors are
 * short. */
int ledger_file_open(struct ledger_file *file, const char *path, const char *boot_id, size_t n_slots,
                     const char **ret_why);
/* Makes room for this number of slots. The ledger may move: claims of it become invalid. Returns 0 or
 * -errno; the ledger is unchanged then. */
int ledger_file_grow(struct ledger_file *file, size_t n_slots);
/* Gives a ledger whose file is lost new memory without a file: it is empty, and not durable. Children that
 * have not claimed their starts keep the old memory. Returns 0, or -errno with the ledger unchanged. */
int ledger_file_detach(struct ledger_file *file, const char *boot_id);
/* Gives the ledger, which has no file or whose file is not in place, a new one at path. It may move, as
 * above. All starts must have been claimed: children keep the old memory. Replaces what is at path. Returns
 * 0, or -errno with the ledger unchanged. */
int ledger_file_make_durable(struct ledger_file *file, const char *path);
/* Unmaps the ledger. The contents of the file stay. */
void ledger_file_close(struct ledger_file *file);
