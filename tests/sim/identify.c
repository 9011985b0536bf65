/* SPDX-License-Identifier: MIT */
/* Finds which heartbeat belongs to which worker, like src/frameworks/server_heartbeats.c: the real
 * observe/match.h, fed from the simulated Redis, where records of dead processes remain and their pids are
 * reused. */
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/match.h"
#include "observe/observe.h"
#include "sim.h"

/* The identity that a writer to the server invents: that of init, which is no worker. */
#define FOREIGN_PID    1
#define FOREIGN_SERIAL 0xfffffffU

/* Returns the identity of a worker that has sent a heartbeat. */
static const char *identity_text(struct process *process)
{
        if (process->name[0] == '\0')
                snprintf(process->name, sizeof(process->name), "host%u:%d:%012x", process->host,
                         (int)process->runner_pid, process->serial);
        return process->name;
}

static void clone_text(const struct clone *clone, char text[static 64])
{
        snprintf(text, 64, "host%u:%d:%012x", clone->host, (int)clone->pid, clone->serial);
}

static struct process *find_serial(const struct sim *sim, unsigned serial)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process->serial == serial)
                        return process;
        return NULL;
}

const char *identify_text(const struct worker *worker, void *userdata)
{
        struct sim *sim = userdata;
        const struct process *process = worker->handle;
        static char hosts[MATCH_HOSTS_TEXT_MAX];

        if (process && worker->process.heartbeat_pid == 0)
                return match_hosts_since(&sim->fleets[process->fleet].link.match, worker->spawned_at, hosts);
        if (!process || process->identity == 0)
                return NULL;
        struct process *writer = find_serial(sim, process->identity - 1);
        return writer ? identity_text(writer) : NULL;
}

static unsigned parse_identity(const char *text)
{
        const char *nonce = strrchr(text, ':');

        return nonce ? 1 + (unsigned)strtoul(nonce + 1, NULL, 16) : 0;
}

void identify_known(struct sim *sim, struct process *process, const char *text)
{
        process->identity = parse_identity(text);
        if (process->identity != 0 &&
            match_host_was(&sim->fleets[process->fleet].link.match, text, strcspn(text, ":"), sim->now) < 0)
                abort();
}

void identify_known_hosts(struct sim *sim, const struct process *process, const char *names)
{
        if (match_hosts_were(&sim->fleets[process->fleet].link.match, names, sim->now) < 0)
                abort();
}

static void observe_host(struct sim *sim, struct match *match)
{
        char name[16];

        sim->shell.pass.unsaved |= !(sim->shell.hosts >> sim->host & 1);
        sim->shell.hosts |= 1U << sim->host;
        snprintf(name, sizeof(name), "host%u", sim->host);
        if (match_host_is(match, name, sim->now) < 0)
                abort();
}

void identify_added(struct sim *sim, unsigned fleet)
{
        struct match *match = &sim->fleets[fleet].link.match;

        observe_host(sim, match);
        match_owner_added(match);
}

/* Call when the process that sent heartbeats has ended and its wrapper lives. */
void identify_forget(struct sim *sim, struct process *process)
{
        struct process *writer = process->identity != 0 ? find_serial(sim, process->identity - 1) : NULL;

        process->identity = 0;
        process->forgotten_at = sim->now;
        if (writer)
                match_distrust(&sim->fleets[process->fleet].link.match, identity_text(writer));
}

static void add(struct sim *sim, unsigned fleet, const char *text, pid_t pid)
{
        const struct match_found found = {
                .identity = text, .len = strlen(text), .host_len = strcspn(text, ":"), .pid = pid};

        if (match_scan_add(&sim->fleets[fleet].link.match, &found, sim->now) < 0)
                abort();
}

