/* SPDX-License-Identifier: MIT */
/* The view of `sqmgrctl top`: what each key does to it, and what it shows in which terminal. */
#include "base/text.h"
#include "ctl/top_model.h"
#include "golden.h"
#include "unit.h"
#include "wire/reply.h"

static struct top top;
static struct top_replies replies;
static struct view view;
static char *shown;

static void add_worker(json_t *workers, const char *id, const char *state, int busy, long long memory,
                       double uptime)
{
        json_t *worker =
                json_pack("{s:s, s:i, s:s, s:b, s:i, s:i, s:i, s:I, s:f, s:f, s:s, s:f, s:n}", "id", id,
                          "pid", 100, "state", state, "ready", 1, "generation", 1, "busy", busy,
                          "concurrency", 5, "memory_bytes", (json_int_t)memory, "uptime_seconds", uptime,
                          "state_seconds", 10.0, "evidence", "redis", "beat_age_seconds", 1.0, "waits_for");

        ck_assert_int_eq(json_array_append_new(workers, worker), 0);
}

static json_t *fleet_of(const char *name, json_t *workers)
{
        json_t *fleet =
                json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "name", name, "framework", "sidekiq",
                          "state", "running", "target", 3, "active", 3, "generation", 1, "workers", workers);

        ck_assert_ptr_nonnull(fleet);
        return fleet;
}

static void setup(void)
{
        setenv("TZ", "UTC", 1);
        json_t *web = json_array(), *mail = json_array();

        top = (struct top){0};
        view = (struct view){.columns = 80, .rows = 24};
        add_worker(web, "web/1", "active", 2, 300 << 20, 5000);
        add_worker(web, "web/2", "starting", 0, 100 << 20, 3);
        add_worker(web, "web/3", "active", 5, 200 << 20, 4000);
        add_worker(mail, "mail/1", "quiet", 1, 400 << 20, 9000);
        replies = (struct top_replies){.error = "", .now = 1800000000};
        replies.status = json_pack("{s:s, s:f, s:[{s:s, s:s}], s:[o,o]}", "version", "1", "uptime_seconds",
                                   100.0, "redis", "kind", "redis", "state", "connected", "fleets",
                                   fleet_of("web", web), fleet_of("mail", mail));
        ck_assert_ptr_nonnull(replies.status);
        shown = NULL;
}

static void teardown(void)
{
        json_decref(replies.status);
        json_decref(replies.jobs);
        json_decref(replies.events);
        free(shown);
}

static enum top_do press(int key)
{
        return top_press(&top, key, &replies, &view);
}

static void type(const char *keys)
{
        for (; *keys != '\0'; keys++)
                ck_assert_int_eq(press(*keys), TOP_NOTHING);
}

/* Draws, and sees that it fits. */
static const char *draw(void)
{
        size_t size;
        int rows = 0;

        free(shown);
        FILE *out = open_memstream(&shown, &size);
        ck_assert_ptr_nonnull(out);
        top_draw(out, &top, &replies, &view);
        ck_assert_int_eq(fclose(out), 0);
        for (const char *line = shown; *line != '\0'; line += strcspn(line, "\n") + 1) {
                size_t length = strcspn(line, "\n");

                ck_assert_uint_eq(text_fitting(line, length, view.columns), length);
                rows++;
        }
        ck_assert_int_lt(rows, MAX(view.rows, 2));
        return shown;
}

static void shows_picture(const char *section)
{
        golden_expect("top", section, draw());
}

static void shows(const char *text)
{
        ck_assert_msg(strstr(draw(), text), "'%s' is not in:\n%s", text, shown);
}

static void shows_not(const char *text)
{
        ck_assert_msg(!strstr(draw(), text), "'%s' is in:\n%s", text, shown);
}

/* The ids as they stand below each other, a word each. */
static void order_is(const char *wanted)
{
        char ids[256] = "";
        _cleanup_top_rows_ struct render_lines rows = {0};

        ck_assert_int_eq(top_rows_collect(&rows, &top, replies.status), 0);
        for (size_t i = 0; i < rows.n; i++) {
                const char *id = json_string_value(json_object_get(rows.lines[i].worker, "id"));

                snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s", i > 0 ? " " : "", id);
        }
        ck_assert_str_eq(ids, wanted);
}

