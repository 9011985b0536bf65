/* SPDX-License-Identifier: MIT */
/* Judges readings by the truth: a repeated answer is no new one, and a lie excuses only what SECURITY.md
 * says.
 */
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

/* A reader may keep workers from being replaced while it lies, and until heartbeats count again. */
bool check_has_lied(const struct sim *sim, unsigned fleet)
{
        const struct reader_sim *reader = &sim->fleets[fleet].reader;
        usec_t stale = sim->shell.world->fleets[fleet]->settings->traits->stale_usec +
                       2 * sim->shell.settings.check_interval;

        return reader->lied_at != 0 && sim->now <= reader->lied_at + 2 * stale + 2 * USEC_PER_MIN;
}

/* A reader said lately that the worker is idle, and nothing that was read in /proc said otherwise:
 * SECURITY.md.
 */
bool check_is_lied_of(const struct sim *sim, const struct process *process)
{
        const struct traits *traits = process_traits(sim, process);
        bool denied = traits->has_title && process->shown_title &&
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
        /* A clock that goes back makes an answer that is repeated look new, or a new sqmgr that knows none.
         */
        bool unsure = process->rebased ||
                      (sim->stepped_back_at != 0 && sim->now <= sim->stepped_back_at + STEPPED_USEC);
        bool newer = (written_at > process->read_written_at || unsure) &&
                     heartbeat->sent_usec > process->read_heartbeat;

        if (first) {
                process->first_read_at = sim->now;
                process->counted_failure = false;
        }
        if (heartbeat->work_list_known || !same)
                process->read_list_empty = heartbeat->work_list_known && heartbeat->work_list_empty;
        bool marks = asked_at > sim->shell.trusted_at;
        process->read_written_at = unsure || first ? written_at : MAX(process->read_written_at, written_at);
        process->rebased = false;
        if (same) {
                process->marked = marks;
                return;
        }
        process->read_heartbeat = heartbeat->sent_usec;
        if (!heartbeat->quiet || heartbeat->busy > 0)
                process->idle_row = 0;
        else if (newer || first)
                process->idle_row++;
        if (first || (process->marked && newer)) {
                /* What was read as the doubt ended may have been written before it. */
                process->trusted_reads += !first || marks;
                process->changed_at = asked_at;
                process->hung = false;
        }
        process->marked = marks;
}

void check_distrust(struct sim *sim, unsigned fleet)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                if (fleet != UINT32_MAX && sim->processes[i]->fleet != fleet)
                        continue;
                sim->processes[i]->trusted_reads = 0;
                sim->processes[i]->marked = false;
        }
}

void check_began(struct sim *sim)
{
        for (size_t i = 0; i < sim->n_processes; i++)
                sim->processes[i]->rebased = true;
}
