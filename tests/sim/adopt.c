/* SPDX-License-Identifier: MIT */
/* The start and end of sqmgr: the state file, adoption, and death at any step. */
#include "autoscaling/autoscale_rules.h"
#include "continuity/adoption.h"
#include "continuity/state.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "sim.h"

#define SEARCH_USEC  (100 * USEC_PER_MSEC)
#define LEDGER_SLOTS 512

enum fate { FATE_KEPT, FATE_LOST, FATE_CUT, FATE_GARBLED };

/* The disk of the orders is another one, which is never full. */
static void save_orders(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        const struct state_source source = {
                .world = shell->world, .boot_id = "boot", .now = sim->now, .orders = true};

        free(shell->orders);
        if (state_pack(&source, &shell->orders, &shell->orders_size) < 0)
                abort();
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = shell->world->fleets[i];
                bool stays = fleet->rollout.state == ROLLOUT_HALTED || fleet->rollout.returned;

                sim->fleets[i].ordered = (struct written){
                        .any = true,
                        .returned = fleet->rollout.returned,
                        .generation = fleet->generation,
                        .newest = fleet->newest_generation,
                        .hash = fleet->settings->launch_hash,
                        .order = fleet->order,
                        .count = fleet->scale,
                        .for_count = fleet->settings->active_process_count,
                        .rollout = stays ? fleet->rollout.state : ROLLOUT_NONE,
                };
        }
}

bool shell_save(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        uint8_t *bytes;
        size_t size;

        save_orders(sim);
        bool was_behind = shell->behind;
        shell->behind = sim->now < sim->disk_full_until;
        if (shell->behind && !was_behind)
                shell->behind_since = sim->now;
        templates_begin(sim);
        if (shell->behind)
                return false;
        const struct state_source source = {
                .world = shell->world,
                .boot_id = "boot",
                .identity = identify_text,
                .userdata = sim,
                .now = sim->now,
        };
        if (state_pack(&source, &bytes, &size) < 0)
                abort();
        free(shell->state);
        shell->state = bytes;
        shell->state_size = size;
        shell->written = check_digest(sim);
        shell->written_hosts = shell->hosts;
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = shell->world->fleets[i];

                sim->fleets[i].written = sim->fleets[i].ordered;
                sim->fleets[i].written.any = !fleet->unknown;
                sim->fleets[i].written.rollout = fleet->rollout.state;
                sim->fleets[i].written.scaled = fleet->automatic_count;
                sim->fleets[i].written_troubles = sim->fleets[i].troubles;
        }
        return true;
}

void shell_die(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        SIM_FOREACH_PROCESS(sim, process) {
                process->worker = NULL;
                process->identity = 0;
                process->poll_items = 0;
                process->answered = false;
                process->slept_at = process->tried_at = 0;
                template_orphaned(sim, process);
        }
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                match_clear(&sim->fleets[i].link.match);
                sim->fleets[i].link = (struct link){.next_at = USEC_INFINITY};
        }
        shell->adoption = adoption_free(shell->adoption);
        shell->search_at = USEC_INFINITY;
        for (size_t i = 0; shell->world && i < shell->world->n_fleets; i++)
                autoscale_forget(shell->world->fleets[i]);
        deaf_forget(sim);
        shell->world = world_free(shell->world);
        shell->running = shell->dying = false;
        shell->kill_in = shell->kill_forking = -1;
        shell->start_at = sim->now + shell->down_usec;
}

bool shell_dies_here(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        if (shell->dying)
                return true;
        /* Not while the state cannot be written: the next sqmgr could not know what happened since. */
        if (shell->behind || shell->kill_in < 0 || shell->kill_in-- > 0)
                return false;
        report(sim, "sqmgr is killed here, in the middle of its work");
        shell->deaths++;
        shell->dying = true;
        return true;
}

