/* SPDX-License-Identifier: MIT */
/* What sqmgrctl shows of fixed replies, compared with tests/golden. Colours stand there as {31}. */
#include "base/text.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "golden_reply.h"
#include "unit.h"

static const struct golden {
        const char *name, *reply;
        int columns;
        bool colour, brief;
} goldens[] = {
        {"status-piped", "status", 0, false, false},
        {"status-80", "status", 80, false, false},
        {"status-200", "status", 200, false, false},
        {"status-60-colour", "status", 60, true, false},
        {"status-80-brief", "status", 80, false, true},
        {"events-piped", "events", 0, false, false},
        {"status-troubled-80-colour", "status-troubled", 80, true, false},
        {"status-scaled-80-colour", "status-scaled", 80, true, false},
        {"status-returned-80", "status-returned", 80, false, false},
        {"events-80", "events", 80, false, false},
        {"events-50-colour", "events", 50, true, false},
};

/* Each ESC [ ... m as {...}. */
static void show_colours(char *text)
{
        for (char *at = text; (at = strstr(at, "\033["));) {
                *at = '{';
                memmove(at + 1, at + 2, strlen(at + 2) + 1);
                at = strchr(at, 'm');
                ck_assert_ptr_nonnull(at);
                *at = '}';
        }
}

/* To be freed. */
static char *render(const struct golden *golden)
{
        const struct view view = {
                .columns = golden->columns, .colour = golden->colour, .brief = golden->brief};
        char *text = NULL;
        size_t size, i;
        FILE *out = open_memstream(&text, &size);

        json_t *reply = golden_reply(golden->reply), *event;
        ck_assert_ptr_nonnull(out);
        if (strncmp(golden->reply, "status", strlen("status")) == 0)
                ck_assert_int_eq(render_status(out, reply, &view), CTL_DONE);
        json_array_foreach(json_object_get(reply, "events"), i, event) render_event(out, event, &view);
        ck_assert_int_eq(fclose(out), 0);
        json_decref(reply);
        show_colours(text);
        return text;
}

static void use_utc(void)
{
        setenv("TZ", "UTC", 1);
}

TEST_LOOP(what_is_shown_is_as_it_was_looked_at, ELEMENTSOF(goldens))
{
        char *shown = render(&goldens[_i]);

        golden_expect(goldens[_i].name, NULL, shown);
        free(shown);
}

TEST(no_line_is_longer_than_the_terminal)
{
        /* The table takes some, whatever the terminal, and so does the longest URL. */
        for (int columns = 44; columns < 250; columns++) {
                char *text = render(&(struct golden){.reply = "status", .columns = columns});

                for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                        ck_assert_msg(text_width(line) <= columns, "%d columns: '%s'", columns, line);
                free(text);
        }
}

TEST_MAIN("render", .once = {use_utc, NULL})
