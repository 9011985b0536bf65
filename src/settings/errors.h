/* SPDX-License-Identifier: MIT */
/* What is wrong with a config file and those that it includes: all of it, by line. */
#pragma once

#include "base/macro.h"

/* A line of an included file, as errors have it: behind those of the config file, and of all that are
 * included before it. file: from 1; line 0: the file as a whole. */
#define SETTINGS_LINES_MAX (1U << 21)
#define SETTINGS_FILES_MAX 1000
static inline unsigned settings_line(unsigned file, unsigned line)
{
        return file * SETTINGS_LINES_MAX + line;
}

struct settings_error {
        unsigned line; /* 0: of the file as a whole; see settings_line() */
        char *text;    /* what is wrong and what would be right */
};

struct settings_errors {
        struct settings_error *list; /* owned; ordered by line */
        size_t n;
        bool lost;    /* memory was short: there are more than the list tells */
        char **files; /* owned: those that are included, in their order */
        size_t n_files;
};

/* The next file is included, whose errors are told by that path. Returns 0 or -ENOMEM. */
int settings_errors_add_file(struct settings_errors *errors, const char *path);

/* Where that line stands, as text, cut to size: "PATH:LINE", or "PATH" of a file as a whole. path: of the
 * config file. Returns text. */
#define SETTINGS_PLACE_MAX 4128
const char *settings_errors_place(const struct settings_errors *errors, unsigned line, const char *path,
                                  char *text, size_t size);

/* Adds an error behind those of its line; in its text, control characters are replaced by '?'. Where memory
 * is short, `lost` is set. */
void settings_errors_add(struct settings_errors *errors, unsigned line, const char *format, ...)
        _printf_(3, 4);

/* True where anything was added, told or lost. */
bool settings_errors_any(const struct settings_errors *errors);

/* The lines `PATH:LINE: text` (`PATH: text` for line 0), each with its newline. path: of the config file.
 * Returns text to be freed, or NULL where memory is short. */
char *settings_errors_text(const struct settings_errors *errors, const char *path);

void settings_errors_clear(struct settings_errors *errors);
#define _cleanup_settings_errors_ _cleanup_(settings_errors_clear)
