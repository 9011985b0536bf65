/* SPDX-License-Identifier: MIT */
/* What is not as it should be, how bad that is, and what to do about it. */
#pragma once

#include "web/page_parts.h"

/* One thing that is not as it should be. All texts live as long as the call that hands it out; of all but the
 * title, NULL and "" are nothing. */
struct page_finding {
        enum page_level level;
        const char *title;  /* a few words, without a full stop */
        const char *text;   /* what sqmgr says of it */
        const char *remedy; /* what to do, up to its command */
        const char *command;
        const char *or_remedy; /* what to do instead */
        const char *or_command;
};

typedef void (*page_found)(const struct page_finding *finding, void *userdata);
/* Calls found() for each, those of the sqmgr itself first. */
void page_findings(const struct page *page, page_found found, void *userdata);

/* How well one fleet is. */
enum page_level page_fleet_level(const json_t *fleet);
/* Does the worker need someone to look at it? */
bool page_worker_needs_look(const json_t *worker);

/* The sqmgr's command with that word, which may be NULL, behind it, for a shell; `socket` as the instance has
 * it. verb: constant, it may have options. Returns text. */
#define PAGE_COMMAND_MAX 1024
const char *page_command(const char *socket, const char *verb, const char *word,
                         char text[static PAGE_COMMAND_MAX]);
