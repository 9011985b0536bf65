/* SPDX-License-Identifier: MIT */
/* Sentences about workers, fleets and the world; see the header. */
#include "model/describe.h"
#include "base/parse.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/world.h"

#define OLDEST_MAX 64

const char *worker_reason_text(const struct worker *worker)
{
        return reason_text(worker->reason != REASON_NONE ? worker->reason : worker->verdict.retire_reason);
}

static const char *ago_text(usec_t at, const struct orderer *by, usec_t now,
                            char text[static FLEET_ORDERED_MAX])
{
        usec_t ago = usec_sub(now, at);

        snprintf(text, FLEET_ORDERED_MAX, "%s ago by %s", FORMAT_DURATION(ago - ago % USEC_PER_SEC),
                 ORDERER_TEXT(by));
        return text;
}

const char *fleet_ordered_text(const struct fleet *fleet, usec_t now, char text[static FLEET_ORDERED_MAX])
{
        text[0] = '\0';
        if (fleet->settings->removed || fleet->order == ORDER_RUN || fleet->order_at == 0)
                return text;
        return ago_text(fleet->order_at, &fleet->order_by, now, text);
}

const char *fleet_scaled_text(const struct fleet *fleet, usec_t now, char text[static FLEET_SCALED_MAX])
{
        char ago[FLEET_ORDERED_MAX];

        text[0] = '\0';
        if (!fleet_is_scaled(fleet))
                return text;
        if (fleet->scale_at == 0)
                snprintf(text, FLEET_SCALED_MAX, "scaled");
        else
                snprintf(text, FLEET_SCALED_MAX, "scaled %s",
                         ago_text(fleet->scale_at, &fleet->scale_by, now, ago));
        return text;
}

/* The remaining time in whole seconds, at least one while the time has not come. */
static usec_t left_usec(usec_t at, usec_t now)
{
        usec_t left = usec_add(usec_sub(at, now), USEC_PER_SEC - 1);

        return left - left % USEC_PER_SEC;
}

/* The text after the count of running jobs: ", oldest 11min", or "" if not known. */
static const char *oldest_text(const struct worker *worker, usec_t now, char text[static OLDEST_MAX])
{
        usec_t oldest = worker_oldest_job_usec(worker, now);

        text[0] = '\0';
        if (oldest == 0)
                return text;
        /* The start of a job is known in whole seconds only. */
        snprintf(text, OLDEST_MAX, worker->heartbeat.busy == 1 ? ", started %s ago" : ", oldest %s",
                 FORMAT_DURATION(oldest - oldest % USEC_PER_SEC));
        return text;
}

static const char *jobs_text(const struct worker *worker, usec_t now, char *text, size_t size)
{
        struct cut_off cut = worker_cut_off(worker);
        char oldest[OLDEST_MAX];

        oldest_text(worker, now, oldest);
        if (worker_interrupts_next(worker))
                snprintf(text, size, "exits after 1 more heartbeat: its %u running job%s interruptible",
                         worker->heartbeat.busy, worker->heartbeat.busy == 1 ? " is" : "s are");
        else if (cut.word == CUT_ORDER)
                snprintf(text, size, "waits for %u running job%s to finish%s", worker->heartbeat.busy,
                         plural(worker->heartbeat.busy), oldest);
        else
                snprintf(text, size, "waits for %u running job%s%s, cut off in %s (%s %s)",
                         worker->heartbeat.busy, plural(worker->heartbeat.busy), oldest,
                         FORMAT_DURATION(left_usec(cut.at, now)), cut_word_name(cut.word),
                         FORMAT_DURATION(cut.allowed));
        return text;
}

static const char *first_heartbeat_text(const struct worker *worker, usec_t now, char *text, size_t size)
{
        usec_t at = worker_boot_deadline(worker);
        const char *what = fleet_settings_write_heartbeats(worker->fleet->settings)
                                   ? "waits for its first heartbeat"
                                   : "waits until its command runs";
        const char *fault = heartbeat_fault_text(worker->heartbeat.fault),
                   *colon = fault[0] != '\0' ? ": " : "";
        char until[128] = "";

        if (worker->state == WORKER_STARTING && at > now)
                snprintf(until, sizeof(until), "; times out in %s (boot_timeout %s)",
                         FORMAT_DURATION(left_usec(at, now)),
                         FORMAT_DURATION(worker->fleet->settings->boot_timeout));
        snprintf(text, size, "%s%s%s%s", what, colon, fault, until);
        return text;
}

