/* SPDX-License-Identifier: MIT */
/* Follows up the death of a worker. */
#include "daemon/workers/rescue.h"
#include "base/argv.h"
#include "continuity/state.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/timer.h"
#include "model/world.h"
#include "observe/culprits.h"

/* Delay before the first reading, since data sent last may still be on its way to Redis. Also the retry
 * interval. */
#define WAIT_USEC USEC_PER_SEC
/* Maximum time that the end of sqmgr waits. */
#define END_WAIT_USEC (5 * USEC_PER_SEC)

struct rescue {
        struct state_dead
                /* Must be first: the list in runtime->rescues links to these, and is written to the state. */
                dead;
        struct runtime *runtime;
        char how[EXIT_STATUS_TEXT_MAX];
        bool counted;  /* the jobs that the worker has left or released were counted */
        bool judged;   /* the check for an OOM kill is done */
        bool culprits; /* OOM kill with job classes yet to be reported */
        usec_t died_at;
        sd_event_source *timer;
        bool left;          /* the process that ran the jobs may still run: it is watched */
        bool left_reported; /* the event was added that the process runs on */
        struct leftover leftover;
        struct heartbeat heartbeat; /* of the leftover process, as last read */
        struct reader *reader;      /* NULL: no query in progress */
        struct job_list jobs;
        size_t next_job;           /* the job that the query is about */
        char **drained_jobs;       /* see struct process; NULL: none, or counted */
        struct error_report error; /* why the last attempt failed at a job */
};

static void rescue_free(struct rescue *rescue)
{
        struct state_dead *dead = &rescue->dead;

        LIST_UNLINK(rescue->runtime->rescues, dead);
        wakeup_changed(rescue->runtime->wakeup);
        sd_event_source_disable_unref(rescue->timer);
        if (rescue->reader)
                reader_forget(rescue->reader, rescue);
        job_list_clear(&rescue->jobs);
        argv_free(rescue->drained_jobs);
        free(dead->worker.identity);
        free(dead->fleet);
        free(rescue);
}

void rescues_forget(struct runtime *runtime)
{
        while (runtime->rescues)
                rescue_free((struct rescue *)runtime->rescues);
}

bool rescues_delay_exit(const struct runtime *runtime, usec_t now)
{
        for (const struct state_dead *dead = runtime->rescues; dead; dead = dead->next)
                if (now < usec_add(((const struct rescue *)dead)->died_at, END_WAIT_USEC))
                        return true;
        return false;
}

bool rescues_need_removed(const struct runtime *runtime)
{
        for (const struct state_dead *dead = runtime->rescues; dead; dead = dead->next) {
                const struct fleet *fleet = world_fleet(runtime->world, dead->fleet);

                if (fleet && fleet->settings->removed)
                        return true;
        }
        return false;
}

static bool is_off(const struct fleet *fleet)
{
        return fleet->settings->rescue_jobs == RESCUE_JOBS_OFF;
}

/* Returns the fleet with its link. Frees the rescue and returns NULL if the fleet is gone or wants no
 * rescue. */
static struct fleet *find_fleet(struct rescue *rescue)
{
        struct fleet *fleet = world_fleet(rescue->runtime->world, rescue->dead.fleet);

        if (fleet && fleet->link && fleet->settings->traits->can_rescue &&
            (rescue->culprits || rescue->drained_jobs || !is_off(fleet)))
                return fleet;
        rescue_free(rescue);
        return NULL;
}

/* Schedules a retry while the server still keeps the job list. */
static void try_again(struct rescue *rescue, const struct error_report *error)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct fleet *fleet = find_fleet(rescue);

        if (!fleet)
                return;
        job_list_clear(&rescue->jobs);
        if (rescue_is_repeated(fleet, rescue->died_at, now)) {
                timer_set(rescue->timer, now + WAIT_USEC);
                return;
        }
        if (!is_off(fleet))
                rescue_observe_failed(&rescue->dead.worker.worker, error);
        rescue_free(rescue);
}

/* Like try_again(), for an -errno. */
static void try_again_errno(struct rescue *rescue, int r)
{
        struct error_report error;

        error_report_set(&error, "%s", strerrordesc_np(-r));
        try_again(rescue, &error);
}

static void on_requeued(struct answer *answer, void *userdata);

