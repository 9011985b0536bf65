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

/* Returns true if a store failed (see ledger_file_guard()). The memory has no file any more, and slots in use
 * may look free. */
bool ledger_file_is_lost(const struct ledger_file *file);
/* Returns true if the file is still at its path. Returns false if another file is there or none, if the file
 * is lost, or if the ledger has no file. */
bool ledger_file_is_in_place(const struct ledger_file *file);

/* The ledger is the file beside the state whose name has this at its end. */
#define LEDGER_SUFFIX ".starts"

#define LEDGER_FILE_INIT ((struct ledger_file){.fd = -1})

/* The result of opening the file. */
enum ledger_file_outcome {
        LEDGER_FILE_KEPT, /* the ledger of an earlier sqmgr */
        LEDGER_FILE_NEW,  /* no usable ledger was found: the ledger is empty */
        LEDGER_FILE_NONE, /* no file could be made: the ledger is empty and not durable. *ret_why is the
                             reason */
};

/* Opens or makes the file at path, with at least n_slots slots. Only for the holder of the lock beside the
 * state file. May block. *ret_why is a static text. Returns an enum ledger_file_outcome, or -errno if memory
 * or descriptors are short. */
int ledger_file_open(struct ledger_file *file, const char *path, const char *boot_id, size_t n_slots,
                     const char **ret_why);
/* Makes room for n_slots slots. The ledger may move, which invalidates each struct ledger_claim. Without a
 * file, children keep the old memory: all starts must have been claimed. Returns 0; or -errno with the ledger
 * unchanged, -EIO if its file is lost. */
int ledger_file_grow(struct ledger_file *file, size_t n_slots);
/* Gives a ledger whose file is lost new memory without a file: empty and not durable. Children that have not
 * claimed their starts keep the old memory. Returns 0, or -errno with the ledger unchanged. */
int ledger_file_detach(struct ledger_file *file, const char *boot_id);
/* Gives the ledger a new file at path, with the same contents. For a ledger without a file, or whose file is
 * not in place. Moves the ledger, which invalidates each struct ledger_claim. Children keep the old memory:
 * all starts must have been claimed. Replaces a file at path. Returns 0, or -errno with the ledger
 * unchanged. */
int ledger_file_make_durable(struct ledger_file *file, const char *path);
/* Unmaps the ledger and leaves LEDGER_FILE_INIT. The file keeps its contents. */
void ledger_file_close(struct ledger_file *file);
/* Installs a handler of SIGBUS that keeps this process alive if a store into the memory of the ledger fails.
 * A new child inherits it with our memory. Returns 0 or -errno. */
int ledger_file_guard(void);
