/* SPDX-License-Identifier: MIT */
/* The ledger of starts and of signals that must not be sent twice. */
#include "continuity/ledger.h"
#include "model/fleet.h"
#include <stdio.h>

#define LEDGER_MAGIC   "sqmgr.lg"
#define LEDGER_VERSION 1

#define EPOCH_MAX 0xffffffU
/* Maximum start time in a slot, in clock ticks: more than 300 years. */
#define START_MAX UINT64_C(0xffffffffff)

static uint64_t make_word(enum ledger_state state, uint64_t epoch, pid_t pid)
{
        return (uint64_t)state | (epoch & EPOCH_MAX) << 8 | (uint64_t)(uint32_t)pid << 32;
}

static enum ledger_state word_state(uint64_t word)
{
        return (enum ledger_state)(word & 0xff);
}

static uint64_t word_epoch(uint64_t word)
{
        return word >> 8 & EPOCH_MAX;
}

static uint64_t make_start(uint64_t epoch, uint64_t start)
{
        return (start & START_MAX) | (epoch & EPOCH_MAX) << 40;
}

size_t ledger_bytes(size_t n_slots)
{
        return sizeof(struct ledger_header) + n_slots * sizeof(struct ledger_slot);
}

void ledger_format(void *bytes, const char *boot_id)
{
        struct ledger_header *header = bytes;

        /* Store the gap before the header becomes valid: this sqmgr may end before its search. */
        atomic_store(&header->gaps, LEDGER_GAP_SEARCH);
        memcpy(header->magic, LEDGER_MAGIC, sizeof(header->magic));
        header->version = LEDGER_VERSION;
        header->slot_bytes = sizeof(struct ledger_slot);
        snprintf(header->boot_id, sizeof(header->boot_id), "%s", boot_id);
}

bool ledger_is_valid(const struct ledger_header *header, const char *boot_id)
{
        return memcmp(header->magic, LEDGER_MAGIC, sizeof(header->magic)) == 0 &&
               header->version == LEDGER_VERSION && header->slot_bytes == sizeof(struct ledger_slot) &&
               boot_id[0] != '\0' && strncmp(header->boot_id, boot_id, sizeof(header->boot_id)) == 0;
}

void ledger_attach(struct ledger *ledger, void *bytes, size_t size)
{
        ledger->header = bytes;
        ledger->slots = (struct ledger_slot *)(ledger->header + 1);
        ledger->n_slots =
                MIN((size - sizeof(struct ledger_header)) / sizeof(struct ledger_slot), (size_t)UINT32_MAX);
        ledger->next = 0;
}

void ledger_set_gap(struct ledger *ledger, enum ledger_gap gap, bool is)
{
        if (is)
                atomic_fetch_or(&ledger->header->gaps, gap);
        else
                atomic_fetch_and(&ledger->header->gaps, ~(uint32_t)gap);
}

bool ledger_has_gap(const struct ledger *ledger, enum ledger_gap gap)
{
        return atomic_load(&ledger->header->gaps) & gap;
}

void ledger_take_over(struct ledger *ledger)
{
        atomic_fetch_add(&ledger->header->epoch, 1);
        for (size_t i = 0; i < ledger->n_slots; i++) {
                uint64_t word = atomic_load(&ledger->slots[i].word);

                /* If the child claims it at this moment, the slot stays. */
                if (word_state(word) == LEDGER_STARTING)
                        (void)atomic_compare_exchange_strong(&ledger->slots[i].word, &word, 0);
        }
        if (atomic_load(&ledger->header->gaps) != 0)
                atomic_store(&ledger->header->gaps, LEDGER_GAP_SEARCH);
}

static struct ledger_slot *slot_of(const struct ledger *ledger, unsigned number)
{
        return number == 0 || number > ledger->n_slots ? NULL : &ledger->slots[number - 1];
}

static struct ledger_slot *free_slot(struct ledger *ledger, unsigned *ret_number)
{
        for (size_t i = 0; i < ledger->n_slots; i++) {
                size_t at = (ledger->next + i) % ledger->n_slots;

                if (word_state(atomic_load(&ledger->slots[at].word)) != LEDGER_FREE)
                        continue;
                ledger->next = at + 1;
                *ret_number = (unsigned)at + 1;
                return &ledger->slots[at];
        }
        return NULL;
}