static void scan(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;
        usec_t oldest = USEC_INFINITY;
        char text[64];

        observe_host(sim, &link->match);
        SIM_FOREACH_PROCESS(sim, process)
                if (process->fleet == fleet && process->worker)
                        oldest = MIN(oldest, process->worker->spawned_at);
        match_hosts_forget(&link->match, oldest);
        match_scan_begin(&link->match, link->asked_at);
        SIM_FOREACH_PROCESS(sim, process)
                if (process->fleet == fleet && process->listed)
                        add(sim, fleet, identity_text(process), process->runner_pid);
        if (reader_foreign(sim, fleet)) {
                snprintf(text, sizeof(text), "host%u:%d:%012x", sim->host, FOREIGN_PID, FOREIGN_SERIAL);
                add(sim, fleet, text, FOREIGN_PID);
        }
        for (unsigned i = 0; i < sim->n_clones; i++) {
                const struct clone *clone = &sim->clones[i];

                if (clone->fleet != fleet || !clone->listed)
                        continue;
                clone_text(clone, text);
                add(sim, fleet, text, clone->pid);
        }
        match_scan_end(&link->match);
}

static void resolve_owners(struct sim *sim, struct match *match)
{
        for (size_t i = 0; i < match->n_candidates; i++) {
                struct candidate *candidate = match->candidates[i];

                for (size_t j = 0; j < sim->n_processes && !candidate->resolved; j++) {
                        const struct process *process = sim->processes[j];

                        if (process->runner_alive && process->runner_pid == candidate->pid && process->worker)
                                candidate->owner = process;
                }
                candidate->resolved = true;
        }
}

/* Returns the answer for this identity, and its writer. */
static const struct heartbeat_record *answer_of(const struct sim *sim, unsigned fleet, const char *identity,
                                                struct process **ret_writer)
{
        unsigned serial = parse_identity(identity) - 1;
        const struct clone *clone = clone_find(sim, serial);

        *ret_writer = clone ? NULL : find_serial(sim, serial);
        if (serial == FOREIGN_SERIAL)
                return reader_foreign(sim, fleet);
        return clone ? &clone->answer : *ret_writer ? &(*ret_writer)->answer : NULL;
}

/* Rejects the candidates of a process that has not booted: they are older than the process. Returns false if
 * it is not known whether it has booted. */
static bool sort_out_unbooted(struct sim *sim, struct match *match, const struct process *process)
{
        size_t at = 0;
        pid_t pid;

        if (!process_behavior(sim, process)->shows_boot || process_behavior(sim, process)->title_may_lack)
                return true;
        if (sim->now < sim->proc_fails_until && rng_chance(&sim->clone_rng, 300))
                return false;
        while ((pid = match_pid(match, process, &at)) != 0) {
                if (!process->runner_alive || pid != process->runner_pid)
                        continue;
                if (evidence_booted(sim, process)) {
                        observe_boot_in_proc(process->worker);
                        match_booted(match, process, pid);
                } else
                        match_unbooted(match, process, pid, evidence_denies_boot(sim, process));
        }
        return true;
}

/* As is_born() of struct heartbeats_ops. */
static int is_born(const struct sim *sim, const struct process *process, const struct heartbeat *heartbeat)
{
        const struct world *world = sim->shell.world;
        usec_t lasts_usec = process_traits(sim, process)->stale_usec;
        const struct birth birth = {
                .born_usec = heartbeat->born_usec,
                .sent_usec = heartbeat->sent_usec,
                .started_at = process->runner_boottime,
                .booted = process->registered && evidence_booted(sim, process),
                .monotonic = sim->now,
                .boottime = sim->now + sim->suspended_usec,
                .realtime = sim_time_of_heartbeats(sim),
        };

        if (!process->runner_alive)
                return 0;
        return birth_is_foreign(&birth, world) ? -EREMOTE : birth_is_own(&birth, world, lasts_usec);
}

/* Returns true if a dead process of the same name and pid is still listed. A late answer may show
 * late that it sent heartbeats. */
static bool succeeds_listed(const struct sim *sim, const struct process *process)
{
        SIM_FOREACH_PROCESS(sim, other)
                if (other != process && other->fleet == process->fleet && other->listed &&
                    other->runner_pid == process->runner_pid)
                        return true;
        return false;
}

