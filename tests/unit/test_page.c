/* SPDX-License-Identifier: MIT */
/* The page: what it says of each state of affairs, and that nothing of foreign origin becomes a part of it.
 */
#include "../skeleton.h"
#include "golden_reply.h"
#include "unit.h"
#include "web/assets.h"
#include "web/html.h"
#include "web/page.h"
#include "web/page_parts.h"

#define NOW (1795414673 * USEC_PER_SEC)

/* Each string that people or programs elsewhere may have chosen. */
static const char *const foreign[] = {"name",   "id",        "url",        "server",      "error",
                                      "text",   "waits_for", "last",       "log",         "class",
                                      "reason", "refused",   "framework",  "socket",      "fleet",
                                      "worker", "version",   "state_text", "scaled_text", "host"};

/* Takes over status. */
static json_t *document(json_t *status)
{
        return json_pack("{s:[{s:s, s:s, s:b, s:f, s:n, s:o, s:[{s:s, s:n, s:i, s:i, s:i, s:[{s:s, s:i, s:f, "
                         "s:b}], s:i}]}]}",
                         "instances", "socket", "/run/sqmgr/app/control.sock", "name", "app", "reachable", 1,
                         "age_seconds", 0.2, "error", "status", status, "queues", "url",
                         "redis://127.0.0.1:6379/0", "error", "retry", 1, "schedule", 2, "dead", 3, "queues",
                         "name", "default", "size", 128, "latency_seconds", 1.5, "paused", 1,
                         "queues_left_out", 2);
}

static json_t *events(void)
{
        json_t *reply = golden_reply("events"), *list = json_incref(json_object_get(reply, "events")), *event;
        size_t i;

        json_decref(reply);
        json_array_foreach(list, i, event)
        {
                json_object_set_new(event, "socket", json_string("/run/sqmgr/app/control.sock"));
        }
        return list;
}

static char *render(enum page_part part, const json_t *status, const json_t *list)
{
        char *text = NULL;
        size_t size = 0;

        ck_assert_int_eq(page_render(part, status, list, NOW, &text, &size), 0);
        ck_assert_uint_eq(strlen(text), size);
        return text;
}

static bool is_foreign(const char *key)
{
        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                if (strcmp(foreign[i], key) == 0)
                        return true;
        return false;
}

/* Each string of foreign origin gets a tail. */
static void add_tails(json_t *json, const char *tail)
{
        json_t *value;
        const char *key;
        size_t i;

        json_array_foreach(json, i, value)
        {
                add_tails(value, tail);
        }
        json_object_foreach(json, key, value)
        {
                _cleanup_free_ char *text = NULL;

                add_tails(value, tail);
                if (!json_is_string(value) || !is_foreign(key))
                        continue;
                ck_assert_int_ge(asprintf(&text, "%s%s", json_string_value(value), tail), 0);
                ck_assert_int_eq(json_string_set(value, text), 0);
        }
}

static char *skeleton_with(enum page_part part, const char *golden, const char *tail, char **ret_html)
{
        json_t *status = document(golden_reply(golden)), *list = events();

        add_tails(status, tail);
        add_tails(list, tail);
        char *html = render(part, status, list), *skeleton = skeleton_of(html);
        ck_assert_msg(skeleton, "not well-formed with '%s'", tail);
        json_decref(status);
        json_decref(list);
        *ret_html = html;
        return skeleton;
}

TEST(no_foreign_text_becomes_markup)
{
        static const char *const tails[] = {
                "<script>alert(1)</script>",
                "\" onclick=\"alert(1)",
                "' onload='x",
                "--><!--",
                "</td></table></style>",
                "&lt;&#60;&nbsp;",
                "]]><![CDATA[",
                "\n\t\r",
                "\u202e\u2066\ufeff\xc2\x85",
                "%s%n%%",
                "/><img src=x onerror=y>",
        };
        static const char *const goldens[] = {"status", "status-troubled", "status-scaled"};

        for (size_t g = 0; g < ELEMENTSOF(goldens); g++)
                for (int part = PAGE_WHOLE; part <= PAGE_LIVE; part++) {
                        char *html, *clean = skeleton_with((enum page_part)part, goldens[g], "x", &html);

                        free(html);
                        for (size_t i = 0; i < ELEMENTSOF(tails); i++) {
                                char *hostile =
                                        skeleton_with((enum page_part)part, goldens[g], tails[i], &html);

                                ck_assert_str_eq(hostile, clean);
                                ck_assert_ptr_null(strstr(html, "\u202e"));
                                free(hostile);
                                free(html);
                        }
                        free(clean);
                }
}

