/* SPDX-License-Identifier: MIT */
/* Findings: the problems that sqmgr reports, and what only sqmgr-web sees: an instance that does not answer,
 * a host that is missing. */
#pragma once

#include "web/page_parts.h"

/* A problem. All strings are valid only during the call of found(). */
struct page_finding {
        enum page_level level;
        const char *title;   /* a few words, without a full stop */
        const char *text;    /* details from sqmgr; may be "" */
        const char *remedy;  /* imperative */
        const char *command; /* for a shell; "": none */
};

typedef void (*page_found)(const struct page_finding *finding, void *userdata);
/* Calls found() for each finding. In each instance, findings about sqmgr come before those about its
 * fleets. */
void page_findings(const struct page *page, page_found found, void *userdata);

/* The worst level of one fleet of the instance. */
enum page_level page_fleet_level(const json_t *instance, const json_t *fleet);
/* Returns true if the worker needs attention. */
bool page_worker_needs_attention(const json_t *worker);

/* Writes a shell command line for the systemd unit of the instance; "" if its name is not known. Returns
 * text. */
#define PAGE_COMMAND_MAX 1024
const char *page_service_command(const json_t *instance, char text[static PAGE_COMMAND_MAX]);
