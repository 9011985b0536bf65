/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-sqlite: reads one SQLite file for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        static const struct reader_program program = {.name = "sqmgr-sqlite", .backend = &database_backend};

        return reader_run(&program);
}