TEST(skeletons_show_what_is_wrong)
{
        static const char *const bad[] = {"<p>",      "</p>",  "<p></b>",         "<p a=b></p>",
                                          "<p>&</p>", "a > b", "<p a=\"<\"></p>", "<p a=\"\" \"></p>",
                                          "\x01"};

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(!skeleton_of(bad[i]), "'%s' is taken", bad[i]);
        char *good = skeleton_of("<p a=\"&lt;\">x<br/>&amp;</p>");
        ck_assert_str_eq(good, "(p a(br))");
        free(good);
}

/* A fleet of two that is well, and its JSON changed by one more object. */
static json_t *status_with(const char *change)
{
        json_t *worker = json_pack("{s:s, s:i, s:s, s:b, s:i, s:i, s:i, s:s, s:f}", "id", "default/1", "pid",
                                   7, "state", "active", "ready", 1, "generation", 1, "busy", 2,
                                   "concurrency", 5, "evidence", "redis", "beat_age_seconds", 1.0);
        json_t *fleet =
                json_pack("{s:s, s:s, s:i, s:i, s:s, s:[o, O]}", "name", "default", "framework", "sidekiq",
                          "target", 2, "active", 2, "state", "running", "workers", worker, worker);
        json_t *status =
                json_pack("{s:s, s:[{s:s, s:s, s:s}], s:[o], s:[]}", "version", "1", "redis", "kind", "redis",
                          "url", "redis://h:1/0", "state", "connected", "fleets", fleet, "problems");
        json_t *changed = json_loads(change, 0, NULL), *problems = json_object_get(changed, "problems");

        ck_assert_ptr_nonnull(changed);
        if (problems)
                json_object_set(status, "problems", problems);
        json_object_del(changed, "problems");
        json_object_update(fleet, changed);
        json_decref(changed);
        return document(status);
}

/* Compares what a reader sees of the page, a line for each line or cell, with that section of
 * tests/golden/page. */
static void expect_seen(const char *section, const char *html)
{
        char *seen = strdup(html);
        size_t n = 0;

        ck_assert_ptr_nonnull(seen);
        for (const char *at = html; at[0] != '\0'; at++) {
                char c = at[0];

                if (c == '<') {
                        bool inside = strncmp(at, "<b", 2) == 0 || strncmp(at, "</b>", 4) == 0 ||
                                      strncmp(at, "<code", 5) == 0 || strncmp(at, "</code", 6) == 0 ||
                                      strncmp(at, "<span", 5) == 0 || strncmp(at, "</span", 6) == 0;
                        at = strchr(at, '>');
                        ck_assert_ptr_nonnull(at);
                        if (inside)
                                continue;
                        c = '\n';
                }
                if ((c == '\n' || c == ' ') && (n == 0 || seen[n - 1] == '\n'))
                        continue;
                seen[n++] = c;
        }
        seen[n] = '\0';
        golden_expect("page", section, seen);
        free(seen);
}

static void add_headline(const char *change, enum page_level level)
{
        json_t *status = status_with(change);
        const json_t *instances = json_object_get(status, "instances");
        _cleanup_json_ json_t *findings = page_findings(instances);
        const struct page page = {.instances = instances, .findings = findings, .now = NOW};
        char text[PAGE_HEADLINE_MAX];

        ck_assert_int_eq(page_headline(&page, text), level);
        golden_add(change, text);
        json_decref(status);
}

#define PROBLEM(severity, summary)                                                                           \
        "{\"severity\": \"" severity "\", \"summary\": \"" summary "\", \"remedy\": \"Fix it\", "            \
        "\"command\": \"sqmgrctl status\", \"fleet\": \"default\", \"since\": 1795000000.5}"

TEST(says_in_a_sentence_whether_all_is_well)
{
        golden_begin();
        add_headline("{}", PAGE_OK);
        add_headline("{\"rollout\": {\"state\": \"halted\", \"error\": \"why\"}, \"active\": 1}", PAGE_OK);
        add_headline("{\"problems\": [" PROBLEM("error", "default halted") "]}", PAGE_ACT);
        add_headline("{\"problems\": [" PROBLEM("warning", "default is held") "]}", PAGE_ATTENTION);
        add_headline("{\"problems\": [" PROBLEM("notice", "default is scaled") "]}", PAGE_OK);
        add_headline("{\"problems\": [" PROBLEM("error", "a") "," PROBLEM("error", "b") "]}", PAGE_ACT);
        add_headline("{\"problems\": [" PROBLEM("warning", "a") "," PROBLEM("warning", "b") "]}",
                     PAGE_ATTENTION);
        add_headline("{\"problems\": [7, {\"severity\": 8}]}", PAGE_OK);
        golden_end("page", "headlines");
}

