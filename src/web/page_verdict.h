/* SPDX-License-Identifier: MIT */
/* The head of the page: whether all is well, in one sentence, and if not, what to do. */
#pragma once

#include "web/page_parts.h"

/* Writes whether all is well as one line of plain text, and returns how well it is. */
#define PAGE_HEADLINE_MAX 512
enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX]);
/* The address of the sign of that level for the tab of a browser. */
const char *page_icon(enum page_level value);

void page_verdict(FILE *out, const struct page *page);
