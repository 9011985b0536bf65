/* SPDX-License-Identifier: MIT */
/* What a command leaves behind that goes to the background. */
#include "daemon/workers/heir.h"
#include "daemon/runtime/env_marker.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/clock.h"
#include "model/names.h"
#include <string.h>
#include <unistd.h>

/* Processes that are looked at in one go: anybody's worker may leave thousands behind. */
#define SLICE 32
/* In the middle of execve() a process shows no environment: it is looked at again, for 2 s in all, however
 * many there are that never show one, and a few times at least. */
#define VEILED_USEC   (10 * USEC_PER_MSEC)
#define VEILED_IN_ALL (2 * USEC_PER_SEC)
#define VEILED_TRIES  5

struct heirs {
        const struct runtime *runtime;
        struct worker *worker;
        uid_t uid;
        bool failed;
        heir_fn done;
        sd_event_source *timer;
        pid_t *orphans; /* the veiled among those that were looked at, and the others behind at */
        size_t n_veiled, at, n_orphans;
        unsigned tries;
        usec_t began_at;
        struct proc *heir; /* the likeliest so far; NULL: none */
        char environment[ENV_MARKERS_MAX_BYTES];
};

struct heirs *heirs_free(struct heirs *heirs)
{
        if (!heirs)
                return NULL;
        sd_event_source_disable_unref(heirs->timer);
        proc_close(heirs->heir);
        free(heirs->orphans);
        free(heirs);
        return NULL;
}

static bool is_of_this_start(const struct heirs *heirs, const struct markers *markers)
{
        const struct worker *worker = heirs->worker;

        return markers->instance && strcmp(markers->instance, heirs->runtime->instance) == 0 && markers->worker &&
               strcmp(markers->worker, WORKER_ID(worker)) == 0 && markers->started_at == worker->spawned_at;
}

/* Returns whether it must be looked at again. */
static bool look_at(struct heirs *heirs, pid_t pid)
{
        const struct worker *worker = heirs->worker;
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;
        struct markers markers;
        uid_t uid;

        if (proc_open(pid, &proc) < 0 || proc_has_exited(proc) ||
            proc_start_time(proc) < worker->process.start || proc_uid(proc, &uid) < 0 ||
            (uid != heirs->uid && heirs->uid != 0) || proc_place(proc, &place) < 0 ||
            place.parent != getpid())
                return false;
        ssize_t length = env_markers_read(proc, heirs->environment, &markers);
        if (length == 0)
                return !proc_has_exited(proc);
        if (length < 0 || !is_of_this_start(heirs, &markers))
                return false;
        bool booted = proc_evidence_has_booted(proc, framework_of(worker->fleet->settings->traits)) > 0;
        if (!booted && (heirs->failed || heirs->heir))
                return false;
        proc_close(heirs->heir);
        heirs->heir = TAKE_PTR(proc);
        /* There will be no likelier one. */
        if (booted)
                heirs->n_veiled = heirs->n_orphans = 0;
        return false;
}

/* Looks at some. Returns whether all have been. */
static bool look_at_some(struct heirs *heirs)
{
        for (unsigned n = 0; n < SLICE && heirs->at < heirs->n_orphans; n++) {
                pid_t pid = heirs->orphans[heirs->at++];

                if (look_at(heirs, pid))
                        heirs->orphans[heirs->n_veiled++] = pid;
        }
        return heirs->at >= heirs->n_orphans;
}

static bool may_be_unveiled(const struct heirs *heirs)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        return heirs->n_veiled > 0 &&
               (heirs->tries < VEILED_TRIES || now < usec_add(heirs->began_at, VEILED_IN_ALL));
}

static int on_timer(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        struct heirs *heirs = userdata;
        bool all = look_at_some(heirs);

        if (!all || (!heirs->heir && may_be_unveiled(heirs))) {
                if (all) {
                        heirs->n_orphans = heirs->n_veiled;
                        heirs->at = heirs->n_veiled = 0;
                        heirs->tries++;
                }
                (void)sd_event_source_set_time(source,
                                               usec_add(clock_now(CLOCK_MONOTONIC), all ? VEILED_USEC : 0));
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                return 0;
        }
        struct worker *worker = heirs->worker;
        struct proc *heir = TAKE_PTR(heirs->heir);
        heir_fn done = heirs->done;
        heirs_free(heirs);
        done(worker, heir);
        return 0;
}

int heirs_seek(struct runtime *runtime, struct worker *worker, uid_t uid, bool failed, heir_fn done,
               struct heirs **ret)
{
        struct heirs *heirs = calloc(1, sizeof(*heirs));

        if (!heirs)
                return -ENOMEM;
        heirs->runtime = runtime;
        heirs->worker = worker;
        heirs->uid = uid;
        heirs->failed = failed;
        heirs->done = done;
        heirs->began_at = clock_now(CLOCK_MONOTONIC);
        int r = proc_children(getpid(), &heirs->orphans, &heirs->n_orphans);
        if (r >= 0)
                r = sd_event_add_time(runtime->event, &heirs->timer, CLOCK_MONOTONIC, 0, 0, on_timer, heirs);
        *ret = r < 0 ? heirs_free(heirs) : heirs;
        return MIN(r, 0);
}
