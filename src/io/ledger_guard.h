/* SPDX-License-Identifier: MIT */
/* Keeps this process alive if a store into the mapped file of the ledger fails. The kernel then raises
 * SIGBUS: the file was truncated, or the disk is full and its file system copies on write. The handler
 * replaces the mapping by memory without a file, copies what can still be read, and removes the file: the
 * next sqmgr must not trust the file. Any other SIGBUS ends the process as before. */
#pragma once

#include "base/macro.h"

/* Installs the handler, which a new child inherits with our memory. Returns 0 or -errno. */
int ledger_guard_install(void);
/* Guards a mapping of the file at path. fd and path must stay valid until ledger_guard_remove(). At most two
 * mappings can be guarded at a time. */
void ledger_guard_add(void *memory, size_t bytes, int fd, const char *path);
/* Call before the mapping is undone or moved. A mapping that is not guarded is accepted. */
void ledger_guard_remove(const void *memory);
/* Returns true if the mapping was replaced. */
bool ledger_guard_is_lost(const void *memory);
