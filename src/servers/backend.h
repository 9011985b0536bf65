/* SPDX-License-Identifier: MIT */
/* What speaks to a server. */
#pragma once

#include "servers/server.h"

struct ask; /* servers/ask.h */

struct reader_backend {
        /* Returns the URL of the server for people, without user and password; NULL if memory is short. */
        char *(*url_text)(const struct reader_options *options);
        /* Makes the connection that options describe. Once the loop runs, reports each state by
         * reader_report_state(). Returns 0 with *ret; or -errno, with a sentence in *error unless that is
         * -ENOMEM. options are valid during the call. */
        int (*begin)(struct reader *reader, const struct reader_options *options, struct error_report *error,
                     void **ret);
        /* Ends all asks that it holds, and frees the backend. May be called from within anything that the
         * backend calls. */
        void (*end)(void *backend);
        /* Answers a query: ask_done() or an ask_fail function is called exactly once, within this call or
         * later. */
        void (*ask)(void *backend, struct ask *ask);
        /* How long the last command took; 0: unknown. */
        usec_t (*rtt_usec)(const void *backend);
};

struct reader_report {
        enum reader_state state;
        uint64_t connections; /* how many have succeeded */
        struct error_report error;
        char server[READER_SERVER_MAX]; /* `host:port` of the master that Sentinels named; "": none */
};

sd_event *reader_event(const struct reader *reader);
/* Reports the state of the connection. Call from the loop, as the last call: the server may be freed within
 * it. */
void reader_report_state(struct reader *reader, const struct reader_report *report);
/* Encloses all decoding of bytes of the server: called with true before and with false afterwards, also if
 * the server is freed in between. Calls may be nested. */
void reader_decoding(struct reader *reader, bool begins);
