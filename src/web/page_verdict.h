/* SPDX-License-Identifier: MIT */
/* The head of the page: the overall state in one sentence, and the findings. */
#pragma once

#include "web/page_parts.h"

/* Writes the overall state as one line of plain text. Returns its level. */
#define PAGE_HEADLINE_MAX 512
enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX]);
/* The URL of the level's icon for the browser tab. */
const char *page_icon(enum page_level value);

void page_verdict(FILE *out, const struct page *page);
