/* SPDX-License-Identifier: MIT */
/* The replies about a rollout over many hosts, and about each host, from arbitrary input. */
#include "golden.h"
#include "unit.h"
#include "wire/reply_hosts.h"

static json_t *load(const char *text)
{
        json_t *json = json_loads(text, 0, NULL);

        ck_assert_msg(json, "'%s' is no JSON", text);
        return json;
}

static void add_why(const char *state, const char *host_text)
{
        _cleanup_json_ json_t *host = load(host_text),
                              *rollout = json_pack("{s:i, s:s}", "epoch", 7, "state", state);
        char text[REPLY_HOST_WHY_MAX], what[128];

        snprintf(what, sizeof(what), "%s %s", state, host_text);
        golden_add(what, reply_host_why(rollout, host, text));
}

TEST(a_host_says_what_it_waits_for_or_why_it_failed)
{
        golden_begin();
        add_why("running", "{\"state\": \"waiting\", \"seen_seconds\": 61}");
        add_why("running", "{\"state\": \"waiting\", \"seen_seconds\": 200}");
        add_why("running", "{\"state\": \"waiting\", \"progress\": \"waits 4min more\"}");
        add_why("halted", "{\"state\": \"waiting\"}");
        add_why("aborted", "{\"state\": \"waiting\"}");
        add_why("running", "{\"state\": \"rolling\", \"progress\": null}");
        add_why("running", "{\"state\": \"rolling\", \"progress\": \"1 of 2 replaced\"}");
        add_why("running", "{\"state\": \"done\", \"drained\": true}");
        add_why("running", "{\"state\": \"done\", \"drained\": false}");
        add_why("halted", "{\"state\": \"failed\", \"error\": \"why\"}");
        add_why("halted", "{\"state\": \"lost\", \"seen_seconds\": 31}");
        add_why("running", "{\"state\": \"unheard of\"}");
        add_why("running", "[]");
        golden_end("rollout-hosts", "a host");
}

