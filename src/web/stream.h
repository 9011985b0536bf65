/* SPDX-License-Identifier: MIT */
/* Server-sent events: each message is made once for all who watch; who is slow goes on with the newest whole
 * one. No I/O. */
#pragma once

#include "web/shared.h"
#include <stdio.h>
#include <sys/queue.h>

struct viewer;

struct stream {
        LIST_HEAD(viewers, viewer) viewers;  /* who watches */
        struct shared *newest;               /* the message that was published last, or NULL */
        uint64_t serial;                     /* counts the messages published */
        void (*wake)(struct viewer *viewer); /* it waits, and can read on; must not change the list */
};

struct viewer {
        struct stream *stream;
        LIST_ENTRY(viewer) instance_client;
        struct shared *text; /* what it is being sent, or NULL */
        size_t sent;         /* bytes of that */
        uint64_t serial;     /* of the stream, as it was taken */
        bool waits;          /* it has all that there is */
        void *userdata;
};

/* Writes the text as a message: `event: NAME`, and a `data:` for each line of the text. */
void stream_put(FILE *out, const char *event, const char *text);

/* Puts the viewer, all zero but for its userdata, among those of stream. first: what it is sent at once; may
 * be NULL.
 */
void stream_join(struct stream *stream, struct viewer *viewer, struct shared *first);
/* Takes it out again; it need not have joined. */
void stream_leave(struct viewer *viewer);

/* Has it sent to all, in the place of what they have not begun to be sent. */
void stream_publish(struct stream *stream, struct shared *message);
/* Sends it to those alone who wait. */
void stream_publish_idle(struct stream *stream, struct shared *message);

/* What comes next of what the viewer is sent, size bytes of it at most. 0: there is nothing now, the viewer
 * waits and will be woken. */
size_t stream_read(struct viewer *viewer, char *data, size_t size);

/* Lets go of what was published; nobody watches any more. */
void stream_done(struct stream *stream);
