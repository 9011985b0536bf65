/* SPDX-License-Identifier: MIT */
/* Writes what the next sqmgr has to know. */
#include "daemon/supervisor.h"
#include "io/log.h"
#include <string.h>

static const char *identity_of(const struct worker *worker, void *userdata)
{
        const struct process *process = worker->process;

        (void)userdata;
        return process != NULL && process->slot != NULL ? beats_identity(process->slot) : NULL;
}

bool keep(struct supervisor *supervisor, const struct plan *starting, usec_t now)
{
        const char *path = supervisor->settings->state_file;
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t size;

        /* The old state still tells of what is being looked for. */
        if (supervisor->adoption != NULL)
                return false;
        const struct state_source source = {
                .world = supervisor->world,
                .dead = supervisor->rescues,
                .starting = starting,
                .boot_id = supervisor->boot_id,
                .identity = identity_of,
                .now = now,
        };
        int r = state_pack(&source, &bytes, &size);
        if (r == 0)
                r = statefile_write(path, bytes, size);
        if (r == supervisor->save_error)
                return r == 0;
        supervisor->save_error = r;
        if (r < 0)
                log_error("cannot write the state file '%s': %s, a new sqmgr would not know all workers",
                          path, strerror(-r));
        else
                log_info("the state file '%s' is written again", path);
        return r == 0;
}
