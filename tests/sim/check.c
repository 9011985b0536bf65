/* SPDX-License-Identifier: MIT */
/* Checks the promises against the truth of the world and what could be read of it. What the core believes
 * counts only for orders and settings. */
#include "continuity/state.h"
#include "model/counts.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

static const struct fleet_settings *settings_of(const struct sim *sim, unsigned fleet)
{
        return sim->shell.world->fleets[fleet]->settings;
}

unsigned check_number(const struct sim *sim, const struct fleet *fleet)
{
        unsigned number = 0;

        while (sim->shell.world->fleets[number] != fleet)
                number++;
        return number;
}

static bool is_forced(const struct sim *sim, const struct fleet *fleet)
{
        const struct world *world = sim->shell.world;

        return fleet->force || world->shutdown_now ||
               (world->shutting_down &&
                sim->now >= world->shutdown_at + sim->shell.settings.shutdown_timeout);
}

usec_t check_stale_usec(const struct sim *sim, unsigned fleet)
{
        return settings_of(sim, fleet)->traits->stale_usec + 2 * sim->shell.settings.check_interval;
}

/* A start of this generation, begun at that time, has failed: counts that against the release of a restart.
 */
static void check_failed_start(struct sim *sim, unsigned number, uint64_t generation, usec_t began_at)
{
        struct fleet_sim *model = &sim->fleets[number];
        const struct fleet *fleet = sim->shell.world->fleets[number];

        if (fleet->rollout.state != ROLLOUT_RUNNING || generation != fleet->generation || !fleet->redis_up ||
            fleet->redis_at > began_at)
                return;
        if (model->failed_generation != fleet->generation)
                model->failures = 0;
        model->failed_generation = fleet->generation;
        model->failed_at = sim->now;
        model->failures++;
}

/* After a backward step of the wall clock, an answer this late, and stale_usec old, may count as new. */
#define STEPPED_USEC (150 * SEC)

bool check_is_unsure(const struct sim *sim)
{
        return sim->stepped_back_at != 0 && sim->now <= sim->stepped_back_at + STEPPED_USEC;
}

/* Returns true while lies may keep workers from being replaced: until heartbeats count again. */
static bool check_has_lied(const struct sim *sim, unsigned fleet)
{
        const struct reader_sim *reader = &sim->fleets[fleet].reader;
        usec_t stale = check_stale_usec(sim, fleet);

        return reader->lied_at != 0 &&
               sim->now <= MAX(reader->lied_at, reader->delays_until) + 2 * stale + 2 * USEC_PER_MIN;
}

/* Returns true if an answer has reported the worker as idle within the bound of SECURITY.md, and nothing read
 * from /proc contradicts it. */
static bool check_is_lied_of(const struct sim *sim, const struct process *process)
{
        const struct traits *traits = process_traits(sim, process);
        bool denied = traits->has_title && process->shown_title && !process->remote.is &&
                      (process->shown_busy > 0 || !process->shown_quiet);

        return process->lied_at != 0 &&
               sim->now <= process->lied_at + sim->shell.settings.check_interval + SEC &&
               !traits->title_completes && !denied;
}

void check_reading(struct sim *sim, struct process *process, const struct heartbeat *heartbeat,
                   usec_t written_at)
{
        bool first = !process->worker->heartbeat.seen;
        usec_t asked_at = heartbeat->asked_at ?: sim->now;
        bool same = !first && heartbeat->sent_usec == process->read_heartbeat;
        /* For a new sqmgr, too, an old heartbeat cannot be told from a new one. */
        bool unsure = process->rebased || check_is_unsure(sim);
        bool newer = (written_at > process->read_written_at || unsure) &&
                     heartbeat->sent_usec > process->read_heartbeat;

        if (first) {
                process->first_read_at = sim->now;
                process->counted_failure = false;
        }
        if (heartbeat->work_list_known || !same)
                process->read_list_empty = heartbeat->work_list_known && heartbeat->work_list_empty;
        bool marks = asked_at > sim->shell.trusted_at;
        /* A lie does not show when the heartbeat was written that the server has. */
        if (process->lied_at != sim->now)
                process->read_written_at =
                        unsure || first ? written_at : MAX(process->read_written_at, written_at);
        /* The first reading of a new sqmgr counts, whatever the one before has read since. */
        bool counts = newer || first || (process->rebased && process->idle_row == 0);
        if (same && counts)
                process->idle_row = heartbeat->quiet && heartbeat->busy == 0;
        process->rebased = false;
        process->title_read_at = process->title_idle_from = 0;
        if (same) {
                process->marked = marks;
                return;
        }
        process->read_heartbeat = heartbeat->sent_usec;
        if (!heartbeat->quiet || heartbeat->busy > 0)
                process->idle_row = 0;
        else if (counts)
                process->idle_row++;
        if (first || (process->marked && newer)) {
                /* The first heartbeat that is read after a doubt about time may have been written before it.
                 */
                process->trusted_reads += !first || marks;
                process->changed_at = asked_at;
                process->shown_again = !first && written_at <= process->newest_written_at;
                process->hung = false;
        }
        process->newest_written_at = MAX(process->newest_written_at, written_at);
        process->marked = marks;
}

void check_distrust(struct sim *sim, unsigned fleet)
{
        SIM_FOREACH_PROCESS(sim, process) {
                if (fleet != UINT32_MAX && process->fleet != fleet)
                        continue;
                process->trusted_reads = 0;
                process->marked = false;
        }
}

void check_began(struct sim *sim)
{
        SIM_FOREACH_PROCESS(sim, process)
                process->rebased = true;
}

/* A title is mostly rewritten within half of this time. */
#define TITLE_IDLE_USEC (20 * SEC)

/* The worker's heartbeat is not known, but its title was read recently, while time, Redis and sqmgr were
 * trusted. */
static bool check_title_tells(const struct sim *sim, const struct process *process)
{
        return (process_traits(sim, process)->has_title ||
                process_traits(sim, process)->process_is_heartbeat) &&
               sim->fleets[process->fleet].link.up && process->title_read_at > sim->shell.trusted_at &&
               sim->now - process->title_read_at <= 3 * sim->shell.settings.check_interval;
}

void check_title(struct sim *sim, struct process *process, bool known, bool idle)
{
        if (known)
                process->title_read_at = sim->now;
        if (!known || !idle || process->title_idle_from <= sim->shell.trusted_at)
                process->title_idle_from = known && idle ? sim->now : 0;
}

/* Returns the number of workers without known heartbeats whose titles have shown for ready_after that they
 * accept jobs. */
static unsigned check_title_ready(const struct sim *sim, unsigned fleet, const struct process *except)
{
        unsigned ready = 0;

        SIM_FOREACH_PROCESS(sim, process)
                ready += process->fleet == fleet && process != except && process->worker &&
                         process->worker->state == WORKER_STARTING && process->title_first_at != 0 &&
                         process->title_read_at > sim->shell.trusted_at &&
                         sim->now >= process->title_first_at +
                                             sim->shell.world->fleets[fleet]->settings->ready_after;
        return ready;
}

