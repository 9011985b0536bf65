/* SPDX-License-Identifier: MIT */
/* All errors of a config file, ordered by line. */
#include "settings/errors.h"
#include "base/memstream.h"
#include "base/printable.h"
#include <stdarg.h>
#include <string.h>

void settings_errors_add(struct settings_errors *errors, unsigned line, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list args;

        va_start(args, format);
        int length = vasprintf(&text, format, args);
        va_end(args);

        if (length < 0 || !ARRAY_RESIZE(errors->list, errors->n + 1)) {
                errors->lost = true;
                return;
        }
        printable_replace(text, (size_t)length, false);
        /* Sort by line. Errors of the same line keep their order. */
        size_t at = errors->n++;
        for (; at > 0 && errors->list[at - 1].line > line; at--)
                errors->list[at] = errors->list[at - 1];
        errors->list[at] = (struct settings_error){.line = line, .text = TAKE_PTR(text)};
}

bool settings_errors_any(const struct settings_errors *errors)
{
        return errors->n > 0 || errors->lost;
}

int settings_errors_add_file(struct settings_errors *errors, const char *path)
{
        _cleanup_free_ char *copy = printable_copy(path, false);

        if (!copy || !ARRAY_RESIZE(errors->files, errors->n_files + 1))
                return -ENOMEM;
        errors->files[errors->n_files++] = TAKE_PTR(copy);
        return 0;
}

const char *settings_errors_place(const struct settings_errors *errors, unsigned line, const char *path,
                                  char *text, size_t size)
{
        unsigned file = line / SETTINGS_LINES_MAX;

        if (file > 0)
                path = errors->files[file - 1];
        if (line % SETTINGS_LINES_MAX == 0)
                snprintf(text, size, "%s", path);
        else
                snprintf(text, size, "%s:%u", path, line % SETTINGS_LINES_MAX);
        return text;
}

char *settings_errors_text(const struct settings_errors *errors, const char *path)
{
        char place[SETTINGS_PLACE_MAX];
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        for (size_t i = 0; i < errors->n; i++)
                fprintf(out, "%s: %s\n",
                        settings_errors_place(errors, errors->list[i].line, path, place, sizeof(place)),
                        errors->list[i].text);
        if (errors->lost)
                fprintf(out, "%s: out of memory; not all errors are shown\n", path);
        (void)memstream_close(out, &text);
        return text;
}

void settings_errors_clear(struct settings_errors *errors)
{
        for (size_t i = 0; i < errors->n; i++)
                free(errors->list[i].text);
        free(errors->list);
        for (size_t i = 0; i < errors->n_files; i++)
                free(errors->files[i]);
        free(errors->files);
        *errors = (struct settings_errors){0};
}
