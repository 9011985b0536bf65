/* SPDX-License-Identifier: MIT */
/* The state of a connection to a server, as its reader reports it. */
#pragma once

#include <stdbool.h>

enum reader_state {
        READER_STATE_CONNECTING, /* unknown: during the first attempt */
        READER_STATE_CONNECTED,
        READER_STATE_DOWN,     /* reconnecting */
        READER_STATE_SLOW,     /* reconnecting: the server did not answer in time */
        READER_STATE_REFUSING, /* connected, but the server refuses writes: no worker can send heartbeats */
        _READER_STATE_MAX,
};

/* Returns true if the server can be asked. */
static inline bool reader_state_answers(enum reader_state state)
{
        return state == READER_STATE_CONNECTED || state == READER_STATE_REFUSING;
}

/* Returns what the server is: "slow". */
const char *reader_state_text(enum reader_state value);