/* check_title_tells(), with the check before a worker is quieted by its title. */
static bool check_title_quiet(struct sim *sim, const struct process *process)
{
        bool tells = check_title_tells(sim, process);

        if (tells && !process->threads_counted && process_traits(sim, process)->has_job_threads)
                violate(sim, "P1", "%s is quieted, and not all of its job threads were seen",
                        process_name(sim, process));
        return tells;
}

static void check_title_idle(struct sim *sim, const struct process *process)
{
        bool threads = process_traits(sim, process)->has_job_threads;

        if (threads && process_threads(sim, process) > 0)
                violate(sim, "P1", "%s is stopped though job threads of it are left",
                        process_name(sim, process));
        if ((threads && !process->threads_counted) || process->title_idle_from == 0 ||
            process->title_read_at - process->title_idle_from < (threads ? TITLE_IDLE_USEC : SEC))
                violate(sim, "P1", "%s is stopped though its title was not idle for long",
                        process_name(sim, process));
}

/* Returns true if sqmgr need not know this process. */
static bool check_is_unowned(const struct process *process)
{
        if (process->left_behind || process->let_go || process->unseen)
                return true;
        /* A fork that waits runs no job, and ends by itself if sqmgr does not know it. So does a template,
         * unless it works as a worker. */
        return process->awaits_go ||
               (process->is_template && (!process->booted || process->as_template.template));
}

/* Returns the number of requested forks of this fleet, from this generation on, that have not reported. */
static unsigned check_forking(const struct sim *sim, unsigned fleet, uint64_t generation)
{
        unsigned n = 0;

        for (size_t i = 0; sim->fleets[fleet].preloads && i < sim->n_processes; i++) {
                const struct template_process *template = &sim->processes[i]->as_template;

                n += sim->processes[i]->fleet == fleet && template->index != 0 &&
                     template->generation >= generation;
        }
        return n;
}

/* Returns true if the fleet's workers must be forked, as far as the world knows. */
static bool check_preloads(const struct sim *sim, unsigned fleet)
{
        const struct fleet *core = sim->shell.world->fleets[fleet];

        return core->settings->preload && core->settings->traits->can_preload &&
               fleet_order(core) == ORDER_RUN && !sim->shell.world->shutting_down &&
               fleet_preload_refused(core)[0] == '\0';
}

/* Returns true if sqmgr knows that the template is ready, and not yet that it has ended. With a wrapper,
 * sqmgr learns the end last. */
static bool template_seems_ready(const struct template_process *template)
{
        return template->template && !template->template->lost && template->ready &&
               template->ended_at == 0 && !template->unsafe &&
               (template->connected || template->process->exit_report_at != USEC_INFINITY);
}

const struct template_process *check_template(const struct sim *sim, unsigned fleet, bool newest)
{
        uint64_t generation = sim->shell.world->fleets[fleet]->generation;
        uint64_t before = sim->shell.world->fleets[fleet]->rollout.before;
        const struct template_process *found = NULL;

        for (size_t i = 0; sim->fleets[fleet].preloads && i < sim->n_processes; i++) {
                const struct template_process *template = &sim->processes[i]->as_template;

                if (sim->processes[i]->fleet == fleet && template_seems_ready(template) &&
                    (template->generation == generation) == newest &&
                    (!found || template->generation == before ||
                     (template->generation < found->generation && found->generation != before)))
                        found = template;
        }
        return found;
}

static bool check_template_state(const struct sim *sim, unsigned fleet, enum template_state state)
{
        FLEET_FOREACH_TEMPLATE(sim->shell.world->fleets[fleet], template)
                if (template->state == state)
                        return true;
        return false;
}

/* Returns true if the fleet's template is due, and needs more memory than is free. */
static bool check_load_lacks_memory(const struct sim *sim, unsigned fleet)
{
        const struct world *world = sim->shell.world;

        return check_preloads(sim, fleet) && !check_template(sim, fleet, true) &&
               world->available_bytes > 0 &&
               memory_is_short(world, memory_reserved_bytes(world, sim->now),
                               fleet_template_bytes(world->fleets[fleet]));
}

/* Checks that a start is forked from the right template, once. */
static void check_fork(struct sim *sim, const struct action *action)
{
        const struct fleet *fleet = action->fleet;
        unsigned number = check_number(sim, fleet);
        const struct template_process *from = action->template ? action->template->process : NULL;
        const struct template_process *old = check_template(sim, number, false);
        const struct template_process *new = check_template(sim, number, true);

        if (!from && old && fleet->rollout.state == ROLLOUT_HALTED && fleet->settings->preload &&
            !fleet->rollout.returned)
                violate(sim, "P7", "after a halt a worker is started, though the old code is there to fork");
        if (!from)
                return;
        if (from->unsafe)
                violate(sim, "P1", "%s is forked, though it leaves a socket open for all to share",
                        process_name(sim, from->process));
        if (from->index != 0)
                violate(sim, "P3", "%s is asked for %u while it forks %u", process_name(sim, from->process),
                        action->index, from->index);
        SIM_FOREACH_PROCESS(sim, process)
                if (process->fleet == number && process->as_template.index == action->index)
                        violate(sim, "P3", "place %u is given twice", action->index);
        if (fleet->rollout.state == ROLLOUT_HALTED && !fleet->rollout.returned && old && from != old)
                violate(sim, "P7",
                        "after a halt a worker is forked from generation %llu, the old one is %llu",
                        (unsigned long long)from->generation, (unsigned long long)old->generation);
        if (fleet->rollout.state == ROLLOUT_RUNNING && fleet->rollout.limit == 0 && new &&from != new)
                violate(sim, "P6", "a worker is forked from generation %llu, though %llu is ready",
                        (unsigned long long)from->generation, (unsigned long long)new->generation);
}

/* Checks that a forked process runs only once a durable ledger or the state names it. */
void check_go(struct sim *sim, const struct process *process)
{
        struct state *state = NULL;
        bool found = process->record != 0 && !sim->shell.world->ledger_volatile;

        if (!found &&
            state_unpack(sim->shell.state, sim->shell.state_size, "boot", sim->now, &state) == STATE_READ)
                for (size_t i = 0; i < state->n_fleets; i++)
                        for (size_t j = 0; j < state->fleets[i].n_workers; j++) {
                                const struct worker *worker = &state->fleets[i].workers[j].worker;

                                found |= worker->process.pid == process->pid &&
                                         worker->process.start == process->start;
                        }
        state_free(state);
        if (!found)
                violate(sim, "P4", "%s is let go on before it is recorded", process_name(sim, process));
}