static void decide(struct sim *sim, struct process *process)
{
        struct link *link = &sim->fleets[process->fleet].link;
        struct process *writer;

        for (size_t i = 0; i < link->match.n_candidates; i++) {
                struct candidate *candidate = link->match.candidates[i];

                if (candidate->owner != process)
                        continue;
                const struct heartbeat_record *answer =
                        answer_of(sim, process->fleet, candidate->identity, &writer);
                bool found =
                        answer && answer->written_at != 0 &&
                        (answer->heartbeat.start == 0 || answer->heartbeat.start == process->runner_start);
                int born = found && candidate->pid == process->runner_pid
                                   ? is_born(sim, process, &answer->heartbeat)
                                   : 0;
                candidate->asked_at = link->asked_at;
                candidate->foreign |= born == -EREMOTE;
                match_read(candidate, found ? &answer->heartbeat : NULL, born > 0, sim->now);
        }
        if (!sort_out_unbooted(sim, &link->match, process))
                return;
        usec_t spawned_at = process->worker->spawned_at;
        const struct match_claim claim = {
                .owner = process,
                .spawned_at = spawned_at,
                .since = MAX(spawned_at, process->forgotten_at),
                .stale_usec = worker_outlived_usec(process->worker),
                .doubt_at = sim->shell.world->doubt.since,
        };
        bool ambiguous;
        const struct candidate *best = match_decide(&link->match, &claim, &ambiguous);
        observe_ambiguous(process->worker, ambiguous);
        /* A wrapper may have lost a process whose pid a clone has. */
        if (ambiguous && process->runner_pid == process->pid && !clones_resemble(sim, process) &&
            !succeeds_listed(sim, process))
                violate(sim, "P6", "%s is ambiguous, though no other process of its name and pid began since",
                        process_name(sim, process));
        if (!best)
                return;
        process->identity = parse_identity(best->identity);
        /* No process of that pid lives below the worker, so sqmgr cannot attach to it. */
        if (best->pid != process->runner_pid) {
                identify_forget(sim, process);
                return;
        }
        (void)answer_of(sim, process->fleet, best->identity, &writer);
        if (writer != process)
                violate(sim, "P5", "%s is taken for the writer of the heartbeat of %s",
                        process_name(sim, process), writer ? "a dead process" : "another host's process");
}

void identify(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;
        bool scanned = false;

        SIM_FOREACH_PROCESS(sim, process) {
                if (process->fleet != fleet || !process->worker || process->poll_items == 0 ||
                    process->identity != 0 || !process->runner_alive)
                        continue;
                if (!scanned) {
                        scan(sim, fleet);
                        resolve_owners(sim, &link->match);
                        scanned = true;
                }
                decide(sim, process);
        }
}

/* Returns the heartbeat that counts as this worker's; written_at 0: none. */
struct heartbeat_record identify_answer(const struct sim *sim, const struct process *process)
{
        const struct process *writer =
                process->identity != 0 ? find_serial(sim, process->identity - 1) : NULL;

        return writer ? writer->answer : (struct heartbeat_record){0};
}

void check_remainder(struct sim *sim, const struct process *process)
{
        if (!sim->fleets[process->fleet].link.up && !sim->shell.world->shutting_down)
                violate(sim, "P5", "what is left of %s is ended with Redis away", process_name(sim, process));
}

void check_succeeded(struct process *process)
{
        process->quiets = process->stops = process->reported_to_exit = process->idle_row = 0;
        process->trusted_reads = 0;
        process->term_at = process->first_read_at = process->changed_at = 0;
        process->read_heartbeat = 0;
        process->marked = process->hung = process->drains = process->given_up = process->shown_title = false;
        process->read_written_at = process->newest_written_at = process->lied_at = 0;
        process->shown_again = false;
        process->cut_at = process->tried_at = process->slept_at = 0;
}
