/* SPDX-License-Identifier: MIT */
/* Links whose server is in quarantine; see the header. */
#include "daemon/runtime/link_quarantine.h"
#include "continuity/quarantine.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/timer.h"

/* How long a connection is open at most, if no poll ends. */
#define OPEN_USEC (10 * USEC_PER_SEC)
/* After memory was short. */
#define RETRY_USEC USEC_PER_SEC

static const char in_quarantine[] = "its data has ended sqmgr twice; read once a minute at most";

static int on_timer(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct link *link = userdata;
        struct link_quarantine *quarantine = &link->quarantine;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (quarantine->open) {
                quarantine->open = false;
                timer_set(quarantine->timer,
                          quarantine->lasts ? quarantine->opened_at + QUARANTINE_PERIOD_USEC : now);
                reader_pause(link->reader, quarantine->lasts ? in_quarantine : "reload");
                return 0;
        }
        quarantine->opened_at = now;
        quarantine->open = link_open(link) >= 0;
        if (!quarantine->open)
                timer_set(quarantine->timer, now + RETRY_USEC);
        else if (quarantine->lasts)
                timer_set(quarantine->timer, now + OPEN_USEC);
        return 0;
}

static int begin(struct link *link, usec_t now)
{
        int r = sd_event_add_time(link->links->event, &link->quarantine.timer, CLOCK_MONOTONIC,
                                  now + QUARANTINE_PERIOD_USEC, 1, on_timer, link);

        if (r < 0)
                return r;
        /* Reported as a server that is down. */
        reader_pause(link->reader, in_quarantine);
        link->quarantine.lasts = true;
        return 0;
}

int links_judge_crash(struct links *links, usec_t now)
{
        uint32_t ended = quarantine_take_over(links->ledger, now);
        int r = 0;

        for (size_t i = 0; i < links->n && r >= 0; i++) {
                struct link *link = links->list[i];
                const char *url = reader_url_text(link->reader);
                uint32_t key = reader_quarantine_key(link->reader);

                if (key == ended)
                        log_error("%s %s: the last sqmgr ended while it read data of this server",
                                  link_noun(link), url);
                if (quarantine_holds(links->ledger, key))
                        r = begin(link, now);
        }
        return r;
}

void links_end_quarantine(struct links *links)
{
        if (links->ledger)
                quarantine_end(links->ledger);
        FOREACH_POINTER(link, links->list, links->n) {
                if (!link->quarantine.lasts)
                        continue;
                link->quarantine.lasts = false;
                timer_set(link->quarantine.timer, 0);
        }
}