static void ask_next(struct rescue *rescue)
{
        struct fleet *fleet = find_fleet(rescue);

        if (!fleet)
                return;
        if (rescue->next_job == rescue->jobs.n_jobs && rescue->error.text[0] != '\0') {
                try_again(rescue, &rescue->error);
                return;
        }
        if (rescue->next_job == rescue->jobs.n_jobs) {
                rescue_observe_unknown(&rescue->dead.worker.worker, &rescue->jobs);
                rescue_free(rescue);
                return;
        }
        const struct fleet_settings *settings = fleet->settings;
        const struct job *job = &rescue->jobs.jobs[rescue->next_job];
        const struct field texts[] = {QUERY_TEXT(rescue->dead.worker.identity),
                                      QUERY_TEXT(job->thread),
                                      {.text = job->entry, .len = job->entry_len},
                                      QUERY_TEXT(rescue->how)};
        const struct query query = {
                .kind = QUERY_REQUEUE,
                .numbers = {job->old_key, settings->rescue_jobs == RESCUE_JOBS_REQUEUE, RESCUE_LIMIT,
                            clock_now(CLOCK_REALTIME)},
                .texts = texts,
                .n_texts = ELEMENTSOF(texts),
        };
        int r = reader_ask(fleet->link->reader, &query, on_requeued, rescue);
        if (r < 0)
                try_again_errno(rescue, r);
        else
                rescue->reader = fleet->link->reader;
}

static void on_requeued(struct answer *answer, void *userdata)
{
        struct rescue *rescue = userdata;
        struct fleet *fleet = world_fleet(rescue->runtime->world, rescue->dead.fleet);

        rescue->reader = NULL;
        /* A job that is refused holds up no other: it is tried again after the others. */
        if (answer->status != ANSWER_OK)
                rescue->error = answer->error;
        if (answer->status == ANSWER_LOST) {
                try_again(rescue, &rescue->error);
                return;
        }
        if (fleet && answer->status == ANSWER_OK)
                rescue_observe(&rescue->dead.worker.worker, &rescue->jobs.jobs[rescue->next_job],
                               answer->requeue.outcome, answer->requeue.times, rescue->how);
        rescue->next_job++;
        ask_next(rescue);
}

/* n_released: how many jobs the worker has released, unless they are counted already. */
static void begin_requeuing(struct rescue *rescue, struct fleet *fleet, size_t n_released)
{
        const struct worker *worker = &rescue->dead.worker.worker;

        if (!rescue->counted)
                rescue_observe_abandoned(worker, &rescue->dead.exit,
                                         rescue->jobs.n_jobs + job_list_unknown(&rescue->jobs), n_released,
                                         rescue->died_at);
        rescue->counted = true;
        rescue->drained_jobs = argv_free(rescue->drained_jobs);
        if (rescue->culprits)
                culprits_observe(fleet, worker, CULPRITS_OOM, &rescue->jobs, rescue->died_at);
        rescue->culprits = false;
        /* The list may be dropped before we give up: jobs not requeued until then are lost. */
        bool list_is_gone = rescue->jobs.n_jobs == 0 && job_list_unknown(&rescue->jobs) == 0;
        if (list_is_gone && rescue->error.text[0] == '\0' && rescue_is_late(worker, rescue->died_at))
                error_report_set(
                        &rescue->error,
                        "Redis keeps the list for a minute after a heartbeat; the last heartbeat was older");
        if (list_is_gone && rescue->error.text[0] != '\0' && !is_off(fleet))
                rescue_observe_failed(worker, &rescue->error);
        rescue->error = (struct error_report){0};
        ask_next(rescue);
}

static void on_released(struct answer *answer, void *userdata)
{
        struct rescue *rescue = userdata;

        rescue->reader = NULL;
        if (answer->status != ANSWER_OK) {
                try_again(rescue, &answer->error);
                return;
        }
        struct fleet *fleet = find_fleet(rescue);
        if (fleet)
                begin_requeuing(rescue, fleet, answer->released.n);
}

/* Asks how many of the jobs that the worker ran were released. Jobs that are put back later do not count. */
static void ask_released(struct rescue *rescue, struct fleet *fleet)
{
        struct field texts[QUERY_RELEASED_MAX];
        struct query query = {.kind = QUERY_RELEASED, .texts = texts};

        for (char **job = rescue->drained_jobs; job && *job && query.n_texts < QUERY_RELEASED_MAX; job++)
                texts[query.n_texts++] = (struct field)QUERY_TEXT(*job);
        if (query.n_texts == 0) {
                begin_requeuing(rescue, fleet, 0);
                return;
        }
        int r = reader_ask(fleet->link->reader, &query, on_released, rescue);
        if (r < 0)
                try_again_errno(rescue, r);
        else
                rescue->reader = fleet->link->reader;
}