TEST(sorts_by_each_column)
{
        order_is("web/1 web/2 web/3 mail/1");
        type("m");
        order_is("mail/1 web/1 web/3 web/2");
        type("b");
        order_is("web/3 web/1 mail/1 web/2");
        type("a");
        order_is("mail/1 web/1 web/3 web/2");
        type("t");
        order_is("web/2 mail/1 web/1 web/3");
        type("s");
        order_is("web/1 web/2 web/3 mail/1");
        type("s");
        order_is("mail/1 web/1 web/3 web/2");
        shows("by memory");
}

TEST(filters_as_it_is_typed)
{
        type("/MAI");
        order_is("mail/1");
        /* What is an order elsewhere is a letter here. */
        type("q");
        order_is("");
        shows_picture("nothing passes the filter");
        ck_assert_int_eq(press(TOP_KEY_ERASE), TOP_NOTHING);
        order_is("mail/1");
        ck_assert_int_eq(press(TOP_KEY_ENTER), TOP_NOTHING);
        ck_assert(!top.typing && !top.opened);
        shows("only 'MAI'");
        ck_assert_int_eq(press(TOP_KEY_ESCAPE), TOP_NOTHING);
        order_is("web/1 web/2 web/3 mail/1");
        type("/starting");
        order_is("web/2");
        ck_assert_int_eq(press(TOP_KEY_ESCAPE), TOP_NOTHING);
        order_is("web/1 web/2 web/3 mail/1");
        for (unsigned i = 0; i < 3; i++)
                type("/12345678901234567890123456789012345678901234567890");
        draw();
}

TEST(the_chosen_worker_stays_chosen_wherever_it_comes_to_stand)
{
        type("jj");
        ck_assert_str_eq(top.chosen, "web/3");
        type("m");
        ck_assert_str_eq(top.chosen, "web/3");
        shows(">  web/3");
        ck_assert_int_eq(press(TOP_KEY_END), TOP_NOTHING);
        ck_assert_str_eq(top.chosen, "web/2");
        ck_assert_int_eq(press(TOP_KEY_HOME), TOP_NOTHING);
        ck_assert_str_eq(top.chosen, "mail/1");
        ck_assert_int_eq(press(TOP_KEY_UP), TOP_NOTHING);
        ck_assert_str_eq(top.chosen, "mail/1");
        /* One that is gone leaves its place to the next. */
        json_array_remove(json_object_get(replies.status, "fleets"), 1);
        shows(">  web/1");
        ck_assert_int_eq(press(TOP_KEY_DOWN), TOP_NOTHING);
        ck_assert_str_eq(top.chosen, "web/3");
}

TEST(the_worst_problems_are_shown_and_colour_their_fleets)
{
        static const char *const severities[] = {"error", "warning", "warning", "notice"};
        json_t *problems = json_array();

        for (size_t i = 0; i < ELEMENTSOF(severities); i++)
                json_array_append_new(problems,
                                      json_pack("{s:s, s:s, s:f, s:s}", "severity", severities[i], "summary",
                                                i == 0 ? "fleet 'mail': crash loop" : "x", "since",
                                                1799999000.0, "fleet", i == 0 ? "mail" : "web"));
        json_object_set_new(replies.status, "problems", problems);
        view.colour = true;
        shows("\033[31merror: fleet 'mail': crash loop (since 2027-01-15 07:43:20)");
        shows("... 1 more problems: run 'sqmgrctl status'");
        shows("\033[31mmail (");
        shows("\033[33mweb (");
}

TEST(nothing_is_done_but_after_a_yes)
{
        static const int others[] = {'n', 'q', TOP_KEY_ENTER, TOP_KEY_ESCAPE, ' ', TOP_KEY_DOWN, 'Q', 'R'};

        type("j");
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                ck_assert_int_eq(press('Q'), TOP_NOTHING);
                shows("Quiet web/2?");
                ck_assert_int_eq(press(others[i]), TOP_NOTHING);
                ck_assert_int_eq(top.asked, TOP_NOTHING);
                shows_picture("canceled");
        }
        ck_assert_str_eq(top.chosen, "web/2");
        /* Not a later one, either. */
        ck_assert_int_eq(press('y'), TOP_NOTHING);
        ck_assert_int_eq(press('Q'), TOP_NOTHING);
        ck_assert_int_eq(press('y'), TOP_QUIET);
        ck_assert_str_eq(top.target, "web/2");
        ck_assert_int_eq(press('R'), TOP_NOTHING);
        shows("Restart web?");
        ck_assert_int_eq(press('Y'), TOP_RESTART);
        ck_assert_str_eq(top.target, "web");
        ck_assert_int_eq(press('q'), TOP_QUIT);
}

