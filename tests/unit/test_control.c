/* SPDX-License-Identifier: MIT */
/* The control interface: its table, its description, and who may do what. */
#include "base/fd.h"
#include "unit.h"
#include "wire/control.h"
#include <ctype.h>
#include <fcntl.h>

static unsigned count_lines(const char *start)
{
        unsigned n = 0;

        for (const char *line = control_description; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                n += strncmp(line, start, strlen(start)) == 0;
        }
        return n;
}

TEST(every_method_is_described)
{
        for (size_t i = 0; i < control_n_methods; i++) {
                char line[64];

                snprintf(line, sizeof(line), "method %s(", control_methods[i].name);
                ck_assert_msg(count_lines(line) == 1, "%s", line);
                ck_assert_ptr_eq(control_find_method(control_methods[i].name), &control_methods[i]);
        }
        ck_assert_uint_eq(count_lines("method "), control_n_methods);
        ck_assert_uint_eq(count_lines("interface " CONTROL_INTERFACE "\n"), 1);
        ck_assert_uint_eq(count_lines("error "), 4);
        ck_assert_ptr_null(control_find_method("Nothing"));
        ck_assert_ptr_null(control_find_method(""));
}

/* A reader of Varlink's language: position and what it has seen. It fails the test where the text is wrong.
 */
struct reader {
        const char *at;
        const char *names[32]; /* of types, with their lengths */
        size_t lengths[32];
        bool defined[32];
        size_t n_names;
};

static void skip_blank(struct reader *reader)
{
        for (;;) {
                while (isspace((unsigned char)*reader->at))
                        reader->at++;
                if (*reader->at != '#')
                        return;
                reader->at += strcspn(reader->at, "\n");
        }
}

static bool accept_token(struct reader *reader, const char *token)
{
        skip_blank(reader);
        if (strncmp(reader->at, token, strlen(token)) != 0)
                return false;
        reader->at += strlen(token);
        return true;
}

static void expect_token(struct reader *reader, const char *token)
{
        ck_assert_msg(accept_token(reader, token), "'%s' is missing before: %.60s", token, reader->at);
}

static size_t read_word(struct reader *reader, const char **ret)
{
        size_t length = 0;

        skip_blank(reader);
        *ret = reader->at;
        while (isalnum((unsigned char)reader->at[length]) || (length > 0 && reader->at[length] == '_'))
                length++;
        ck_assert_msg(length > 0 && isalpha((unsigned char)**ret), "a name is missing before: %.60s",
                      reader->at);
        reader->at += length;
        return length;
}

static void note_type(struct reader *reader, const char *name, size_t length, bool defined)
{
        for (size_t i = 0; i < reader->n_names; i++) {
                if (reader->lengths[i] != length || strncmp(reader->names[i], name, length) != 0)
                        continue;
                ck_assert_msg(!defined || !reader->defined[i], "%.*s is defined twice", (int)length, name);
                reader->defined[i] = reader->defined[i] || defined;
                return;
        }
        ck_assert_uint_lt(reader->n_names, ELEMENTSOF(reader->names));
        reader->names[reader->n_names] = name;
        reader->lengths[reader->n_names] = length;
        reader->defined[reader->n_names++] = defined;
}

static void read_struct(struct reader *reader);

static void read_type(struct reader *reader)
{
        static const char *const simple[] = {"bool", "int", "float", "string", "object"};
        const char *word;

        accept_token(reader, "?");
        while (accept_token(reader, "[]"))
                ;
        skip_blank(reader);
        if (*reader->at == '(') {
                read_struct(reader);
                return;
        }
        size_t length = read_word(reader, &word);
        for (size_t i = 0; i < ELEMENTSOF(simple); i++)
                if (strlen(simple[i]) == length && strncmp(simple[i], word, length) == 0)
                        return;
        ck_assert_msg(isupper((unsigned char)*word), "%.*s is no type", (int)length, word);
        note_type(reader, word, length, false);
}

/* Fields with types, or the words of an enumeration. */
static void read_struct(struct reader *reader)
{
        const char *word;

        expect_token(reader, "(");
        if (accept_token(reader, ")"))
                return;
        read_word(reader, &word);
        bool fields = accept_token(reader, ":");
        if (fields)
                read_type(reader);
        while (accept_token(reader, ",")) {
                read_word(reader, &word);
                if (fields) {
                        expect_token(reader, ":");
                        read_type(reader);
                }
        }
        expect_token(reader, ")");
}

