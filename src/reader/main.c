/* SPDX-License-Identifier: MIT */
/* sqmgr-reader: speaks to one Redis for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        static const struct reader_program program = {.name = "sqmgr-reader", .backend = &redis_backend};

        return reader_run(&program);
}
