/* SPDX-License-Identifier: MIT */
/* Text from elsewhere in tests: of literals, and shown. */
#pragma once

#include "wire/quoted.h"
#include <stdio.h>
#include <string.h>

#define QUOTED(literal)       (&(const struct quoted){.quoted_bytes = (literal)})
#define ERROR_REPORT(literal) (&(const struct error_report){.text = (literal)})

/* Returns true if the text begins with this code of an error. */
static inline bool quoted_has_code(const struct quoted *quoted, const char *code)
{
        return strncmp(quoted_reveal(quoted), code, strlen(code)) == 0;
}

/* Returns the sentence and, behind a bar, what it quotes; "" for NULL. Valid until the next call. */
static inline const char *error_shown(const struct error_report *error)
{
        static char text[sizeof(*error)];

        text[0] = '\0';
        if (error)
                snprintf(text, sizeof(text), "%s%s%s", error->text,
                         quoted_is_empty(&error->quoted) ? "" : " | ", quoted_reveal(&error->quoted));
        return text;
}