TEST(shows_problems_as_sqmgr_judges_them)
{
        json_t *status = status_with("{\"problems\": [" PROBLEM("error", "default: <b>") "," PROBLEM(
                "notice",
                "default: x") ",{\"severity\": \"warning\", \"summary\": \"sqmgr\", \"remedy\": \"Wait\"}]}");
        json_t *fleet = json_pack("{s:s}", "name", "default"), *other = json_pack("{s:s}", "name", "other");
        const json_t *instance = json_array_get(json_object_get(status, "instances"), 0);

        ck_assert_int_eq(page_fleet_level(instance, fleet), PAGE_ACT);
        ck_assert_int_eq(page_fleet_level(instance, other), PAGE_OK);
        char *text = render(PAGE_LIVE, status, NULL);
        expect_seen("problems", text);
        free(text);
        json_decref(fleet);
        json_decref(other);
        json_decref(status);
}

TEST(shows_the_last_state_of_one_that_is_away)
{
        json_t *status = status_with("{\"active\": 0}");
        json_t *instance = json_array_get(json_object_get(status, "instances"), 0);

        json_object_set_new(instance, "reachable", json_false());
        json_object_set_new(instance, "age_seconds", json_real(754.2));
        json_object_set_new(instance, "error", json_string("nobody answers"));
        char *text = render(PAGE_LIVE, status, NULL);
        expect_seen("an instance that is away", text);
        ck_assert_ptr_null(strstr(text, "class=\"sign well\""));
        free(text);
        json_object_set_new(instance, "status", json_null());
        json_object_set_new(instance, "name", json_string("shop"));
        text = render(PAGE_LIVE, status, NULL);
        expect_seen("an instance that was never heard of", text);
        free(text);
        json_decref(status);
}

/* Adds a fleet, and a restart of it. */
static void add_fleet(const json_t *status, const char *name, int active, const char *rollout)
{
        const json_t *instance = json_array_get(json_object_get(status, "instances"), 0);
        json_t *fleets = json_object_get(json_object_get(instance, "status"), "fleets");

        json_array_append_new(fleets,
                              json_pack("{s:s, s:i, s:i, s:o, s:[]}", "name", name, "target", 1, "active",
                                        active, "rollout", json_loads(rollout, 0, NULL), "workers"));
}

TEST(no_fleet_makes_up_for_one_that_is_short)
{
        json_t *status = status_with("{\"target\": 1, \"active\": 0}");

        add_fleet(status, "mailers", 2, "{}");
        char *text = render(PAGE_LIVE, status, NULL);
        ck_assert_ptr_nonnull(strstr(text, ">1 of 2 workers active in 2 fleets (1 short of workers), "
                                           "1 more than needed, 4 jobs running</p>"));
        free(text);
        json_decref(status);
}

TEST(of_twenty_fleets_restarts_come_first_and_a_halted_one_with_its_command)
{
        json_t *status =
                status_with("{\"problems\": [{\"code\": \"rollout-halted\", \"fleet\": \"fleet-19\", "
                            "\"severity\": \"error\", \"summary\": \"halted\", \"remedy\": \"Fix it\", "
                            "\"command\": \"sqmgrctl restart fleet-19\"}]}");
        char name[32];

        for (int i = 2; i <= 20; i++) {
                snprintf(name, sizeof(name), "fleet-%d", i);
                add_fleet(status, name, 1,
                          i == 19   ? "{\"state\": \"halted\", \"error\": \"<worker>\"}"
                          : i == 18 ? "{\"state\": \"running\"}"
                                    : "{\"state\": \"none\"}");
        }
        json_object_set_new(status, "host", json_string("web-<3>"));
        char *text = render(PAGE_WHOLE, status, NULL);
        const char *activity = strstr(text, "<h2 id=\"activity-title\">Activity</h2>"),
                   *halted = strstr(text, "<h3>fleet-19: restart to generation 0 halted</h3>"),
                   *running = strstr(text, "<h3>fleet-18: restart to generation 0 running</h3>"),
                   *fleets = strstr(text, "<h2 id=\"fleets-title\">");
        ck_assert(activity && activity < halted && halted < running && running < fleets);
        const char *reason = strstr(halted, "Reason: &lt;worker&gt;"),
                   *command = strstr(halted, "Fix it: <code>sqmgrctl restart fleet-19</code>");
        ck_assert(reason && reason < command && command < running);
        ck_assert_ptr_nonnull(strstr(text, "<span class=\"brand\">sqmgr on web-&lt;3&gt;</span>"));
        ck_assert_ptr_nonnull(strstr(text, " - sqmgr on web-&lt;3&gt;</title>"));
        free(text);
        json_decref(status);
}

