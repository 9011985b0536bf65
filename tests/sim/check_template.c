/* SPDX-License-Identifier: MIT */
/* Checks the promises about templates and their forks. */
#include "continuity/state.h"
#include "model/memory.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

bool check_is_unowned(const struct process *process)
{
        if (process->left_behind || process->let_go || process->unseen)
                return true;
        /* A fork that waits runs no job, and ends by itself if sqmgr does not know it. So does a template,
         * unless it works as a worker. */
        return process->awaits_go ||
               (process->is_template && (!process->booted || process->as_template.template));
}

unsigned check_forking(const struct sim *sim, unsigned fleet, uint64_t generation)
{
        unsigned n = 0;

        for (size_t i = 0; sim->fleets[fleet].preloads && i < sim->n_processes; i++) {
                const struct template_process *template = &sim->processes[i]->as_template;

                n += sim->processes[i]->fleet == fleet && template->index != 0 &&
                     template->generation >= generation;
        }
        return n;
}

bool check_preloads(const struct sim *sim, unsigned fleet)
{
        const struct fleet *core = sim->shell.world->fleets[fleet];

        return core->settings->preload && core->settings->traits->can_preload &&
               fleet_order(core) == ORDER_RUN && !sim->shell.world->shutting_down &&
               fleet_preload_refused(core)[0] == '\0';
}

/* Returns true if sqmgr knows that the template is ready, and not yet that it has ended. With a wrapper,
 * sqmgr learns the end last. */
static bool seems_ready(const struct template_process *template)
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

                if (sim->processes[i]->fleet == fleet && seems_ready(template) &&
                    (template->generation == generation) == newest &&
                    (!found || template->generation == before ||
                     (template->generation < found->generation && found->generation != before)))
                        found = template;
        }
        return found;
}

bool check_template_state(const struct sim *sim, unsigned fleet, enum template_state state)
{
        FLEET_FOREACH_TEMPLATE(sim->shell.world->fleets[fleet], template)
                if (template->state == state)
                        return true;
        return false;
}

bool check_load_lacks_memory(const struct sim *sim, unsigned fleet)
{
        const struct world *world = sim->shell.world;

        return check_preloads(sim, fleet) && !check_template(sim, fleet, true) &&
               world->available_bytes > 0 &&
               memory_is_short(world, memory_reserved_bytes(world, sim->now),
                               fleet_template_bytes(world->fleets[fleet]));
}

void check_fork(struct sim *sim, const struct action *action)
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

unsigned check_living_templates(const struct sim *sim, unsigned fleet)
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

void check_templates(struct sim *sim)
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

bool check_templates_settled(const struct sim *sim, unsigned number)
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

/* Call for each start, and for each fork once sqmgr knows its worker. */
void check_flapping(struct sim *sim, const struct fleet *fleet)
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
