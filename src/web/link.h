/* SPDX-License-Identifier: MIT */
/* One connection to one sqmgr: asks, one question after another, and connects again by itself. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>
#include <systemd/sd-event.h>

/* In the order in which they are asked where several are due. */
enum link_question {
        LINK_STATUS,
        LINK_EVENTS,
        LINK_QUEUES,
        LINK_METRICS,
        LINK_ROLLOUTS,
        _LINK_QUESTION_MAX,
};

struct link;

/* They come out of the loop, never out of a call of link_*(), and must not free the link. */
struct link_ops {
        /* What is asked with; NULL: nothing, or memory is short, which is no harm. */
        json_t *(*parameters)(void *userdata, enum link_question question);
        /* answer is borrowed; NULL: sqmgr refused the question. */
        void (*answered)(void *userdata, enum link_question question, json_t *answer);
        /* The connection is lost, or there is none yet; told again with each try. What was asked is
         * forgotten. */
        void (*lost)(void *userdata, const char *error);
};

struct link_limits {
        size_t reply_bytes;      /* a longer reply ends the connection */
        usec_t answer_usec;      /* so does one that does not come for so long */
        usec_t backoff_min_usec; /* until the next try, doubled each time that it is in vain */
        usec_t backoff_max_usec; /* up to this */
};

extern const struct link_limits link_default_limits;

/* Begins to connect to path, and asks for status, events and queues as soon as it is connected. path is not
 * copied, as limits and ops are not. Returns 0 or -errno; *ret is to be freed by link_free(). */
int link_new(struct link **ret, sd_event *event, const char *path, const struct link_limits *limits,
             const struct link_ops *ops, void *userdata);
/* Returns NULL, as link may be. */
struct link *link_free(struct link *link);

/* Asks as soon as it can, once however often it is called until then. Without a connection it is not asked.
 */
void link_ask(struct link *link, enum link_question question);
/* Is an answer still to come? */
bool link_awaits(const struct link *link, enum link_question question);