TEST(folds_what_needs_nobody)
{
        json_t *status = document(golden_reply("status"));
        json_t *fleet = json_array_get(
                json_object_get(
                        json_object_get(json_array_get(json_object_get(status, "instances"), 0), "status"),
                        "fleets"),
                0);
        json_t *workers = json_object_get(fleet, "workers"),
               *settled = json_deep_copy(json_array_get(workers, 3));
        char id[32];

        for (int i = 0; i < 200; i++) {
                snprintf(id, sizeof(id), "default/%d", 100 + i);
                json_object_set_new(settled, "id", json_string(id));
                json_array_append_new(workers, json_deep_copy(settled));
        }
        char *text = render(PAGE_LIVE, status, NULL);
        const char *hung = strstr(text, "default/7"),
                   *over = strstr(text, "<th scope=\"row\"><span class=\"of\">default</span>/1<"),
                   *folded = strstr(text, "<details data-key=\"rest\">"),
                   *rest = strstr(text, "data-key=\"default/250\"");
        ck_assert_ptr_nonnull(hung);
        ck_assert(hung < over && over < folded && folded < rest);
        ck_assert_ptr_nonnull(strstr(text, "201 more"));
        free(text);
        json_decref(settled);
        json_decref(status);
}

TEST(commands_are_for_a_shell)
{
        static const struct {
                const char *name, *command;
        } cases[] = {
                {"shop", "systemctl status sqmgr@shop"},
                {"$(reboot)", "systemctl status 'sqmgr@$(reboot)'"},
                {"it's", "systemctl status 'sqmgr@it'\\''s'"},
                {"/elsewhere", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_json_ json_t *instance = json_pack("{s:s}", "name", cases[i].name);

                _cleanup_free_ char *command = page_service_command(instance);
                ck_assert_pstr_eq(command, cases[i].command);
        }
}

static char *printed(const char *value)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        html_print(out, "%s", value);
        fclose(out);
        return text;
}

TEST(text_is_escaped_and_bounded)
{
        static const char *const cases[][2] = {
                {"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"},
                {"é\u4e2d\U0001f600", "é\u4e2d\U0001f600"},
                {"\x01\x7f\x1b[1m", "???[1m"},
                {"\xff\xc3 \xe2\x82", "?? ??"},
                {"\xc0\xaf\xed\xa0\x80", "?????"},
                {"\u202eabc\u200b", "?abc?"},
                {"\n\t", "\n\t"},
                {"", ""},
        };
        char big[HTML_TEXT_MAX + 100];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *text = printed(cases[i][0]);

                ck_assert_str_eq(text, cases[i][1]);
                free(text);
        }
        memset(big, 'x', sizeof(big));
        /* The cut falls into it. */
        memcpy(big + HTML_TEXT_MAX - 1, "\u4e2d", 3);
        big[sizeof(big) - 1] = '\0';
        char *text = printed(big);
        ck_assert_uint_eq(strlen(text), HTML_TEXT_MAX - 1 + strlen(" ..."));
        free(text);
}

TEST(assets_are_found_by_their_hash)
{
        const struct asset *page = assets_find(assets_page_script), *plot = assets_find(assets_plot_script);

        ck_assert_ptr_nonnull(page);
        ck_assert_ptr_nonnull(plot);
        ck_assert(page->text.size > 1000 &&
                  memmem(page->text.data, page->text.size, "EventSource", strlen("EventSource")));
        ck_assert(plot->text.size > 10000 &&
                  memmem(plot->text.data, plot->text.size, "uPlot", strlen("uPlot")));
        ck_assert_ptr_null(assets_find("/page.js"));
        ck_assert_ptr_null(assets_find(""));
        ck_assert_ptr_nonnull(strstr(assets_style, "prefers-color-scheme"));
        ck_assert_ptr_null(strstr(assets_style, "</"));
        ck_assert_ptr_nonnull(strstr(page_csp(), "style-src 'sha256-"));
}

TEST_MAIN("page")