unsigned ledger_put(struct ledger *ledger, const struct ledger_start *start)
{
        unsigned number = 0;
        struct ledger_slot *slot = free_slot(ledger, &number);

        if (!slot)
                return 0;
        uint64_t epoch = atomic_load(&ledger->header->epoch);
        atomic_store(&slot->start, make_start(epoch, start->start));
        uint32_t sent = 0;
        for (size_t i = 0; i < _LEDGER_ORDER_MAX; i++) {
                atomic_store(&slot->asked_at[i], start->asked_at[i]);
                sent |= start->sent[i] ? 1U << i : 0;
        }
        atomic_store(&slot->sent, sent);
        atomic_store(&slot->quiet_stops, start->quiet_stops);
        atomic_store(&slot->reason, start->reason);
        atomic_store(&slot->heartbeat_pid, (uint32_t)start->heartbeat_pid);
        atomic_store(&slot->heartbeat_start, start->heartbeat_start);
        slot->started_at = start->started_at;
        slot->generation = start->generation;
        slot->index = start->index;
        slot->started_for = (uint16_t)start->started_for;
        atomic_store(&slot->forked, (uint16_t)start->forked);
        memcpy(slot->fleet, start->fleet, sizeof(slot->fleet));
        /* The word comes last. */
        enum ledger_state state = start->pid == 0 ? LEDGER_STARTING : LEDGER_RUNNING;
        atomic_store(&slot->word, make_word(state, epoch, start->pid));
        return number;
}

struct ledger_start ledger_start_of(const struct worker *worker)
{
        struct ledger_start start = {
                .pid = worker->process.pid,
                .start = worker->process.start,
                .index = worker->index,
                .generation = worker->generation,
                .started_at = worker->spawned_at,
                .started_for = worker->started_for,
                .forked = worker->process.awaits_go ? LEDGER_FORK_WAITS
                          : worker->process.forked  ? LEDGER_FORK_RUNS
                                                    : LEDGER_NOT_FORKED,
        };

        snprintf(start.fleet, sizeof(start.fleet), "%s", worker->fleet->settings->name);
        if (worker->state < WORKER_QUIET)
                return start;
        /* Copy the orders of an adopted worker, or of a worker whose record was lost. */
        bool stops = worker->state > WORKER_QUIET, unconfirmed = worker->orders.unconfirmed;
        start.asked_at[LEDGER_QUIET] = worker->orders.quiet_at;
        start.sent[LEDGER_QUIET] = worker->orders.quiet_at != 0 && (stops || !unconfirmed);
        start.asked_at[LEDGER_STOP] = stops ? worker->orders.stop_at : 0;
        start.sent[LEDGER_STOP] = start.asked_at[LEDGER_STOP] != 0 && !unconfirmed;
        start.quiet_stops = worker->orders.quiet_uncaught;
        start.reason = worker->reason;
        start.heartbeat_pid = worker->process.elsewhere ? 0 : worker->process.heartbeat_pid;
        start.heartbeat_start = worker->process.elsewhere ? 0 : worker->process.heartbeat_start;
        return start;
}

struct ledger_claim ledger_claim_of(const struct ledger *ledger, unsigned number)
{
        struct ledger_slot *slot = slot_of(ledger, number);

        return (struct ledger_claim){.slot = slot, .word = slot ? atomic_load(&slot->word) : 0};
}

static uint64_t claimed_word(const struct ledger_claim *claim, pid_t pid)
{
        return make_word(LEDGER_RUNNING, word_epoch(claim->word), pid);
}

bool ledger_claim(const struct ledger_claim *claim, pid_t pid, uint64_t start)
{
        uint64_t word = claim->word;

        if (!claim->slot)
                return true;
        /* A late child must not change the start time of a process that has the slot by now. */
        uint64_t epoch = word_epoch(word), unknown = make_start(epoch, 0);
        (void)atomic_compare_exchange_strong(&claim->slot->start, &unknown, make_start(epoch, start));
        return atomic_compare_exchange_strong(&claim->slot->word, &word, claimed_word(claim, pid)) ||
               word == claimed_word(claim, pid);
}

