/* SPDX-License-Identifier: MIT */
/* The ledger of the running sqmgr. */
#include "daemon/workers/start_record.h"
#include "daemon/workers/process.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/world.h"
#include "observe/observe.h"
#include <stdio.h>

static char *ledger_path(const struct runtime *runtime)
{
        char *path;

        return asprintf(&path, "%s" LEDGER_SUFFIX, runtime->world->settings->state_file) < 0 ? NULL : path;
}

/* Returns room for all workers, doubled during a restart, and for some that a reload adds. */
static size_t wanted_slots(const struct world *world)
{
        size_t n = 64;

        WORLD_FOREACH_FLEET(world, fleet)
                n += 2 * (size_t)fleet_max_processes(fleet);
        return n;
}

static void report_volatile(const char *action, const char *path, const char *why)
{
        log_error("cannot %s the ledger '%s': %s. Until this is fixed, workers whose jobs a second stop "
                  "signal would end are stopped only at deadlines and by orders",
                  action, path, why);
}

static void report_lost(const char *path)
{
        report_volatile("write", path, "disk full, or file truncated");
}

int start_record_open(struct runtime *runtime)
{
        _cleanup_free_ char *path = ledger_path(runtime);
        const char *why = NULL;

        if (!path)
                return -ENOMEM;
        int outcome = ledger_file_open(&runtime->ledger, path, runtime->boot_id, wanted_slots(runtime->world),
                                       &why);
        if (outcome < 0)
                return outcome;
        ledger_take_over(&runtime->ledger.ledger);
        bool lost = ledger_file_is_lost(&runtime->ledger);
        observe_ledger(runtime->world, runtime->ledger.ledger.durable && !lost);
        if (outcome == LEDGER_FILE_NONE)
                report_volatile("create", path, why);
        else if (lost) {
                report_lost(path);
                ledger_set_gap(&runtime->ledger.ledger, LEDGER_GAP_SEARCH, true);
        }
        return 0;
}

void start_record_close(struct runtime *runtime)
{
        ledger_file_close(&runtime->ledger);
}

/* Records that a process without a slot is about to run: the next sqmgr finds that process only by a
 * search. */
static void miss(struct runtime *runtime, int error)
{
        _cleanup_free_ char *path = ledger_path(runtime);

        ledger_set_gap(&runtime->ledger.ledger, LEDGER_GAP_SLOT, true);
        if (!runtime->world->ledger_volatile)
                report_volatile("enlarge", path ?: "", strerrordesc_np(-error));
        observe_ledger(runtime->world, false);
}

static unsigned put(struct runtime *runtime, const struct ledger_start *start)
{
        struct ledger *ledger = &runtime->ledger.ledger;
        unsigned number = ledger_put(ledger, start);

        if (number != 0 || ledger->n_slots == 0)
                return number;
        int r = ledger_file_grow(&runtime->ledger, 2 * ledger->n_slots);
        if (r < 0)
                miss(runtime, r);
        return r < 0 ? 0 : ledger_put(ledger, start);
}

unsigned start_record_begin(struct runtime *runtime, const struct fleet *fleet, unsigned index,
                            uint64_t generation, enum reason reason, usec_t now)
{
        struct ledger_start start = {
                .index = index,
                .generation = generation,
                .started_at = now,
                .started_for = reason,
        };

        snprintf(start.fleet, sizeof(start.fleet), "%s", fleet->settings->name);
        return put(runtime, &start);
}

unsigned start_record_add(struct runtime *runtime, const struct worker *worker)
{
        const struct ledger_start start = ledger_start_of(worker);

        return put(runtime, &start);
}

/* Gives each worker that has no slot one, if there is room by now. */
static void record_missing(struct runtime *runtime)
{
        struct ledger *ledger = &runtime->ledger.ledger;

        if (!ledger_has_gap(ledger, LEDGER_GAP_SLOT))
                return;
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        struct process *process = worker->handle;

                        if (!process || process->record != 0 || worker->state == WORKER_GONE)
                                continue;
                        process->record = start_record_add(runtime, worker);
                        if (process->record == 0)
                                return;
                }
        ledger_set_gap(ledger, LEDGER_GAP_SLOT, false);
}

void start_record_renew(struct runtime *runtime)
{
        if (!ledger_file_is_lost(&runtime->ledger))
                return;
        if (!runtime->world->ledger_volatile)
                report_lost(runtime->ledger.path);
        observe_ledger(runtime->world, false);
        if (ledger_file_detach(&runtime->ledger, runtime->boot_id) < 0)
                return;
        /* A new ledger is not trusted: the next sqmgr searches for workers, too. */
        ledger_set_gap(&runtime->ledger.ledger, LEDGER_GAP_SLOT, true);
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->handle)
                                worker->handle->record = 0;
        record_missing(runtime);
}

void start_record_keep(struct runtime *runtime)
{
        record_missing(runtime);
        bool was_volatile = runtime->world->ledger_volatile;
        bool in_place = ledger_file_is_in_place(&runtime->ledger);

        /* A lost ledger may not know all workers: start_record_renew() comes first. */
        if ((!was_volatile && in_place) || ledger_file_is_lost(&runtime->ledger))
                return;
        _cleanup_free_ char *path = ledger_path(runtime);
        if (!path)
                return;
        int r = in_place ? 0 : ledger_file_make_durable(&runtime->ledger, path);
        observe_ledger(runtime->world, r == 0 && !ledger_has_gap(&runtime->ledger.ledger, LEDGER_GAP_SLOT));
        if (r < 0 && !was_volatile)
                report_volatile("create", path, strerrordesc_np(-r));
        else if (r == 0 && !was_volatile)
                log_warning("the ledger '%s' was deleted while sqmgr runs and has been created again; find "
                            "what deletes files there",
                            path);
        else if (!runtime->world->ledger_volatile)
                log_info("ledger '%s' created", path);
}
