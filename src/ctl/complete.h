/* SPDX-License-Identifier: MIT */
/* Answers the shells' completion (contrib/completion). */
#pragma once

#include "ctl/ctl.h"

/* Prints what may stand in the place of the last word, one a line: WORD, and often a tab and a word of help.
 */
void complete(struct ctl *ctl, char **words, size_t n_words);
