/* SPDX-License-Identifier: MIT */
/* A driver: what a helper program knows of its engine. A helper links one, and has one connection. All calls
 * wait: nothing else runs in the program, and sqmgr ends a helper that is silent for too long. */
#pragma once

#include "database/database.h"

struct driver_batch {
        const struct database_statement *statements;
        size_t n;
        bool writes;
        /* A row of a statement. Returns 0, or -errno, which ends the batch as DATABASE_LOST. NULL: rows are
         * ignored. */
        int (*row)(size_t statement, const struct database_row *row, void *userdata);
        void *userdata;
};

enum driver_outcome {
        DRIVER_CONNECTED,
        DRIVER_FAILED,
        DRIVER_CONTINUES, /* call again, at once: another address is to be tried */
};

/* The error if the probe is refused. */
#define DRIVER_NO_TABLES "the tables of the queue are not in this database, or its user may not read them"

/* Connects and runs the probe, whose refusal is a failure. Of settings, which are the same at each call, url,
 * timeout and probe count. *ret_fd: the socket to watch between two batches; -1: there is none. Sets *error
 * after a failure. */
enum driver_outcome driver_connect(const struct database_settings *settings, int *ret_fd,
                                   struct error_report *error);

/* Closes the connection, if there is one. */
void driver_close(void);

/* Runs a batch over the connection. Sets *error unless that is DATABASE_DONE. */
enum database_result driver_run(const struct database_settings *settings, const struct driver_batch *asked,
                                struct error_report *error);

/* Takes what has arrived though no batch runs. Returns false, with *error, if the connection is lost. */
bool driver_check(struct error_report *error);