/* Damages the state file: by lost writes, a full disk or an editor. */
static void spoil_state(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        switch (shell->kill_fate) {
        case FATE_LOST:
                shell->state_size = 0;
                break;
        case FATE_CUT:
                shell->state_size /= 2;
                break;
        case FATE_GARBLED:
                if (shell->state_size > 0)
                        shell->state[rng_range(&sim->rng, 0, shell->state_size - 1)] ^= 0x10;
                break;
        default:
                break;
        }
        shell->kill_fate = FATE_KEPT;
}

static struct process *find_known(const struct sim *sim, const struct worker *known)
{
        SIM_FOREACH_PROCESS(sim, process)
                if ((process->pid == known->process.pid && process->start == known->process.start) ||
                    (process->runner_pid == known->process.pid &&
                     process->runner_start == known->process.start))
                        return process;
        return NULL;
}

/* Returns the start time of the process that has this pid now. The pid of a dead process is mostly in use
 * again, by a foreign process. */
static uint64_t start_of(struct sim *sim, pid_t pid)
{
        SIM_FOREACH_PROCESS(sim, process) {
                if (process->main_alive && process->pid == pid)
                        return process->start;
                if (process->runner_alive && process->runner_pid == pid)
                        return process->runner_start;
        }
        return rng_chance(&sim->rng, 700) ? 1 : 0; /* no process of the simulated world has this start time */
}

void shell_record(struct sim *sim, struct process *process, unsigned record)
{
        const struct ledger_start start = ledger_start_of(process->worker);

        process->ledger = &sim->shell.ledger;
        process->record = record != 0 ? record : ledger_put(process->ledger, &start);
}

static void watch(struct sim *sim, struct process *process, struct worker *worker, unsigned record)
{
        process->let_go = process->unseen = false;
        process->fleet = check_number(sim, worker->fleet);
        process->index = worker->index;
        worker->handle = process;
        process->worker = worker;
        shell_record(sim, process, record);
        process->hung = worker->heartbeat.hung; /* as the last written state says */
        identify_added(sim, process->fleet);
}

/* Adopts a worker that the state or the ledger names. */
static void adopt_known(struct sim *sim, struct fleet *fleet, struct worker *known, const char *identity,
                        const struct ledger_start *recorded)
{
        if (recorded)
                ledger_settle(recorded, fleet->settings->traits, known);
        struct process *process = find_known(sim, known);
        /* /proc shows a signal that the process has not handled yet. */
        if (process && process->term_from != USEC_INFINITY)
                known->orders.unconfirmed = false;
        uint64_t start = process ? start_of(sim, known->process.pid) : 0;
        uint64_t heartbeat_start = process && known->process.heartbeat_pid != 0
                                           ? start_of(sim, known->process.heartbeat_pid)
                                           : 0;
        unsigned failures = check_failures(fleet);
        struct worker *worker =
                adoption_take_known(sim->shell.adoption, fleet, known, start, heartbeat_start, sim->now);

        check_unborn(sim, known, worker, failures);
        if (worker->state == WORKER_GONE)
                ledger_end(&sim->shell.ledger, recorded ? recorded->number : 0);
        if (!process)
                return;
        report(sim, "adopts %s as %s", process_name(sim, process), worker_state_name(worker->state));
        check_adopted(sim, process, known, worker);
        process->unseen = worker->state == WORKER_GONE && !evidence_booted(sim, process);
        if (worker->state == WORKER_GONE)
                return;
        watch(sim, process, worker, recorded ? recorded->number : 0);
        if (known->process.heartbeat_pid != 0 && worker->process.heartbeat_pid == 0)
                check_succeeded(process);
        if (worker->process.heartbeat_pid != 0)
                identify_known(sim, process, identity);
        else if (known->process.heartbeat_pid == 0)
                identify_known_hosts(sim, process, identity);
}

static void see(struct sim *sim, const struct sighting *sighting)
{
        if (adoption_see(sim->shell.adoption, sighting) < 0)
                abort();
}

/* Shows what /proc has of a worker: the main process, the runner below it, and the leftover process of its
 * jobs. */