/* The number of further idle heartbeats that are needed, and how long they may take. */
#define HEARTBEATS_MAX 96

static void heartbeats_text(const struct worker *worker, unsigned count, char text[static HEARTBEATS_MAX])
{
        usec_t most = count * worker->fleet->settings->traits->sent_usec;
        char within[FORMAT_MAX + 16] = "";

        if (most > 0)
                snprintf(within, sizeof(within), " (up to %s)", FORMAT_DURATION(most));
        snprintf(text, HEARTBEATS_MAX, "%u more idle heartbeat%s%s", count, plural(count), within);
}

/* For a worker that finishes its jobs before it exits, the drain deadline is the request to exit. */
static const char *drain_text(const struct worker *worker, const struct cut_off *cut, usec_t now, char *text,
                              size_t size)
{
        const struct fleet_settings *settings = worker->fleet->settings;
        usec_t from = settings->stop_bounded ? worker->orders.quiet_at : cut->at;
        usec_t at = MAX(cut->at, usec_add(from, settings->stop_timeout));

        if (at == USEC_INFINITY)
                snprintf(text, size, "is exiting");
        else
                snprintf(text, size, "is exiting; killed in %s (%s%s)", FORMAT_DURATION(left_usec(at, now)),
                         cut_word_name(cut->word), cut->word == CUT_STOP_TIMEOUT ? "" : " and stop_timeout");
        return text;
}

static const char *exit_text(const struct worker *worker, usec_t now, char *text, size_t size)
{
        struct cut_off cut = worker_cut_off(worker);
        usec_t stop_timeout = worker->fleet->settings->stop_timeout, at = worker_kill_at(worker);
        if (worker->state == WORKER_QUIET && cut.word != CUT_ORDER)
                return drain_text(worker, &cut, now, text, size);
        if (worker->state == WORKER_STOPPING && !worker_is_remainder(worker) && at > now &&
            at != USEC_INFINITY)
                snprintf(text, size, "is exiting; killed %sin %s (stop_timeout %s)",
                         worker->orders.killed_at != 0 ? "again " : "", FORMAT_DURATION(left_usec(at, now)),
                         FORMAT_DURATION(stop_timeout));
        else
                snprintf(text, size, "is exiting");
        return text;
}

/* Replacements run the code that the directory leads to: after a halt, the release that does not start. Only
 * an old template can still fork the old code. */
static bool release_blocks(const struct fleet *fleet)
{
        enum rollout_state state = fleet->rollout.state;

        return fleet->crash.count > 0 && !fleet_template_kept(fleet) &&
               (state == ROLLOUT_HALTED || state == ROLLOUT_ABORTED);
}

static const char *ready_others_text(const struct worker *worker, char *text, size_t size)
{
        const char *name = worker->fleet->settings->name;
        unsigned count = worker->verdict.waits_count;

        if (worker_outdated(worker) && release_blocks(worker->fleet))
                snprintf(text, size,
                         "waits for a replacement, but new workers run the release whose restart %s, and "
                         "fail. Link the old release again, then run 'sqmgrctl abort %s'; or fix the new "
                         "release, then run 'sqmgrctl restart %s'",
                         worker->fleet->rollout.state == ROLLOUT_HALTED ? "halted" : "was aborted", name,
                         name);
        else
                snprintf(text, size, "waits for %u more worker%s to become ready", count, plural(count));
        return text;
}

/* Waits without a count. */
static const char *const fixed_waits[_WAIT_MAX] = {
        [WAIT_FRESH_HEARTBEAT] = "waits for a fresh heartbeat",
        [WAIT_IDLE_CHECK] = "waits for proof that no job is being fetched; asked to exit then",
        [WAIT_AMBIGUOUS] =
                ("shares its host name and pid with another process that sends heartbeats. Give each "
                 "machine and container its own host name"),
        [WAIT_FORK] =
                ("waits for memory or processes to fork a worker. Check LimitNPROC= and the limits of the "
                 "control group"),
        [WAIT_RELEASE] = "waits for a new worker to become ready: the last one failed",
        [WAIT_TEMPLATE] = "waits for the template of the new generation",
        [WAIT_STATE] = "waits for its record in the state file",
        [WAIT_LEDGER] = ("is not stopped: sqmgr cannot write its ledger (see the log). Without the ledger, a "
                         "crash of sqmgr could cause a second stop signal, which would end running jobs"),
        [WAIT_UNCONFIRMED] =
                ("may not have received its stop signal: sqmgr ended while sending it. A second signal "
                 "would end running jobs. If the worker still accepts jobs, send the signal once"),
};

