/* SPDX-License-Identifier: MIT */
/* A driver whose database is the test; see the header. */
#include "fake_database.h"
#include "unit.h"

struct fake_database fake;

struct database {
        enum database_state state;
        struct error_report error;
        bool has_error;
        uint64_t connections;
        const struct database_ops *ops;
        void *userdata;
        const struct database_batch_ops *batch_ops;
        void *batch_userdata;
};

static void clear_batch(void)
{
        for (size_t i = 0; i < fake.batch.n; i++) {
                free(fake.batch.statements[i].sql);
                for (size_t k = 0; k < fake.batch.statements[i].n; k++)
                        free(fake.batch.statements[i].parameters[k]);
        }
        fake.batch = (struct fake_batch){0};
}

int database_new(sd_event *event _unused_, const struct database_settings *settings,
                 const struct database_ops *ops, void *userdata, struct database **ret)
{
        struct database *database = calloc(1, sizeof(*database));

        ck_assert_ptr_nonnull(database);
        *database = (struct database){.ops = ops, .userdata = userdata};
        fake.database = *ret = database;
        fake.batches = 0;
        snprintf(fake.url, sizeof(fake.url), "%s", settings->url);
        snprintf(fake.probe, sizeof(fake.probe), "%s", settings->probe);
        return 0;
}

struct database *database_free(struct database *database)
{
        if (database) {
                if (fake.running)
                        fake_done(DATABASE_LOST, "the database is freed");
                clear_batch();
                free(database);
                fake.database = NULL;
        }
        return NULL;
}

int database_run(struct database *database, const struct database_statement *statements, size_t n,
                 bool writes, const struct database_batch_ops *ops, void *userdata)
{
        if (fake.refuses < 0)
                return fake.refuses;
        if (database->state != DATABASE_CONNECTED)
                return -ENOTCONN;
        ck_assert(!fake.running);
        ck_assert_uint_le(n, FAKE_STATEMENTS_MAX);
        clear_batch();
        fake.batch.n = n;
        fake.batch.writes = writes;
        for (size_t i = 0; i < n; i++) {
                ck_assert_uint_le(statements[i].n, FAKE_PARAMETERS_MAX);
                fake.batch.statements[i].sql = strdup(statements[i].sql);
                fake.batch.statements[i].n = statements[i].n;
                for (size_t k = 0; k < statements[i].n; k++)
                        if (statements[i].parameters[k])
                                fake.batch.statements[i].parameters[k] = strdup(statements[i].parameters[k]);
        }
        database->batch_ops = ops;
        database->batch_userdata = userdata;
        fake.batches++;
        fake.running = true;
        return 0;
}

enum database_state database_state(const struct database *database)
{
        return database->state;
}

const struct error_report *database_error(const struct database *database)
{
        return database->has_error ? &database->error : NULL;
}

void database_drop(struct database *database _unused_, const struct error_report *error)
{
        fake_state(DATABASE_DOWN, error->text);
}

usec_t database_rtt_usec(const struct database *database _unused_)
{
        return 1234;
}

uint64_t database_connection_count(const struct database *database)
{
        return database->connections;
}

void fake_state(enum database_state state, const char *error)
{
        struct database *database = fake.database;

        database->state = state;
        database->connections += state == DATABASE_CONNECTED;
        database->has_error = error;
        error_report_set(&database->error, "%s", error ?: "");
        database->ops->state(database, state, database_error(database), database->userdata);
}

int fake_find(const char *part)
{
        for (size_t i = 0; i < fake.batch.n; i++)
                if (strstr(fake.batch.statements[i].sql, part))
                        return (int)i;
        return -1;
}

int fake_row(const char *part, const struct database_row *row)
{
        int statement = fake_find(part);

        ck_assert_msg(statement >= 0, "no statement contains '%s'", part);
        return fake.database->batch_ops->row((size_t)statement, row, fake.database->batch_userdata);
}

void fake_done(enum database_result result, const char *error)
{
        struct error_report report;

        ck_assert(fake.running);
        fake.running = false;
        error_report_set(&report, "%s", error ?: "");
        fake.database->batch_ops->done(result, error ? &report : NULL, fake.database->batch_userdata);
}
