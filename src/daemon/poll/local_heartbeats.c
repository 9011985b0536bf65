/* SPDX-License-Identifier: MIT */
/* Derives heartbeats from facts on this machine; see the header. Heartbeat files are named by pid. Only the
 * names of the worker's own tree are tried; no directory is listed. */
#include "daemon/poll/local_heartbeats.h"
#include "daemon/poll/running_jobs.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/process.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/status_dir.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"

/* State of the search for a worker's file, kept between polls. */
struct status_file {
        /* The whole process tree was searched once: a file that appears from now on is new. */
        bool searched;
        /* Processes of the tree already tried; the next poll continues after them. */
        unsigned passed;
        /* A process whose file existed when the search began: the file counts once it changes. 0: none. */
        pid_t mark_pid;
        uint64_t mark_usec; /* the heartbeat of mark_pid at that time */
        bool met;           /* true once the running search has met a file, or one that is begun */
        bool absent;        /* true if the last poll has ended a search of the whole tree that met none */
};

/* State of one poll of several workers. */
struct status_poll {
        const struct fleet *fleet; /* of the directory; NULL: none is open */
        int dir_fd;                /* -errno: cannot be opened */
};

#define STATUS_POLL_INIT ((struct status_poll){.dir_fd = -1})

/* Maximum of processes tried per worker and poll. */
#define TRIES_MAX 64

static bool is_read(const struct fleet_settings *settings)
{
        return fleet_settings_heartbeat(settings) == HEARTBEAT_FILE;
}

/* Closes the directory. The struct can be used again. */
static void status_poll_end(struct status_poll *poll)
{
        if (poll->dir_fd >= 0)
                close_fd(poll->dir_fd);
        *poll = STATUS_POLL_INIT;
}

static int poll_open(struct status_poll *poll, const struct worker *worker)
{
        if (poll->fleet == worker->fleet)
                return poll->dir_fd;
        status_poll_end(poll);
        poll->fleet = worker->fleet;
        poll->dir_fd = status_dir_open(worker->handle->runtime->status_parent, worker->fleet->settings->name);
        return poll->dir_fd;
}

static enum heartbeat_fault read_record(const struct status_poll *poll, pid_t pid,
                                        struct heartbeat_record *ret)
{
        char text[STATUS_FILE_MAX_BYTES + 1];
        size_t length;
        enum heartbeat_fault fault = status_file_read(poll->dir_fd, pid, text, &length);

        if (fault != HEARTBEAT_FAULT_NONE)
                return fault;
        int r = framework_take_record(text, length, ret);
        if (r < 0)
                return r == -ENOMEM ? HEARTBEAT_FAULT_UNREADABLE : HEARTBEAT_FAULT_RECORD;
        /* Without the start time, the record may be of an earlier process. */
        if (ret->heartbeat.start == 0) {
                heartbeat_record_clear(ret);
                return HEARTBEAT_FAULT_START;
        }
        return HEARTBEAT_FAULT_NONE;
}

struct tree_search {
        const struct status_poll *poll;
        struct status_file *file;
        unsigned seen, tried;
        enum heartbeat_fault fault;     /* why an existing file does not count */
        pid_t pid;                      /* heartbeat process found; 0: none */
        struct heartbeat_record record; /* of pid */
};

/* A file that exists at first sight may be left over from a process that has exited. */
static bool is_new(struct status_file *file, pid_t pid, const struct heartbeat *heartbeat)
{
        if (file->searched)
                return pid != file->mark_pid || heartbeat->sent_usec > file->mark_usec;
        if (file->mark_pid == 0) {
                file->mark_pid = pid;
                file->mark_usec = heartbeat->sent_usec;
        }
        return false;
}