/* Call for each start, and for each fork once sqmgr knows its worker. */
static void check_flapping(struct sim *sim, const struct fleet *fleet)
{
        struct fleet_sim *model = &sim->fleets[check_number(sim, fleet)];

        if (sim->now >= model->hour_at + USEC_PER_HOUR) {
                model->hour_at = sim->now;
                model->hour_starts = 0;
                model->hour_target = 0;
        }
        model->hour_target = MAX(model->hour_target, MAX(scaling_target(sim, fleet), 1U));
        /* A worker that dies after it was ready is replaced at once. */
        usec_t least = usec_add(MIN(fleet->settings->ready_after, 10 * SEC), 2 * SEC);
        if (++model->hour_starts > USEC_PER_HOUR / least * model->hour_target)
                violate(sim, "flapping", "%u starts within an hour", model->hour_starts);
        if (sim->now >= model->burst_at + 10 * SEC) {
                model->burst_at = sim->now;
                model->burst_starts = 0;
        }
        if (++model->burst_starts > 20 + 6 * MAX(scaling_target(sim, fleet), 1U))
                violate(sim, "flapping", "%u starts within 10 s", model->burst_starts);
}

void check_hello(struct sim *sim, const struct process *process)
{
        struct fleet_sim *model = &sim->fleets[process->fleet];

        model->slowest_fork = MAX(model->slowest_fork, sim->now - process->spawned_at);
        model->troubles = 0;
        check_flapping(sim, process->worker->fleet);
        if (process->worker->index != process->index ||
            process->worker->generation != process->mark_generation)
                violate(sim, "P4", "%s is taken for another", process_name(sim, process));
}

/* Returns true if a requested fork has taken longer than any fork may, while the template and sqmgr could
 * work on it. */
static bool fork_is_overdue(const struct sim *sim, const struct template_process *template, usec_t slack)
{
        const struct process *process = template->process;
        const struct fleet_sim *model = &sim->fleets[process->fleet];
        usec_t boot_timeout = sim->shell.world->fleets[process->fleet]->settings->boot_timeout;
        usec_t patience = MAX(5 * SEC, MIN(10 * model->slowest_fork, boot_timeout));
        usec_t from = MAX(template->asked_at, MAX(sim->shell.trusted_at, sim->shell.stalled_until));

        if (template->index == 0 || !template->template)
                return false;
        if (process->frozen || process->hang_until > template->asked_at)
                patience *= 20;
        return sim->now >= from + patience + slack;
}

void check_template_end(struct sim *sim, const struct template_process *template)
{
        const struct process *process = template->process;
        const struct fleet *fleet = sim->shell.world->fleets[process->fleet];
        enum rollout_state rollout = fleet->rollout.state;
        bool forks = template->index != 0 && sim->now >= template->asked_at + 5 * SEC;

        if (evidence_booted(sim, process) && sim->now > process->booted_at + SEC)
                violate(sim, "P1", "%s works, and is ended as a template", process_name(sim, process));
        if (check_template(sim, process->fleet, false) != template || forks || !fleet->settings->preload ||
            fleet_order(fleet) != ORDER_RUN || sim->shell.world->shutting_down)
                return;
        if (rollout == ROLLOUT_RUNNING || (rollout == ROLLOUT_HALTED && !fleet->rollout.returned))
                violate(sim, "P7", "%s is ended, though the restart has not ended well",
                        process_name(sim, process));
}

void check_template_kill(struct sim *sim, const struct template_process *template)
{
        const struct process *process = template->process;
        usec_t stop_timeout = sim->shell.world->fleets[process->fleet]->settings->stop_timeout;

        if (template->ended_at == 0)
                violate(sim, "P1", "%s is killed before it was told to end", process_name(sim, process));
        if (!template->loaded && sim->now < template->ended_at + stop_timeout)
                violate(sim, "P1", "%s, that may work, is killed %llu s after it was told to end",
                        process_name(sim, process),
                        (unsigned long long)((sim->now - template->ended_at) / SEC));
}

unsigned check_failures(const struct fleet *fleet)
{
        return fleet->rollout.failures + fleet->preload.failures + fleet->crash.count;
}

void check_unborn(struct sim *sim, const struct worker *known, const struct worker *worker, unsigned failures)
{
        if (known->process.awaits_go && worker->state == WORKER_GONE &&
            check_failures(worker->fleet) != failures)
                violate(sim, "P4", "that %s, which was not told to go on, has ended counts as a failure",
                        WORKER_ID(worker));
}

void check_template_trouble(struct sim *sim, const struct template_process *template, bool fails)
{
        const struct process *process = template->process;

        sim->fleets[process->fleet].troubles++;
        if (fails && template->ended_at == 0 && template->template->state != TEMPLATE_ENDING &&
            !template->template->lost)
                check_failed_start(sim, process->fleet, template->generation, process->spawned_at);
}

/* Returns the number of template processes that are alive, or that sqmgr takes for alive. */
static unsigned check_living_templates(const struct sim *sim, unsigned fleet)
{
        unsigned n = 0;

        SIM_FOREACH_PROCESS(sim, process)
                n += process->fleet == fleet && process->is_template && !process->let_go &&
                     (process_is_alive(process) || process->as_template.template);
        return n;
}

/* P6: the template of a new release loads at once, while the server of the fleet is up. */
static void check_load(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        const struct fleet *fleet = sim->shell.world->fleets[number];
        bool any = false;

        SIM_FOREACH_PROCESS(sim, process) {
                const struct template_process *template = &process->as_template;

                any |= process->fleet == number && template->template &&
                       template->generation == fleet->generation && template->ended_at == 0;
        }
        if (any || !check_preloads(sim, number) || fleet->rollout.state != ROLLOUT_RUNNING ||
            check_living_templates(sim, number) >= TEMPLATES_MAX || sim->read_left < MEMORY_PLENTY / 2 ||
            fleet->held || !model->link.up || sim->now < MAX(fleet->crash.next_at, fleet->shortage.next_at) ||
            sim->now < sim->fork_fails_until)
                model->load_since = 0;
        else if (model->load_since == 0)
                model->load_since = sim->now;
        else if (sim->now > model->load_since + SEC)
                violate(sim, "P6", "the new release is not loaded");
}

static void check_kept(struct sim *sim, const struct template_process *template)
{
        const struct process *process = template->process;
        const struct fleet *fleet = sim->shell.world->fleets[process->fleet];

        if (fork_is_overdue(sim, template, 10 * SEC) && template->ended_at == 0)
                violate(sim, "P8", "%s was asked for a fork %llu s ago", process_name(sim, process),
                        (unsigned long long)((sim->now - template->asked_at) / SEC));
        if (fleet->rollout.state == ROLLOUT_DONE && template->generation != fleet->generation &&
            template->ended_at == 0 && template->ready && process->runner_alive && template->template &&
            sim->now > fleet->rollout.kept_since + TEMPLATE_KEEP_USEC)
                violate(sim, "P3", "%s is kept though the restart is done", process_name(sim, process));
        if (template->template && !template->connected && template->ended_at == 0 && template->loaded &&
            process->runner_alive)
                violate(sim, "P3", "%s is kept though nobody speaks with it", process_name(sim, process));
}

