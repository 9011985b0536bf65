/* SPDX-License-Identifier: MIT */
/* Delivers signals by pidfd or through the server; see the header.
 *
 * How Sidekiq reads signals from Redis, the same in versions 5.0.0 to 8.1.7 (lib/sidekiq/launcher.rb): each
 * heartbeat, every 5 s before 7.0 and every 10 s since, ends with RPOP IDENTITY-signals in the MULTI that
 * writes the heartbeat, and then the process sends itself the one signal that it got. So the signals arrive
 * in the order in which they were sent, one for each heartbeat, and that heartbeat still shows the state
 * before the signal. If the reply to that MULTI is lost, so is the signal: it has to be sent again. Twice is
 * harmless: quiet() of manager and launcher return once they are done; and a TERM during the shutdown ends up
 * in a pipe that the main thread no longer reads (lib/sidekiq/cli.rb). Heartbeats continue until the process
 * exits. A process with capsules (7.0) has one identity. An embedded process (7.0) takes signals off its
 * list and, from 7.0.9 on at the latest, ignores them: it is no worker of sqmgr. */
#include "daemon/workers/delivery.h"
#include "frameworks/heartbeats.h"
#include "io/signal.h"
#include "observe/observe.h"

int delivery_send(struct worker *worker, int signo, bool only_caught)
{
        const struct process *process = worker->handle;
        const struct proc *beating = process_beating(process);

        if (!beating)
                return ESRCH;
        if (!worker->process.remote) {
                int r = only_caught ? proc_catches_signal(beating, signo) : 1;

                if (r == 0)
                        return ENOTSUP;
                if (r > 0)
                        r = signal_process(beating, signo);
                if (r != -EPERM || !worker->fleet->settings->traits->signals_by_server)
                        return -r;
                observe_remote(worker);
        }
        return -heartbeats_signal(process->slot, signo);
}
