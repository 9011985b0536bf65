/* SPDX-License-Identifier: MIT */
/* Rollouts over many hosts: how far each is, and its hosts; nothing where no fleet has a group. */
#pragma once

#include "web/page_parts.h"

void page_hosts(FILE *out, const struct page *page);