static void check_templates(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];
                const struct fleet *fleet = sim->shell.world->fleets[i];

                if (!model->preloads)
                        continue;
                SIM_FOREACH_PROCESS(sim, process)
                        if (process->fleet == i && process->is_template)
                                check_kept(sim, &process->as_template);
                check_load(sim, i);
                if (fleet->preload.unrecorded && sim->now > sim->disk_full_until + 10 * SEC)
                        violate(sim, "P5", "fleet '%s' is not preloaded, though the state is written",
                                fleet->settings->name);
                /* A generation that the fleet has returned to may have been refused before. */
                if (fleet_preload_is_refused(fleet) && !fleet->rollout.returned && !model->excused &&
                    model->troubles < 3)
                        violate(sim, "P5", "fleet '%s' is not preloaded, though nothing is wrong with that",
                                fleet->settings->name);
        }
}

static bool check_templates_settled(const struct sim *sim, unsigned number)
{
        const struct fleet *fleet = sim->shell.world->fleets[number];
        bool halted = fleet->rollout.state == ROLLOUT_HALTED || fleet->rollout.state == ROLLOUT_ABORTED;
        unsigned wanted = check_preloads(sim, number);

        /* A template that does not load is ended after boot_timeout, and killed after stop_timeout. */
        if (check_template_state(sim, number, TEMPLATE_LOADING) ||
            check_template_state(sim, number, TEMPLATE_ENDING))
                return false;
        SIM_FOREACH_PROCESS(sim, process)
                if (process->fleet == number && process->is_template && process_is_alive(process) &&
                    !process->let_go && !process->as_template.template)
                        return false;
        if (fleet->rollout.returned)
                return check_living_templates(sim, number) <= 1;
        if (halted && check_template(sim, number, false))
                return check_living_templates(sim, number) <= TEMPLATES_MAX;
        return check_living_templates(sim, number) == wanted &&
               (!wanted || check_template(sim, number, true));
}

/* Returns true if the heartbeat has changed recently, while time, Redis and sqmgr were trusted (P5, P9). */
static bool has_evidence(const struct sim *sim, const struct process *process)
{
        return sim->fleets[process->fleet].link.up && process->trusted_reads > 0 &&
               sim->now - process->changed_at <= check_stale_usec(sim, process->fleet);
}

/* Returns true if a heartbeat that was read before, or an older one, is the evidence for a worker of the
 * fleet. A replica has lagged, and sqmgr need not take that heartbeat for a sign of life. */
static bool is_any_shown_again(const struct sim *sim, unsigned fleet)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process->fleet == fleet && process->shown_again && has_evidence(sim, process))
                        return true;
        return false;
}

static bool is_heard(const struct sim *sim, const struct process *process, unsigned fleet)
{
        return process->fleet == fleet && process->worker && process->worker->state <= WORKER_QUIET &&
               has_evidence(sim, process);
}

/* Returns the promise that is broken if a worker without evidence is ended: P9 if only a disturbance of time
 * or sqmgr since its heartbeat makes that no evidence, else P5. */
static const char *evidence_promise(const struct sim *sim, const struct process *process)
{
        const struct link *link = &sim->fleets[process->fleet].link;
        bool lately = process->changed_at != 0 &&
                      sim->now - process->changed_at <= check_stale_usec(sim, process->fleet);
        bool doubted = process->changed_at > link->up_at && process->changed_at <= sim->shell.trusted_at;

        return link->up && lately && doubted ? "P9" : "P5";
}

/* Returns true if the worker is alive as far as known, and was silent for hang_after although its heartbeats
 * could have been received. */
static bool seems_hung(const struct sim *sim, const struct process *process)
{
        const struct link *link = &sim->fleets[process->fleet].link;
        usec_t from = MAX(process->changed_at, MAX(link->up_at, sim->shell.trusted_at));
        usec_t hang_after = settings_of(sim, process->fleet)->hang_after;

        if (!process->worker ||
            (process->worker->state != WORKER_ACTIVE && process->worker->state != WORKER_QUIET))
                return false;
        return process->hung || (link->up && hang_after > 0 &&
                                 sim->now > from + MAX(hang_after, check_stale_usec(sim, process->fleet)));
}

/* Returns true if the trial of a new worker is over (P7). */
static bool outlived_trial(const struct sim *sim, const struct process *process)
{
        return process->first_read_at != 0 &&
               sim->now >= process->first_read_at + settings_of(sim, process->fleet)->ready_after;
}

/* Returns true if the worker has been active for ready_after, as far as could be known. */
static bool seems_ready(const struct sim *sim, const struct process *process)
{
        const struct worker *worker = process->worker;
        bool lives = process->runner_alive || process->exit_report_at != USEC_INFINITY;

        return worker && worker->state == WORKER_ACTIVE && lives && outlived_trial(sim, process) &&
               has_evidence(sim, process);
}

static unsigned count_ready(const struct sim *sim, unsigned fleet, const struct process *except)
{
        unsigned ready = 0;

        SIM_FOREACH_PROCESS(sim, process)
                ready += process->fleet == fleet && process != except && seems_ready(sim, process);
        return ready;
}

/* Returns true if the new release has shown itself: as many of its workers as the fleet needs are ready. */
static bool is_all_new(const struct sim *sim, unsigned number)
{
        const struct fleet *fleet = sim->shell.world->fleets[number];
        unsigned ready = 0;

        SIM_FOREACH_PROCESS(sim, process)
                ready += process->fleet == number && seems_ready(sim, process) &&
                         process->worker->generation == fleet->generation;
        return ready >= scaling_target(sim, fleet) &&
               (!check_preloads(sim, number) || check_template(sim, number, true));
}

static unsigned count_living(const struct sim *sim, unsigned fleet)
{
        unsigned living = 0;

        SIM_FOREACH_PROCESS(sim, process)
                living += process->fleet == fleet && process_is_alive(process) &&
                          (process->worker || !check_is_unowned(process));
        /* A requested fork counts. */
        return living + check_forking(sim, fleet, 0);
}

static unsigned draining_for_restart(const struct fleet *fleet, const struct worker *except)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(fleet, worker)
                n += worker != except &&
                     (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING) &&
                     (worker->reason == REASON_RESTART || worker->reason == REASON_ROLLBACK);
        return n;
}

/* True while sqmgr still searches for this worker, and so starts no other for its index. */
static bool is_sought(const struct sim *sim, const struct process *process)
{
        return sim->shell.adoption && sim->shell.world->fleets[process->mark_fleet]->held;
}

/* Returns the least size that a worker of the fleet grows to, as far as readings of active workers show; 0:
 * not known. */
static uint64_t known_size(const struct sim *sim, unsigned fleet)
{
        uint64_t base = sim->fleets[fleet].good.base_bytes;
        bool known = false;

        /* A forked worker's minimum of memory that is not shared. */
        if (sim->fleets[fleet].preloads)
                base /= 4;

        SIM_FOREACH_PROCESS(sim, process) {
                const struct worker *worker = process->worker;

                if (process->fleet != fleet || !worker || worker->state != WORKER_ACTIVE)
                        continue;
                if (process->read_bytes > 0 && process->read_bytes < base)
                        return 0;
                known |= process->read_bytes > 0;
        }
        return known ? base : 0;
}