TEST(the_question_is_of_whom_it_was_asked)
{
        type("j");
        ck_assert_int_eq(press('Q'), TOP_NOTHING);
        json_array_clear(
                json_object_get(json_array_get(json_object_get(replies.status, "fleets"), 0), "workers"));
        shows("Quiet web/2?");
        ck_assert_int_eq(press('y'), TOP_QUIET);
        ck_assert_str_eq(top.target, "web/2");
}

TEST(where_nobody_is_nothing_can_be_asked)
{
        json_decref(replies.status);
        replies.status = NULL;
        for (const char *keys = "QRjksmbat?"; *keys != '\0'; keys++)
                ck_assert_int_eq(press(*keys), TOP_NOTHING);
        ck_assert_int_eq(press('x'), TOP_NOTHING);
        ck_assert_int_eq(press(TOP_KEY_ENTER), TOP_NOTHING);
        ck_assert(!top.opened && top.asked == TOP_NOTHING);
        replies.error = "connection refused";
        shows("connection refused");
}

TEST(a_worker_is_opened_with_its_jobs_story_and_lines)
{
        type("jj");
        ck_assert_int_eq(press(TOP_KEY_ENTER), TOP_POLL);
        shows("web/3: [1 jobs]");
        replies.jobs = json_pack("{s:[{s:s,s:s,s:s,s:s,s:i},{s:s,s:s,s:s,s:s,s:i}], s:[]}", "jobs", "class",
                                 "MineJob", "jid", "a1", "queue", "low", "worker", "web/3", "started_at",
                                 1799999990, "class", "OtherJob", "jid", "b2", "queue", "low", "worker",
                                 "web/1", "started_at", 1799999990, "errors");
        ck_assert_ptr_nonnull(replies.jobs);
        shows("MineJob");
        shows("10s");
        shows_not("OtherJob");
        ck_assert_int_eq(press(TOP_KEY_TAB), TOP_POLL);
        replies.events = json_pack("{s:[{s:f,s:s,s:s,s:s,s:s,s:s}]}", "events", "at", 1799999000.0, "event",
                                   "started", "level", "info", "fleet", "web", "worker", "web/3", "text",
                                   "web/3 (pid 100) started");
        shows("web/3 (pid 100) started");
        shows("Now: active");
        ck_assert_int_eq(press('3'), TOP_POLL);
        replies.lines = "first\nlast\n";
        shows("last");
        /* An order is for it, though another one has taken its place in the list. */
        json_array_clear(
                json_object_get(json_array_get(json_object_get(replies.status, "fleets"), 0), "workers"));
        ck_assert_int_eq(press('Q'), TOP_NOTHING);
        shows("Quiet web/3?");
        ck_assert_int_eq(press('n'), TOP_NOTHING);
        ck_assert_int_eq(press(TOP_KEY_LEFT), TOP_POLL);
        shows_picture("a job that is gone");
        ck_assert_int_eq(press(TOP_KEY_ESCAPE), TOP_NOTHING);
        ck_assert(!top.opened);
}

TEST(the_last_lines_are_at_the_end_and_can_be_scrolled)
{
        char lines[4096] = "";

        for (unsigned i = 1; i <= 100; i++)
                snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), "line %03u.\n", i);
        replies.lines = lines;
        type("j");
        ck_assert_int_eq(press(TOP_KEY_ENTER), TOP_POLL);
        ck_assert_int_eq(press('3'), TOP_POLL);
        shows("line 100.");
        shows_not("line 001.");
        ck_assert_int_eq(press(TOP_KEY_UP), TOP_NOTHING);
        shows_not("line 100.");
        shows("line 099.");
        ck_assert_int_eq(press(TOP_KEY_HOME), TOP_NOTHING);
        shows("line 001.");
        ck_assert_int_eq(press(TOP_KEY_DOWN), TOP_NOTHING);
        shows("line 002.");
        shows_not("line 001.");
        ck_assert_int_eq(press(TOP_KEY_END), TOP_NOTHING);
        shows("line 100.");
}

TEST(a_terminal_that_is_too_small_says_so_and_takes_no_orders)
{
        view = (struct view){.columns = 39, .rows = 24};
        shows("too small");
        ck_assert_int_eq(press('Q'), TOP_NOTHING);
        ck_assert_int_eq(top.asked, TOP_NOTHING);
        view = (struct view){.columns = 80, .rows = 7};
        shows("q quits");
        ck_assert_int_eq(press('q'), TOP_QUIT);
}

