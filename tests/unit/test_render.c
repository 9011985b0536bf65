/* SPDX-License-Identifier: MIT */
/* What sqmgrctl shows of fixed replies, compared with tests/golden. Colours stand there as {31}. */
#include "base/text.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "golden.h"
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
        {"hosts-piped", "hosts", 0, false, false},
        {"hosts-80", "hosts", 80, false, false},
        {"hosts-120-colour", "hosts", 120, true, false},
        {"hosts-halted-60-colour", "hosts-halted", 60, true, false},
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
        char name[64], path[GOLDEN_PATH_MAX], *text = NULL;
        size_t size, i;
        FILE *out = open_memstream(&text, &size);

        snprintf(name, sizeof(name), "%s.json", golden->reply);
        json_t *reply = json_load_file(golden_path(name, path), 0, NULL), *event;
        ck_assert_msg(reply, "'%s' is no JSON", path);
        ck_assert_ptr_nonnull(out);
        if (strncmp(golden->reply, "status", strlen("status")) == 0)
                ck_assert_int_eq(render_status(out, reply, &view), CTL_DONE);
        if (strncmp(golden->reply, "hosts", strlen("hosts")) == 0)
                ck_assert_int_eq(hosts_render(out, reply, &view), CTL_DONE);
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
                static const char *const replies[] = {"status", "hosts", "hosts-halted"};

                for (size_t i = 0; i < ELEMENTSOF(replies); i++) {
                        char *text = render(&(struct golden){.reply = replies[i], .columns = columns});

                        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                                ck_assert_msg(text_width(line) <= columns, "%d columns: '%s'", columns, line);
                        free(text);
                }
        }
}

/* A group of n, of which each tenth is done, each hundredth has failed, and so on. */
static json_t *group_of(int n)
{
        static const char *const states[] = {"done",    "rolling", "waiting", "waiting", "waiting",
                                             "waiting", "waiting", "waiting", "waiting", "waiting"};
        json_t *hosts = json_array();
        char name[64];

        for (int i = 0; i < n; i++) {
                snprintf(name, sizeof(name), "shop-%d.example.org", i);
                json_array_append_new(hosts,
                                      json_pack("{s:s, s:s, s:f, s:f, s:s?, s:b, s:s?, s:b}", "host", name,
                                                "state", i % 100 == 99 ? "failed" : states[i % 10], "seconds",
                                                (double)i, "seen_seconds", 1.0, "progress",
                                                i % 10 == 1 ? "3 of 8 replaced" : NULL, "drained", 1, "error",
                                                i % 100 == 99 ? "why it did" : NULL, "here", 0));
        }
        return json_pack("{s:[{s:s, s:s, s:i, s:s, s:o}]}", "rollouts", "fleet", "default", "group", "shop",
                         "epoch", 7, "state", "running", "hosts", hosts);
}

TEST(a_group_of_any_size_fits_the_terminal)
{
        static const int sizes[] = {1, 2, 12, 100, 1024}, rows[] = {10, 24, 60};

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
                for (size_t k = 0; k < ELEMENTSOF(rows); k++)
                        for (int columns = 44; columns < 130; columns += 17) {
                                const struct view view = {.columns = columns, .rows = rows[k]};
                                json_t *reply = group_of(sizes[i]);
                                char *text = NULL;
                                size_t size;
                                FILE *out = open_memstream(&text, &size);

                                ck_assert_int_eq(hosts_render(out, reply, &view), CTL_DONE);
                                ck_assert_int_eq(fclose(out), 0);
                                ck_assert_msg(screen_count_lines(text) < rows[k], "%d hosts, %d rows:\n%s",
                                              sizes[i], rows[k], text);
                                json_decref(reply);
                                free(text);
                        }
}

TEST(those_that_need_someone_are_seen_first_and_the_others_are_counted)
{
        const struct view view = {.columns = 80, .rows = 24};
        json_t *reply = group_of(1000);
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        ck_assert_int_eq(hosts_render(out, reply, &view), CTL_DONE);
        ck_assert_int_eq(fclose(out), 0);
        const char *failed = strstr(text, "shop-99 "), *last_failed = strstr(text, "shop-999 "),
                   *rolling = strstr(text, "shop-1 ");
        ck_assert(failed && last_failed && rolling && failed < last_failed && last_failed < rolling);
        const char *counts = strstr(text, "... ");
        ck_assert_ptr_nonnull(counts);
        golden_expect("rollout-hosts", "those that are counted", counts);
        json_decref(reply);
        free(text);
}

TEST_MAIN("render", .once = {use_utc, NULL})
