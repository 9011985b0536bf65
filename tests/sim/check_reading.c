/* SPDX-License-Identifier: MIT */
/* Checks readings against the simulated world: an old answer is not new, and a lie excuses only what
 * SECURITY.md allows. */
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC
/* After a backward step of the wall clock, an answer this late, and stale_usec old, may count as new. */
#define STEPPED_USEC (150 * SEC)

bool check_is_unsure(const struct sim *sim)
{
        return sim->stepped_back_at != 0 && sim->now <= sim->stepped_back_at + STEPPED_USEC;
}

/* Returns true while lies may keep workers from being replaced: until heartbeats count again. */
bool check_has_lied(const struct sim *sim, unsigned fleet)
{
        const struct reader_sim *reader = &sim->fleets[fleet].reader;
        usec_t stale = check_stale_usec(sim, fleet);

        return reader->lied_at != 0 &&
               sim->now <= MAX(reader->lied_at, reader->delays_until) + 2 * stale + 2 * USEC_PER_MIN;
}

/* Returns true if an answer has reported the worker as idle within the bound of SECURITY.md, and nothing read
 * from /proc contradicts it. */
bool check_is_lied_of(const struct sim *sim, const struct process *process)
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
