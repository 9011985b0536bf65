/* SPDX-License-Identifier: MIT */
/* Reads what this machine shows of its own workers; see the header. */
#include "daemon/poll/local_beats.h"
#include "daemon/poll/status_files.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/process.h"
#include "frameworks/beats.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/poll_schedule.h"
#include "observe/observe.h"
#include <string.h>

struct local_slot {
        struct beats_slot base;
        struct local_slot *next;
        bool wanted;
        struct status_file file;
};

struct local_beats {
        struct beats base;
        struct local_slot *slots;
};

static void local_free(struct beats *base)
{
        free(base);
}

static int local_add(struct beats *base, struct worker *worker, struct beats_slot **ret)
{
        struct local_beats *beats = (struct local_beats *)base;
        struct local_slot *slot = calloc(1, sizeof(*slot));

        if (!slot)
                return -ENOMEM;
        slot->base = (struct beats_slot){.beats = base, .worker = worker};
        slot->next = beats->slots;
        beats->slots = slot;
        *ret = &slot->base;
        return 0;
}

static void local_remove(struct beats_slot *base)
{
        struct local_beats *beats = (struct local_beats *)base->beats;
        struct local_slot *slot = (struct local_slot *)base;

        /* One that lives on is the next sqmgr's. */
        if (base->worker->state == WORKER_GONE)
                status_files_drop(base->worker);
        LIST_UNLINK(beats->slots, slot);
        free(slot);
}

static void local_forget(struct beats_slot *slot)
{
        status_files_drop(slot->worker);
}

static void local_want(struct beats_slot *slot, unsigned poll_items)
{
        ((struct local_slot *)slot)->wanted |= poll_items & POLL_HEARTBEAT;
}

/* Of one that writes none, that its command runs is its beat. */
static bool read_process(const struct worker *worker, usec_t now, pid_t *ret_pid, struct heartbeat *ret)
{
        struct proc_place place;

        if (!worker->heartbeat.seen &&
            (proc_place(worker->handle->main, &place) < 0 || strcmp(place.comm, LAUNCH_COMM) == 0))
                return false;
        *ret_pid = worker->process.pid;
        *ret = (struct heartbeat){.beat_usec = now};
        return true;
}

static void poll_worker(struct local_slot *slot, struct status_poll *look, usec_t now)
{
        struct worker *worker = slot->base.worker;
        bool in_file = fleet_settings_heartbeat(worker->fleet->settings) == HEARTBEAT_FILE;
        struct heartbeat beat;
        pid_t pid;

        if (in_file ? !status_files_read(look, &slot->file, worker, &pid, &beat)
                    : !read_process(worker, now, &pid, &beat))
                return;
        if (worker->process.beat_pid != pid)
                attach_heartbeat(worker, pid, now);
        /* One that cannot be held is none. */
        if (worker->process.beat_pid == pid)
                observe_heartbeat(worker, &beat, now);
}

static int local_poll(struct beats *base)
{
        struct local_beats *beats = (struct local_beats *)base;
        struct status_poll look = STATUS_POLL_INIT;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        for (struct local_slot *slot = beats->slots; slot; slot = slot->next) {
                if (slot->wanted)
                        poll_worker(slot, &look, now);
                slot->wanted = false;
        }
        status_poll_end(&look);
        return BEATS_NOTHING;
}

static const struct beats_kind local_kind = {
        .free = local_free,
        .add = local_add,
        .drop = local_remove,
        .want = local_want,
        .look = local_poll,
        .forget = local_forget,
};

int local_beats_new(struct beats **ret)
{
        struct local_beats *beats = calloc(1, sizeof(*beats));

        if (!beats)
                return -ENOMEM;
        beats->base.kind = &local_kind;
        *ret = &beats->base;
        return 0;
}