/* P1: an extra worker takes no memory that, by what was read, another worker will need. */
static void check_memory(struct sim *sim, const struct fleet *fleet, unsigned number)
{
        uint64_t promised = 0;
        bool any = false;

        SIM_FOREACH_PROCESS(sim, process) {
                any |= process->fleet == number && process->worker && process->worker->state <= WORKER_ACTIVE;
                /* A worker that was asked to exit grows no more. */
                if (process->runner_alive && !check_is_unowned(process) &&
                    !(process->worker && process->worker->state == WORKER_STOPPING))
                        promised += known_size(sim, process->fleet) -
                                    MIN(known_size(sim, process->fleet),
                                        MAX(process->held_bytes, process->read_bytes));
        }
        if (!any || sim->read_left == 0 || count_living(sim, number) < scaling_target(sim, fleet))
                return;
        if (sim->read_left < promised + known_size(sim, number))
                violate(sim, "P1",
                        "an extra worker of %llu M is started with %llu M left, %llu M of them for others",
                        (unsigned long long)(known_size(sim, number) / MEGABYTE),
                        (unsigned long long)(sim->read_left / MEGABYTE),
                        (unsigned long long)(promised / MEGABYTE));
}

/* Checks P3 and the bounds of surge. */
static void check_start(struct sim *sim, const struct action *action)
{
        const struct fleet *fleet = action->fleet;
        unsigned number = check_number(sim, fleet), living = count_living(sim, number);
        unsigned trying = check_forking(sim, number, fleet->generation), hung = 0;
        unsigned present = check_forking(sim, number, 0);
        struct fleet_sim *model = &sim->fleets[number];

        /* A worker that is outdated while it still boots takes no place of the surge (P6). */
        FLEET_FOREACH_WORKER(fleet, worker) {
                hung += worker->state == WORKER_ACTIVE && seems_hung(sim, worker->handle);
                trying += (worker->state == WORKER_ACTIVE && !seems_hung(sim, worker->handle)) ||
                          (worker->state == WORKER_STARTING && worker->generation == fleet->generation);
                present += worker->state == WORKER_STARTING ||
                           (worker->state == WORKER_ACTIVE && !seems_hung(sim, worker->handle));
        }
        if (!model->link.up && present >= scaling_target(sim, fleet))
                violate(sim, "P5",
                        "a start with %u active and starting while Redis is away, the target is %u", present,
                        scaling_target(sim, fleet));
        SIM_FOREACH_PROCESS(sim, process)
                if (process_is_alive(process) && !process->worker && !check_is_unowned(process) &&
                    !is_sought(sim, process))
                        violate(sim, "P4", "a start while %s lives and is not known",
                                process_name(sim, process));
        if (living >= fleet_max_processes(fleet))
                violate(sim, "P3", "a start with %u processes alive, max_processes is %u", living,
                        fleet_max_processes(fleet));
        if (trying >= scaling_target(sim, fleet) + MAX(fleet->rollout.returned && fleet_surge(fleet) > 0
                                                               ? scaling_target(sim, fleet)
                                                               : fleet_surge(fleet),
                                                       1U))
                violate(sim, "P3", "a start with %u active and starting, the target is %u and the surge %u",
                        trying, scaling_target(sim, fleet), fleet_surge(fleet));
        if (hung > 0 && model->fresh_since == 0 && trying > usec_sub(scaling_target(sim, fleet), hung))
                violate(sim, "P5", "a start with %u hung, %u trying and none heard of", hung, trying);
        check_memory(sim, fleet, number);
        check_fork(sim, action);
        model->gap_since = sim->now;
        /* A fork is counted once sqmgr knows it. */
        if (!action->template)
                check_flapping(sim, fleet);
}

/* Resets the failures once a new worker has outlived its trial and the last failure, or none is missing. */
static void forgive_failures(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        const struct fleet *fleet = sim->shell.world->fleets[number];

        for (size_t i = 0; i < sim->n_processes && model->failures > 0; i++) {
                const struct process *process = sim->processes[i];

                if (process->fleet == number && process->worker &&
                    (process->runner_alive || process->exit_report_at != USEC_INFINITY) &&
                    process->worker->generation == fleet->generation && outlived_trial(sim, process) &&
                    process->first_read_at + fleet->settings->ready_after > model->failed_at)
                        model->failures = 0;
        }
        if (model->failures > 0 && is_all_new(sim, number))
                model->failures = 0;
}

/* P2 and P7: others must be ready, and a failing release replaces no worker. */
static void check_replaced(struct sim *sim, const struct action *action, struct process *process)
{
        const struct fleet *fleet = action->fleet;
        const struct worker *worker = action->worker;
        struct fleet_sim *model = &sim->fleets[process->fleet];
        unsigned ready = count_ready(sim, process->fleet, process), needed = scaling_target(sim, fleet);

        if (action->reason == REASON_OPERATOR || action->reason == REASON_SHUTDOWN ||
            worker->memory.over_limit ||
            (action->reason == REASON_ROLLBACK && !check_template(sim, process->fleet, true) &&
             (fleet->rollout.state == ROLLOUT_HALTED || !fleet->settings->preload)))
                return;
        if ((action->reason == REASON_RESTART || action->reason == REASON_ROLLBACK) &&
            fleet_surge(fleet) == 0 && needed > 0 && draining_for_restart(fleet, worker) == 0)
                needed--;
        if (check_title_tells(sim, process))
                ready += check_title_ready(sim, process->fleet, process);
        if (ready < needed)
                violate(sim, "P2", "%s is quieted for %s with %u others ready, %u are needed",
                        process_name(sim, process), reason_name(action->reason), ready, needed);
        if (action->reason == REASON_RESTART && check_preloads(sim, process->fleet) &&
            !check_template(sim, process->fleet, true))
                violate(sim, "P7", "%s is quieted for a restart before its template is ready",
                        process_name(sim, process));
        forgive_failures(sim, process->fleet);
        /* A process that was asked to exit before is not replaced by this restart. */
        if (action->reason == REASON_RESTART && model->failures > 0 && !process->outlived_stop &&
            model->failed_generation == fleet->generation)
                violate(sim, "P7", "%s is quieted for a restart whose last new worker failed",
                        process_name(sim, process));
}

/* Its title shows a worker, and one signal asks it to exit after its jobs: no heartbeat is needed. */
static bool is_asked_in_silence(const struct sim *sim, const struct process *process)
{
        const struct traits *traits = process_traits(sim, process);

        return traits->process_is_heartbeat && traits->quiet_is_stop && process->shown_title &&
               sim->fleets[process->fleet].link.up;
}

static void check_quiet(struct sim *sim, const struct action *action, struct process *process)
{
        if (process->first_read_at == 0 && !check_title_tells(sim, process))
                violate(sim, "P1", "%s is quieted before it has beaten", process_name(sim, process));
        if (!has_evidence(sim, process) && !is_asked_in_silence(sim, process) &&
            !check_title_quiet(sim, process))
                violate(sim, evidence_promise(sim, process), "%s is quieted without a fresh beat, Redis %s",
                        process_name(sim, process), sim->fleets[process->fleet].link.up ? "up" : "away");
        /* A worker that does not catch the signal was judged before that. */
        if (action->reason == REASON_DEAF && action->worker->state <= WORKER_ACTIVE && !process->refused)
                deaf_check(sim, action, process);
        if (action->worker->state <= WORKER_ACTIVE)
                check_replaced(sim, action, process);
}

