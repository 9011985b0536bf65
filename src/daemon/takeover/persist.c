/* SPDX-License-Identifier: MIT */
/* Writes the state for the next sqmgr. */
#include "daemon/takeover/persist.h"
#include "continuity/state.h"
#include "daemon/workers/process.h"
#include "daemon/workers/templates.h"
#include "io/log.h"
#include "model/world.h"
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
        int r = persist->locked_out ? -EBUSY : state_pack(&source, &bytes, &size);
        if (r == 0)
                r = statefile_write(path, bytes, size);
        templates_begin(runtime);
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