static void on_running_jobs(struct answer *answer, void *userdata)
{
        struct rescue *rescue = userdata;
        const struct error_report *error;
        struct job_list *lists = link_running_jobs(answer, 1, &error);

        rescue->reader = NULL;
        if (error) {
                try_again(rescue, error);
                return;
        }
        struct fleet *fleet = find_fleet(rescue);
        if (!fleet)
                return;
        rescue->jobs = lists[0];
        lists[0] = (struct job_list){0};
        rescue->next_job = 0;
        ask_released(rescue, fleet);
}

/* Decides whether the death was an OOM kill. Reads the kernel's count first: the last poll may be older than
 * the death. */
static void judge(struct rescue *rescue)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (rescue->judged)
                return;
        proc_evidence_observe_oom_kills(rescue->runtime->host, rescue->runtime->world, now);
        rescue->culprits = culprits_oom_killed(rescue->runtime->world, &rescue->dead.worker.worker,
                                               &rescue->dead.exit, now);
        rescue->judged = true;
}

/* A worker may have several heartbeat processes: if this one still lives, its jobs run on. */
static bool heartbeat_process_is_alive(const struct rescue *rescue)
{
        const struct worker *worker = &rescue->dead.worker.worker;

        return proc_is_alive(worker->process.heartbeat_pid, worker->process.heartbeat_start);
}

static void read_jobs(struct rescue *rescue)
{
        const struct fleet *fleet;

        if (heartbeat_process_is_alive(rescue)) {
                rescue_free(rescue);
                return;
        }
        judge(rescue);
        fleet = find_fleet(rescue);
        if (!fleet)
                return;
        const char *identity = rescue->dead.worker.identity;
        const struct running_jobs_request request = {.identities = &identity, .n = 1, .with_entries = true};
        int r = link_read_running_jobs(fleet->link, &request, on_running_jobs, rescue);
        if (r >= 0)
                rescue->reader = fleet->link->reader;
        const struct error_report *error = r < 0 ? reader_error(fleet->link->reader) : NULL;
        if (error)
                try_again(rescue, error);
        else if (r < 0)
                try_again_errno(rescue, r);
}

/* The remote process has ended now. How is not known. */
static void leftover_ended(struct rescue *rescue)
{
        rescue->left = false;
        rescue->died_at = clock_now(CLOCK_MONOTONIC);
        read_jobs(rescue);
}

static struct fleet *leftover_fleet(const struct rescue *rescue)
{
        struct fleet *fleet = world_fleet(rescue->runtime->world, rescue->dead.fleet);

        return fleet && fleet->link ? fleet : NULL;
}

static void poll_later(struct rescue *rescue)
{
        timer_set(rescue->timer, usec_add(clock_now(CLOCK_MONOTONIC), WAIT_USEC));
}

/* Returns false if the query was not sent: the next poll tries again. */
static bool leftover_ask(struct rescue *rescue, const struct fleet *fleet, enum query_kind kind, int signo,
                         reader_answer_fn callback)
{
        const struct field texts[] = {QUERY_TEXT(rescue->dead.worker.identity)};
        const struct query query = {
                .kind = kind, .numbers = {(uint64_t)signo}, .texts = texts, .n_texts = ELEMENTSOF(texts)};

        if (reader_ask(fleet->link->reader, &query, callback, rescue) < 0)
                return false;
        rescue->reader = fleet->link->reader;
        return true;
}

static void on_signaled(struct answer *answer _unused_, void *userdata)
{
        struct rescue *rescue = userdata;

        rescue->reader = NULL;
        poll_later(rescue);
}

static void leftover_report(struct rescue *rescue, struct fleet *fleet, bool ended)
{
        const struct worker *worker = &rescue->dead.worker.worker;

        if (ended != rescue->left_reported)
                return;
        if (ended)
                world_event(fleet->world, EVENT_LEFTOVER, fleet, worker,
                            "%s (pid %d), whose client had ended, has ended", WORKER_ID(worker),
                            (int)worker->process.pid);
        else
                world_event(fleet->world, EVENT_LEFTOVER, fleet, worker,
                            "%s (pid %d) keeps running although its client has ended; quieted and stopped "
                            "through %s",
                            WORKER_ID(worker), (int)worker->process.pid,
                            fleet_settings_server(fleet->settings));
        rescue->left_reported = true;
        wakeup_arm(rescue->runtime->wakeup);
}

/* Acts on a reading. heartbeat: NULL: there is none. */
static void leftover_judge(struct rescue *rescue, struct fleet *fleet, const struct heartbeat *heartbeat)
{
        const struct framework *framework = framework_of(fleet->settings->traits);
        enum leftover_step step =
                leftover_observe(&rescue->leftover, fleet, heartbeat, clock_now(CLOCK_MONOTONIC));

        if (step == LEFTOVER_ENDED) {
                leftover_report(rescue, fleet, true);
                leftover_ended(rescue);
                return;
        }
        if (step != LEFTOVER_WAIT)
                leftover_report(rescue, fleet, false);
        if (step == LEFTOVER_WAIT ||
            !leftover_ask(rescue, fleet, QUERY_SIGNAL,
                          step == LEFTOVER_QUIET ? framework->quiet_signal : framework->stop_signal,
                          on_signaled))
                poll_later(rescue);
}