static void fixed_text(const struct fleet *fleet, enum wait wait, char *text, size_t size)
{
        const char *server = fleet_settings_server(fleet->settings);

        if (wait == WAIT_REDIS && fleet->server == READER_STATE_REFUSING)
                snprintf(text, size, "waits until Redis accepts writes");
        else if (wait == WAIT_REDIS)
                snprintf(text, size, "waits for %s", server);
        else if (wait == WAIT_HUNG)
                snprintf(text, size,
                         "waits for a heartbeat: all workers are silent, or %s does not accept their "
                         "heartbeats",
                         server);
        else
                snprintf(text, size, "%s", fixed_waits[wait] ?: "");
}

const char *worker_elsewhere_text(const struct worker *worker, char text[static WORKER_ELSEWHERE_MAX])
{
        const struct fleet_settings *settings = worker->fleet->settings;

        if (worker->process.redis.difference != REDIS_SAME)
                return redis_difference_text(&worker->process.redis, text);
        /* An identity that two workers in namespaces could have is given to neither. */
        snprintf(text, WORKER_ELSEWHERE_MAX, "check %s and %s%s%s%s%s",
                 fleet_settings_need_database(settings) ? "database_url" : "redis_url, namespace",
                 settings->namespaced && settings->traits->host_variable ? settings->traits->host_variable
                                                                         : "host name",
                 settings->namespaced ? "; another worker may have the same host name and pid" : "",
                 worker->evidence.peers[0] != '\0' ? " (connected to " : "", worker->evidence.peers,
                 worker->evidence.peers[0] != '\0' ? ")" : "");
        return text;
}

const char *worker_shimless_text(const struct worker *worker, char text[static WORKER_SHIMLESS_MAX])
{
        const struct shim *shim = worker->fleet->settings->traits->shim;

        if (worker->process.shim_error == ECANCELED)
                snprintf(text, WORKER_SHIMLESS_MAX, "a process did not start with sqmgr's '%s': %s",
                         shim->file, shim->refused);
        else if (worker->process.shim_error != 0)
                snprintf(text, WORKER_SHIMLESS_MAX, "its start could not load sqmgr's '%s': %s", shim->file,
                         shim_error_text(worker->process.shim_error));
        else
                snprintf(text, WORKER_SHIMLESS_MAX,
                         "sqmgr's '%s' is not loaded, perhaps for %s. Add to the application: %s%s%s",
                         shim->file, shim->missed, shim->line[0],
                         worker->fleet->world->shims ?: "/usr/share/sqmgr", shim->line[1]);
        return text;
}

const char *worker_unseen_text(const struct worker *worker, char text[static WORKER_UNSEEN_MAX])
{
        if (!worker->fleet->settings->traits->shim)
                return worker_elsewhere_text(worker, text);
        return worker->heartbeat.fault == HEARTBEAT_FAULT_NONE
                       ? worker_shimless_text(worker, text)
                       : heartbeat_fault_text(worker->heartbeat.fault);
}

static void elsewhere_text(const struct worker *worker, char *text, size_t size)
{
        bool counted = worker_title_can_prove(worker), leaves = worker->verdict.retire_reason != REASON_NONE;
        char why[WORKER_ELSEWHERE_MAX];

        worker_elsewhere_text(worker, why);
        if (worker->state != WORKER_QUIET && (counted || !leaves))
                snprintf(text, size, "has booted, but its heartbeat was not found: %s", why);
        else if (!counted)
                snprintf(text, size,
                         "has booted, but its heartbeat was not found: %s. The worker is kept until its "
                         "heartbeat is found or its job threads are counted. To stop the worker at once, run "
                         "'sqmgrctl stop %s --force'",
                         why, WORKER_ID(worker));
        else
                snprintf(text, size,
                         "has booted, but its heartbeat was not found: exits once its title has shown no "
                         "job for %s and its job threads have ended. To stop the worker at once, run "
                         "'sqmgrctl stop %s --force'",
                         FORMAT_DURATION(worker_title_proof_usec(worker)), WORKER_ID(worker));
}

