/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-sqlite: reads one SQLite file for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        return reader_run("sqmgr-sqlite", &database_backend);
}