/* Checks that a worker without any heartbeat is ended only if it cannot have booted. */
static void check_boot_stop(struct sim *sim, const struct action *action, struct process *process)
{
        const struct link *link = &sim->fleets[process->fleet].link;
        usec_t since = MAX(process->spawned_at, sim->shell.trusted_at);

        if (!link->up)
                violate(sim, "P5", "%s is ended as not booted with Redis away", process_name(sim, process));
        if (sim->now < since + action->fleet->settings->boot_timeout)
                violate(sim, "P9", "%s is ended as not booted before boot_timeout",
                        process_name(sim, process));
        if (evidence_booted(sim, process) && sim->now > process->booted_at + SEC)
                violate(sim, "P1", "%s is ended as not booted, though its title says that it did",
                        process_name(sim, process));
        if (process->booted && !sim->fleets[process->fleet].shown && !fleet_is_bare(sim, process->fleet))
                violate(sim, "P1", "%s is ended as not booted, and none of its fleet has shown a boot",
                        process_name(sim, process));
        if (process->booted && process_traits(sim, process)->shim)
                violate(sim, "P1", "%s is ended as not booted, and may only lack its shim",
                        process_name(sim, process));
}

/* P1: the worker must be proven idle by what was read, and idle in truth. */
static void check_idle(struct sim *sim, const struct action *action, struct process *process)
{
        const struct worker *worker = action->worker;
        const struct fleet_settings *settings = action->fleet->settings;
        bool overdue =
                (settings->drain_timeout > 0 &&
                 sim->now >= worker->orders.quiet_at + settings->drain_timeout) ||
                (settings->stop_bounded && sim->now >= worker->orders.quiet_at + settings->stop_timeout);

        if (worker->state == WORKER_QUIET && (settings->traits->quiet_is_stop || process->drains)) {
                if (process->runner_alive && !overdue)
                        violate(sim, "P1", "%s has been told, and is not left alone",
                                process_name(sim, process));
                return;
        }
        if (worker->state != WORKER_QUIET)
                violate(sim, "P1", "%s is stopped while %s", process_name(sim, process),
                        worker_state_name(worker->state));
        else if (!process->runner_alive || (worker->process.heartbeat_pid != 0 &&
                                            worker->process.heartbeat_start != process->runner_start))
                return; /* The process that was quieted has ended: the signal reaches none. */
        else if (!has_evidence(sim, process) && !check_title_tells(sim, process))
                violate(sim, evidence_promise(sim, process), "%s is stopped without a fresh beat, Redis %s",
                        process_name(sim, process), sim->fleets[process->fleet].link.up ? "up" : "away");
        else if (overdue || check_is_lied_of(sim, process))
                return;
        else if (!process->quiet && process->quiet_from == USEC_INFINITY)
                violate(sim, "P1", "%s is stopped, and nothing has quieted it", process_name(sim, process));
        else if (worker->heartbeat.busy > 0 && settings->interruptible && interrupt_plain_jobs(process) == 0)
                return;
        else if (process_jobs(process) > 0)
                violate(sim, "P1", "%s is stopped with %u jobs running", process_name(sim, process),
                        process_jobs(process));
        else if (check_title_tells(sim, process))
                check_title_idle(sim, process);
        else if (process->lied_at == 0 &&
                 (process->idle_row < 2 ||
                  (!process->read_list_empty && process_traits(sim, process)->has_work_list)))
                violate(sim, "P1", "%s is stopped after %u idle beats, its work list %s",
                        process_name(sim, process), process->idle_row,
                        process->read_list_empty ? "empty" : "not known to be empty");
}

/* Checks hang_action = kill: the worker must hang, and Redis must not be at fault. Another worker sends
 * heartbeats, or none can be started to try. */
static void check_hang_stop(struct sim *sim, const struct action *action, const struct process *process)
{
        const struct fleet_sim *model = &sim->fleets[process->fleet];
        bool heard = model->fresh_since != 0 &&
                     sim->now >= model->fresh_since + check_stale_usec(sim, process->fleet);
        unsigned starting = 0;
        bool any_heard = false;

        FLEET_FOREACH_WORKER(action->fleet, worker)
                starting += worker->state == WORKER_STARTING;
        /* After a lie, true heartbeats may be taken for old ones. */
        SIM_FOREACH_PROCESS(sim, other)
                any_heard |= is_heard(sim, other, process->fleet) && other->lied_at == 0;
        if (action->fleet->settings->hang_action != HANG_KILL)
                violate(sim, "P5", "%s is ended as hung, which hang_action does not ask for",
                        process_name(sim, process));
        if (!seems_hung(sim, process))
                violate(sim, "P5", "%s is ended as hung, though it was heard of %llu s ago",
                        process_name(sim, process),
                        (unsigned long long)((sim->now - process->changed_at) / SEC));
        if (!model->link.up)
                violate(sim, "P5", "%s is ended as hung with Redis away", process_name(sim, process));
        if (!heard &&
            (any_heard || starting > 0 || action->fleet->n_workers < fleet_max_processes(action->fleet)))
                violate(sim, "P5", "%s is ended as hung while none is heard of", process_name(sim, process));
}

/* Returns true if a fork that waits for the state is ended in favor of a worker that boots separately: it has
 * done nothing. */
static bool makes_way(struct sim *sim, const struct action *action, const struct process *process)
{
        const struct shell *shell = &sim->shell;

        return process->awaits_go && action->reason == REASON_SCALE && shell->behind &&
               sim->now >= shell->behind_since + action->fleet->settings->boot_timeout;
}

static void check_stop(struct sim *sim, const struct action *action, struct process *process)
{
        if (remote_repeats(sim, action, process) || is_forced(sim, action->fleet) ||
            makes_way(sim, action, process))
                return;
        /* The process that sent heartbeats has ended. The leftover is signaled, too: a wrapper, and a process
         * that it has started since. That process has not booted, and sends no heartbeats yet. */
        if (worker_is_remainder(action->worker))
                return;
        if (action->reason == REASON_HUNG) {
                check_hang_stop(sim, action, process);
                return;
        }
        if (action->worker->state != WORKER_STARTING) {
                check_idle(sim, action, process);
                return;
        }
        check_boot_stop(sim, action, process);
}