static void unseen_text(const struct worker *worker, char *text, size_t size)
{
        char why[WORKER_UNSEEN_MAX];

        snprintf(text, size,
                 "%s, and may run jobs: %s. To stop the worker at once, run 'sqmgrctl stop %s --force'",
                 worker->process.shimless ? "is not known to catch its stop signal"
                                          : "showed no heartbeat within boot_timeout",
                 worker_unseen_text(worker, why), WORKER_ID(worker));
}

const char *worker_stop_command(const struct worker *worker, int signo, char *text, size_t size)
{
        pid_t heartbeat_pid = worker->process.heartbeat_pid;

        snprintf(text, size, "kill -%s %s%d", sigabbrev_np(signo) ?: "TERM", heartbeat_pid != 0 ? "" : "-- -",
                 (int)(heartbeat_pid ?: worker->process.pid));
        return text;
}

const char *worker_signal_error_text(const struct worker *worker, int error)
{
        if (error == ENOTSUP)
                return worker->process.shimless
                               ? "its stop signal may kill the process"
                               : "the process does not catch the signal and would be killed by it";
        if (error == EACCES && worker->process.remote)
                return "signals go through Redis, which refuses them. Allow the user of sqmgr EVAL, LPUSH "
                       "and EXPIRE";
        return strerrordesc_np(error);
}

static const char *waits_text(const struct worker *worker, usec_t now, char *text, size_t size)
{
        char heartbeats[HEARTBEATS_MAX];
        unsigned count = worker->verdict.waits_count;

        switch (worker->verdict.waits_for) {
        case WAIT_FIRST_HEARTBEAT:
                return first_heartbeat_text(worker, now, text, size);
        case WAIT_READY_OTHERS:
                return ready_others_text(worker, text, size);
        case WAIT_JOBS:
                return jobs_text(worker, now, text, size);
        case WAIT_HEARTBEATS:
                heartbeats_text(worker, count, heartbeats);
                snprintf(text, size, "exits after %s", heartbeats);
                break;
        case WAIT_THREADS:
                heartbeats_text(worker, count, heartbeats);
                snprintf(text, size, "exits when %u job thread%s ended, or after %s",
                         worker->evidence.threads, worker->evidence.threads == 1 ? " has" : "s have",
                         heartbeats);
                break;
        case WAIT_EXIT:
                return exit_text(worker, now, text, size);
        case WAIT_STALE:
                snprintf(text, size, "has sent no heartbeat for %s%s%s; kept, no signal sent",
                         FORMAT_DURATION(usec_sub(now, worker->heartbeat.changed_at)),
                         worker->heartbeat.fault != HEARTBEAT_FAULT_NONE ? ": " : "",
                         heartbeat_fault_text(worker->heartbeat.fault));
                break;
        case WAIT_HUNG:
                snprintf(text, size, "is hung: no heartbeat for %s; kept, but not counted as active",
                         FORMAT_DURATION(usec_sub(now, worker->heartbeat.changed_at)));
                break;
        case WAIT_SIGNAL:
                snprintf(text, size, "cannot be signaled: %s",
                         worker->orders.signal_error == ENOTSUP
                                 ? worker->process.shimless
                                           ? "the process is not known to catch its stop signal"
                                           : "the process does not catch the quiet signal"
                                 : worker_signal_error_text(worker, worker->orders.signal_error));
                break;
        case WAIT_ELSEWHERE:
                elsewhere_text(worker, text, size);
                break;
        case WAIT_UNSEEN:
                unseen_text(worker, text, size);
                break;
        case WAIT_SUCCESSOR:
                snprintf(text, size,
                         worker->process.booted ? "waits for the first heartbeat of another of its "
                                                  "processes, which has booted"
                                                : "waits until its leftover processes are identified");
                break;
        default:
                fixed_text(worker->fleet, worker->verdict.waits_for, text, size);
        }
        return text;
}

const char *worker_waits_for(const struct worker *worker, usec_t now, char *text, size_t size)
{
        waits_text(worker, now, text, size);
        size_t length = strlen(text);
        if (length > 0 && worker->process.remote && worker_is_retiring(worker))
                snprintf(text + length, size - length, "; signals go through %s",
                         fleet_settings_server(worker->fleet->settings));
        return text;
}

/* Start of draining or hanging. A worker that never sent a heartbeat was never quieted. */
static usec_t drain_since(const struct worker *worker)
{
        if (worker_hangs(worker))
                return worker->heartbeat.changed_at;
        return worker->orders.quiet_at != 0 ? worker->orders.quiet_at : worker->state_at;
}

