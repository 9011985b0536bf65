/* SPDX-License-Identifier: MIT */
/* Keeps this process alive if a store into the mapped file of the ledger fails. The kernel then raises
 * SIGBUS: the file was truncated, or the disk is full and its file system copies on write. The handler
 * replaces the mapping by memory without a file, with what the file still says, and removes the file: a next
 * sqmgr must not believe it. Any other SIGBUS ends the process as before. */
#pragma once

#include "base/macro.h"

/* Installs the handler. Only this process removes the file; its children inherit the rest. Returns 0 or
 * -errno. */
int ledger_guard_install(void);
/* Guards a mapping, of the file at path. fd and path must stay valid. */
void ledger_guard_add(void *memory, size_t bytes, int fd, const char *path);
/* Call before the mapping is undone or moved. A mapping that is not guarded is accepted. */
void ledger_guard_remove(const void *memory);
/* Returns true if the mapping was replaced. */
bool ledger_guard_is_lost(const void *memory);
