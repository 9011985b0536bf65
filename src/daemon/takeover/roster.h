/* SPDX-License-Identifier: MIT */
/* The workers of this host that Redis lists, for the search of takeover/search.h.
 *
 * The title of an RQ worker overwrites its environment. Outside a service of systemd nothing else then shows
 * whose worker it is but its framework's own list. A listed process counts as a worker of a fleet only if all
 * of these conditions hold:
 *
 * - The list names this host, the pid, and the queues of the fleet's command.
 * - The entry was registered since the process was started.
 * - The process has the fleet's directory.
 * - The parent is init or an ancestor of ours, as for orphans of an earlier sqmgr.
 * - The process is not part of another service.
 *
 * continuity/adoption checks the user, and that the process fits no other fleet. */
#pragma once

#include "io/proc.h"

struct adoption;
struct roster;
struct runtime;
struct sighting;

/* news: called when the next search can find more, never from within a call below. Returns 0 or -ENOMEM. */
int roster_new(struct runtime *runtime, struct adoption *adoption, void (*news)(void *userdata),
               void *userdata, struct roster **ret);
/* Takes NULL. Returns NULL. All functions below take NULL too: nothing is listed then. */
struct roster *roster_free(struct roster *roster);

/* Call as a search begins: this search uses the lists that were read so far. */
void roster_begin(struct roster *roster);
/* True if a list names this pid. */
bool roster_lists(const struct roster *roster, pid_t pid);
/* Finds the fleets that a listed process fits; they stay valid until the next call. Returns 0 or -errno. */
int roster_see(struct roster *roster, const struct proc *proc, const struct proc_place *place,
               struct sighting *sighting);
/* Call as a search of all processes ends: tells the adoption which lists are awaited, and asks for those. A
 * worker that this search has seen without an environment registered before that. Returns true if lists are
 * awaited. */
bool roster_end(struct roster *roster);
