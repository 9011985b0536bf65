/* SPDX-License-Identifier: MIT */
/* The entries of a unit of systemd or a config file of supervisord, as inih reads them. */
#pragma once

#include "init/source_rules.h"

enum entries_style {
        ENTRIES_SYSTEMD,     /* a backslash at the end continues a line */
        ENTRIES_SUPERVISORD, /* an indented line continues the one above; ';' or '#' after a blank begins a
                              * comment */
};

/* Reads the entries of a text. Returns 0; -EINVAL with the line that is neither a section, an entry nor a
 * comment; or -ENOMEM. */
int entries_read(struct entries *entries, const char *text, size_t length, enum entries_style style,
                 unsigned *ret_line);

void entries_done(struct entries *entries);
#define _cleanup_entries_ _cleanup_(entries_done)