/* Returns the fleet; or NULL after a failed query, or if the fleet is gone. */
static struct fleet *take_answer(struct rescue *rescue, const struct answer *answer)
{
        struct fleet *fleet = leftover_fleet(rescue);

        rescue->reader = NULL;
        if (!fleet)
                leftover_ended(rescue);
        else if (answer->status != ANSWER_OK)
                poll_later(rescue);
        return fleet && answer->status == ANSWER_OK ? fleet : NULL;
}

static void on_work_list(struct answer *answer, void *userdata)
{
        struct rescue *rescue = userdata;
        struct fleet *fleet = take_answer(rescue, answer);

        if (!fleet)
                return;
        rescue->heartbeat.work_list_known = answer->work_list.known;
        rescue->heartbeat.work_list_empty = answer->work_list.empty;
        leftover_judge(rescue, fleet, &rescue->heartbeat);
}

static void on_heartbeat(struct answer *answer, void *userdata)
{
        struct rescue *rescue = userdata;
        struct fleet *fleet = take_answer(rescue, answer);

        if (!fleet)
                return;
        rescue->heartbeat = answer->heartbeat.heartbeat;
        if (!answer->heartbeat.found)
                leftover_judge(rescue, fleet, NULL);
        else if (!leftover_ask(rescue, fleet, QUERY_WORK_LIST, 0, on_work_list))
                poll_later(rescue);
}

static void poll_leftover(struct rescue *rescue)
{
        struct fleet *fleet = leftover_fleet(rescue);
        const char *identity = rescue->dead.worker.identity;

        if (!fleet)
                leftover_ended(rescue);
        /* While a worker has it, as after an adoption, that worker is sent the signals. */
        else if (match_has_owner(fleet->link->heartbeats->match, identity, strlen(identity)) ||
                 !leftover_ask(rescue, fleet, QUERY_HEARTBEAT, 0, on_heartbeat))
                poll_later(rescue);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct rescue *rescue = userdata;

        if (rescue->left)
                poll_leftover(rescue);
        else
                read_jobs(rescue);
        return 0;
}

/* Returns true if the end of the process that sqmgr started does not show that the worker has ended. A client
 * returns the exit status of the worker, and 0 only for a worker that was asked to exit and did. */
static bool may_be_left(const struct worker *worker, const struct exit_status *exit)
{
        return worker->process.remote &&
               !(worker_is_asked_to_exit(worker) && exit->known && !exit->by_signal && exit->status == 0);
}

static void report_shortage(const struct worker *worker)
{
        log_error("out of memory: the jobs that %s (pid %d) was running when it died are not read",
                  WORKER_ID(worker), (int)worker->process.pid);
}

void rescue_begin(struct runtime *runtime, struct fleet *fleet, const struct worker *worker,
                  const char *identity, const struct exit_status *exit, char **drained_jobs)
{
        _cleanup_argv_ char **drained = drained_jobs;
        struct worker dead = *worker;

        dead.fleet = fleet; /* a worker from the state has no fleet */
        bool left = may_be_left(&dead, exit);
        if (!identity || (!left && !rescue_is_due(&dead, exit)))
                return;
        struct rescue *rescue = calloc(1, sizeof(*rescue));
        if (!rescue) {
                report_shortage(&dead);
                return;
        }
        rescue->runtime = runtime;
        rescue->drained_jobs = TAKE_PTR(drained);
        rescue->dead.next = runtime->rescues;
        runtime->rescues = &rescue->dead;
        rescue->dead.worker.worker = dead;
        rescue->dead.exit = (struct exit_status){
                .known = exit->known && !left, .by_signal = exit->by_signal, .status = exit->status};
        rescue->left = left;
        rescue->died_at = rescue->leftover.since = clock_now(CLOCK_MONOTONIC);
        exit_status_text(left ? &rescue->dead.exit : exit, rescue->how);
        rescue->dead.worker.identity = strdup(identity);
        rescue->dead.fleet = strdup(fleet->settings->name);
        if (!rescue->dead.worker.identity || !rescue->dead.fleet ||
            sd_event_add_time_relative(runtime->event, &rescue->timer, CLOCK_MONOTONIC, left ? 0 : WAIT_USEC,
                                       0, on_timer, rescue) < 0) {
                report_shortage(&dead);
                rescue_free(rescue);
        }
}
