/* SPDX-License-Identifier: MIT */
/* Sentences for people, compared with files in tests/golden; see the header. */
#include "golden.h"
#include "unit.h"
#include <sys/file.h>
#include <unistd.h>

static struct {
        char *text;
        size_t size;
        FILE *out;
} gathered;

const char *golden_path(const char *name, char path[static GOLDEN_PATH_MAX])
{
        const char *source = getenv("srcdir");

        snprintf(path, GOLDEN_PATH_MAX, "%s/tests/golden/%s", source ? source : ".", name);
        return path;
}

static char *read_file(const char *path)
{
        FILE *file = fopen(path, "re");
        char *text = NULL;
        size_t allocated = 0;

        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        if (getdelim(&text, &allocated, '\0', file) < 0) {
                free(text);
                text = strdup("");
        }
        ck_assert_ptr_nonnull(text);
        fclose(file);
        return text;
}

/* Returns where the text of the section begins, and its length; NULL: there is none. */
static char *find_section(char *text, const char *section, size_t *ret_length)
{
        char head[128];

        snprintf(head, sizeof(head), "# %s\n", section);
        for (char *at = text; (at = strstr(at, head)); at++) {
                if (at > text && at[-1] != '\n')
                        continue;
                at += strlen(head);
                const char *next = at[0] == '#' ? at : strstr(at, "\n#");
                *ret_length = !next ? strlen(at) : next == at ? 0 : (size_t)(next + 1 - at);
                return at;
        }
        return NULL;
}

/* Tests of several programs may renew one file at a time. */
static void renew(const char *path, const char *section, const char *text)
{
        FILE *file = fopen(path, "ae");
        size_t length = 0;

        ck_assert_msg(file && flock(fileno(file), LOCK_EX) == 0, "%s: %s", path, strerror(errno));
        char *before = read_file(path);
        const char *at = section ? find_section(before, section, &length) : NULL;
        ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
        if (at)
                fprintf(file, "%.*s%s%s", (int)(at - before), before, text, at + length);
        else if (section)
                fprintf(file, "%s# %s\n%s", before, section, text);
        else
                fputs(text, file);
        ck_assert_int_eq(fclose(file), 0);
        free(before);
}

static size_t line_length(const char *line)
{
        return strcspn(line, "\n");
}

/* Fails at the first line that differs. */
static void compare(const char *path, const char *section, const char *text, const char *expected)
{
        while (text[0] != '\0' || expected[0] != '\0') {
                size_t length = line_length(text), expected_length = line_length(expected);

                ck_assert_msg(length == expected_length && strncmp(text, expected, length) == 0 &&
                                      !text[length] == !expected[length],
                              "%s%s%s: expected\n%.*s\nfound\n%.*s", path, section ? ", section " : "",
                              section ? section : "", (int)expected_length, expected, (int)length, text);
                text += length + (text[length] == '\n');
                expected += expected_length + (expected[expected_length] == '\n');
        }
}

/* The text of a section ends with a newline. */
static char *section_text(const char *section, const char *text)
{
        size_t length = strlen(text);
        bool add = section && length > 0 && text[length - 1] != '\n';
        char *copy = malloc(length + 2);

        ck_assert_ptr_nonnull(copy);
        ck_assert_msg(!section || (text[0] != '#' && !strstr(text, "\n#")), "'%s' looks like sections", text);
        snprintf(copy, length + 2, "%s%s", text, add ? "\n" : "");
        return copy;
}

void golden_expect(const char *name, const char *section, const char *text)
{
        char path[GOLDEN_PATH_MAX], *found = section_text(section, text);
        size_t length = 0;

        golden_path(name, path);
        if (getenv("RENEW_GOLDEN"))
                renew(path, section, found);
        char *whole = read_file(path);
        char *expected = section ? find_section(whole, section, &length) : whole;
        ck_assert_msg(expected, "%s: section '%s' is missing", path, section ? section : "");
        if (section)
                expected[length] = '\0';
        compare(path, section, found, expected);
        free(whole);
        free(found);
}

static char *replace(const char *text, const char *from, const char *to)
{
        char *changed = NULL;
        size_t size;
        FILE *out = open_memstream(&changed, &size);

        ck_assert_ptr_nonnull(out);
        for (const char *at; (at = strstr(text, from)); text = at + strlen(from))
                fprintf(out, "%.*s%s", (int)(at - text), text, to);
        fputs(text, out);
        ck_assert_int_eq(fclose(out), 0);
        return changed;
}

void golden_expect_with(const char *name, const char *section, const char *text, const char *from,
                        const char *to)
{
        char *changed = replace(text, from, to);

        golden_expect(name, section, changed);
        free(changed);
}

void golden_begin(void)
{
        ck_assert_ptr_null(gathered.out);
        gathered.out = open_memstream(&gathered.text, &gathered.size);
        ck_assert_ptr_nonnull(gathered.out);
}

void golden_add(const char *what, const char *text)
{
        ck_assert_ptr_nonnull(gathered.out);
        fprintf(gathered.out, "%s:%s", what, text[0] != '\0' ? " " : "");
        for (; text[0] != '\0' && strcmp(text, "\n") != 0; text++) {
                fputc(text[0], gathered.out);
                if (text[0] == '\n')
                        fputs("        ", gathered.out);
        }
        fputc('\n', gathered.out);
}

void golden_add_with(const char *what, const char *text, const char *from, const char *to)
{
        char *changed = replace(text, from, to);

        golden_add(what, changed);
        free(changed);
}

void golden_end(const char *name, const char *section)
{
        ck_assert_ptr_nonnull(gathered.out);
        ck_assert_int_eq(fclose(gathered.out), 0);
        gathered.out = NULL;
        golden_expect(name, section, gathered.text);
        free(gathered.text);
        gathered.text = NULL;
}

const char *golden_label(const char *text)
{
        static char label[128];
        size_t n = 0;

        for (; text[0] != '\0' && n + 4 < sizeof(label); text++)
                if (text[0] == '\n' || text[0] == '\r' || text[0] == '\t') {
                        label[n++] = '\\';
                        label[n++] = text[0] == '\n' ? 'n' : text[0] == '\r' ? 'r' : 't';
                } else {
                        label[n++] = (unsigned char)text[0] < ' ' ? '?' : text[0];
                }
        snprintf(label + n, sizeof(label) - n, "%s", text[0] != '\0' ? "..." : "");
        return label;
}
