/* SPDX-License-Identifier: MIT */
/* Fleets and their workers: those that need someone, or come or go, are seen at once; the rest is folded. */
#pragma once

#include "web/page_parts.h"

void page_fleets(FILE *out, const struct page *page);
