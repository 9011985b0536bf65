/* SPDX-License-Identifier: MIT */
/* The parts of the page, each a file of its own, and what they share. */
#pragma once

#include "base/parse.h"
#include "wire/reply.h"
#include <stdio.h>

/* What is shown, and when. */
struct page {
        const json_t *instances;
        const json_t *events;
        usec_t now; /* realtime */
};

/* As reply_integer(), held within bounds in which sums of them are numbers, too: it is whatever was told. */
static inline long long page_integer(const json_t *object, const char *key)
{
        return MAX(0, MIN(reply_integer(object, key), 1LL << 50));
}

/* PAGE_UNKNOWN is of what is not heard of any more. */
enum page_level { PAGE_UNKNOWN, PAGE_WELL, PAGE_LOOK, PAGE_ACT, _PAGE_LEVEL_MAX };

/* One thing that is not as it should be. All texts live as long as the call that hands it out. */
struct finding {
        enum page_level level;
        const char *fleet;  /* NULL: of none */
        const char *title;  /* a few words, without a full stop */
        const char *text;   /* what sqmgr says of it; "": nothing */
        const char *remedy; /* what to do, up to its command; "": nothing */
        const char *command;
        const char *or_remedy; /* what to do instead; "": nothing */
        const char *or_command;
};

#define PAGE_COMMAND_MAX 1024

/* page_findings.c: calls found() for each, those of the sqmgr itself first. */
typedef void (*page_found)(const struct finding *finding, void *userdata);
void page_findings(const struct page *page, page_found found, void *userdata);
/* Is what is known of it what it is now? */
bool page_is_heard(const json_t *instance);
/* How well one fleet is. */
enum page_level page_fleet_level(const json_t *fleet);
/* The sqmgr's command with that word behind it, for a shell; `socket` as the instance has it. verb: constant,
 * it may have options. Returns text. */
const char *page_command(const char *socket, const char *verb, const char *word,
                         char text[static PAGE_COMMAND_MAX]);

/* page_verdict.c: whether all is well, and if not, what to do. page_headline() writes that as one line of
 * plain text, and returns how well it is. */
#define PAGE_HEADLINE_MAX 512
enum page_level page_headline(const struct page *page, char text[static PAGE_HEADLINE_MAX]);
void page_verdict(FILE *out, const struct page *page);
/* The sign beside a name or a sentence that says the same. */
void page_sign(FILE *out, enum page_level level);
/* The address of the same for the tab of a browser. */
const char *page_icon(enum page_level level);

/* page_fleets.c */
void page_fleets(FILE *out, const struct page *page);

/* page_hosts.c: rollouts over many hosts; nothing where no fleet has a group. */
void page_hosts(FILE *out, const struct page *page);

/* page_moving.c: restarts and their stories, and who comes or goes. */
void page_moving(FILE *out, const struct page *page);

/* page_events.c */
void page_events(FILE *out, const struct page *page);
/* When an event was: a time of day, and its age where with_age. */
void page_event_time(FILE *out, const json_t *event, const struct page *page, bool with_age);

/* page_queues.c */
void page_queues(FILE *out, const struct page *page);

/* page_instances.c: who told all this. */
void page_instances(FILE *out, const struct page *page);
/* Its socket without what is the same in all. Returns text. */
#define PAGE_INSTANCE_MAX 128
const char *page_instance_name(const json_t *instance, char text[static PAGE_INSTANCE_MAX]);

/* A bar of value out of max, of which 0 is unknown: one that says nothing which does not stand beside it. */
void page_bar(FILE *out, double value, double max, const char *kind);

/* Its sentence, behind its level where that matters. */
void page_event_text(FILE *out, const json_t *event);

/* The time since 1970, in UTC. Returns text. */
enum page_time_form {
        PAGE_TIME_ISO,   /* 2026-11-23T06:05:36Z */
        PAGE_TIME_WHOLE, /* 2026-11-23 06:05:36 */
        PAGE_TIME_CLOCK, /* 06:05:36 */
        PAGE_TIME_DAY,   /* 11-23 06:05 */
        _PAGE_TIME_MAX,
};
#define PAGE_TIME_MAX 64
const char *page_time(usec_t at, enum page_time_form form, char text[static PAGE_TIME_MAX]);
