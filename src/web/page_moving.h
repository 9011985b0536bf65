/* SPDX-License-Identifier: MIT */
/* What is moving: restarts with their stories, and which workers come and go without one. */
#pragma once

#include "web/page_parts.h"

void page_moving(FILE *out, const struct page *page);
