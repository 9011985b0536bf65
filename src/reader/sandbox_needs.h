/* SPDX-License-Identifier: MIT */
/* The needs of a reader program once it is in its sandbox. */
#pragma once

#include <stdbool.h>

/* All zeros: nothing beyond its loop, its memory and its socket to sqmgr. */
struct sandbox_needs {
        bool network;       /* connects to other machines, and looks up their names */
        bool unix_sockets;  /* connects to Unix sockets by itself */
        const char *folder; /* absolute: makes, writes, locks and removes files below it; NULL: none */
};
