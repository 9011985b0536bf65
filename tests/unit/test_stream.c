/* SPDX-License-Identifier: MIT */
/* Server-sent events: who is sent what, and what the slow miss. */
#include "unit.h"
#include "web/stream.h"

static unsigned woken;

static void on_wake(struct viewer *viewer)
{
        ck_assert(!viewer->waits);
        woken++;
}

static void publish(struct stream *stream, const char *text)
{
        _cleanup_shared_ struct shared *message = shared_take(strdup(text), strlen(text));

        stream_publish(stream, message);
}

/* What comes in pieces of at most so many bytes, until there is no more. */
static const char *read_all(struct viewer *viewer, size_t piece)
{
        static char text[256];
        size_t n, size = 0;

        while ((n = stream_read(viewer, text + size, piece)) > 0)
                size += n;
        text[size] = '\0';
        return text;
}

static const char *framed(const char *text)
{
        static char frame[256];
        FILE *out = fmemopen(frame, sizeof(frame), "w");

        stream_put(out, "x", text);
        ck_assert_int_eq(fclose(out), 0);
        return frame;
}

TEST(a_text_is_a_data_line_for_each_of_its_lines)
{
        ck_assert_str_eq(framed("a"), "event: x\ndata: a\n\n");
        ck_assert_str_eq(framed(""), "event: x\ndata: \n\n");
        ck_assert_str_eq(framed("a\nb"), "event: x\ndata: a\ndata: b\n\n");
        ck_assert_str_eq(framed("a\n"), "event: x\ndata: a\ndata: \n\n");
        /* Each would end a line, and what follows it would be a field of its own. */
        ck_assert_str_eq(framed("a\revent: y\r\n\r\nb"),
                         "event: x\ndata: a\ndata: event: y\ndata: \ndata: b\n\n");
}

TEST(all_are_sent_one_text)
{
        struct stream stream = {.wake = on_wake};
        struct viewer viewers[2] = {0};
        _cleanup_shared_ struct shared *first = shared_take(strdup("first"), 5);

        woken = 0;
        stream_join(&stream, &viewers[0]);
        stream_send_first(&viewers[0], first);
        stream_join(&stream, &viewers[1]);
        ck_assert_str_eq(read_all(&viewers[0], 2), "first");
        ck_assert_str_eq(read_all(&viewers[1], 2), "");
        ck_assert(viewers[0].waits && viewers[1].waits);
        publish(&stream, "second");
        ck_assert_uint_eq(woken, 2);
        ck_assert_str_eq(read_all(&viewers[0], 100), "second");
        ck_assert_str_eq(read_all(&viewers[1], 1), "second");
        stream_leave(&viewers[0]);
        stream_leave(&viewers[1]);
        ck_assert(LIST_EMPTY(&stream.viewers));
        /* One that never joined. */
        stream_leave(&viewers[0]);
        stream_done(&stream);
}

TEST(who_is_slow_goes_on_with_the_newest_whole_one)
{
        struct stream stream = {.wake = on_wake};
        struct viewer viewer = {0};
        char text[8];

        woken = 0;
        stream_join(&stream, &viewer);
        publish(&stream, "one");
        ck_assert_uint_eq(stream_read(&viewer, text, 2), 2);
        publish(&stream, "two");
        publish(&stream, "three");
        ck_assert_str_eq(read_all(&viewer, 4), "ethree");
        ck_assert_uint_eq(woken, 0);
        publish(&stream, "four");
        ck_assert_uint_eq(woken, 1);
        stream_leave(&viewer);
        stream_done(&stream);
}

TEST(a_comment_is_for_those_who_wait)
{
        struct stream stream = {.wake = on_wake};
        struct viewer waits = {0}, busy = {0};
        _cleanup_shared_ struct shared *comment = shared_take(strdup(":"), 1);

        woken = 0;
        stream_join(&stream, &waits);
        stream_join(&stream, &busy);
        ck_assert_str_eq(read_all(&waits, 9), "");
        publish(&stream, "one");
        ck_assert_str_eq(read_all(&waits, 9), "one");
        stream_publish_idle(&stream, comment);
        ck_assert_str_eq(read_all(&waits, 9), ":");
        ck_assert_str_eq(read_all(&busy, 9), "one");
        stream_leave(&waits);
        stream_leave(&busy);
        stream_done(&stream);
        ck_assert_uint_eq(comment->holders, 1);
}

TEST(one_that_leaves_takes_nobody_along)
{
        struct stream stream = {.wake = on_wake};
        struct viewer viewers[3] = {0};

        for (size_t i = 0; i < 3; i++)
                stream_join(&stream, &viewers[i]);
        publish(&stream, "x");
        stream_leave(&viewers[1]);
        ck_assert_str_eq(read_all(&viewers[0], 9), "x");
        stream_leave(&viewers[2]);
        publish(&stream, "y");
        ck_assert_str_eq(read_all(&viewers[0], 9), "y");
        stream_leave(&viewers[0]);
        ck_assert(LIST_EMPTY(&stream.viewers));
        stream_done(&stream);
}

TEST_MAIN("stream")