TEST(progress_is_read_where_it_is_one)
{
        static const struct {
                const char *counts;
                bool good;
                unsigned n, of;
        } cases[] = {
                {"{\"total\": 8, \"replaced\": 3}", true, 3, 8},
                {"{\"total\": 1, \"replaced\": 0}", true, 0, 1},
                {"{\"total\": 8, \"replaced\": 9}", false, 0, 0},
                {"{\"total\": 0, \"replaced\": 0}", false, 0, 0},
                {"{\"total\": 8, \"replaced\": -1}", false, 0, 0},
                {"{\"total\": 4294967296, \"replaced\": 1}", false, 0, 0},
                {"{}", false, 0, 0},
                {"\"3 of 8\"", false, 0, 0},
                {"null", false, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *counts = json_loads(cases[i].counts, JSON_DECODE_ANY, NULL);
                _cleanup_json_ json_t *host = json_pack("{s:o}", "counts", counts);
                unsigned n = 0, of = 0;

                ck_assert_msg(reply_host_progress(host, &n, &of) == cases[i].good, "'%s'", cases[i].counts);
                ck_assert_uint_eq(n, cases[i].n);
                ck_assert_uint_eq(of, cases[i].of);
        }
}

static json_t *host_of(const char *name, const char *state, double seconds, double seen)
{
        return json_pack("{s:s, s:s, s:f, s:f, s:{s:i, s:i}, s:b}", "host", name, "state", state, "seconds",
                         seconds, "seen_seconds", seen, "counts", "replaced", 1, "total", 2, "drained",
                         seconds > 50);
}

TEST(hosts_come_in_the_order_in_which_they_matter)
{
        static const char *const order[] = {"c", "d", "b", "silent", "w9", "w10", "late", "early"};
        _cleanup_json_ json_t *rollout =
                json_pack("{s:i, s:s, s:[o, o, o, o, o, o, o, o]}", "epoch", 7, "state", "running", "hosts",
                          host_of("w10", "waiting", 9, 1), host_of("early", "done", 90, 1),
                          host_of("b", "rolling", 5, 1), host_of("silent", "waiting", 9, 1000),
                          host_of("late", "done", 9, 1), host_of("c", "failed", 5, 1),
                          host_of("w9", "waiting", 9, 1), host_of("d", "lost", 5, 1));
        size_t n;
        _cleanup_free_ const json_t **hosts = reply_hosts_sort(rollout, &n);
        struct reply_hosts count = reply_hosts_count(rollout);
        char text[REPLY_HOSTS_MAX];

        ck_assert_uint_eq(n, ELEMENTSOF(order));
        for (size_t i = 0; i < n; i++)
                ck_assert_str_eq(reply_string(hosts[i], "host"), order[i]);
        ck_assert_uint_eq(count.all, 8);
        ck_assert_uint_eq(count.n[REPLY_HOST_WAITING], 3);
        ck_assert_uint_eq(count.n[REPLY_HOST_DONE], 2);
        ck_assert_uint_eq(count.draining, 1);
        ck_assert_double_eq_tol(count.share, 2.5 / 8, 0.001);
        golden_expect("rollout-hosts", "progress", reply_hosts_progress(rollout, text));
        ck_assert_str_eq(reply_string(reply_hosts_missing(rollout), "host"), "d");
}

static void add_sentences(const char *rollout_text)
{
        _cleanup_json_ json_t *rollout = load(rollout_text);
        char text[REPLY_HOSTS_MAX];

        golden_add("title", reply_hosts_title(rollout, text));
        golden_add("    details", reply_hosts_details(rollout, text));
        golden_add("    progress", reply_hosts_progress(rollout, text));
}

TEST(a_rollout_is_reported_in_sentences)
{
        golden_begin();
        add_sentences("{\"group\": \"g\", \"state\": \"none\"}");
        add_sentences(
                "{\"group\": \"g\", \"epoch\": 7, \"state\": \"running\", \"hosts_at_once\": \"1\", "
                "\"age_seconds\": 61.5, \"began_by\": \"a\", \"left_seconds\": 610.5, \"release\": \"v7\", "
                "\"hosts\": [{\"state\": \"waiting\"}]}");
        add_sentences("{\"group\": \"g\", \"epoch\": 7, \"state\": \"halted\", \"hosts_at_once\": \"10%\", "
                      "\"began_by\": \"a\", \"left_seconds\": 610.5}");
        add_sentences("{\"group\": \"g\", \"epoch\": 7, \"state\": \"done\", \"hosts_at_once\": \"3\"}");
        add_sentences(
                "{\"group\": \"g\", \"state\": \"none\", \"trouble\": \"Redis is down\", \"hosts\": []}");
        add_sentences(
                "{\"group\": \"g\", \"epoch\": 7, \"state\": \"none\", \"trouble\": \"Redis is down\"}");
        add_sentences("{\"group\": \"g\", \"epoch\": 7, \"state\": \"none\", \"trouble\": \"Redis has lost "
                      "rollout 7\", \"hosts\": [{\"state\": \"waiting\"}]}");
        add_sentences("[]");
        golden_end("rollout-hosts", "a rollout");
}

TEST(hosts_that_are_waited_for_no_longer_are_named_as_far_as_there_is_room)
{
        _cleanup_json_ json_t *names = json_array(), *rollout = NULL;
        char name[257], text[REPLY_HOSTS_MAX];

        rollout = json_pack("{s:[s, s, i]}", "left", "a", "b", 7);
        golden_expect("rollout-hosts", "left out", reply_hosts_left(rollout, text));
        memset(name, 'x', sizeof(name) - 1);
        name[256] = '\0';
        for (int i = 0; i < 1024; i++)
                json_array_append_new(names, json_string(name));
        json_object_set(rollout, "left", names);
        ck_assert_pstr_ne(strstr(reply_hosts_left(rollout, text), " and 1019 more"), NULL);
        json_object_clear(rollout);
        ck_assert_str_eq(reply_hosts_left(rollout, text), "");
}

TEST_MAIN("reply_hosts")
