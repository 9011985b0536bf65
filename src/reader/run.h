/* SPDX-License-Identifier: MIT */
/* The common part of the reader programs: each is started by sqmgr, runs a server (reader/server.h) with its
 * backend, and enters its sandbox as soon as it is configured. */
#pragma once

#include "reader/sandbox_needs.h"

struct reader_backend;       /* reader/backend.h */
struct reader_configuration; /* queries/configuration.h */

struct reader_program {
        const char *name; /* at most 15 bytes: the kernel shows no more */
        const struct reader_backend *backend;
        /* Says what the program needs for the configuration, and loads what it cannot load later. The texts
         * of *ret stay valid. Returns 0 or -errno. */
        int (*prepare)(const struct reader_configuration *configuration, struct sandbox_needs *ret);
};

/* Runs until sqmgr closes its end. Returns the exit status of the program. */
int reader_run(const struct reader_program *program);
