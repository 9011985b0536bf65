/* SPDX-License-Identifier: MIT */
/* Splits a command line into words without a shell, and measures the edit distance of two words. */
#include "base/argv.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

#define BLANKS       " \t\r\n"
#define DISTANCE_MAX 63

char **argv_free(char **words)
{
        if (words) {
                for (char **word = words; *word; word++)
                        free(*word);
                free(words);
        }
        return NULL;
}

/* Reads one word from *line, which does not begin with a blank, and advances *line. word has space for all of
 * line. */
static int take_word(const char **line, char *word, const char **ret_error)
{
        const char *p = *line;
        char quote = '\0';

        for (; *p != '\0' && (quote || !strchr(BLANKS, *p)); p++) {
                if (quote ? *p == quote : *p == '\'' || *p == '"') {
                        quote = quote ? '\0' : *p;
                        continue;
                }
                if (*p == '\\' && quote != '\'' && (!quote || p[1] == '"' || p[1] == '\\')) {
                        p++;
                        if (*p == '\0') {
                                *ret_error = "a backslash at the end escapes nothing: write \\\\ for a "
                                             "literal backslash";
                                return -EINVAL;
                        }
                }
                *word++ = *p;
        }
        if (quote) {
                *ret_error = quote == '"' ? "a double quote is not closed: add the missing \", or write \\\" "
                                            "for a literal quote"
                                          : "a single quote is not closed: add the missing ', or write \\' "
                                            "for a literal quote";
                return -EINVAL;
        }
        *word = '\0';
        *line = p;
        return 0;
}

int argv_split(const char *line, char ***ret_words, const char **ret_error)
{
        _cleanup_argv_ char **words = calloc(1, sizeof(*words));
        size_t n = 0;

        if (!words)
                return -ENOMEM;
        for (line += strspn(line, BLANKS); *line != '\0'; line += strspn(line, BLANKS)) {
                _cleanup_free_ char *word = malloc(strlen(line) + 1);
                if (!word)
                        return -ENOMEM;
                int r = take_word(&line, word, ret_error);
                if (r < 0)
                        return r;

                if (!ARRAY_RESIZE(words, n + 2))
                        return -ENOMEM;
                words[n++] = TAKE_PTR(word);
                words[n] = NULL;
        }
        *ret_words = TAKE_PTR(words);
        return 0;
}

static bool same_letter(char a, char b)
{
        return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned edit_distance(const char *a, const char *b)
{
        size_t a_len = strlen(a), b_len = strlen(b);
        unsigned cost[DISTANCE_MAX + 1][DISTANCE_MAX + 1];

        if (a_len > DISTANCE_MAX || b_len > DISTANCE_MAX)
                return UINT_MAX;
        for (size_t i = 0; i <= a_len; i++) {
                for (size_t j = 0; j <= b_len; j++) {
                        if (i == 0 || j == 0) {
                                cost[i][j] = (unsigned)(i + j);
                                continue;
                        }
                        unsigned changed = cost[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
                        unsigned best = MIN(changed, MIN(cost[i - 1][j], cost[i][j - 1]) + 1);
                        if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                            same_letter(a[i - 2], b[j - 1]))
                                best = MIN(best, cost[i - 2][j - 2] + 1);
                        cost[i][j] = best;
                }
        }
        return cost[a_len][b_len];
}

bool argv_is_plain(const char *word)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@=+,-";

        return word[0] != '\0' && word[0] != '-' && word[strspn(word, plain)] == '\0';
}

void argv_put_quoted(FILE *out, const char *word)
{
        if (argv_is_plain(word)) {
                fputs(word, out);
                return;
        }
        fputc('\'', out);
        for (; *word != '\0'; word++)
                if (*word == '\'')
                        fputs("'\\''", out);
                else
                        fputc(*word, out);
        fputc('\'', out);
}