/* Returns true if the worker occupies a place and accepts no jobs. */
static bool occupies_place(const struct worker *worker)
{
        return worker_is_retiring(worker) || worker_hangs(worker);
}

/* Returns the worker that has occupied its place in this way for longest. */
static const struct worker *longest_drain(const struct fleet *fleet)
{
        const struct worker *longest = NULL;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (occupies_place(worker) && (!longest || drain_since(worker) < drain_since(longest)))
                        longest = worker;
        return longest;
}

static void places_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        const struct worker *longest = longest_drain(fleet);
        char jobs[OLDEST_MAX + 32] = "", oldest[OLDEST_MAX];

        if (!longest) {
                unsigned places = fleet_max_processes(fleet);

                snprintf(text, size, "waits for a process to exit: %u of %u (max_processes) %s alive", places,
                         places, places == 1 ? "is" : "are");
                return;
        }
        unsigned draining = FLEET_COUNT_WORKERS(fleet, worker, occupies_place(worker));
        if (worker_shows_busy(longest))
                snprintf(jobs, sizeof(jobs), ", %u running job%s%s", longest->heartbeat.busy,
                         plural(longest->heartbeat.busy), oldest_text(longest, now, oldest));
        snprintf(text, size,
                 "waits for a process to exit: %u of %u (max_processes) %s draining%s; longest: %s (pid "
                 "%d%s) for %s",
                 draining, fleet_max_processes(fleet), draining == 1 ? "is" : "are",
                 fleet_count(fleet, now).hung > 0 ? " or hung" : "", WORKER_ID(longest),
                 (int)worker_pid(longest), jobs, FORMAT_DURATION(usec_sub(now, drain_since(longest))));
}

static void memory_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        const struct world *world = fleet->world;
        char less[128] = "";
        uint64_t reserved = memory_reserved_bytes(world, now);
        const char *what = fleet_wants_template(fleet) ? "template" : "median worker";

        if (reserved > 0)
                snprintf(less, sizeof(less), ", minus %s reserved for starting workers,",
                         FORMAT_SIZE(reserved));
        snprintf(text, size, "waits for memory: %s available%s is less than 1.25 x the %s",
                 FORMAT_SIZE(world->available_bytes), less, what);
}

static void template_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        const struct template *template = fleet_template(fleet);

        if (!template) {
                snprintf(text, size, "waits for its template");
                return;
        }
        usec_t age = usec_sub(now, template->started_at);
        snprintf(text, size, "waits for its template: loading for %s, times out in %s (boot_timeout)",
                 FORMAT_DURATION(age - age % USEC_PER_SEC),
                 FORMAT_DURATION(left_usec(template_boot_deadline(template), now)));
}

static void shortage_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        if (fleet->shortage.count == 0)
                snprintf(text, size, "%s", fixed_waits[WAIT_FORK]);
        else
                snprintf(text, size,
                         "waits %s before the next start: sqmgr could not create a process (%s). Run "
                         "'sqmgrctl doctor'",
                         FORMAT_DURATION(left_usec(fleet->shortage.next_at, now)),
                         start_error_text(fleet->shortage_error));
}

const char *fleet_waits_for(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        switch (fleet->waits_for) {
        case WAIT_PLACES:
                places_text(fleet, now, text, size);
                break;
        case WAIT_MEMORY:
                memory_text(fleet, now, text, size);
                break;
        case WAIT_BACKOFF:
                snprintf(text, size, "waits %s before the next start",
                         FORMAT_DURATION(usec_sub(MAX(fleet->crash.next_at, fleet->churn.next_at), now)));
                break;
        case WAIT_TEMPLATE:
                template_text(fleet, now, text, size);
                break;
        case WAIT_TRIAL:
                snprintf(text, size, "waits for the trial of the new release: enough jobs have to end first");
                break;
        case WAIT_RETURNED:
                snprintf(text, size,
                         "waits for a restart: the previous release is not in memory, and the command may "
                         "start the "
                         "one that was given up. Link the previous release, then run 'sqmgrctl restart %s'",
                         fleet->settings->name);
                break;
        case WAIT_ADOPTION:
                snprintf(text, size,
                         "searches for workers of an earlier sqmgr; no worker is started meanwhile");
                break;
        case WAIT_FORK:
                shortage_text(fleet, now, text, size);
                break;
        default:
                fixed_text(fleet, fleet->waits_for, text, size);
        }
        return text;
}