static int try_process(pid_t pid, void *userdata)
{
        struct tree_search *search = userdata;
        struct heartbeat_record record = {0};

        if (search->seen++ < search->file->passed)
                return 0;
        if (search->tried++ == TRIES_MAX)
                return 1;
        enum heartbeat_fault fault = read_record(search->poll, pid, &record);
        /* An exited process may stay in the tree for long as a zombie. */
        if (fault == HEARTBEAT_FAULT_NONE && !proc_is_alive(pid, record.heartbeat.start))
                fault = HEARTBEAT_FAULT_START;
        if (fault != HEARTBEAT_FAULT_NONE && fault != HEARTBEAT_FAULT_MISSING)
                search->fault = fault;
        search->file->met |=
                fault != HEARTBEAT_FAULT_MISSING || status_file_is_begun(search->poll->dir_fd, pid);
        if (fault != HEARTBEAT_FAULT_NONE || !is_new(search->file, pid, &record.heartbeat)) {
                heartbeat_record_clear(&record);
                return 0;
        }
        search->pid = pid;
        search->record = record;
        return 1;
}

/* Finds the process of the worker that writes heartbeats. */
static enum heartbeat_fault seek(const struct status_poll *poll, struct status_file *file,
                                 const struct worker *worker, pid_t *ret_pid, struct heartbeat_record *ret)
{
        struct tree_search search = {.poll = poll, .file = file};
        int r = proc_tree_each(worker->process.pid, try_process, &search);

        if (search.pid != 0) {
                *file = (struct status_file){.searched = true};
                *ret_pid = search.pid;
                *ret = search.record;
                return HEARTBEAT_FAULT_NONE;
        }
        bool met = file->met, whole = r == 0;
        file->passed = r > 0 ? file->passed + TRIES_MAX : 0;
        file->searched |= whole;
        file->absent = whole && !met;
        file->met = met && !whole;
        if (search.fault != HEARTBEAT_FAULT_NONE)
                return search.fault;
        bool begun = met || (!whole && worker->heartbeat.fault == HEARTBEAT_FAULT_BEGUN);
        return begun && worker->fleet->settings->traits->shim ? HEARTBEAT_FAULT_BEGUN
                                                              : HEARTBEAT_FAULT_MISSING;
}

/* Returns why the heartbeat does not count, or HEARTBEAT_FAULT_NONE. */
static enum heartbeat_fault read_heartbeat(struct status_poll *poll, struct status_file *file,
                                           const struct worker *worker, pid_t *ret_pid,
                                           struct heartbeat_record *ret)
{
        if (poll_open(poll, worker) < 0) {
                file->absent = false;
                return HEARTBEAT_FAULT_PLACE;
        }
        if (worker->process.heartbeat_pid == 0 || worker->process.shimless)
                return seek(poll, file, worker, ret_pid, ret);
        enum heartbeat_fault fault = read_record(poll, worker->process.heartbeat_pid, ret);
        if (fault == HEARTBEAT_FAULT_NONE && ret->heartbeat.start != worker->process.heartbeat_start) {
                heartbeat_record_clear(ret);
                return HEARTBEAT_FAULT_START;
        }
        *ret_pid = worker->process.heartbeat_pid;
        return fault;
}

/* Reads the heartbeat of the worker. Returns true with *ret, to be freed by heartbeat_record_clear(), and the
 * pid of its process in *ret_pid. Returns false if no heartbeat counts, and observes why. */
static bool status_files_read(struct status_poll *poll, struct status_file *file, struct worker *worker,
                              pid_t *ret_pid, struct heartbeat_record *ret)
{
        enum heartbeat_fault fault = read_heartbeat(poll, file, worker, ret_pid, ret);
        /* Before the first heartbeat, a missing file is normal. A missing directory is normal, too, until the
         * launch has made it and reports that. */
        bool awaited = (worker->process.heartbeat_pid == 0 || worker->process.shimless) &&
                       (fault == HEARTBEAT_FAULT_MISSING ||
                        (fault == HEARTBEAT_FAULT_PLACE && poll->dir_fd == -ENOENT &&
                         worker->handle->report_fd >= 0));

        observe_heartbeat_fault(worker, awaited ? HEARTBEAT_FAULT_NONE : fault);
        return fault == HEARTBEAT_FAULT_NONE;
}

/* Removes the heartbeat file of the worker. Call when its process has exited. */
static void status_files_drop(const struct worker *worker)
{
        struct status_poll poll = STATUS_POLL_INIT;

        if (!is_read(worker->fleet->settings))
                return;
        if (worker->process.heartbeat_pid != 0 && poll_open(&poll, worker) >= 0)
                status_file_remove(poll.dir_fd, worker->process.heartbeat_pid);
        status_poll_end(&poll);
}

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
