/* SPDX-License-Identifier: MIT */
/* The part that all implementations of a database have alike; see the header. */
#include "database/database.h"

static const struct database_shown *shown_by(const struct database *database)
{
        return (const struct database_shown *)database;
}

bool database_change_state(struct database *database, enum database_state state,
                           const struct error_report *error)
{
        static const struct error_report none;
        struct database_shown *shown = (struct database_shown *)database;

        error = error ?: &none;
        if (shown->state == state && error_report_equal(&shown->error, error))
                return false;
        shown->state = state;
        shown->error = *error;
        return true;
}

void database_report_state(struct database *database)
{
        const struct database_shown *shown = shown_by(database);

        if (!shown->freed)
                shown->ops->state(database, shown->state, database_error(database), shown->userdata);
}

enum database_state database_state(const struct database *database)
{
        return shown_by(database)->state;
}

const struct error_report *database_error(const struct database *database)
{
        const struct database_shown *shown = shown_by(database);

        return shown->error.text[0] != '\0' ? &shown->error : NULL;
}

usec_t database_rtt_usec(const struct database *database)
{
        return shown_by(database)->rtt_usec;
}

uint64_t database_connection_count(const struct database *database)
{
        return shown_by(database)->connections;
}
