/* SPDX-License-Identifier: MIT */
/* The ledger: which process was started as which worker, and which signals it was about to get. Memory that
 * this sqmgr shares with its children and with the next sqmgr. A store into it outlives kill -9 of sqmgr:
 * what must not happen twice is stored before it is done. If the file cannot take a store, the ledger becomes
 * volatile (io/ledger_file.h). The caller maps the memory; see io/ledger_file.h. No I/O, no
 * clock.
 *
 * A slot belongs to one start. The parent stores LEDGER_STARTING and forks. The child, as its first act,
 * swaps that word to LEDGER_RUNNING with its own pid, or exits. A new sqmgr raises the epoch and frees all
 * slots that still say LEDGER_STARTING. Whoever changes the word first decides: a late child finds another
 * word, and another epoch once the slot is in use again. */
#pragma once

#include "decide/plan.h"
#include "settings/settings.h"
#include <stdatomic.h>

struct worker;

/* The lowest byte of a word. */
enum ledger_state {
        LEDGER_FREE,
        LEDGER_STARTING,
        LEDGER_RUNNING,
};

/* The signals that are recorded before they are sent. */
enum ledger_order {
        LEDGER_QUIET,
        LEDGER_STOP,
        _LEDGER_ORDER_MAX,
};

/* A worker forked from a template does nothing before it may continue. */
enum ledger_fork {
        LEDGER_NOT_FORKED,
        LEDGER_FORK_WAITS,
        LEDGER_FORK_RUNS,
        _LEDGER_FORK_MAX,
};

/* A slot: the record of one start. Numbers have the byte order of this machine: the contents are void after a
 * reboot. */
struct ledger_slot {
        /* Bits 0 to 7: enum ledger_state; 8 to 31: epoch; 32 to 63: pid. */
        _Atomic uint64_t word;
        /* Bits 0 to 39: start time of the pid, field 22 of /proc/PID/stat, or 0; 40 to 63: epoch. Stored
         * before the word. */
        _Atomic uint64_t start;
        /* When the signal was about to be sent, monotonic; 0: never. */
        _Atomic uint64_t asked_at[_LEDGER_ORDER_MAX];
        _Atomic uint32_t sent;            /* a bit for each enum ledger_order that was sent */
        _Atomic uint32_t quiet_stops;     /* the quiet signal was a stop signal */
        _Atomic uint32_t reason;          /* enum reason of the last order */
        _Atomic uint64_t heartbeat_start; /* start time of heartbeat_pid */
        uint64_t started_at;              /* monotonic; identifies the start, as SQMGR_START does */
        uint64_t generation;
        _Atomic uint32_t heartbeat_pid; /* the process that got the last order; 0: all of the command's */
        uint32_t index;
        uint16_t started_for;    /* enum reason */
        _Atomic uint16_t forked; /* enum ledger_fork */
        char fleet[FLEET_NAME_MAX + 1];
        char unused[3];
};
static_assert(sizeof(struct ledger_slot) == 128, "a slot is two cache lines, in all versions");

/* Why processes may run that have no slot. Versions that know fewer bits search for workers if any is set. */
enum ledger_gap {
        LEDGER_GAP_SLOT = 1 << 0,   /* a process of this sqmgr got no slot */
        LEDGER_GAP_SEARCH = 1 << 1, /* workers of an earlier sqmgr may run that the ledger does not name: the
                                     * search for them has not ended. Holds for later sqmgrs, too */
};

/* How many servers whose bytes have ended sqmgr are known at a time. */
#define LEDGER_CRASHES 4

/* The first 128 bytes of the memory. */
struct ledger_header {
        char magic[8];
        uint32_t version;
        uint32_t slot_bytes;
        _Atomic uint64_t epoch;
        char boot_id[64];
        _Atomic uint32_t gaps;     /* bits of enum ledger_gap */
        _Atomic uint32_t decoding; /* the server whose bytes sqmgr decodes; 0: none. See quarantine.h */
        /* Servers whose bytes have ended sqmgr. Bits 0 to 30: when the next sqmgr has found that, in seconds,
         * monotonic; 31: the server is quarantined; 32 to 63: the server. 0: unused. */
        _Atomic uint64_t crashes[LEDGER_CRASHES];
};
static_assert(sizeof(struct ledger_header) == sizeof(struct ledger_slot), "slots are aligned");
static_assert(offsetof(struct ledger_header, crashes) == 96, "at the place of zeros in older ledgers");

struct ledger {
        struct ledger_header *header; /* mapped by the caller; NULL: no ledger */
        struct ledger_slot *slots;
        size_t n_slots;
        size_t next;  /* the search for a free slot begins here */
        bool durable; /* the memory outlives this process: set by the caller */
};

