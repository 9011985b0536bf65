/* SPDX-License-Identifier: MIT */
/* The control interface: its methods, who may call which, and its description for introspection. */
#include "core/control.h"
#include <string.h>

const struct control_method control_methods[] = {
        {"GetStatus", CONTROL_READ, false}, {"Restart", CONTROL_OPERATE, true},
        {"Follow", CONTROL_READ, true},     {"Abort", CONTROL_OPERATE, false},
        {"Quiet", CONTROL_OPERATE, false},  {"Stop", CONTROL_OPERATE, false},
        {"Start", CONTROL_OPERATE, false},  {"Scale", CONTROL_OPERATE, false},
        {"Reload", CONTROL_OPERATE, false}, {"Reexec", CONTROL_OWN, false},
        {"GetEvents", CONTROL_READ, true},  {"GetMetrics", CONTROL_READ, false},
        {"Ping", CONTROL_READ, false},      {"GetVersion", CONTROL_READ, false},
};
const size_t control_n_methods = ELEMENTSOF(control_methods);

const char control_description[] =
        "# Drives sqmgr, a supervisor of job workers.\n"
        "# A list of fleets that is null or empty means all fleets.\n"
        "interface org.sqmgr.Control\n"
        "\n"
        "type Redis (\n"
        "  url: string,\n"
        "  state: (connecting, connected, down),\n"
        "  rtt_ms: ?float\n"
        ")\n"
        "\n"
        "type Rollout (\n"
        "  state: (none, running, done, halted, aborted),\n"
        "  generation: int,\n"
        "  replaced: int,\n"
        "  outdated: int,\n"
        "  error: ?string\n"
        ")\n"
        "\n"
        "# Short lives in a row; 0 once reset.\n"
        "type Crash (\n"
        "  count: int,\n"
        "  next_start_seconds: ?float,\n"
        "  last: ?string\n"
        ")\n"
        "\n"
        "# reason: why it leaves, or is to leave.\n"
        "type Worker (\n"
        "  id: string,\n"
        "  index: int,\n"
        "  pid: int,\n"
        "  state: (starting, active, quiet, stopping),\n"
        "  ready: bool,\n"
        "  generation: int,\n"
        "  outdated: bool,\n"
        "  busy: int,\n"
        "  concurrency: int,\n"
        "  memory_bytes: int,\n"
        "  uptime_seconds: float,\n"
        "  state_seconds: float,\n"
        "  reason: ?string,\n"
        "  waits_for: ?string,\n"
        "  evidence: (redis, title, none),\n"
        "  beat_age_seconds: ?float\n"
        ")\n"
        "\n"
        "type Fleet (\n"
        "  name: string,\n"
        "  framework: string,\n"
        "  target: int,\n"
        "  active: int,\n"
        "  starting: int,\n"
        "  quiet: int,\n"
        "  stopping: int,\n"
        "  max_processes: int,\n"
        "  generation: int,\n"
        "  memory_bytes: int,\n"
        "  state: (running, quiet, stopped),\n"
        "  waits_for: ?string,\n"
        "  rollout: Rollout,\n"
        "  crash: Crash,\n"
        "  workers: []Worker\n"
        ")\n"
        "\n"
        "# A restart of one fleet. outdated: the workers yet to be replaced; draining: those of older\n"
        "# generations that are quiet or stopping. state: stopped and none come at once, where there is "
        "nothing\n"
        "# to wait for: the fleet is stopped; no restart is known of it.\n"
        "type Restarted (\n"
        "  name: string,\n"
        "  generation: int,\n"
        "  state: (none, running, done, halted, aborted, stopped),\n"
        "  total: int,\n"
        "  replaced: int,\n"
        "  outdated: int,\n"
        "  draining: int,\n"
        "  error: ?string,\n"
        "  waits_for: ?string\n"
        ")\n"
        "\n"
        "# What became of a worker since the reply before.\n"
        "type Change (\n"
        "  id: string,\n"
        "  pid: int,\n"
        "  generation: int,\n"
        "  outdated: bool,\n"
        "  state: (starting, active, quiet, stopping, gone),\n"
        "  reason: ?string\n"
        ")\n"
        "\n"
        "# at: seconds since 1970. event: its kind, as SQMGR_EVENT in the journal. text: one sentence.\n"
        "type Event (\n"
        "  at: float,\n"
        "  event: string,\n"
        "  level: (error, warning, info),\n"
        "  fleet: ?string,\n"
        "  worker: ?string,\n"
        "  pid: ?int,\n"
        "  generation: ?int,\n"
        "  reason: ?string,\n"
        "  text: string\n"
        ")\n"
        "\n"
        "method GetStatus(fleets: ?[]string) -> (\n"
        "  version: string,\n"
        "  pid: int,\n"
        "  uptime_seconds: float,\n"
        "  redis: []Redis,\n"
        "  fleets: []Fleet\n"
        ")\n"
        "\n"
        "# Starts a rollout: workers of a new generation replace all others. Called with `more`, it replies "
        "each\n"
        "# time that something moved, for the last time when every outdated worker has been replaced and "
        "quieted,\n"
        "# or, with wait \"drained\", is gone. wait needs `more`, and is \"replaced\" where it is null.\n"
        "method Restart(fleets: ?[]string, wait: ?(replaced, drained)) -> (\n"
        "  fleets: []Restarted,\n"
        "  changes: []Change\n"
        ")\n"
        "\n"
        "# Replies as Restart does, but starts nothing: the rollouts that are in progress, or ended last.\n"
        "method Follow(fleets: ?[]string, wait: ?(replaced, drained)) -> (\n"
        "  fleets: []Restarted,\n"
        "  changes: []Change\n"
        ")\n"
        "\n"
        "# Ends rollouts: no further old worker is quieted. aborted: the fleets in which one was running.\n"
        "method Abort(fleets: ?[]string) -> (aborted: []string)\n"
        "\n"
        "# target: a fleet, or a worker (FLEET/INDEX). A fleet is quieted as a whole and stays so until "
        "Start or\n"
        "# Restart; a worker is quieted and its place filled again. leaving: it was quiet or stopping "
        "already.\n"
        "method Quiet(target: string) -> (leaving: bool)\n"
        "\n"
        "# Drains the fleet to zero; with force, without waiting for its jobs.\n"
        "method Stop(fleet: string, force: ?bool) -> ()\n"
        "\n"
        "method Start(fleet: string) -> ()\n"
        "\n"
        "# Sets the count in force, 1 to max_processes.\n"
        "method Scale(fleet: string, count: int) -> ()\n"
        "\n"
        "# Reads the configuration again. changes: what differs, a line each.\n"
        "method Reload() -> (changes: []string)\n"
        "\n"
        "# Has the installed program take the place of the running one, workers untouched; the new one "
        "answers.\n"
        "method Reexec() -> (version: string, pid: int)\n"
        "\n"
        "# The last events, oldest first; of one worker (FLEET/INDEX) where it is named. Called with `more`, "
        "it\n"
        "# goes on with those to come.\n"
        "method GetEvents(fleets: ?[]string, worker: ?string) -> (events: []Event)\n"
        "\n"
        "# In the text format of Prometheus.\n"
        "method GetMetrics() -> (text: string)\n"
        "\n"
        "method Ping() -> ()\n"
        "\n"
        "method GetVersion() -> (version: string)\n"
        "\n"
        "# fleets: the names there are.\n"
        "error UnknownFleet (name: string, fleets: []string)\n"
        "\n"
        "# workers: those of its fleet.\n"
        "error UnknownWorker (name: string, workers: []string)\n"
        "\n"
        "# reason: a sentence; details: further lines, such as the errors of a configuration.\n"
        "error Refused (reason: string, details: []string)\n";

const struct control_method *control_find_method(const char *name)
{
        for (size_t i = 0; i < control_n_methods; i++)
                if (strcmp(control_methods[i].name, name) == 0)
                        return &control_methods[i];
        return NULL;
}

static bool peer_in_group(const struct control_peer *peer, gid_t group)
{
        if (peer->gid == group)
                return true;
        for (size_t i = 0; i < peer->n_groups; i++)
                if (peer->groups[i] == group)
                        return true;
        return false;
}

enum control_access control_peer_access(const struct control_peer *peer, uid_t own_uid, gid_t group)
{
        if (peer->uid == 0 || peer->uid == own_uid)
                return CONTROL_OWN;
        if (group != CONTROL_NO_GROUP && peer_in_group(peer, group))
                return CONTROL_OPERATE;
        return CONTROL_READ;
}
