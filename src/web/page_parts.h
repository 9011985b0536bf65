/* SPDX-License-Identifier: MIT */
/* What the sections of the page share: the documents they show, and the elements that several of them have.
 */
#pragma once

#include "base/parse.h"
#include "wire/reply.h"
#include <stdio.h>
#include <time.h>

/* What is shown, and when. */
struct page {
        const json_t *instances;
        const json_t *events;
        usec_t now; /* realtime */
};

/* For each fleet of each instance. A break ends the fleets of one instance only. */
#define page_foreach_fleet(page, instance, fleet)                                                            \
        json_foreach(instance, (page)->instances)                                                            \
                json_foreach_in(fleet, json_object_get(instance, "status"), "fleets")
/* The same for each entry of the instance's member of that name. */
#define page_foreach_entry(page, name, instance, entry)                                                      \
        json_foreach(instance, (page)->instances)                                                            \
                json_foreach_in(entry, instance, name)

/* As reply_integer(), held within bounds in which sums of them are numbers, too: it is whatever was told. */
static inline long long page_integer(const json_t *object, const char *key)
{
        return MAX(0, MIN(reply_integer(object, key), 1LL << 50));
}

/* Is what is known of it what it is now? */
bool page_is_heard(const json_t *instance);
/* Its socket without what is the same in all. Returns text. */
#define PAGE_INSTANCE_MAX 128
const char *page_instance_name(const json_t *instance, char text[static PAGE_INSTANCE_MAX]);

/* PAGE_UNKNOWN is of what is not heard of any more. */
enum page_level { PAGE_UNKNOWN, PAGE_WELL, PAGE_LOOK, PAGE_ACT, _PAGE_LEVEL_MAX };

/* The sign beside a name or a sentence that says the same. */
void page_sign(FILE *out, enum page_level level);

/* Begins a section, and its heading. */
void page_section(FILE *out, const char *id, const char *title);
/* A sentence beside what it is about; nothing where it is "". key: its kind, or NULL. */
void page_note(FILE *out, const char *key, const char *text);
/* A bar of value out of max, of which 0 is unknown: one that says nothing which does not stand beside it. */
void page_bar(FILE *out, double value, double max, const char *kind);

/* The time since 1970 in UTC, in a form of strftime(), which is a literal. Returns text, which has
 * PAGE_TIME_MAX bytes. */
#define PAGE_TIME_MAX   64
#define PAGE_TIME_ISO   "%Y-%m-%dT%H:%M:%SZ"
#define PAGE_TIME_CLOCK "%H:%M:%S"
#define PAGE_TIME(at, form, text)                                                                            \
        (strftime((text), PAGE_TIME_MAX, (form), page_utc((at), &(struct tm){0})) > 0 ? (text) : "")
/* Fills and returns utc. */
const struct tm *page_utc(usec_t at, struct tm *utc);

/* When an event was: a time of day, and its age where with_age. */
void page_event_time(FILE *out, const json_t *event, const struct page *page, bool with_age);
/* Its sentence, behind its level where that matters. */
void page_event_text(FILE *out, const json_t *event);
