/* SPDX-License-Identifier: MIT */
/* Derives heartbeats from facts on this machine; see the header. */
#include "daemon/poll/local_heartbeats.h"
#include "daemon/poll/status_files.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/process.h"
#include "frameworks/heartbeats.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/poll_schedule.h"
#include "observe/observe.h"
#include <string.h>

struct local_slot {
        struct heartbeat_slot base;
        struct local_slot *next;
        bool wanted;
        struct status_file file;
};

struct local_heartbeats {
        struct heartbeats base;
        struct local_slot *slots;
};

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
        free(slot);
}

static void local_forget(struct heartbeat_slot *slot)
{
        status_files_drop(slot->worker);
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
            (proc_place(worker->handle->main, &place) < 0 || strcmp(place.comm, LAUNCH_COMM) == 0))
                return false;
        *ret_pid = worker->process.pid;
        *ret = (struct heartbeat){.sent_usec = now};
        return true;
}

static void poll_worker(struct local_slot *slot, struct status_poll *poll, usec_t now)
{
        struct worker *worker = slot->base.worker;
        bool in_file = fleet_settings_heartbeat(worker->fleet->settings) == HEARTBEAT_FILE;
        struct heartbeat heartbeat;
        pid_t pid;

        if (in_file ? !status_files_read(poll, &slot->file, worker, &pid, &heartbeat)
                    : !read_process(worker, now, &pid, &heartbeat))
                return;
        if (worker->process.heartbeat_pid != pid)
                attach_heartbeat(worker, pid, now);
        /* A process that could not be attached does not count. */
        if (worker->process.heartbeat_pid == pid)
                observe_heartbeat(worker, &heartbeat, now);
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

int local_heartbeats_new(struct heartbeats **ret)
{
        struct local_heartbeats *heartbeats = calloc(1, sizeof(*heartbeats));

        if (!heartbeats)
                return -ENOMEM;
        heartbeats->base.kind = &local_kind;
        *ret = &heartbeats->base;
        return 0;
}
