/* SPDX-License-Identifier: MIT */
/* A driver whose database is the test: it shows which batches were run, and chooses rows and results. */
#pragma once

#include "database/database.h"

#define FAKE_STATEMENTS_MAX 8
#define FAKE_PARAMETERS_MAX 8

struct fake_batch {
        size_t n;
        bool writes;
        struct {
                char *sql, *parameters[FAKE_PARAMETERS_MAX]; /* NULL: SQL NULL */
                size_t n;
        } statements[FAKE_STATEMENTS_MAX];
};

struct fake_database {
        enum database_engine engine;
        unsigned batches;        /* that were run */
        bool running;            /* the last one has not ended */
        struct fake_batch batch; /* the last one */
        struct database *database;
        char url[128], probe[1024];
        int refuses; /* what database_run() returns; 0: it runs */
};
extern struct fake_database fake;

/* Reports the state; error: NULL for none. */
void fake_state(enum database_state state, const char *error);
/* Gives a row of the statement that contains this text. Returns what row() returns. */
int fake_row(const char *part, const struct database_row *row);
/* Ends the batch. error: NULL for DATABASE_DONE. */
void fake_done(enum database_result result, const char *error);
/* Returns the number of the statement of the last batch that contains this text; -1: none does. */
int fake_find(const char *part);
