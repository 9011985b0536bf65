/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-sqlite: reads one SQLite file for sqmgr, which starts it. Its sandbox (reader/sandbox.h) has
 * the folder of that file, and no sockets. */
#include "base/macro.h"
#include "database/sqlite_file.h"
#include "queries/configuration.h"
#include "reader/backend.h"
#include "reader/run.h"

static int prepare(const struct reader_configuration *configuration, struct sandbox_needs *ret)
{
        static struct sqlite_path path; /* not freed: the folder stays valid */
        int r = configuration->url ? sqlite_path_make(configuration->url, &path) : -EINVAL;

        if (r < 0)
                return r;
        sqlite_file_prepare();
        ret->folder = path.folder;
        return 0;
}

int main(void)
{
        static const struct reader_program program = {
                .name = "sqmgr-sqlite", .backend = &database_backend, .prepare = prepare};

        return reader_run(&program);
}
