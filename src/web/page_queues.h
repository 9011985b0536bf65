/* SPDX-License-Identifier: MIT */
/* What waits in each Redis. */
#pragma once

#include "web/page_parts.h"

void page_queues(FILE *out, const struct page *page);
