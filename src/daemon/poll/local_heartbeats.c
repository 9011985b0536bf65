/* SPDX-License-Identifier: MIT */
/* Derives heartbeats from facts on this machine; see the header. */
#include "daemon/poll/local_heartbeats.h"
#include "daemon/poll/running_jobs.h"
#include "daemon/poll/status_files.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/process.h"
#include "frameworks/heartbeats.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "model/deadlines.h"
#include "model/fleet.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include <string.h>

struct local_slot {
        struct heartbeat_slot base;
        struct local_slot *next;
        bool wanted;
        struct status_file file;
        struct job_list jobs;  /* as the last file named them */
        uint64_t jobs_at_usec; /* the heartbeat of that file; 0: none yet */
};

struct local_heartbeats {
        struct heartbeats base;
        struct local_slot *slots;
};

/* Forgets what files have named. */
static void clear_record(struct local_slot *slot)
{
        job_list_clear(&slot->jobs);
        free(slot->base.info);
        slot->base.info = NULL;
        slot->jobs_at_usec = 0;
}

/* Takes over what a file names, and observes its jobs, unless it was read before or does not count. */
static void take_record(struct local_slot *slot, struct heartbeat_record *record)
{
        struct worker *worker = slot->base.worker;

        if (record->heartbeat.sent_usec != worker->heartbeat.written_usec ||
            record->heartbeat.sent_usec == slot->jobs_at_usec)
                return;
        clear_record(slot);
        slot->base.info = TAKE_PTR(record->info);
        slot->jobs = record->jobs;
        slot->jobs_at_usec = record->heartbeat.sent_usec;
        record->jobs = (struct job_list){0};
        running_jobs_observe(worker, &slot->jobs, culprits_take(worker));
}

static void local_free(struct heartbeats *base)
{
        free(base);
}

static int local_add(struct heartbeats *base, struct worker *worker, struct heartbeat_slot **ret)
{
        struct local_heartbeats *heartbeats = (struct local_heartbeats *)base;
        struct local_slot *slot = calloc(1, sizeof(*slot));

        if (!slot)
                return -ENOMEM;
        slot->base = (struct heartbeat_slot){.heartbeats = base, .worker = worker};
        slot->next = heartbeats->slots;
        heartbeats->slots = slot;
        *ret = &slot->base;
        return 0;
}

static void local_remove(struct heartbeat_slot *base)
{
        struct local_heartbeats *heartbeats = (struct local_heartbeats *)base->heartbeats;
        struct local_slot *slot = (struct local_slot *)base;

        /* The file of a running worker is for the next sqmgr. */
        if (base->worker->state == WORKER_GONE)
                status_files_drop(base->worker);
        LIST_UNLINK(heartbeats->slots, slot);
        clear_record(slot);
        free(slot);
}

static void local_forget(struct heartbeat_slot *slot)
{
        status_files_drop(slot->worker);
        clear_record((struct local_slot *)slot);
}

static void local_want(struct heartbeat_slot *slot, unsigned poll_items)
{
        ((struct local_slot *)slot)->wanted |= poll_items & POLL_HEARTBEAT;
}

/* Without heartbeat files, a running command counts as a heartbeat. */
static bool read_process(const struct worker *worker, usec_t now, pid_t *ret_pid, struct heartbeat *ret)
{
        struct proc_place place;

        if (!worker->heartbeat.seen &&
            (worker->handle->report_fd >= 0 || proc_place(worker->handle->main, &place) < 0 ||
             launch_is_name_of_start(place.comm)))
                return false;
        *ret_pid = worker->process.pid;
        *ret = (struct heartbeat){.sent_usec = now, .shimless = worker->fleet->settings->traits->shim};
        return true;
}

static void poll_worker(struct local_slot *slot, struct status_poll *poll, usec_t now)
{
        struct worker *worker = slot->base.worker;
        bool in_file = fleet_settings_heartbeat(worker->fleet->settings) == HEARTBEAT_FILE;
        struct heartbeat_record record = {0};
        pid_t pid;

        bool found = in_file && status_files_read(poll, &slot->file, worker, &pid, &record);
        if (!found && (!in_file || (slot->file.absent && worker_lacks_shim(worker, now))))
                found = read_process(worker, now, &pid, &record.heartbeat);
        if (!found)
                return;
        record.heartbeat.work_list_known = in_file && !record.heartbeat.shimless;
        record.heartbeat.work_list_empty = record.jobs.n_jobs == 0;
        if (worker->process.heartbeat_pid != pid)
                attach_heartbeat(worker, pid, now);
        /* A process that could not be attached does not count. */
        if (worker->process.heartbeat_pid == pid)
                observe_heartbeat(worker, &record.heartbeat, now);
        if (record.heartbeat.work_list_known && worker->process.heartbeat_pid == pid)
                take_record(slot, &record);
        heartbeat_record_clear(&record);
}

static int local_poll(struct heartbeats *base)
{
        struct local_heartbeats *heartbeats = (struct local_heartbeats *)base;
        struct status_poll poll = STATUS_POLL_INIT;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct local_slot *slot = heartbeats->slots; slot; slot = slot->next) {
                if (slot->wanted)
                        poll_worker(slot, &poll, now);
                slot->wanted = false;
        }
        status_poll_end(&poll);
        return HEARTBEATS_NOTHING;
}

static const struct heartbeat_source local_kind = {
        .free = local_free,
        .add = local_add,
        .drop = local_remove,
        .want = local_want,
        .poll = local_poll,
        .forget = local_forget,
};

const struct job_list *local_heartbeats_jobs(const struct heartbeat_slot *slot)
{
        const struct local_slot *local = (const struct local_slot *)slot;

        return slot->heartbeats->kind == &local_kind && local->jobs_at_usec != 0 ? &local->jobs : NULL;
}

int local_heartbeats_new(struct heartbeats **ret)
{
        struct local_heartbeats *heartbeats = calloc(1, sizeof(*heartbeats));

        if (!heartbeats)
                return -ENOMEM;
        heartbeats->base.kind = &local_kind;
        *ret = &heartbeats->base;
        return 0;
}
