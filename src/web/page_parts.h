/* SPDX-License-Identifier: MIT */
/* Data and elements shared by several sections of the page. */
#pragma once

#include "wire/reply.h"
#include <stdio.h>
#include <time.h>

/* The data of the page. */
struct page {
        const char *host; /* name of this host; "": unknown */
        const json_t *instances;
        const json_t *findings; /* see page_findings() */
        const json_t *events;
        usec_t now; /* realtime clock */
};

/* Loops over each fleet of each instance. A break leaves only the inner loop over one instance's fleets. */
#define page_foreach_fleet(page, instance, fleet)                                                            \
        json_foreach(instance, (page)->instances)                                                            \
                json_foreach_in(fleet, json_object_get(instance, "status"), "fleets")

/* Like reply_integer(), but limited to a range in which sums do not overflow: replies may contain any
 * number. */
static inline long long page_integer(const json_t *object, const char *key)
{
        return MAX(0, MIN(reply_integer(object, key), 1LL << 50));
}

/* Returns true if the instance's data is current. */
bool page_is_current(const json_t *instance);

/* PAGE_UNKNOWN: the data is not current. */
enum page_level { PAGE_UNKNOWN, PAGE_OK, PAGE_ATTENTION, PAGE_ACT, _PAGE_LEVEL_MAX };

/* Writes the symbol of the level. The text beside it must say the same. */
void page_sign(FILE *out, enum page_level level);

/* Opens a section and writes its heading. */
void page_section(FILE *out, const char *id, const char *title);
/* Writes a note below its subject; nothing if text is "". key: the note's kind, or NULL. */
void page_note(FILE *out, const char *key, const char *text);
/* Writes what to do, and the command for a shell; "": none. */
void page_remedy(FILE *out, const char *remedy, const char *command);
/* Writes a bar: value out of max; max 0: unknown. The text beside the bar must show the same value. */
void page_bar(FILE *out, double value, double max, const char *kind);

/* Formats microseconds since 1970 as UTC. form: a literal for strftime(). text has PAGE_TIME_MAX bytes.
 * Returns text. */
#define PAGE_TIME_MAX   64
#define PAGE_TIME_ISO   "%Y-%m-%dT%H:%M:%SZ"
#define PAGE_TIME_CLOCK "%H:%M:%S"
#define PAGE_TIME(at, form, text)                                                                            \
        (strftime((text), PAGE_TIME_MAX, (form), page_utc((at), &(struct tm){0})) > 0 ? (text) : "")
/* Fills and returns utc. */
const struct tm *page_utc(usec_t at, struct tm *utc);

/* Writes the event's time of day, and its age if with_age. */
void page_event_time(FILE *out, const json_t *event, const struct page *page, bool with_age);
/* Writes the event's sentence, after its level if the level is a warning or an error. */
void page_event_text(FILE *out, const json_t *event);

/* Past events, the newest first. No more than this are shown. */
#define PAGE_EVENTS_MAX 200
/* Fleets and their workers. Workers with problems, and workers that are starting or stopping, are visible at
 * once; others are collapsed. */
void page_fleets(FILE *out, const struct page *page);
/* Activity: restarts with their steps, and workers that start or stop without a restart. */
void page_progress(FILE *out, const struct page *page);

/* Writes the overall state as one line of plain text. Returns its level. */
#define PAGE_HEADLINE_MAX 512
enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX]);
/* The URL of the level's icon for the browser tab. */
const char *page_icon(enum page_level value);

void page_verdict(FILE *out, const struct page *page);

/* Returns the findings: the Problems of each instance that answers, and one for each other instance, which
 * has a `text` instead of a time. In each instance, findings about sqmgr come before those about its fleets.
 * Returns a new reference. If memory is short, findings are missing. */
json_t *page_findings(const json_t *instances);
enum page_level page_problem_level(const json_t *problem);

/* The worst level of one fleet of the instance. */
enum page_level page_fleet_level(const json_t *instance, const json_t *fleet);
/* Returns true if the worker needs attention. */
bool page_worker_needs_attention(const json_t *worker);

/* Returns a shell command line for the systemd unit of the instance, to be freed. Returns NULL if its name is
 * not known, or memory is short. */
char *page_service_command(const json_t *instance);
