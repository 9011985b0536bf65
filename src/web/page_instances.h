/* SPDX-License-Identifier: MIT */
/* Who told all this: each sqmgr, and the Redis servers that it asks. */
#pragma once

#include "web/page_parts.h"

void page_instances(FILE *out, const struct page *page);
