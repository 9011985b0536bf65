/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left, and writes it for the next. */
#include "daemon/takeover/persist.h"
#include "base/fd.h"
#include "continuity/state.h"
#include "daemon/workers/process.h"
#include "daemon/workers/templates.h"
#include "io/log.h"
#include "model/world.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *identity_of(const struct worker *worker, void *userdata)
{
        if (worker->process.heartbeat_pid == 0)
                return process_hosts(worker->handle, userdata);
        return process_identity(worker->handle);
}

bool persist_save(struct persist *persist, usec_t now)
{
        const struct runtime *runtime = persist->runtime;
        const char *path = runtime->world->settings->state_file;
        _cleanup_free_ uint8_t *bytes = NULL;
        char hosts[MATCH_HOSTS_TEXT_MAX];
        size_t size;

        const struct state_source source = {
                .world = runtime->world,
                .dead = runtime->rescues,
                .boot_id = persist->boot_id,
                .identity = identity_of,
                .userdata = hosts,
                .features = subsystems_pack,
                .features_userdata = &persist->runtime->subsystems,
                .now = now,
        };
        int r = state_pack(&source, &bytes, &size);
        if (r == 0)
                r = statefile_write(path, bytes, size);
        templates_begin(runtime);
        order_writer_save(&persist->orders, now);
        if (r == persist->error)
                return r == 0;
        persist->error = r;
        if (r < 0)
                log_error("cannot write the state file '%s': %s. If sqmgr exits now, everything learned "
                          "since the last write is lost",
                          path, strerror(-r));
        else
                log_info("the state file '%s' can be written again", path);
        return r == 0;
}

void persist_save_now(struct persist *persist, usec_t now)
{
        persist->runtime->wakeup->pass.unsaved = !persist_save(persist, now);
}

/* Converts the result of state_unpack(). */
static int file_outcome(int r, const char *path, char *why, size_t why_size)
{
        static const char *const faults[] = {
                [STATE_TRUNCATED] = "is truncated",
                [STATE_GARBLED] = "is damaged, or is not a state file of sqmgr",
                [STATE_NEWER] = "was written by a later version of sqmgr",
        };

        if (r < 0)
                return r;
        if (r == STATE_READ)
                return STATEFILE_READ;
        snprintf(why, why_size, "'%s' %s", path, faults[r]);
        return STATEFILE_LOST;
}

int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size)
{
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        int r = statefile_read(path, &text, &length, why, why_size);
        if (r != STATEFILE_READ)
                return r;
        r = state_unpack((const uint8_t *)text, length, boot_id, now, ret);
        return file_outcome(r, path, why, why_size);
}

const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX])
{
        ssize_t length = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id, BOOT_ID_MAX);

        boot_id[length < 0 ? 0 : strcspn(boot_id, "\n")] = '\0';
        return boot_id;
}