void ledger_go(struct ledger *ledger, unsigned number)
{
        struct ledger_slot *slot = slot_of(ledger, number);

        if (slot)
                atomic_store(&slot->forked, LEDGER_FORK_RUNS);
}

void ledger_end(struct ledger *ledger, unsigned number)
{
        struct ledger_slot *slot = slot_of(ledger, number);

        if (slot)
                atomic_store(&slot->word, 0);
}

static bool is_sent(const struct ledger_slot *slot, enum ledger_order order)
{
        return atomic_load(&slot->sent) >> order & 1;
}

static enum ledger_order order_of(const struct action *action)
{
        return action->kind == ACTION_QUIET ? LEDGER_QUIET : LEDGER_STOP;
}

/* Returns true if the order goes to a process that was not asked: the command may start several. */
static bool is_asked_first(const struct ledger_slot *slot, const struct worker *worker)
{
        const struct worker_process *process = &worker->process;

        return !process->elsewhere &&
               ((uint32_t)process->heartbeat_pid != atomic_load(&slot->heartbeat_pid) ||
                process->heartbeat_start != atomic_load(&slot->heartbeat_start));
}

void ledger_ask(struct ledger *ledger, unsigned number, const struct action *action, usec_t now)
{
        struct ledger_slot *slot = slot_of(ledger, number);
        enum ledger_order order = order_of(action);
        const struct worker *worker = action->worker;

        /* A stop signal follows a request to be quiet that was refused later. */
        bool stops = order == LEDGER_QUIET && action_signal(action) == ACTION_SIGNAL_STOP;
        bool first = slot && is_asked_first(slot, worker);
        if (first || (slot && stops && atomic_load(&slot->quiet_stops) == 0))
                atomic_fetch_and(&slot->sent, ~(1U << order));
        /* The stop signal went to the process before this one. */
        if (first && order == LEDGER_QUIET)
                atomic_store(&slot->asked_at[LEDGER_STOP], 0);
        /* The time of the first signal counts, but not of one that an earlier sqmgr has not sent. */
        if (!slot || is_sent(slot, order))
                return;
        /* ledger_settle() assumes that the heartbeats of a process named here are known. */
        if (!worker->process.elsewhere) {
                atomic_store(&slot->heartbeat_pid, (uint32_t)worker->process.heartbeat_pid);
                atomic_store(&slot->heartbeat_start, worker->process.heartbeat_start);
        }
        atomic_store(&slot->reason, action->reason);
        if (order == LEDGER_QUIET)
                atomic_store(&slot->quiet_stops, stops);
        atomic_store(&slot->asked_at[order], now);
}

void ledger_answer(struct ledger *ledger, unsigned number, const struct action *action, bool sent)
{
        struct ledger_slot *slot = slot_of(ledger, number);
        enum ledger_order order = order_of(action);

        if (slot && sent)
                atomic_fetch_or(&slot->sent, 1U << order);
        else if (slot && !is_sent(slot, order))
                atomic_store(&slot->asked_at[order], 0);
}

/* A later version may know other reasons. */
static unsigned known_reason(unsigned reason)
{
        return reason < _REASON_MAX ? reason : REASON_NONE;
}

