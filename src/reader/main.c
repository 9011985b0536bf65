/* SPDX-License-Identifier: MIT */
/* sqmgr-reader: speaks to one Redis for sqmgr, which starts it. It has no rights: see reader/sandbox.h. */
#include "base/macro.h"
#include "reader/backend.h"
#include "reader/run.h"

static int prepare(const struct reader_configuration *configuration _unused_, struct sandbox_needs *ret)
{
        ret->network = true;
        return 0;
}

int main(void)
{
        static const struct reader_program program = {
                .name = "sqmgr-reader", .backend = &redis_backend, .prepare = prepare};

        return reader_run(&program);
}
