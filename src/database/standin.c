/* SPDX-License-Identifier: MIT */
/* Stands in for the client of databases: every database is down. */
#include "database/database.h"

int database_new(sd_event *event _unused_, const struct database_settings *settings _unused_,
                 const struct database_ops *ops _unused_, void *userdata _unused_,
                 struct database **ret _unused_)
{
        return -EPROTONOSUPPORT;
}

struct database *database_free(struct database *database _unused_)
{
        return NULL;
}

int database_run(struct database *database _unused_, const struct database_statement *statements _unused_,
                 size_t n _unused_, bool writes _unused_, const struct database_batch_ops *ops _unused_,
                 void *userdata _unused_)
{
        return -ENOTCONN;
}

enum database_state database_state(const struct database *database _unused_)
{
        return DATABASE_DOWN;
}

const struct error_report *database_error(const struct database *database _unused_)
{
        return NULL;
}

usec_t database_rtt_usec(const struct database *database _unused_)
{
        return 0;
}

uint64_t database_connection_count(const struct database *database _unused_)
{
        return 0;
}
