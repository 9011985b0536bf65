/* SPDX-License-Identifier: MIT */
/* Which heartbeat is whose, as src/frameworks/sidekiq/beats.c finds out: the real roster of model/match.h,
 * fed from the modelled Redis, where the dead linger and their pids are in use again. */
#include "model/match.h"
#include "sim.h"
#include <stdio.h>
#include <string.h>

static void identity_text(const struct process *process, char text[static 64])
{
        snprintf(text, 64, "host:%d:%012x", (int)process->runner_pid, process->serial);
}

static struct process *find_serial(const struct sim *sim, unsigned serial)
{
        for (size_t i = 0; i < sim->n_processes; i++)
                if (sim->processes[i]->serial == serial)
                        return sim->processes[i];
        return NULL;
}

const char *identify_text(const struct worker *worker, void *userdata)
{
        struct sim *sim = userdata;
        const struct process *process = worker->process;
        static char text[64];

        if (!process || process->identity == 0)
                return NULL;
        const struct process *writer = find_serial(sim, process->identity - 1);
        if (!writer)
                return NULL;
        identity_text(writer, text);
        return text;
}

void identify_known(struct process *process, const char *text)
{
        const char *nonce = strrchr(text, ':');

        if (nonce)
                process->identity = 1 + (unsigned)strtoul(nonce + 1, NULL, 16);
}

/* The process that its heartbeat comes from has ended, and a wrapper lives. */
void identify_forget(struct sim *sim, struct process *process)
{
        const struct process *writer =
                process->identity != 0 ? find_serial(sim, process->identity - 1) : NULL;
        char text[64];

        process->identity = 0;
        if (!writer)
                return;
        identity_text(writer, text);
        match_distrust(&sim->fleets[process->fleet].link.match, text);
}

static void scan(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;
        char text[64];

        match_scan_begin(&link->match, link->asked_at);
        for (size_t i = 0; i < sim->n_processes; i++) {
                const struct process *process = sim->processes[i];

                if (process->fleet != fleet || !process->listed)
                        continue;
                identity_text(process, text);
                if (match_scan_add(&link->match, text, strlen(text), process->runner_pid) < 0)
                        abort();
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

/* What was served for the writer of this identity. */
static const struct record *answer_of(const struct sim *sim, const char *identity,
                                      struct process **ret_writer)
{
        struct process fake = {0};

        identify_known(&fake, identity);
        *ret_writer = find_serial(sim, fake.identity - 1);
        return *ret_writer ? &(*ret_writer)->answer : NULL;
}

static void decide(struct sim *sim, struct process *process)
{
        struct link *link = &sim->fleets[process->fleet].link;
        struct process *writer;

        for (size_t i = 0; i < link->match.n_candidates; i++) {
                struct candidate *candidate = link->match.candidates[i];

                if (candidate->owner != process)
                        continue;
                const struct record *answer = answer_of(sim, candidate->identity, &writer);
                candidate->asked_at = link->asked_at;
                match_read(candidate, answer && answer->written_at != 0 ? &answer->beat : NULL, sim->now);
        }
        const struct candidate *best = match_decide(&link->match, process, process->worker->spawned_at);
        if (!best)
                return;
        identify_known(process, best->identity);
        (void)answer_of(sim, best->identity, &writer);
        if (writer != process)
                violate(sim, "P5", "%s is taken for the writer of a dead process's heartbeat",
                        process_name(sim, process));
}

void identify(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;
        bool scanned = false;

        for (size_t i = 0; i < sim->n_processes; i++) {
                struct process *process = sim->processes[i];

                if (process->fleet != fleet || !process->worker || process->looks == 0 ||
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

/* The heartbeat that counts as this worker's; written_at 0: there is none. */
struct record identify_answer(const struct sim *sim, const struct process *process)
{
        const struct process *writer =
                process->identity != 0 ? find_serial(sim, process->identity - 1) : NULL;

        return writer ? writer->answer : (struct record){0};
}
