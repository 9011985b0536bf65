/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-postgresql: speaks to one PostgreSQL database for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        static const struct reader_program program = {.name = "sqmgr-postgres", .backend = &database_backend};

        return reader_run(&program);
}
