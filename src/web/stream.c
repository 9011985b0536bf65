/* SPDX-License-Identifier: MIT */
/* Server-sent events. Each message is rendered once for all viewers. A slow viewer skips to the newest
 * complete message. No I/O. */
#include "web/stream.h"
#include <string.h>

struct shared *shared_take(char *data, size_t size)
{
        struct shared *text = data ? malloc(sizeof(*text)) : NULL;

        if (text)
                *text = (struct shared){.holders = 1, .size = size, .data = data};
        else
                free(data);
        return text;
}

struct shared *shared_hold(struct shared *text)
{
        text->holders++;
        return text;
}

struct shared *shared_drop(struct shared *text)
{
        if (text && --text->holders == 0) {
                free(text->data);
                free(text);
        }
        return NULL;
}

void stream_put(FILE *out, const char *event, const char *text)
{
        bool more;

        fprintf(out, "event: %s\n", event);
        do {
                /* The format has three line endings, none of which may be within a `data:`. */
                size_t length = strcspn(text, "\r\n");

                fputs("data: ", out);
                fwrite(text, 1, length, out);
                fputc('\n', out);
                text += length;
                more = *text != '\0';
                text += more + (text[0] == '\r' && text[1] == '\n');
        } while (more);
        fputc('\n', out);
}

void stream_join(struct stream *stream, struct viewer *viewer)
{
        viewer->stream = stream;
        viewer->serial = stream->serial;
        LIST_INSERT_HEAD(&stream->viewers, viewer, entry);
}

void stream_send_first(struct viewer *viewer, struct shared *message)
{
        viewer->text = shared_hold(message);
}

void stream_leave(struct viewer *viewer)
{
        if (!viewer->stream)
                return;
        LIST_REMOVE(viewer, entry);
        viewer->text = shared_drop(viewer->text);
        viewer->stream = NULL;
}

static void wake(struct viewer *viewer)
{
        if (viewer->waits) {
                viewer->waits = false;
                viewer->stream->wake(viewer);
        }
}

void stream_publish(struct stream *stream, struct shared *message)
{
        struct viewer *viewer;

        stream->newest = shared_drop(stream->newest);
        stream->newest = shared_hold(message);
        stream->serial++;
        LIST_FOREACH(viewer, &stream->viewers, entry) {
                wake(viewer);
        }
}

void stream_publish_idle(struct stream *stream, struct shared *message)
{
        struct viewer *viewer;

        LIST_FOREACH(viewer, &stream->viewers, entry) {
                if (!viewer->waits)
                        continue;
                viewer->text = shared_hold(message);
                viewer->sent = 0;
                wake(viewer);
        }
}

size_t stream_read(struct viewer *viewer, char *data, size_t size)
{
        struct stream *stream = viewer->stream;

        if (!viewer->text && viewer->serial != stream->serial) {
                viewer->text = shared_hold(stream->newest);
                viewer->serial = stream->serial;
                viewer->sent = 0;
        }
        if (!viewer->text) {
                viewer->waits = true;
                return 0;
        }
        size_t n = MIN(viewer->text->size - viewer->sent, size);
        memcpy(data, viewer->text->data + viewer->sent, n);
        viewer->sent += n;
        if (viewer->sent == viewer->text->size)
                viewer->text = shared_drop(viewer->text);
        return n;
}

void stream_done(struct stream *stream)
{
        stream->newest = shared_drop(stream->newest);
}
