/* SPDX-License-Identifier: MIT */
/* The table of commands. */
#include "ctl/commands.h"
#include <string.h>

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers",
         "Prints for each fleet a summary and a table of its workers: id, process, state and its age, "
         "generation, busy and all threads, memory and its share of memory_threshold, age, and why the "
         "worker leaves or what it waits for.",
         NULL, 0, SIZE_MAX, OPTION_WATCH | OPTION_JSON, ctl_status, true},
        {"top", "", "shows workers live; keys sort, open and act",
         "Fills the terminal, of at least 40 columns and 8 rows, and shows fleets and workers each second.",
         NULL, 0, 0, 0, ctl_top, false},
        {"restart", "[FLEET...]", "replaces all workers without interrupting jobs",
         "Starts workers of a new generation, and quiets an old worker for each new one that is ready. "
         "Running jobs finish on the old code. A quieted or stopped fleet stays so, with a message on "
         "standard error and exit code 0. With --resume quieted fleets are restarted, too, and then accept "
         "jobs. Ctrl-C ends the waiting, not the restart.",
         "a restart halted or was aborted, or the release was not found", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_RESUME | OPTION_RELEASE | OPTION_JSON, ctl_restart, false},
        {"abort", "[FLEET...]", "ends a restart; remaining old workers keep running",
         "Ends a restart: no further old worker is quieted, and quieted ones finish and exit. A halted "
         "restart is acknowledged: workers stay as they are, and status and doctor no longer report it, nor "
         "the failed starts that caused it.",
         NULL, 0, SIZE_MAX, OPTION_JSON, ctl_call, false},
        {"rollback", "[FLEET...]", "returns to the release before the last restart",
         "Replaces all workers by workers of the generation before the last restart, within seconds and "
         "without interrupting jobs: they are forked from its template, which preload = yes keeps in memory "
         "during a restart, and for 10 minutes after it. A running restart is aborted. Until the next "
         "restart new workers come from that template, too. Without a name, those fleets return whose "
         "previous "
         "release is in memory.",
         "the previous release is not in memory, or the rollback was aborted", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_JSON, ctl_rollback, false},
        {"quiet", "FLEET|WORKER", "stops accepting jobs; a worker is then replaced",
         "A fleet accepts no more jobs: its workers are stopped as they become idle, and not replaced until "
         "start or restart --resume. A worker is stopped when it is idle, and replaced; a starting one is "
         "quieted after its boot.",
         NULL, 1, 1, OPTION_JSON, ctl_call, false},
        {"stop", "FLEET|WORKER", "stops workers once their jobs are done",
         "A fleet is drained, and stays stopped until start. A worker exits once it is idle, and "
         "is replaced. With --force workers are asked to exit at once, and their jobs are cut off. This also "
         "ends a worker whose heartbeat is not found.",
         NULL, 1, 1, OPTION_FORCE | OPTION_JSON, ctl_call, false},
        {"start", "FLEET", "starts a stopped or quieted fleet", "Starts a fleet that was stopped or quieted.",
         NULL, 1, 1, OPTION_JSON, ctl_call, false},
        {"scale", "FLEET N|auto", "sets the number of active workers",
         "Sets the count, from 1 to max_processes, until the file names another count. 0 "
         "is possible only if active_process_count is 0 without active_process_max, and takes the order "
         "back. "
         "With active_process_max the count then no longer follows the queues, and may be outside of the "
         "configured range; auto "
         "returns the count to autoscaling.",
         "the count was refused", 2, 2, OPTION_JSON, ctl_scale, false},
        {"events", "[FLEET...|WORKER]", "shows what has happened",
         "Prints the last 512 events since sqmgr(8) started, oldest first. The journal has all events.", NULL,
         0, SIZE_MAX, OPTION_FOLLOW | OPTION_LINES | OPTION_JSON, ctl_events, true},
        {"jobs", "[FLEET...]", "shows the running jobs",
         "Prints the running jobs, the longest first: class, id, queue, worker and age. If a Redis or "
         "a database does not answer, or a job cannot be read, the others are printed, with the reason.",
         "a Redis or a database did not answer", 0, SIZE_MAX, OPTION_JSON, ctl_call, true},
        {"queues", "", "shows the queues: size and latency",
         "Prints for each Redis and database the size of each queue, the wait of its oldest job, whether it "
         "is paused, and the number of jobs to be retried, scheduled and dead.",
         "a Redis or a database did not answer", 0, 0, OPTION_JSON, ctl_call, true},
        {"doctor", "", "checks servers, the machine and the settings",
         "Checks Redis (persistence, eviction), databases (processes, failed jobs), the machine and its "
         "clocks, the state file and open files. For each fleet it checks user, log, command, timeouts, "
         "memory, crash loops, orders that are still in effect, versions and heartbeats. Each finding is ok, "
         "warning or problem, the last two with a remedy.",
         "there is a problem", 0, 0, OPTION_JSON, ctl_call, true},
        {"metrics", "", "prints metrics in the format of Prometheus",
         "Prints metrics in the text format of Prometheus. Queues are read at that moment. They "
         "are left out if their server does not answer, and a queue if its name is not printable. Counters "
         "begin at 0 with each sqmgr(8).",
         NULL, 0, 0, OPTION_JSON, ctl_call, true},
        {"why", "FLEET|WORKER", "explains a worker's history, or a fleet's count",
         "Prints the history of a worker from the events that are kept; then its state, the reason, what it "
         "waits for, and the evidence for that. For a fleet with active_process_max it prints the "
         "calculation of the count: waiting jobs of each queue, busy threads, time per job, threads needed.",
         NULL, 1, 1, OPTION_JSON, ctl_why, true},
        {"logs", "FLEET|WORKER", "shows the log of workers",
         "Prints what workers have written: the last 50 lines, or the number given by --lines (-n); with "
         "--follow (-f) also new lines. Files and journal are read with the rights of the caller.",
         NULL, 1, 1, OPTION_FOLLOW | OPTION_LINES | OPTION_PREVIOUS, ctl_logs, true},
        {"reload", "", "reads the configuration again, shows changes",
         "Reads the configuration again, and prints each changed key and whether the change applies at once. "
         "If the configuration has errors, they are printed, and the old one stays current.",
         "the configuration has errors", 0, 0, OPTION_JSON, ctl_call, false},
        {"reexec", "", "replaces the running sqmgr by the installed one",
         "Replaces the running sqmgr(8) by the installed one, newer or older, at the path that it was "
         "started by. Process, control socket and workers stay. If the new program does not accept the "
         "configuration or the state, its message is printed, and nothing changes. Only root and the user of "
         "sqmgr(8) may give this order.",
         "the re-exec was refused", 0, 0, OPTION_JSON, ctl_call, false},
        {"ping", "", "checks whether sqmgr answers",
         "Asks whether sqmgr(8) answers. With --ready it also exits with 1 if a fleet has fewer active "
         "workers than its count, and prints what is missing. Fleets that are quieted, stopped or have the "
         "count 0 are not checked. sqmgr(8) is not ready while it shuts down.",
         "workers are missing", 0, 0, OPTION_READY | OPTION_JSON, ctl_ping, true},
        {"version", "", "shows the version of the running sqmgr",
         "Prints the version of the running sqmgr(8).", NULL, 0, 0, OPTION_JSON, ctl_call, true},
};
const size_t n_commands = ELEMENTSOF(commands);

const struct command *commands_find(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}
