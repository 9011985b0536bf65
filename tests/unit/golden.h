/* SPDX-License-Identifier: MIT */
/* Sentences for people, compared with files in tests/golden. A run with RENEW_GOLDEN=1 writes them: read the
 * difference before it is committed. */
#pragma once

/* The path of tests/golden/NAME. */
#define GOLDEN_PATH_MAX 512

const char *golden_path(const char *name, char path[static GOLDEN_PATH_MAX]);

/* Compares the text with tests/golden/NAME, or, if section is not NULL, with what stands there below
 * "# SECTION". No line of such a text begins with '#'. */
void golden_expect(const char *name, const char *section, const char *text);

/* The same with each `from` written as `to`: for what changes from run to run. */
void golden_expect_with(const char *name, const char *section, const char *text, const char *from,
                        const char *to);

/* Gathers the texts of many cases for one golden_expect(), one case a line: "CASE: TEXT". Further lines of a
 * text are indented. */
void golden_begin(void);
void golden_add(const char *what, const char *text);
void golden_add_with(const char *what, const char *text, const char *from, const char *to);
void golden_end(const char *name, const char *section);

/* A case named by the text that it is about: on one line, and cut if it is long. Valid until the next call.
 */
const char *golden_label(const char *text);
