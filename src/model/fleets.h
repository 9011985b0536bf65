/* SPDX-License-Identifier: MIT */
/* Makes the fleets of a world from settings, applies changed settings to them, and frees them. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct orderer;
struct settings;
struct world;

/* Makes a world of a fleet for each section of settings, which must outlive it. seed feeds the jitter of
 * backoff. Returns -ENOMEM, or 0 with *ret to be freed by world_free(). */
int world_new(const struct settings *settings, uint64_t seed, struct world **ret);

struct world *world_free(struct world *world);

/* Puts other settings in force, which have all fleets that there are (settings_merge()): those that are
 * missing are added, those that are removed drain. Workers that would be started otherwise now are outdated.
 * by: who ordered it; NULL: not known. Returns 0, or -ENOMEM: then nothing is changed. */
int world_reload(struct world *world, const struct settings *settings, const struct orderer *by, usec_t now);

/* Forgets the removed fleets that have no workers and no templates. No event may tell of them any more. */
void world_forget_removed(struct world *world);