/* Returns the bytes of a ledger with this number of slots. */
size_t ledger_bytes(size_t n_slots);
/* Writes the header of an empty ledger, which is not trusted. bytes: zeros, ledger_bytes(0) at least. */
void ledger_format(void *bytes, const char *boot_id);
/* Returns true if header begins a ledger of this boot, of a known version. */
bool ledger_is_valid(const struct ledger_header *header, const char *boot_id);
/* Uses these bytes as the ledger. Call again after they were moved or have grown. The bytes stay the
 * caller's. */
void ledger_attach(struct ledger *ledger, void *bytes, size_t size);
/* Call once in a new sqmgr. Raises the epoch, and frees the slots whose child has not claimed them. If any
 * process of the earlier sqmgr got no slot, the ledger becomes distrusted. */
void ledger_take_over(struct ledger *ledger);
/* Sets or clears that gap. */
void ledger_set_gap(struct ledger *ledger, enum ledger_gap gap, bool is);
bool ledger_has_gap(const struct ledger *ledger, enum ledger_gap gap);

/* A start as recorded, checked, and copied from the slot. */
struct ledger_start {
        unsigned number;
        pid_t pid;
        uint64_t start;
        char fleet[FLEET_NAME_MAX + 1];
        unsigned index;
        uint64_t generation;
        usec_t started_at;
        unsigned started_for;
        enum ledger_fork forked;
        usec_t asked_at[_LEDGER_ORDER_MAX];
        bool sent[_LEDGER_ORDER_MAX];
        bool quiet_stops;
        unsigned reason;
        pid_t heartbeat_pid;
        uint64_t heartbeat_start;
};

/* Returns the record of a worker whose process runs, with the orders that the worker has received. */
struct ledger_start ledger_start_of(const struct worker *worker);

/* Slots have numbers from 1 to n_slots. 0 means no slot, and all functions below accept it. */

/* Records a process; or, with start->pid and start->start 0, a start that is about to be made. Returns the
 * number of its slot, or 0 if all are taken. */
unsigned ledger_put(struct ledger *ledger, const struct ledger_start *start);
/* The data that a child needs to claim its start. Points into the ledger: invalid once the ledger has moved.
 */
struct ledger_claim {
        struct ledger_slot *slot; /* NULL: nothing to claim */
        uint64_t word;
};
/* Returns the claim of that slot. With number 0, returns a claim that always succeeds. */
struct ledger_claim ledger_claim_of(const struct ledger *ledger, unsigned number);
/* The process claims its start. Returns false if the start is void: the child then exits. Makes no call that
 * a child in the memory of sqmgr must not make. */
bool ledger_claim(const struct ledger_claim *claim, pid_t pid, uint64_t start);
/* Call before a forked worker is allowed to continue. */
void ledger_go(struct ledger *ledger, unsigned number);
/* Frees the slot: the process is gone, or sqmgr no longer supervises the process. */
void ledger_end(struct ledger *ledger, unsigned number);

/* Call ledger_ask() before sending the signal of this action, ACTION_QUIET or ACTION_STOP, and
 * ledger_answer() afterwards with the result. A sent order stays recorded, with its time, until the same
 * order goes to another process of the worker's command. A failed one is cleared, unless a signal of the same
 * order was sent to this process before. */
void ledger_ask(struct ledger *ledger, unsigned number, const struct action *action, usec_t now);
void ledger_answer(struct ledger *ledger, unsigned number, const struct action *action, bool sent);

/* The running starts, in no particular order. */
struct ledger_starts {
        struct ledger_start *list; /* owned */
        size_t n;
};

/* Lists the running starts that began by now, and frees all other slots. A running start with impossible
 * values is freed, too, and makes the ledger distrusted. Returns 0, or -ENOMEM. To be freed by
 * ledger_starts_free(). */
int ledger_read(struct ledger *ledger, usec_t now, struct ledger_starts *ret);
/* Removes the start of this worker of the fleet from the list. Returns true with the start in *ret, if it was
 * there. A record of the same process with another index, fleet or start time dates from before a downgrade:
 * its slot is freed, and the function returns false. */
bool ledger_starts_take(struct ledger *ledger, struct ledger_starts *starts, const char *fleet,
                        const struct worker *known, struct ledger_start *ret);
void ledger_starts_free(struct ledger_starts *starts);
/* Adds to known, a worker as the state saved it, the orders that only the ledger has. An order whose signal
 * may not have been sent counts as sent where a second signal would end jobs, and sets orders.unconfirmed.
 * Elsewhere such an order counts as not sent. */
void ledger_settle(const struct ledger_start *start, const struct traits *traits, struct worker *known);