TEST(the_description_reports_the_parameters)
{
        static const struct {
                const char *method, *parameter;
                bool has;
        } cases[] = {
                {"Restart", "fleets", true},    {"Restart", "wait", true},
                {"Restart", "workers", true},   {"Restart", "resume", true},
                {"Restart", "replaced", false}, {"Restart", "wai", false},
                {"Restart", "ait", false},      {"Restart", "string", false},
                {"Restart", "", false},         {"Restart", "changes", false},
                {"Stop", "force", true},        {"Start", "force", false},
                {"Ping", "fleets", false},      {"GetEvents", "worker", true},
                {"GetJobs", "jobs", false},     {"GetVersion", "version", false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ck_assert_msg(control_has_parameter(control_find_method(cases[i].method),
                                                    cases[i].parameter) == cases[i].has,
                              "%s of %s", cases[i].parameter, cases[i].method);
}

TEST(the_description_is_varlink)
{
        struct reader reader = {.at = control_description};
        const char *word;

        expect_token(&reader, "interface " CONTROL_INTERFACE);
        for (skip_blank(&reader); *reader.at != '\0'; skip_blank(&reader)) {
                bool type = accept_token(&reader, "type "),
                     method = !type && accept_token(&reader, "method ");

                if (!type && !method)
                        expect_token(&reader, "error ");
                size_t length = read_word(&reader, &word);
                ck_assert(isupper((unsigned char)*word));
                if (type)
                        note_type(&reader, word, length, true);
                read_struct(&reader);
                if (method) {
                        expect_token(&reader, "->");
                        read_struct(&reader);
                }
        }
        for (size_t i = 0; i < reader.n_names; i++)
                ck_assert_msg(reader.defined[i], "%.*s is not defined", (int)reader.lengths[i],
                              reader.names[i]);
}

/* Whoever reads the file that is installed reads what the program says of itself. */
TEST(the_installed_file_is_the_description)
{
        _cleanup_free_ char *text = NULL;
        const char *source = getenv("srcdir");
        size_t length = 0;
        char path[512];

        snprintf(path, sizeof(path), "%s/src/wire/" CONTROL_INTERFACE ".varlink", source ? source : ".");
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
        ck_assert_int_eq(fd_read_whole(fd, 1 << 20, &text, &length), 0);
        ck_assert(strcmp(text, control_description) == 0);
}

static const gid_t groups[] = {20, 30};

static const struct {
        uid_t uid, own_uid;
        gid_t gid, view, operate;
        size_t n_groups;
        enum control_access access;
} peers[] = {
        {0, 0, 0, CONTROL_NO_GROUP, CONTROL_NO_GROUP, 0, CONTROL_OWN},
        {0, 500, 0, CONTROL_NO_GROUP, CONTROL_NO_GROUP, 0, CONTROL_OWN},
        {500, 500, 500, CONTROL_NO_GROUP, CONTROL_NO_GROUP, 0, CONTROL_OWN},
        {501, 500, 500, CONTROL_NO_GROUP, CONTROL_NO_GROUP, 2, CONTROL_NONE},
        {501, 500, 501, CONTROL_NO_GROUP, 30, 2, CONTROL_OPERATE},
        {501, 500, 501, CONTROL_NO_GROUP, 30, 1, CONTROL_NONE},
        {501, 500, 501, 30, CONTROL_NO_GROUP, 2, CONTROL_VIEW},
        {501, 500, 501, 20, 30, 1, CONTROL_VIEW},
        {501, 500, 501, 20, 30, 2, CONTROL_OPERATE},
        {501, 500, 501, 20, 20, 1, CONTROL_OPERATE},
        {501, 0, 30, CONTROL_NO_GROUP, 30, 0, CONTROL_OPERATE},
        {501, 0, 30, 30, CONTROL_NO_GROUP, 0, CONTROL_VIEW},
        {501, 0, 0, 40, 41, 2, CONTROL_NONE},
        {501, 0, CONTROL_NO_GROUP, CONTROL_NO_GROUP, CONTROL_NO_GROUP, 0, CONTROL_NONE},
};

TEST_LOOP(peers_may_do_what_their_ids_allow, ELEMENTSOF(peers))
{
        struct control_peer peer = {
                .uid = peers[_i].uid,
                .gid = peers[_i].gid,
                .groups = groups,
                .n_groups = peers[_i].n_groups,
        };

        ck_assert_int_eq(control_peer_access(&peer, peers[_i].own_uid, peers[_i].view, peers[_i].operate),
                         peers[_i].access);
}

TEST(who_operates_may_give_each_order_but_replace_the_program)
{
        for (size_t i = 0; i < control_n_methods; i++)
                ck_assert_int_eq(control_methods[i].access == CONTROL_OWN,
                                 strcmp(control_methods[i].name, "Reexec") == 0);
}

TEST(viewers_may_call_what_only_reads)
{
        static const char *const viewing[] = {"GetStatus",  "Follow",    "GetEvents", "GetJobs",
                                              "GetMetrics", "GetQueues", "Ping",      "GetVersion"};
        unsigned found = 0;

        for (size_t i = 0; i < ELEMENTSOF(viewing); i++)
                ck_assert_int_eq(control_find_method(viewing[i])->access, CONTROL_VIEW);
        for (size_t i = 0; i < control_n_methods; i++)
                found += control_methods[i].access == CONTROL_VIEW;
        ck_assert_uint_eq(found, ELEMENTSOF(viewing));
        ck_assert_int_eq(control_find_method("GetDiagnosis")->access, CONTROL_OPERATE);
}

TEST_MAIN("control")
