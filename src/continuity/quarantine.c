/* SPDX-License-Identifier: MIT */
/* Servers whose bytes end sqmgr; see the header. */
#include "continuity/quarantine.h"
#include "base/hash.h"
#include "settings/redis_url.h"

#define QUARANTINED  (UINT64_C(1) << 31)
#define SECONDS_MASK (QUARANTINED - 1)

uint32_t quarantine_key(const char *url)
{
        uint64_t hash = hash_bytes(HASH_INIT, url, url_server_length(url));

        return (uint32_t)(hash ^ hash >> 32) ?: 1;
}

static uint32_t crash_key(uint64_t crash)
{
        return (uint32_t)(crash >> 32);
}

/* Returns the record of the server. If there is none, returns an unused one, or the oldest; servers in
 * quarantine give way last. */
static size_t find_crash(const struct ledger_header *header, uint32_t key)
{
        size_t oldest = 0;

        for (size_t i = 0; i < LEDGER_CRASHES; i++) {
                if (crash_key(header->crashes[i]) == key)
                        return i;
                /* An unused record is zero, and the bit of the quarantine lies above the seconds. */
                if ((uint32_t)header->crashes[i] < (uint32_t)header->crashes[oldest])
                        oldest = i;
        }
        return oldest;
}

uint32_t quarantine_take_over(struct ledger *ledger, usec_t now)
{
        struct ledger_header *header = ledger->header;
        uint32_t key = atomic_load(&header->decoding);

        if (key == 0)
                return 0;
        size_t i = find_crash(header, key);
        uint64_t before = atomic_load(&header->crashes[i]), seconds = now / USEC_PER_SEC & SECONDS_MASK;
        uint64_t crash = (uint64_t)key << 32 | seconds;
        bool is_near = seconds - (before & SECONDS_MASK) <= QUARANTINE_WITHIN_USEC / USEC_PER_SEC;
        if (crash_key(before) == key && (is_near || (before & QUARANTINED)))
                crash |= QUARANTINED;
        atomic_store(&header->crashes[i], crash);
        quarantine_decoding(ledger, 0);
        return key;
}

bool quarantine_holds(const struct ledger *ledger, uint32_t key)
{
        uint64_t crash = atomic_load(&ledger->header->crashes[find_crash(ledger->header, key)]);

        return crash_key(crash) == key && (crash & QUARANTINED);
}

void quarantine_end(struct ledger *ledger)
{
        FOREACH_ELEMENT(crash, ledger->header->crashes)
                atomic_store(crash, 0);
}
