/* SPDX-License-Identifier: MIT */
/* How sqmgrctl and each of its steps end. */
#pragma once

enum ctl_exit {
        /* These are no exit codes, and were not told. */
        CTL_OLDER = -3, /* sqmgr refuses the parameter that the call can do without, see struct ctl */
        CTL_WOKEN = -2, /* a signal or a key came before the reply */
        CTL_LOST = -1,  /* the connection ended before the reply */
        CTL_DONE = 0,
        CTL_FAILED = 1,     /* the operation failed */
        CTL_USAGE = 2,      /* an unknown fleet or worker included */
        CTL_CONNECT = 3,    /* no sqmgr answers */
        CTL_PERMISSION = 4, /* not permitted */
        CTL_TIMEOUT = 5,    /* the operation goes on */
};
