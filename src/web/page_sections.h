/* SPDX-License-Identifier: MIT */
/* The sections of the page, each in a file of its name. */
#pragma once

#include "web/page_parts.h"

/* Past events, the newest first. No more than this are shown. */
#define PAGE_EVENTS_MAX 200
void page_events(FILE *out, const struct page *page);
/* Fleets and their workers. Workers with problems, and workers that are starting or stopping, are visible at
 * once; others are collapsed. */
void page_fleets(FILE *out, const struct page *page);
/* The instances of sqmgr and their Redis servers. */
void page_instances(FILE *out, const struct page *page);
/* Activity: restarts with their steps, and workers that start or stop without a restart. */
void page_progress(FILE *out, const struct page *page);
/* The queues of each Redis. */
void page_queues(FILE *out, const struct page *page);

/* Writes the overall state as one line of plain text. Returns its level. */
#define PAGE_HEADLINE_MAX 512
enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX]);
/* The URL of the level's icon for the browser tab. */
const char *page_icon(enum page_level value);

void page_verdict(FILE *out, const struct page *page);
