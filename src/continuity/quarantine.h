/* SPDX-License-Identifier: MIT */
/* Servers whose bytes end sqmgr. A word of the ledger names the server whose bytes are being decoded. If
 * sqmgr ends meanwhile, the next sqmgr finds the word and records the end. The second end within
 * QUARANTINE_WITHIN_USEC puts the server into quarantine until a reload: sqmgr then reads that server once
 * per QUARANTINE_PERIOD_USEC at most, and continues with the others.
 *
 * kill -9 and the watchdog of systemd count like a crash if sqmgr is decoding at that moment. Without a file
 * for the ledger, nothing is known of earlier ends. No I/O, no clock. */
#pragma once

#include "continuity/ledger.h"

#define QUARANTINE_WITHIN_USEC (10 * USEC_PER_MIN)
#define QUARANTINE_PERIOD_USEC USEC_PER_MIN

/* Returns what stands for a server in the ledger, never 0. url: without passwords. All databases of a server
 * have the same key. */
uint32_t quarantine_key(const char *url);

/* Call with the key of the server before its bytes are decoded, and with 0 afterwards. */
static inline void quarantine_decoding(struct ledger *ledger, uint32_t key)
{
        /* A plain store suffices: only the next sqmgr reads the word. The compiler must not move it. */
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&ledger->header->decoding, key, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
}

/* Call once in a new sqmgr, before anything is decoded. Returns the key of the server whose bytes the sqmgr
 * before decoded as it ended, or 0. now: monotonic. */
uint32_t quarantine_take_over(struct ledger *ledger, usec_t now);
/* Returns true if the server is in quarantine. */
bool quarantine_holds(const struct ledger *ledger, uint32_t key);
/* Forgets all ends, and with them all quarantines. */
void quarantine_end(struct ledger *ledger);
