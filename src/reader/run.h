/* SPDX-License-Identifier: MIT */
/* The common part of the reader programs: each is started by sqmgr, and runs a server (reader/server.h) with
 * its backend. Its memory is bounded: its server chooses what it decodes. */
#pragma once

struct reader_backend; /* reader/backend.h */

/* Runs until sqmgr closes its end. name: of the process, at most 15 bytes: the kernel shows no more. Returns
 * the exit status of the program. */
int reader_run(const char *name, const struct reader_backend *backend);
