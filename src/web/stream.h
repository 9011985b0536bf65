/* SPDX-License-Identifier: MIT */
/* Texts that are sent to many clients, and server-sent events. Each message is rendered once for all viewers.
 * A slow viewer skips to the newest complete message. No I/O. */
#pragma once

#include "base/macro.h"
#include <stdio.h>
#include <sys/queue.h>

struct viewer;

/* A text with a reference count: rendered once, sent to many clients. */
struct shared {
        unsigned holders;
        unsigned counted; /* for http.c: the last sweep that counted this text */
        size_t size;      /* size of data in bytes */
        char *data;
};

/* Takes over data, which was allocated by malloc(), also on failure. The caller holds one reference. data may
 * be NULL. Returns NULL if data is NULL or memory is short. */
struct shared *shared_take(char *data, size_t size);
/* Takes a further reference. Returns text. */
struct shared *shared_hold(struct shared *text);
/* Drops a reference and frees the text after the last one; text may be NULL. Returns NULL. */
struct shared *shared_drop(struct shared *text);

DEFINE_CLEANUP(struct shared *, shared_drop)
#define _cleanup_shared_ _cleanup_(shared_drop_pointer)

struct stream {
        LIST_HEAD(viewers, viewer) viewers;  /* viewers of this stream */
        struct shared *newest;               /* last published message, or NULL */
        uint64_t serial;                     /* number of published messages */
        void (*wake)(struct viewer *viewer); /* called when a waiting viewer can read again; must not change
                                                the list of viewers */
};

struct viewer {
        struct stream *stream;
        LIST_ENTRY(viewer) entry;
        struct shared *text; /* message being sent, or NULL */
        size_t sent;         /* bytes of text already sent */
        uint64_t serial;     /* serial of the stream when text was taken */
        bool waits;          /* the viewer has read everything */
        void *userdata;
};

/* Writes text as a message: `event: NAME`, and a `data:` for each line. */
void stream_put(FILE *out, const char *event, const char *text);

/* Adds the viewer to the stream. All members but userdata must be zero. */
void stream_join(struct stream *stream, struct viewer *viewer);
/* Sends the message to a viewer that has joined and was sent nothing yet. Takes a reference of its own, like
 * the two functions below. */
void stream_send_first(struct viewer *viewer, struct shared *message);
/* Removes the viewer; does nothing if the viewer has not joined. */
void stream_leave(struct viewer *viewer);

/* Sends the message to all viewers. Replaces messages that a viewer has not begun to read. */
void stream_publish(struct stream *stream, struct shared *message);
/* Sends the message only to viewers that have read everything. */
void stream_publish_idle(struct stream *stream, struct shared *message);

/* Copies up to size bytes of the viewer's next data. Returns 0 if there is none: the viewer then waits and is
 * woken later. */
size_t stream_read(struct viewer *viewer, char *data, size_t size);

/* Releases the last message. All viewers must have left. */
void stream_done(struct stream *stream);