static void see_process(struct sim *sim, const struct process *process, bool lost)
{
        char mark[32], generation[24];
        struct sighting sighting = {
                .pid = process->pid,
                .parent = 1,
                .group = process->pid,
                .session = process->pid,
                .start = process->start,
                .in_service = sim->service,
        };

        snprintf(mark, sizeof(mark), "%s/%u", sim->fleets[process->mark_fleet].name, process->mark_index);
        snprintf(generation, sizeof(generation), "%llu", (unsigned long long)process->mark_generation);
        /* If the state is lost, markers show from launched_at on: a lost state in the moment before they
         * become visible need not work. */
        if (sim->now >= (lost ? process->launched_at : process->marked_at) && process->mark_index != 0 &&
            !(process->titled && process->booted)) {
                sighting.instance = "ours";
                sighting.worker = mark;
                sighting.generation = generation;
                sighting.started_at = process->spawned_at;
        }
        bool booted = evidence_booted(sim, process);
        if (booted && !process->wrapped)
                sighting.booted_as = sim->shell.settings.fleets[process->mark_fleet]->traits;
        if (process->main_alive)
                see(sim, &sighting);
        if (process->wrapped && process->runner_alive && sim->now >= process->marked_at) {
                if (booted)
                        sighting.booted_as = sim->shell.settings.fleets[process->mark_fleet]->traits;
                sighting.pid = process->runner_pid;
                sighting.parent = process->main_alive ? process->pid : 1;
                sighting.start = process->runner_start;
                see(sim, &sighting);
        }
        /* The leftover process outlives the worker, and another worker may have its index by then. */
        if (!process->leftover || !process->booted)
                return;
        sighting.parent = process->detached || !process->runner_alive ? 1 : process->runner_pid;
        sighting.pid = STRANGERS_PID + (pid_t)process->serial;
        sighting.start = process->booted_at;
        sighting.booted_as = NULL;
        if (process->detached)
                sighting.group = sighting.session = sighting.pid;
        see(sim, &sighting);
}

/* Shows a worker of another sqmgr. */
static void see_strangers(struct sim *sim)
{
        struct sighting sighting = {
                .pid = STRANGERS_PID - 1,
                .parent = 1,
                .group = STRANGERS_PID - 1,
                .session = STRANGERS_PID - 1,
                .start = 2,
                .instance = "another",
                .worker = "red/1",
                .generation = "7",
                .booted_as =
                        sim->fleets[0].behavior->shows_boot ? sim->shell.settings.fleets[0]->traits : NULL,
        };

        see(sim, &sighting);
}

static void adopt_found(struct sim *sim, const struct claimant *claimant)
{
        const struct worker as_known = {.process.pid = claimant->pid, .process.start = claimant->start};
        struct process *process = find_known(sim, &as_known);

        /* A process that has the markers of a worker and has not booted may be that worker: sqmgr attaches to
         * it and sends no signal. */
        if (!process && !claimant->booted)
                process = process_left_behind(sim, claimant->pid - STRANGERS_PID, claimant->start);
        if (!process) {
                violate(sim, "P4", "a process that is none of ours is adopted as a worker of fleet '%s'",
                        claimant->fleet->settings->name);
                return;
        }
        struct worker *worker = adoption_take(sim->shell.adoption, claimant, process->spawned_at, sim->now);
        check_found(sim, process, claimant, worker);
        report(sim, "finds %s, and adopts it as %s", process_name(sim, process), WORKER_ID(worker));
        watch(sim, process, worker, 0);
}

