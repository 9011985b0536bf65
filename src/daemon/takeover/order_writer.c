/* SPDX-License-Identifier: MIT */
/* Writes what operators ordered; see the header. */
#include "daemon/takeover/order_writer.h"
#include "base/fd.h"
#include "base/hash.h"
#include "continuity/state.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/signal.h"
#include "model/world.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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
        struct order_writer *writer =
                (struct order_writer *)((char *)child - offsetof(struct order_writer, child));
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
        _cleanup_close_ int input_fd = memfd_create("sqmgr-orders", MFD_CLOEXEC);

        if (input_fd < 0)
                return -errno;
        int r = fd_write_all(input_fd, bytes, size);
        if (r >= 0 && lseek(input_fd, 0, SEEK_SET) < 0)
                r = -errno;
        if (r >= 0)
                r = launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->input_fd = input_fd;
        return launcher_start(TAKE_PTR(job));
}

static int pack(const struct order_writer *writer, usec_t now, uint8_t **ret, size_t *ret_size)
{
        const struct state_source source = {
                .world = writer->runtime->world, .boot_id = writer->boot_id, .now = now, .orders = true};

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