/* Returns true if the halted restart shows the last failure already, or one with the same log tail. */
static bool halt_shows_crash(const struct fleet *fleet)
{
        const struct rollout *rollout = &fleet->rollout;
        bool same_tail = !quoted_is_empty(&fleet->crash_quoted) &&
                         quoted_equal(&fleet->crash_quoted, &rollout->quoted);

        return rollout->state == ROLLOUT_HALTED &&
               (same_tail || (!fleet->crash_last_apart && fleet->crash.failed_at <= rollout->failed_at));
}

const struct quoted *fleet_crash_quoted(const struct fleet *fleet)
{
        return halt_shows_crash(fleet) ? NULL : &fleet->crash_quoted;
}

const char *fleet_crash_text(const struct fleet *fleet, usec_t now, char *text, size_t size)
{
        usec_t next_at = fleet_next_start_at(fleet, now);
        char row[64];
        int n = 0;

        text[0] = '\0';
        snprintf(row, sizeof(row), "%u failed start%s in a row", fleet->crash.count,
                 plural(fleet->crash.count));
        switch (fleet_crash_state(fleet, now)) {
        case CRASH_NONE:
        case _CRASH_STATE_MAX:
                return text;
        case CRASH_FAILING:
                n = next_at == 0 ? snprintf(text, size, "%s", row)
                                 : snprintf(text, size, "%s; retrying in %s", row,
                                            FORMAT_DURATION(left_usec(next_at, now)));
                break;
        case CRASH_RECOVERING:
                n = snprintf(text, size, "recovering from %s; recovered in %s unless a worker dies", row,
                             FORMAT_DURATION(left_usec(fleet_recovered_at(fleet), now)));
                break;
        case CRASH_SETTLED:
                n = snprintf(text, size, "%s; no start is due", row);
                break;
        }
        if (n > 0 && (size_t)n < size && fleet->crash_last[0] != '\0' && !halt_shows_crash(fleet))
                snprintf(text + n, size - (size_t)n, "; %s: %s",
                         fleet->crash_last_apart ? "after that" : "last failure", fleet->crash_last);
        return text;
}

const char *world_stopping_text(const struct world *world, usec_t now, char *text, size_t size)
{
        usec_t at = usec_add(world->shutdown_at, world->settings->shutdown_timeout);
        unsigned workers = 0, jobs = 0;
        char running[48] = "";
        bool reported = false;

        WORLD_FOREACH_FLEET(world, fleet) {
                struct fleet_counts counts = fleet_count(fleet, now);

                workers += counts.live;
                jobs += counts.busy;
                reported |= fleet->settings->traits->reports_busy;
        }
        if (reported)
                snprintf(running, sizeof(running), ", %u running job%s", jobs, plural(jobs));
        int n = snprintf(text, size, "%u worker%s left%s; ", workers, plural(workers), running);
        if (n < 0 || (size_t)n >= size)
                return text;
        if (world->shutdown_now || now >= at)
                snprintf(text + n, size - (size_t)n, "all asked to exit");
        else
                snprintf(text + n, size - (size_t)n, "all asked to exit in %s",
                         FORMAT_DURATION(left_usec(at, now)));
        return text;
}

const char *worker_event_name(const struct worker *worker, char text[static WORKER_EVENT_NAME_MAX])
{
        snprintf(text, WORKER_EVENT_NAME_MAX, "%s (pid %d)", WORKER_ID(worker), (int)worker_pid(worker));
        return text;
}

bool exit_status_is_success(const struct exit_status *exit)
{
        return exit->known && !exit->by_signal && exit->status == 0;
}

const char *exit_status_text(const struct exit_status *exit, char text[static EXIT_STATUS_TEXT_MAX])
{
        if (exit->launch_error)
                snprintf(text, EXIT_STATUS_TEXT_MAX, "could not be started");
        else if (!exit->known)
                snprintf(text, EXIT_STATUS_TEXT_MAX, "exited with unknown status");
        else if (exit->by_signal)
                snprintf(text, EXIT_STATUS_TEXT_MAX, "was killed by signal %d (SIG%s)", exit->status,
                         sigabbrev_np(exit->status) ?: "?");
        else
                snprintf(text, EXIT_STATUS_TEXT_MAX, "exited with status %d", exit->status);
        return text;
}

const char *start_error_text(int error)
{
        return error == EBUSY ? "too many earlier starts hang in a file system" : strerrordesc_np(error);
}
