/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left, and writes it for the next. */
#include "daemon/takeover/persist.h"
#include "base/fd.h"
#include "base/hash.h"
#include "continuity/state.h"
#include "daemon/workers/process.h"
#include "daemon/workers/templates.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/signal.h"
#include "model/world.h"
#include <fcntl.h>
#include <stdio.h>

static const char *identity_of(const struct worker *worker, void *userdata)
{
        if (worker->process.heartbeat_pid == 0)
                return process_hosts(worker->handle, userdata);
        return process_identity(worker->handle);
}

/* A disk that takes longer does not respond. */
#define LATE_USEC (10 * USEC_PER_SEC)

/* The exit status of sqmgr-start if it cannot run. */
#define STATUS_NOT_RUN 127

const char *order_writer_why(const struct order_writer *writer)
{
        if (writer->error == 0)
                return NULL;
        return writer->error == -ETIMEDOUT ? "the disk does not respond"
                                           : strerrordesc_np(-writer->error) ?: "unknown error";
}

static void set_error(struct order_writer *writer, int error, usec_t now)
{
        if (error == writer->error)
                return;
        if (writer->error == 0)
                writer->since = now;
        writer->error = error;
        if (error < 0)
                log_error("cannot write the orders to '%s': %s. A reboot would undo the last orders",
                          writer->path, order_writer_why(writer));
        else
                log_info("the orders can be written to '%s' again", writer->path);
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct order_writer *writer = CHILD_OWNER(child, struct order_writer);
        usec_t now = clock_now(CLOCK_MONOTONIC);
        /* By order_writer_kill(), as a rule: tried again at the next poll. */
        if (info->si_code == CLD_KILLED && info->si_status == SIGKILL) {
                writer->hash = 0;
                return;
        }
        int error = info->si_code != CLD_EXITED         ? -EIO
                    : info->si_status == STATUS_NOT_RUN ? -ENOEXEC
                                                        : -info->si_status;

        set_error(writer, error, now);
        order_writer_save(writer, now);
}

/* Returns the pid or -errno. */
static pid_t start_process(const struct order_writer *writer, const uint8_t *bytes, size_t size)
{
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char *argv[] = {writer->path, writer->makes_folder ? (char *)"make" : NULL, NULL};
        const struct launch_plan plan = {.kind = LAUNCH_ORDERS, .fleet = {.argv = argv}};
        _cleanup_close_ int input_fd = fd_memory("sqmgr-orders", bytes, size);
        int r = input_fd < 0 ? input_fd : launch_job_new(&plan, &job);

        if (r < 0)
                return r;
        job->input_fd = input_fd;
        return launcher_start(TAKE_PTR(job));
}

static int pack(const struct order_writer *writer, usec_t now, uint8_t **ret, size_t *ret_size)
{
        const struct state_source source = {.world = writer->runtime->world,
                                            .boot_id = writer->runtime->boot_id,
                                            .now = now,
                                            .orders = true};

        return state_pack(&source, ret, ret_size);
}

void order_writer_save(struct order_writer *writer, usec_t now)
{
        _cleanup_free_ uint8_t *timeless = NULL, *bytes = NULL;
        size_t size;

        if (!writer->path || writer->child.pid != 0)
                return;
        /* Packed at this time, all past times look the same: what only grows older is not written again. */
        int r = pack(writer, 0, &timeless, &size);
        uint64_t hash = r < 0 ? 0 : hash_bytes(HASH_INIT, timeless, size);
        if (r >= 0 && hash == writer->hash)
                return;
        if (r >= 0)
                r = pack(writer, now, &bytes, &size);
        pid_t pid = r < 0 ? r : start_process(writer, bytes, size);
        if (pid < 0) {
                set_error(writer, pid, now);
                return;
        }
        writer->hash = hash;
        writer->started_at = now;
        writer->child = (struct child){.pid = pid, .exited = on_exited};
        children_add(&writer->runtime->children, &writer->child);
}

void order_writer_poll(struct order_writer *writer, usec_t now)
{
        bool late = writer->child.pid != 0 && now >= usec_add(writer->started_at, LATE_USEC);

        if (late && writer->error == 0)
                set_error(writer, -ETIMEDOUT, now);
        if (writer->child.pid == 0 && writer->error < 0)
                writer->hash = 0;
        order_writer_save(writer, now);
}

static void leave_process(struct order_writer *writer)
{
        if (writer->child.pid != 0)
                children_remove(&writer->runtime->children, &writer->child);
        writer->child.pid = 0;
}

void order_writer_kill(const struct order_writer *writer)
{
        if (writer->child.pid != 0)
                (void)signal_child(writer->child.pid, SIGKILL);
}

