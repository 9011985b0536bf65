/* SPDX-License-Identifier: MIT */
/* Fuzzes an environment file, and other texts with quotes: a command, a list of variables. */
#include "base/argv.h"
#include "base/environment.h"
#include "base/printable.h"
#include "fuzz.h"

/* Checks that each entry is a name, a '=' and a value, and that no name occurs twice. */
static void check_environment(const struct environment *environment)
{
        for (size_t i = 0; i < environment->n; i++) {
                const char *entry = environment->list[i], *equals = strchr(entry, '=');

                fuzz_check(equals && equals > entry);
                for (size_t j = 0; j < i; j++)
                        fuzz_check(strncmp(environment->list[j], entry, (size_t)(equals - entry) + 1) != 0);
        }
        fuzz_check(!environment->list || !environment->list[environment->n]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        _cleanup_environment_ struct environment environment = {0};
        struct field text = input_field(&input, size);
        char **words = NULL;
        const char *error = NULL;
        unsigned line = 0;

        int r = environment_put_lines(&environment, text.text, text.len, &line, &error);
        fuzz_check(r == 0 || (r == -EINVAL && line > 0 && error));
        check_environment(&environment);
        fuzz_check(environment_put_inherited(&environment, environment.list) == 0);
        check_environment(&environment);
        (void)environment_find(text.text, text.len, "HOME");

        r = argv_split(text.text, &words, &error);
        fuzz_check(r == 0 || (r == -EINVAL && error));
        for (size_t i = 0; r == 0 && words[i]; i++)
                fuzz_check(environment_put(&environment, words[i]) == 0);
        argv_free(words);
        check_environment(&environment);

        size_t left = printable_drop_colours((char *)text.text, text.len);
        fuzz_check(left <= text.len);
        printable_replace((char *)text.text, left, size % 2 == 0);
        for (size_t i = 0; i < left; i++)
                fuzz_check((unsigned char)text.text[i] >= ' ' || (text.text[i] == '\n' && size % 2 == 0));
        field_free(&text);
        return 0;
}