static void check_kill(struct sim *sim, const struct action *action, const struct process *process)
{
        /* The process that got the stop signal has ended: this signal is for its successor alone. */
        if (action->worker->process.heartbeat_pid != 0 &&
            action->worker->process.heartbeat_start != process->runner_start)
                return;
        bool bounded = action->fleet->settings->stop_bounded;
        usec_t from =
                MAX(MAX(process->term_at, bounded ? 0 : process->cut_at), sim->shell.world->doubt.since);

        /* A worker whose stop signal is unconfirmed gets no second one, but its deadline counts. */
        bool was_asked = process->term_at != 0 || process->knows_end || action->worker->orders.unconfirmed ||
                         /* A writer to the server can report it as asked to exit: SECURITY.md. */
                         (process->lied_at != 0 && process_traits(sim, process)->quiet_is_stop);
        if (action->worker->state != WORKER_STOPPING || !was_asked)
                violate(sim, "P1", "%s is killed before it was told to exit", process_name(sim, process));
        usec_t delivery = action->worker->process.remote ? 2 * action->fleet->settings->traits->sent_usec : 0;
        if (sim->now < from + action->fleet->settings->stop_timeout + delivery)
                violate(sim, "P1", "%s is killed %llu s after it was told to exit",
                        process_name(sim, process), (unsigned long long)((sim->now - from) / SEC));
        if (!sim->fleets[process->fleet].link.up && !sim->shell.world->shutting_down &&
            !is_forced(sim, action->fleet))
                violate(sim, "P5", "%s is killed with Redis away", process_name(sim, process));
}

void check_action(struct sim *sim, const struct action *action)
{
        struct process *process = action->worker ? action->worker->handle : NULL;

        sim->actions++;
        if (sim->settled_at != 0)
                violate(sim, "flapping", "an action (%d) after all had settled", (int)action->kind);
        trial_check(sim, action, process);
        if (action->kind == ACTION_START)
                check_start(sim, action);
        else if (action->kind == ACTION_QUIET)
                check_quiet(sim, action, process);
        else if (action->kind == ACTION_STOP)
                check_stop(sim, action, process);
        else if (action->kind == ACTION_KILL)
                check_kill(sim, action, process);
}

/* No flapping: a worker is signaled once, and again only if something happened in between. */
void check_signalled(struct sim *sim, const struct action *action, struct process *process)
{
        unsigned *times = action->kind == ACTION_QUIET ? &process->quiets : &process->stops;

        /* The title shows the signal some polls later; until then the worker is signaled again. */
        bool again = action->kind == ACTION_QUIET && process_traits(sim, process)->title_completes;

        /* A writer to the server can report again and again that a worker is not quiet. */
        again |= action->kind == ACTION_QUIET && process->lied_at != 0;
        /* A signal through the server may be lost. */
        again |= action->worker->process.remote;

        unsigned most = 4 + sim->shell.deaths;

        if (action->kind != ACTION_KILL && ++*times > most && !again)
                violate(sim, "flapping", "%s is asked to %s %u times", process_name(sim, process),
                        action->kind == ACTION_QUIET ? "be quiet" : "exit", *times);
        bool reports = action_signal(action) == ACTION_SIGNAL_STOP && process->runner_alive;
        bool ordered = action->reason == REASON_OPERATOR || action->reason == REASON_SHUTDOWN;
        if (reports && action->kind == ACTION_QUIET && sim->shell.world->ledger_volatile && !ordered &&
            !action->worker->memory.over_limit)
                violate(sim, "P1", "%s is asked to exit, and nothing records that",
                        process_name(sim, process));
        if (reports && process->bare && action->worker->process.shimless && process_jobs(process) > 0 &&
            !is_forced(sim, action->fleet) && !action->worker->orders.forced)
                violate(sim, "P1",
                        "%s, which does not catch its stop signal, is sent it with %u jobs running",
                        process_name(sim, process), process_jobs(process));
        if (reports && action->worker->process.shimless && process->shows_shim &&
            !is_forced(sim, action->fleet) && !action->worker->orders.forced)
                violate(sim, "P1", "%s is sent its stop signal, though it has loaded its shim",
                        process_name(sim, process));
        process->drains |= reports && action->kind == ACTION_QUIET;
        /* The next worker has time until the idle check passes. */
        if (process_traits(sim, process)->quiet_when_idle)
                sim->fleets[process->fleet].p6_since = 0;
        /* A forced order has given up the jobs. */
        bool given_up = process->given_up;
        process->given_up |= reports && (is_forced(sim, action->fleet) || action->worker->orders.forced);
        if (reports && ++process->reported_to_exit > 1 + sim->shell.ledger_losses && !given_up &&
            (process_behavior(sim, process)->second_kills || process->drains))
                violate(sim, "P1", "%s is asked to exit %u times", process_name(sim, process),
                        process->reported_to_exit);
        if (action->kind == ACTION_STOP && action->worker->state == WORKER_STARTING &&
            !is_forced(sim, action->fleet) && !makes_way(sim, action, process))
                check_failed_start(sim, process->fleet, action->worker->generation, process->spawned_at);
}

/* Call when sqmgr learns of the death of a worker. */
void check_death(struct sim *sim, struct process *process)
{
        const struct worker *worker = process->worker;

        if (!worker || !sim->shell.running || process->counted_failure)
                return;
        process->counted_failure = true;
        if ((worker->state == WORKER_STARTING || worker->state == WORKER_ACTIVE) &&
            !outlived_trial(sim, process))
                check_failed_start(sim, process->fleet, worker->generation, process->spawned_at);
}

/* P4: each living process has one worker, and each worker a living process. */
static void check_processes(struct sim *sim)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process_is_alive(process) && !process->worker && !check_is_unowned(process) &&
                    !is_sought(sim, process))
                        violate(sim, "P4", "%s lives and is forgotten", process_name(sim, process));
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = sim->shell.world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++) {
                        const struct worker *worker = fleet->workers[j];
                        const struct process *process = worker->handle;

                        if (worker->state == WORKER_GONE)
                                continue;
                        if (!process || process->worker != worker ||
                            (!process_is_alive(process) && process->exit_report_at == USEC_INFINITY))
                                violate(sim, "P4", "%s is kept though its process is none of ours",
                                        WORKER_ID(worker));
                        if (worker->generation > fleet->newest_generation)
                                violate(sim, "P4", "%s is of a generation that its fleet does not know",
                                        WORKER_ID(worker));
                        if (j > 0 && worker->index == fleet->workers[j - 1]->index)
                                violate(sim, "P4", "%s is there twice", WORKER_ID(worker));
                }
        }
}

/* P6 and P7: an old worker leaves at once if enough others are ready; a release that fails repeatedly halts
 * the restart. */
static void check_rollout(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        const struct fleet *fleet = sim->shell.world->fleets[number];
        bool due = false;
        /* Ten seconds of tries to find the worker idle, and a stall too short to be noticed. */
        usec_t most = fleet->settings->traits->quiet_when_idle
                              ? 16 * SEC + 3 * sim->shell.settings.check_interval
                              : SEC;

        forgive_failures(sim, number);
        if (fleet->rollout.state != ROLLOUT_RUNNING) {
                model->p6_since = 0;
                return;
        }
        if (model->failures >= 3 && model->failed_generation == fleet->generation)
                violate(sim, "P7", "%u new workers failed, and the restart continues", model->failures);
        bool calm = model->link.up && fleet->rollout.limit == 0 &&
                    (!rollout_is_held(fleet) || is_all_new(sim, number)) && !check_has_lied(sim, number) &&
                    !check_is_unsure(sim) && !is_any_shown_again(sim, number) &&
                    sim->now >= sim->proc_fails_until + SEC &&
                    (!check_preloads(sim, number) || check_template(sim, number, true));
        for (size_t i = 0; i < fleet->n_workers && calm && !due; i++) {
                const struct worker *worker = fleet->workers[i];
                const struct process *process = worker->handle;
                /* A stop signal that no file records could be sent twice. */
                bool recorded = !sim->shell.world->ledger_volatile || !worker_quiet_is_stop(worker);

                due = worker->state == WORKER_ACTIVE && worker->generation != fleet->generation && recorded &&
                      has_evidence(sim, process) && process->runner_alive &&
                      count_ready(sim, number, process) >= scaling_target(sim, fleet);
        }
        if (!due)
                model->p6_since = 0;
        else if (model->p6_since == 0)
                model->p6_since = sim->now;
        else if (sim->now > model->p6_since + most)
                violate(sim, "P6", "an outdated worker is kept though enough others are ready");
}

