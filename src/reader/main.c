/* SPDX-License-Identifier: MIT */
/* sqmgr-reader: speaks to one Redis for sqmgr, which starts it. */
#include "reader/backend.h"
#include "reader/run.h"

int main(void)
{
        return reader_run("sqmgr-reader", &redis_backend);
}
