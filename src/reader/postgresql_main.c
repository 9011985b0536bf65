/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-postgresql: speaks to one PostgreSQL database for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        return reader_run("sqmgr-postgres", &database_backend);
}