/* Returns 0, or -errno if descriptors run short during the search. */
static int search(struct sim *sim)
{
        struct adoption *adoption = sim->shell.adoption;
        const struct claimant *claimant;
        bool fails = sim->now < sim->proc_fails_until, lost = true;

        for (size_t i = 0; i < adoption->n_sought; i++)
                lost = lost && adoption->sought[i].lost;
        adoption_search_begin(adoption);
        SIM_FOREACH_PROCESS(sim, process) {
                /* Dead processes are not in /proc. */
                if (process->left_behind || !process_is_alive(process))
                        continue;
                if (fails && rng_chance(&sim->rng, 100))
                        return -EMFILE;
                see_process(sim, process, lost);
        }
        if (sim->strangers)
                see_strangers(sim);
        adoption_judge(adoption);
        while (!sim->broken && (claimant = adoption_next(adoption))) {
                if (fails && rng_chance(&sim->rng, 200))
                        return -EMFILE;
                adopt_found(sim, claimant);
        }
        return 0;
}

static void end_adoption(struct shell *shell)
{
        ledger_set_gap(&shell->ledger, LEDGER_GAP_SEARCH, false);
        shell->adoption = adoption_free(shell->adoption);
}

void shell_search(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        int r = search(sim);

        shell->pass.unsaved = true;
        shell->search_at = USEC_INFINITY;
        bool done = adoption_search_end(shell->adoption, r, sim->now);
        check_held(sim, r == 0);
        if (!done)
                shell->search_at = sim->now + SEARCH_USEC;
        else
                end_adoption(shell);
}

static void continue_state(struct sim *sim, const struct state *state, struct ledger_starts *starts)
{
        for (size_t i = 0; i < state->n_fleets; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(sim->shell.world, saved->name);

                if (!fleet)
                        continue;
                adoption_continue_fleet(sim->shell.adoption, fleet, saved, sim->now);
                templates_adopt(sim, fleet, saved);
                for (size_t j = 0; j < saved->n_workers; j++) {
                        struct state_worker *worker = &saved->workers[j];
                        struct ledger_start start;
                        bool recorded = ledger_starts_take(&sim->shell.ledger, starts, saved->name,
                                                           &worker->worker, &start);

                        adopt_known(sim, fleet, &worker->worker, worker->identity, recorded ? &start : NULL);
                }
        }
}

static void continue_orders(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        struct state *orders = NULL;

        /* The first sqmgr of all finds none. */
        if (state_unpack(shell->orders, shell->orders_size, "boot", sim->now, &orders) != STATE_READ)
                return;
        for (size_t i = 0; i < orders->n_fleets; i++) {
                struct fleet *fleet = world_fleet(shell->world, orders->fleets[i].name);

                if (fleet)
                        state_continue_fleet(fleet, &orders->fleets[i], sim->now);
        }
        state_free(orders);
        check_continued(sim, true);
}

/* Returns true if the last sqmgr left no process that only the ledger knows, because it has not executed its
 * command yet. */
static bool may_lose_ledger(const struct sim *sim)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process_is_alive(process) &&
                    (sim->now < process->marked_at || process->claim_at != USEC_INFINITY))
                        return false;
        return true;
}

static bool is_claimed(const struct ledger_claim *claim, pid_t pid)
{
        return !claim->slot || (atomic_load(&claim->slot->word) != claim->word &&
                                (pid_t)(atomic_load(&claim->slot->word) >> 32) == pid);
}

static void open_ledger(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        size_t size = ledger_bytes(LEDGER_SLOTS);
        bool kept = shell->ledger_memory && !(shell->ledger_lost && may_lose_ledger(sim));

        if (!kept) {
                if (shell->ledger_memory)
                        shell->ledger_losses++;
                free(shell->ledger_memory);
                shell->ledger_memory = aligned_alloc(_Alignof(struct ledger_slot), size);
                if (!shell->ledger_memory)
                        abort();
                memset(shell->ledger_memory, 0, size);
                ledger_format(shell->ledger_memory, "boot");
        }
        ledger_attach(&shell->ledger, shell->ledger_memory, size);
        shell->ledger_lost = !kept && sim->now < sim->disk_full_until;
        observe_ledger(shell->world, !shell->ledger_lost);
        ledger_take_over(&shell->ledger);
        /* A process that has not claimed its start by now ends by itself. */
        SIM_FOREACH_PROCESS(sim, process)
                if (process->claim_at != USEC_INFINITY && !is_claimed(&process->claim, process->pid))
                        process->let_go = true;
}

