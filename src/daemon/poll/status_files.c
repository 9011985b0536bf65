/* SPDX-License-Identifier: MIT */
/* Heartbeats in files; see the header. Files are named by pid. Only the names of the worker's own tree are
 * tried; no directory is listed. */
#include "daemon/poll/status_files.h"
#include "daemon/workers/process.h"
#include "frameworks/table.h"
#include "model/fleet.h"
#include "model/world.h"
#include "observe/observe_identity.h"
#include <string.h>

/* Maximum of processes tried per worker and poll. */
#define TRIES_MAX 64

static bool is_read(const struct fleet_settings *settings)
{
        return fleet_settings_heartbeat(settings) == HEARTBEAT_FILE;
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

void status_poll_end(struct status_poll *poll)
{
        if (poll->dir_fd >= 0)
                close_fd(poll->dir_fd);
        *poll = STATUS_POLL_INIT;
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

bool status_files_read(struct status_poll *poll, struct status_file *file, struct worker *worker,
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

void status_files_drop(const struct worker *worker)
{
        struct status_poll poll = STATUS_POLL_INIT;

        if (!is_read(worker->fleet->settings))
                return;
        if (worker->process.heartbeat_pid != 0 && poll_open(&poll, worker) >= 0)
                status_file_remove(poll.dir_fd, worker->process.heartbeat_pid);
        status_poll_end(&poll);
}
