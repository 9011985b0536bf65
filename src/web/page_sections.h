/* SPDX-License-Identifier: MIT */
/* The sections of the page, each in a file of its name. */
#pragma once

#include "web/page_parts.h"

/* What happened, the newest first. No more are shown. */
#define PAGE_EVENTS_MAX 200
void page_events(FILE *out, const struct page *page);
/* Fleets and their workers: those that need someone, or come or go, are seen at once; the rest is folded. */
void page_fleets(FILE *out, const struct page *page);
/* Rollouts over many hosts: how far each is, and its hosts; nothing where no fleet has a group. */
void page_hosts(FILE *out, const struct page *page);
/* Who told all this: each sqmgr, and the Redis servers that it asks. */
void page_instances(FILE *out, const struct page *page);
/* What is moving: restarts with their stories, and which workers come and go without one. */
void page_progress(FILE *out, const struct page *page);
/* What waits in each Redis. */
void page_queues(FILE *out, const struct page *page);