/* Returns the promise that is broken if a worker wrongly counts as hung: P9 if it was silent for that long,
 * but could not be received all the time; else P5. */
static const char *silent_promise(const struct sim *sim, const struct process *process)
{
        const struct link *link = &sim->fleets[process->fleet].link;
        usec_t hang_after =
                MAX(settings_of(sim, process->fleet)->hang_after, check_stale_usec(sim, process->fleet));
        usec_t from = MAX(process->changed_at, link->up_at);

        return link->up && sim->shell.trusted_at > from && sim->now > from + hang_after ? "P9" : "P5";
}

/* Records which workers hang, and checks that no other worker counts as hung. */
void check_hung(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];
                bool heard = false;

                for (size_t j = 0; j < sim->n_processes && !heard; j++)
                        heard = is_heard(sim, sim->processes[j], i);
                model->fresh_since = !heard ? 0 : model->fresh_since != 0 ? model->fresh_since : sim->now;
        }
        SIM_FOREACH_PROCESS(sim, process) {
                process->hung = seems_hung(sim, process) ||
                                /* A writer to the server can make a worker seem hung: SECURITY.md. */
                                (process->lied_at != 0 && process->worker && process->worker->heartbeat.hung);
                if (!process->worker || process->worker->state > WORKER_QUIET)
                        continue;
                if (process->worker->heartbeat.hung && !process->hung)
                        violate(sim, silent_promise(sim, process),
                                "%s is taken for hung, though it was heard of %llu s ago",
                                process_name(sim, process),
                                (unsigned long long)((sim->now - process->changed_at) / SEC));
        }
}

/* Checks that places that are empty or held by a hung worker are filled while Redis accepts heartbeats. */
static void check_gaps(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        const struct fleet *fleet = sim->shell.world->fleets[number];
        unsigned trying = check_forking(sim, number, 0), heard = 0, hung = 0;
        /* The start waits for a fork, or for a template that loads or ends. After a restart no worker is
         * forked from the template before, which is kept for a rollback. */
        bool waits =
                trying > 0 || (check_preloads(sim, number) && !check_template(sim, number, true) &&
                               (fleet->rollout.kept_since != 0 || !check_template(sim, number, false)) &&
                               (model->drained_at != 0 ? check_template_state(sim, number, TEMPLATE_LOADING)
                                                       : check_living_templates(sim, number) > 0));
        unsigned living = count_living(sim, number);
        bool short_of_memory = living >= scaling_target(sim, fleet) &&
                               (memory_lacks(fleet, sim->now) || check_load_lacks_memory(sim, number));

        SIM_FOREACH_PROCESS(sim, process) {
                if (process->fleet != number || !process->worker)
                        continue;
                trying += process->worker->state <= WORKER_ACTIVE && !process->hung;
                heard += has_evidence(sim, process);
                hung += process->hung;
        }
        if (trying >= scaling_target(sim, fleet))
                model->drained_at = 0;
        if (trying >= scaling_target(sim, fleet) || (heard == 0 && (hung > 0 || model->drained_at == 0)) ||
            fleet->waits_for == WAIT_RETURNED || living >= fleet_max_processes(fleet) || short_of_memory ||
            fleet->held || waits || check_has_lied(sim, number) ||
            sim->now < MAX(sim->fork_fails_until, sim->fork_lacks_until) ||
            sim->now < MAX(fleet->crash.next_at, fleet->shortage.next_at) ||
            (fleet_surge(fleet) == 0 && draining_for_restart(fleet, NULL) > 0)) {
                model->gap_since = sim->now;
                model->gap_at = 0;
                return;
        }
        model->gap_at = model->gap_at != 0 ? model->gap_at : sim->now;
        if (sim->now > (model->drained_at != 0 ? model->gap_at + SEC : model->gap_since + 30 * SEC))
                violate(sim, "P2", "%u are active or starting, %u are wanted, and none is started", trying,
                        scaling_target(sim, fleet));
}

void check_turn(struct sim *sim)
{
        const struct shell *shell = &sim->shell;

        if (sim->now >= sim->disk_full_until && shell->written != check_digest(sim))
                violate(sim, "P4", "the state does not tell what is the case");
        check_hung(sim);
        check_processes(sim);
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                check_rollout(sim, i);
                check_gaps(sim, i);
                drains_check(sim, i);
        }
        check_templates(sim);
}

static bool fleet_settled(struct sim *sim, unsigned number, char *why, size_t size)
{
        const struct fleet *fleet = sim->shell.world->fleets[number];
        unsigned living = count_living(sim, number), ready = count_ready(sim, number, NULL);
        unsigned target = scaling_target(sim, fleet);

        snprintf(why, size, "fleet '%s': %u processes live, %u are ready, %u are wanted; restart %s",
                 fleet->settings->name, living, ready, target, rollout_state_name(fleet->rollout.state));
        if (trial_withholds(sim, number))
                return true;
        if (living != target || ready != target || fleet->rollout.state == ROLLOUT_RUNNING)
                return false;
        if (!check_templates_settled(sim, number)) {
                snprintf(why, size, "the templates of fleet '%s' are not as they are to be",
                         fleet->settings->name);
                return false;
        }
        FLEET_FOREACH_WORKER(fleet, worker) {
                /* Workers that a reload outdated stay until a restart. */
                if (fleet->rollout.state == ROLLOUT_DONE && worker->generation != fleet->generation &&
                    fleet->generation != sim->fleets[number].reloaded_generation)
                        return false;
                if (fleet->rollout.returned && worker->generation > fleet->generation)
                        return false;
                if (worker->memory.over_threshold || worker->memory.over_limit ||
                    (worker->orders.quiet && worker->state <= WORKER_ACTIVE))
                        return false;
        }
        return true;
}

bool check_settled(struct sim *sim, bool must)
{
        char why[256] = "sqmgr still ends";

        for (unsigned i = 0; i < sim->n_fleets; i++) {
                if (sim->shell.running && !sim->shell.world->shutting_down &&
                    fleet_settled(sim, i, why, sizeof(why)))
                        continue;
                if (must)
                        violate(sim, "liveness", "4 hours of calm, and %s",
                                sim->shell.running ? why : "sqmgr does not run");
                return false;
        }
        return true;
}
