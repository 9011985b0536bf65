/* SPDX-License-Identifier: MIT */
/* Collects the facts for advice/problem_rules.h; see the header. */
#include "daemon/api/problems.h"
#include "base/socket_path.h"
#include "daemon/api/server.h"
#include "daemon/runtime/links.h"
#include "daemon/workers/execute.h"
#include "io/host.h"
#include "model/counts.h"
#include "model/world.h"
#include <string.h>
#include <sys/resource.h>

/* Descriptors of a worker: its processes, their memory, and its log. */
#define FILES_OF_WORKER 5
/* Other descriptors of sqmgr: Redis, /proc, event sources, and files that are open for a moment. */
#define FILES_APART 64

uint64_t problems_files_needed(const struct world *world)
{
        uint64_t needed = FILES_APART + SERVER_CONNECTIONS_MAX;

        WORLD_FOREACH_FLEET(world, fleet)
                needed += (uint64_t)FILES_OF_WORKER * fleet_max_processes(fleet);
        return needed;
}

/* Returns what sqmgrctl needs as option -s; NULL: nothing. */
static const char *socket_option(const struct world *world)
{
        const char *socket = world->settings->socket;

        return !socket || strcmp(socket, SOCKET_PATH_SYSTEM) == 0 ? NULL : socket;
}

/* Returns a fleet whose host name variable is set in our environment, which workers inherit: rather one whose
 * heartbeats cannot be matched because of it; or NULL. */
static const struct fleet_settings *renamed(const struct settings *settings)
{
        const struct fleet_settings *found = NULL;

        FOREACH_POINTER(fleet, settings->fleets, settings->n_fleets)
                if (fleet->traits->host_variable && getenv(fleet->traits->host_variable) &&
                    (!found || !fleet->namespaced))
                        found = fleet;
        return found;
}

static size_t collect_redis(const struct links *links, struct problem_redis list[static PROBLEM_REDIS_MAX])
{
        size_t n = MIN((size_t)PROBLEM_REDIS_MAX, links->n);

        for (size_t i = 0; i < n; i++) {
                const struct link *link = links->list[i];
                const struct reader *reader = link->reader;

                list[i] = (struct problem_redis){.database = link_is_database(link) ? link_noun(link) : NULL,
                                                 .url = reader_url_text(reader),
                                                 .state = reader_state(reader),
                                                 .link = link,
                                                 .error = reader_error(reader)};
        }
        return n;
}

/* Lists the unknown processes that still run. */
static size_t collect_unknown(const struct unknown *unknown, struct problem_process list[static UNKNOWN_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < unknown->n; i++) {
                _cleanup_proc_ struct proc *proc = NULL;
                struct proc_place place;

                if (proc_find(unknown->list[i].pid, unknown->list[i].start, &proc) < 0 || !proc ||
                    proc_has_exited(proc) || proc_place(proc, &place) < 0)
                        continue;
                list[n] = (struct problem_process){.pid = unknown->list[i].pid,
                                                   .leads = place.session == unknown->list[i].pid};
                memcpy(list[n++].command, place.comm, sizeof(place.comm));
        }
        return n;
}

void problems_collect(const struct problem_source *source, struct problem_storage *ret, usec_t now)
{
        const struct persist *persist = source->persist;
        const struct runtime *runtime = persist->runtime;
        struct rlimit limit;

        ret->facts = (struct problem_facts){
                .redis = ret->redis,
                .n_redis = collect_redis(&runtime->links, ret->redis),
                .unknown = ret->unknown,
                .n_unknown = collect_unknown(&persist->unknown, ret->unknown),
                .is_root = geteuid() == 0,
                .renamed = renamed(runtime->world->settings),
                .files_needed = problems_files_needed(runtime->world),
                .save_error = -persist->error,
                .has_readers = source->readers->may_connect,
                .socket = socket_option(runtime->world),
                .config_path = source->config->config_path,
                .refused = config_check_refused(source->config, now),
                .refused_since = source->config->refused_at,
                .stop_signal = execute_stop_signal,
                .features = subsystems_problems,
                .userdata = &runtime->subsystems,
        };
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                ret->facts.files_limit = limit.rlim_cur;
        (void)proc_total_memory_bytes(runtime->host, &ret->facts.memory_bytes);
}