/* Reads the slot of a running start. Returns false if the slot has impossible values. */
static bool read_slot(const struct ledger_slot *slot, unsigned number, usec_t now, struct ledger_start *ret)
{
        *ret = (struct ledger_start){
                .number = number,
                .pid = (pid_t)(atomic_load(&slot->word) >> 32),
                .start = atomic_load(&slot->start) & START_MAX,
                .index = slot->index,
                .generation = slot->generation,
                .started_at = slot->started_at,
                .started_for = known_reason(slot->started_for),
                .forked = atomic_load(&slot->forked),
                .reason = known_reason(atomic_load(&slot->reason)),
                .quiet_stops = atomic_load(&slot->quiet_stops) != 0,
                .heartbeat_pid = (pid_t)atomic_load(&slot->heartbeat_pid),
                .heartbeat_start = atomic_load(&slot->heartbeat_start),
        };
        memcpy(ret->fleet, slot->fleet, sizeof(ret->fleet));
        bool possible = ret->pid > 0 && ret->start != 0 && ret->heartbeat_pid >= 0 &&
                        memchr(ret->fleet, '\0', sizeof(ret->fleet)) && ret->index > 0 &&
                        ret->generation > 0 && ret->generation < UINT64_MAX && ret->started_at <= now &&
                        ret->forked < _LEDGER_FORK_MAX;
        for (size_t i = 0; i < _LEDGER_ORDER_MAX; i++) {
                ret->asked_at[i] = atomic_load(&slot->asked_at[i]);
                ret->sent[i] = is_sent(slot, (enum ledger_order)i);
                possible = possible && ret->asked_at[i] <= now;
        }
        return possible;
}

int ledger_read(struct ledger *ledger, usec_t now, struct ledger_starts *ret)
{
        *ret = (struct ledger_starts){.list = calloc(ledger->n_slots + 1, sizeof(*ret->list))};
        if (!ret->list)
                return -ENOMEM;
        for (unsigned i = 1; i <= ledger->n_slots; i++) {
                const struct ledger_slot *slot = &ledger->slots[i - 1];
                bool runs = word_state(atomic_load(&slot->word)) == LEDGER_RUNNING;

                if (runs && read_slot(slot, i, now, &ret->list[ret->n])) {
                        ret->n++;
                        continue;
                }
                if (runs)
                        ledger_set_gap(ledger, LEDGER_GAP_SEARCH, true);
                ledger_end(ledger, i);
        }
        return 0;
}

bool ledger_starts_take(struct ledger *ledger, struct ledger_starts *starts, const char *fleet,
                        const struct worker *known, struct ledger_start *ret)
{
        for (size_t i = 0; i < starts->n; i++) {
                const struct ledger_start start = starts->list[i];
                bool same = start.index == known->index && start.started_at == known->spawned_at &&
                            strcmp(start.fleet, fleet) == 0;

                if (!same && (start.pid != known->process.pid || start.start != known->process.start))
                        continue;
                starts->list[i] = starts->list[--starts->n];
                *ret = start;
                if (!same)
                        ledger_end(ledger, start.number);
                return same;
        }
        return false;
}

void ledger_starts_free(struct ledger_starts *starts)
{
        free(starts->list);
}

void ledger_settle(const struct ledger_start *start, const struct traits *traits, struct worker *known)
{
        static const enum worker_state states[] = {
                [LEDGER_QUIET] = WORKER_QUIET,
                [LEDGER_STOP] = WORKER_STOPPING,
        };
        bool once = traits->quiet_is_stop || start->quiet_stops || known->orders.quiet_uncaught;

        for (size_t i = 0; i < _LEDGER_ORDER_MAX; i++) {
                usec_t at = start->asked_at[i];
                /* The order in the state went to an earlier process of the command. */
                bool to_other = at > known->state_at &&
                                (i == LEDGER_STOP || (start->heartbeat_pid != 0 &&
                                                      start->heartbeat_pid != known->process.heartbeat_pid));

                /* The state was saved after the order, and has its result. */
                if (at == 0 || (known->state >= states[i] && !to_other) || known->state_at > at)
                        continue;
                if (!start->sent[i] && !once)
                        continue;
                known->orders.unconfirmed = !start->sent[i];
                known->state = states[i];
                known->state_at = at;
                known->reason = start->reason;
                /* The state may be older than the first heartbeat. */
                if (start->heartbeat_pid != 0 && (to_other || known->process.heartbeat_pid == 0)) {
                        known->process.heartbeat_pid = start->heartbeat_pid;
                        known->process.heartbeat_start = start->heartbeat_start;
                        known->heartbeat.seen = true;
                }
                if (i == LEDGER_QUIET) {
                        known->orders.quiet_at = at;
                        known->orders.quiet_uncaught |= start->quiet_stops && !traits->quiet_is_stop;
                } else {
                        known->orders.stop_at = at;
                        known->orders.group_signaled = known->process.heartbeat_pid == 0;
                }
        }
}