TEST(fits_into_each_terminal)
{
        static const char *const modes[] = {"", "?", "/web", "Q", "j\n", "j\n2", "j\n3"};
        json_t *many = json_array();

        for (unsigned i = 1; i <= 80; i++) {
                char id[16];

                snprintf(id, sizeof(id), "many/%u", i);
                add_worker(many, id, "active", 1, 1 << 20, 10);
        }
        for (unsigned i = 0; i < 12; i++)
                json_array_append_new(json_object_get(replies.status, "fleets"),
                                      fleet_of("many", i == 0 ? many : json_array()));
        replies.error = "sqmgr did not answer within 3s; the order may still be carried out";
        replies.age = 12 * USEC_PER_SEC;
        replies.lines =
                "a line that is far longer than the narrowest of all terminals is wide, and goes on\n";
        for (view.columns = 1; view.columns < 202; view.columns += view.columns < 50 ? 1 : 25)
                for (view.rows = 1; view.rows < 62; view.rows += view.rows < 20 ? 1 : 10)
                        for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
                                top = (struct top){0};
                                view.colour = i % 2 == 0;
                                for (const char *keys = modes[i]; *keys != '\0'; keys++)
                                        (void)press(*keys);
                                draw();
                        }
        view = (struct view){.columns = 80, .rows = 24};
        top = (struct top){0};
        shows("more fleets");
        (void)press(TOP_KEY_END);
        shows(">  many/80");
}

TEST(no_string_reaches_the_terminal_as_it_came)
{
        json_t *hostile = json_array();

        add_worker(hostile, "evil\033]0;x\007/1", "act\033[2Jive", 1, 1, 1);
        json_object_set_new(json_array_get(hostile, 0), "waits_for",
                            json_string("\033[31m\nred\r\t\xc2\x9b"
                                        "1m"));
        json_object_set_new(replies.status, "version", json_string("1\033c"));
        json_array_append_new(json_object_get(replies.status, "fleets"), fleet_of("evil\033[1m", hostile));
        ck_assert_int_eq(reply_clean(replies.status, NULL), 0);
        ck_assert_int_eq(reply_clean(NULL, NULL), 0);
        for (const char *at = draw(); *at != '\0'; at++)
                ck_assert_msg((unsigned char)*at >= 0x20 || *at == '\n', "%02x in %s", *at, shown);
        shows("evil?]0;x?/1");
        ck_assert_ptr_null(strstr(shown, "\xc2\x9b"));
}

TEST(takes_the_keys_that_terminals_send)
{
        static const struct {
                const char *bytes;
                size_t taken;
                int key;
        } cases[] = {
                {"\033[A", 3, TOP_KEY_UP},
                {"\033OBq", 3, TOP_KEY_DOWN},
                {"\033[5~", 4, TOP_KEY_PAGE_UP},
                {"\033[6~j", 4, TOP_KEY_PAGE_DOWN},
                {"\033", 1, TOP_KEY_ESCAPE},
                {"\033q", 1, TOP_KEY_ESCAPE},
                {"\r", 1, TOP_KEY_ENTER},
                {"\n", 1, TOP_KEY_ENTER},
                {"\x7f", 1, TOP_KEY_ERASE},
                {"\b", 1, TOP_KEY_ERASE},
                {"q", 1, 'q'},
                {"\xc3\xa4", 1, TOP_KEY_NONE},
                /* What means nothing here is passed over as a whole: no letter of it is an order. */
                {"\033[1;5Qy", 6, TOP_KEY_NONE},
                {"\033[200~", 6, TOP_KEY_NONE},
                {"\033[", 2, TOP_KEY_NONE},
                {"\033[12", 4, TOP_KEY_NONE},
                {"", 0, TOP_KEY_NONE},
        };
        int key;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ck_assert_uint_eq(top_take_key(cases[i].bytes, strlen(cases[i].bytes), &key), cases[i].taken);
                ck_assert_int_eq(key, cases[i].key);
        }
}

TEST(the_keys_are_explained)
{
        type("?");
        shows_picture("keys");
        /* It is no order that closes it. */
        ck_assert_int_eq(press('q'), TOP_NOTHING);
        shows_not("Before anything");
}

TEST(an_old_picture_says_how_old_it_is)
{
        shows_not("reconnecting");
        replies.error = "sqmgr is not running on 'x': connection refused. Start sqmgr";
        replies.age = 12500 * USEC_PER_MSEC;
        shows_picture("an old picture");
        shows("web/1");
}

TEST_MAIN("top", .each = {setup, teardown})