void shell_keep_ledger(struct sim *sim)
{
        if (!sim->shell.world->ledger_volatile || sim->now < sim->disk_full_until)
                return;
        sim->shell.ledger_lost = false;
        observe_ledger(sim->shell.world, true);
}

/* Adopts the workers that were started after the state was written last. */
static void adopt_started(struct sim *sim, const struct ledger_starts *starts)
{
        for (size_t i = 0; i < starts->n; i++) {
                struct worker known;
                struct fleet *fleet;

                if (adoption_know_start(sim->shell.adoption, &starts->list[i], &fleet, &known))
                        adopt_known(sim, fleet, &known, "", &starts->list[i]);
                else
                        ledger_end(&sim->shell.ledger, starts->list[i].number);
        }
}

static void adopt(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        struct ledger_starts starts;
        struct state *state = NULL;

        if (adoption_new(shell->world, "ours", sim->now, &shell->adoption) < 0)
                abort();
        open_ledger(sim);
        if (ledger_read(&shell->ledger, sim->now, &starts) < 0)
                abort();
        if (ledger_has_gap(&shell->ledger, LEDGER_GAP_SEARCH))
                shell->adoption->unsure = true;
        int outcome = state_unpack(shell->state, shell->state_size, "boot", sim->now, &state);
        report(sim, "sqmgr starts, its state %s", outcome == STATE_READ ? "is read" : "is lost");
        shell->hosts = outcome == STATE_READ ? shell->written_hosts : 0;
        if (outcome == STATE_READ) {
                continue_state(sim, state, &starts);
                check_continued(sim, false);
        } else {
                continue_orders(sim);
        }
        adopt_started(sim, &starts);
        ledger_starts_free(&starts);
        scaling_started(sim);
        state_free(state);
        template_unknown(sim, outcome == STATE_READ);
        if (adoption_needs_search(shell->adoption))
                shell_search(sim);
        else
                end_adoption(shell);
}

static void begin_link(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;

        reader_started(sim, fleet);
        if (!fleet_is_local(sim, fleet)) {
                link->next_at = sim->now + rng_range(&sim->rng, 0, 10 * USEC_PER_MSEC);
                return;
        }
        /* A fleet that needs no Redis counts as connected. */
        link->up = true;
        link->up_at = sim->now;
        observe_redis(sim->shell.world->fleets[fleet], true, sim->now);
}

void shell_start(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        if (world_new(&shell->settings, sim->seed + shell->deaths, &shell->world) < 0)
                abort();
        shell->running = true;
        plan_free(&shell->pass.plan);
        shell->pass = (struct pass){.world = shell->world};
        shell->trusted_at = sim->now;
        shell->wake_at = sim->now + 1;
        sim->read_left = 0;
        shell->iterated_at = shell->stalled_until = shell->deferred_at = 0;
        check_distrust(sim, UINT32_MAX);
        check_began(sim);
        SIM_FOREACH_PROCESS(sim, process) {
                process->read_bytes = 0;
                process->exit_report_at = USEC_INFINITY;
        }
        for (unsigned i = 0; i < sim->n_fleets; i++)
                begin_link(sim, i);
        spoil_state(sim);
        adopt(sim);
        drains_continued(sim);
        /* The new sqmgr does not know failures after the last write. */
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct rollout *rollout = &shell->world->fleets[i]->rollout;

                sim->fleets[i].failures = MIN(sim->fleets[i].failures, rollout->failures);
                sim->fleets[i].failed_at = MIN(sim->fleets[i].failed_at, rollout->failed_at);
                /* A fork after the last write would have reset the failures of templates: it is not known
                 * either. */
                sim->fleets[i].troubles = MAX(sim->fleets[i].troubles, sim->fleets[i].written_troubles);
        }
        shell->pass.unsaved = !shell_save(sim);
}