void order_writer_finish(struct order_writer *writer, usec_t now)
{
        const pid_t earlier = writer->child.pid;

        leave_process(writer);
        order_writer_save(writer, now);
        /* Both wait for the same disk, and older orders must not be the last. */
        if (earlier != 0 && writer->child.pid != 0)
                (void)signal_child(earlier, SIGKILL);
}

void order_writer_end(struct order_writer *writer)
{
        leave_process(writer);
        free(writer->path);
        writer->path = NULL;
}

bool persist_save(struct runtime *runtime, usec_t now)
{
        const char *path = runtime->world->settings->state_file;
        _cleanup_free_ uint8_t *bytes = NULL;
        char hosts[MATCH_HOSTS_TEXT_MAX];
        size_t size;

        const struct state_source source = {
                .world = runtime->world,
                .dead = runtime->rescues,
                .boot_id = runtime->boot_id,
                .identity = identity_of,
                .userdata = hosts,
                .features = subsystems_pack,
                .features_userdata = &runtime->subsystems,
                .now = now,
        };
        int r = state_pack(&source, &bytes, &size);
        if (r == 0)
                r = statefile_write(path, bytes, size);
        templates_begin(runtime);
        order_writer_save(&runtime->orders, now);
        if (r == runtime->save_error)
                return r == 0;
        runtime->save_error = r;
        if (r < 0)
                log_error("cannot write the state file '%s': %s. If sqmgr exits now, everything learned "
                          "since the last write is lost",
                          path, strerror(-r));
        else
                log_info("the state file '%s' can be written again", path);
        return r == 0;
}

void persist_save_now(struct runtime *runtime, usec_t now)
{
        runtime->wakeup->pass.unsaved = !persist_save(runtime, now);
}

int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size)
{
        static const char *const faults[] = {
                [STATE_TRUNCATED] = "is truncated",
                [STATE_GARBLED] = "is damaged, or is not a state file of sqmgr",
                [STATE_NEWER] = "was written by a later version of sqmgr",
        };
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        int r = statefile_read(path, &text, &length, why, why_size);
        if (r != STATEFILE_READ)
                return r;
        r = state_unpack((const uint8_t *)text, length, boot_id, now, ret);
        if (r < 0 || r == STATE_READ)
                return r < 0 ? r : STATEFILE_READ;
        snprintf(why, why_size, "'%s' %s", path, faults[r]);
        return STATEFILE_LOST;
}

const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX])
{
        ssize_t length = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id, BOOT_ID_MAX);

        boot_id[length < 0 ? 0 : strcspn(boot_id, "\n")] = '\0';
        return boot_id;
}

#define PROCS_MAX_BYTES ((size_t)1 << 20)
/* No chain of parents is longer in practice. */
#define ANCESTORS_MAX 128

/* A process that cannot be read has exited, and is not unknown. */
static bool is_unknown(const struct world *world, pid_t pid, uint64_t before, uint64_t *ret_start)
{
        pid_t above = pid;

        for (unsigned i = 0; i < ANCESTORS_MAX && above > 1; i++) {
                _cleanup_proc_ struct proc *proc = NULL;
                struct proc_place place;

                /* The session is 0 if it was begun outside of our pid namespace. */
                if (proc_open(above, &proc) < 0 || proc_has_exited(proc) || proc_place(proc, &place) < 0 ||
                    world_has_process(world, above, 0) || world_has_process(world, place.session, 0))
                        return false;
                if (above == pid)
                        *ret_start = place.start_time;
                if (*ret_start >= before)
                        return false;
                above = place.parent;
        }
        return true;
}

void unknown_read(const char *procs, uint64_t before, const struct world *world, struct unknown *ret)
{
        _cleanup_close_ int fd = open(procs, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        size_t length;
        char *end;

        ret->n = 0;
        if (fd < 0 || fd_read_whole(fd, PROCS_MAX_BYTES, &text, &length) < 0)
                return;
        for (char *at = text; ret->n < UNKNOWN_MAX; at = end) {
                struct unknown_process *process = &ret->list[ret->n];

                process->pid = (pid_t)strtol(at, &end, 10);
                if (end == at)
                        break;
                ret->n += process->pid > 1 && is_unknown(world, process->pid, before, &process->start);
        }
}

void unknown_find(const struct world *world, struct unknown *ret)
{
        /* The mount points of version 2: alone, and beside version 1. */
        static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        _cleanup_proc_ struct proc *self = NULL;
        char group[512], path[sizeof(group) + 64];

        if (procfile_cgroup("/proc", NULL, group, sizeof(group)) < 0 || proc_open(getpid(), &self) < 0)
                return;
        for (size_t i = 0; ret->n == 0 && i < ELEMENTSOF(roots); i++) {
                snprintf(path, sizeof(path), "%s%s/cgroup.procs", roots[i], group);
                unknown_read(path, proc_start_time(self), world, ret);
        }
}
