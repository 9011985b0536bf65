/* SPDX-License-Identifier: MIT */
/* Workers that signals cannot reach. */
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "sim.h"
#include <signal.h>

#define SEC USEC_PER_SEC
/* The list of signals in Redis expires. */
#define EXPIRY_USEC (60 * SEC)

/* Chooses whether the workers of this fleet are out of reach. */
static bool remote_is_fleet(const struct sim *sim, unsigned fleet)
{
        struct rng rng = rng_fork(sim->seed, 5000000 + fleet);

        return sim->fleets[fleet].settings[0].traits->signals_by_server && rng_chance(&rng, 300);
}

void remote_found(const struct sim *sim, struct process *process)
{
        /* A wrapper is no client: the process below it is in reach. */
        process->remote.is = !process->wrapped && remote_is_fleet(sim, process->fleet);
        if (process->remote.is)
                observe_remote(process->worker);
}

bool remote_signal(struct sim *sim, const struct worker *worker, int signo, bool forced, int *ret_error)
{
        struct process *process = worker->handle;

        if (!worker->process.remote || signo == SIGKILL)
                return false;
        if (!sim->fleets[process->fleet].link.up) {
                /* The client passes the signal on. */
                *ret_error = ENOTCONN;
                return !forced;
        }
        *ret_error = 0;
        /* The connection may be lost before the signal is written. */
        if (!redis_answers(sim) || process->remote.n_signals == REMOTE_SIGNALS_MAX ||
            rng_chance(&sim->rng, 50))
                return true;
        process->remote.signals[process->remote.n_signals++] = signo;
        process->remote.expire_at = sim->now + EXPIRY_USEC;
        return true;
}

void remote_heartbeat(struct sim *sim, struct process *process)
{
        if (sim->now >= process->remote.expire_at)
                process->remote.n_signals = 0;
        if (process->remote.n_signals == 0 || !redis_answers(sim))
                return;
        int signo = process->remote.signals[0];
        memmove(process->remote.signals, process->remote.signals + 1,
                --process->remote.n_signals * sizeof(*process->remote.signals));
        /* The reply to the heartbeat may be lost, and the signal with it. */
        if (!rng_chance(&process->rng, 30))
                behavior_signal(sim, process, signo);
}

void remote_polled(struct sim *sim, const struct worker *worker, unsigned poll_items)
{
        if (worker->process.remote && (poll_items & ~(POLL_HEARTBEAT | POLL_WORK_LIST)) != 0)
                violate(sim, "P5", "%s is out of reach, and /proc of another process is read",
                        process_name(sim, worker->handle));
}

bool remote_repeats(struct sim *sim, const struct action *action, struct process *process)
{
        const struct worker *worker = action->worker;

        if (!worker->process.remote || worker->state != WORKER_STOPPING || action->kind != ACTION_STOP)
                return false;
        if (worker->orders.signal_error == 0 && process->remote.repeated_at != 0 &&
            sim->now < process->remote.repeated_at + worker->fleet->settings->traits->sent_usec)
                violate(sim, "flapping", "%s is asked to exit again and again", process_name(sim, process));
        if (!sim->fleets[process->fleet].link.up)
                violate(sim, "P5", "%s is asked to exit again with Redis away", process_name(sim, process));
        process->remote.repeated_at = sim->now;
        return true;
}
