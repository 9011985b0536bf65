/* SPDX-License-Identifier: MIT */
/* What happened, the newest first. */
#pragma once

#include "web/page_parts.h"

void page_events(FILE *out, const struct page *page);
