/* SPDX-License-Identifier: MIT */
/* What is wrong with a config file: all of it, by line. */
#pragma once

#include "base/macro.h"

struct settings_error {
        unsigned line; /* 0: of the file as a whole */
        char *text;    /* what is wrong and what would be right */
};

struct settings_errors {
        struct settings_error *list; /* owned */
        size_t n;
        bool lost; /* memory was short: there are more than the list tells */
};

/* Appends an error; in its text, control characters are replaced by '?'. Where memory is short, `lost` is
 * set. */
void settings_errors_add(struct settings_errors *errors, unsigned line, const char *format, ...)
        _printf_(3, 4);

/* True where anything was added, told or lost. */
bool settings_errors_any(const struct settings_errors *errors);

/* Orders them by line; those of one line keep their order. */
void settings_errors_sort(struct settings_errors *errors);

/* The lines `PATH:LINE: text` (`PATH: text` for line 0), each with its newline. Returns text to be freed, or
 * NULL where memory is short. */
char *settings_errors_text(const struct settings_errors *errors, const char *path);

void settings_errors_clear(struct settings_errors *errors);
#define _cleanup_settings_errors_ _cleanup_(settings_errors_clear)
