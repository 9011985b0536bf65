/* SPDX-License-Identifier: MIT */
/* All errors of a config file and of the files it includes, ordered by line. */
#pragma once

#include "base/macro.h"

/* Encodes a line of an included file for struct settings_error. Lines of included files sort after the config
 * file, in the order of inclusion. file counts from 1. Line 0 is the file as a whole. */
#define SETTINGS_LINES_MAX (1U << 21)
#define SETTINGS_FILES_MAX 1000
static inline unsigned settings_line(unsigned file, unsigned line)
{
        return file * SETTINGS_LINES_MAX + line;
}

struct settings_error {
        unsigned line; /* 0: the file as a whole; see settings_line() */
        char *text;    /* owned; what is wrong and what would be right */
};

struct settings_errors {
        struct settings_error *list; /* owned; ordered by line */
        size_t n;
        bool lost;    /* memory was short and errors are missing from the list */
        char **files; /* owned; paths of the included files, in order */
        size_t n_files;
};

/* Adds the next included file, with the path shown in its errors; copies path. Returns 0 or -ENOMEM. */
int settings_errors_add_file(struct settings_errors *errors, const char *path);

/* Formats the place of a line, truncated to size: "PATH:LINE", or "PATH" for a file as a whole. path is the
 * config file's. Returns text. */
#define SETTINGS_PLACE_MAX 4128
const char *settings_errors_place(const struct settings_errors *errors, unsigned line, const char *path,
                                  char *text, size_t size);

/* Adds an error after the other errors of its line. Control characters in the text become '?'. Sets `lost` if
 * memory is short. */
void settings_errors_add(struct settings_errors *errors, unsigned line, const char *format, ...)
        _printf_(3, 4);

/* Returns true if any error was added, including lost errors. */
bool settings_errors_any(const struct settings_errors *errors);

/* Returns the lines `PATH:LINE: text` (`PATH: text` for line 0), each with a newline. path is the config
 * file's. The caller frees the result; NULL if memory is short. */
char *settings_errors_text(const struct settings_errors *errors, const char *path);

void settings_errors_clear(struct settings_errors *errors);
#define _cleanup_settings_errors_ _cleanup_(settings_errors_clear)
