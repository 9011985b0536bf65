/* SPDX-License-Identifier: MIT */
/* What happened, the newest first. */
#pragma once

#include "web/page_parts.h"

/* No more are shown. */
#define PAGE_EVENTS_MAX 200
void page_events(FILE *out, const struct page *page);
