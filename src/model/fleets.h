/* SPDX-License-Identifier: MIT */
/* Creates the fleets of a world from settings, applies changed settings, and frees them. */
#pragma once

#include "base/macro.h"

struct orderer;
struct settings;
struct world;

/* Creates a world with a fleet for each section of settings. settings is borrowed and must outlive the world.
 * seed: for the jitter of backoff. Returns 0 with *ret owned by the caller (world_free()), or -ENOMEM. */
int world_new(const struct settings *settings, uint64_t seed, struct world **ret);

struct world *world_free(struct world *world);

/* Applies new settings, which must contain all existing fleets (settings_merge()), and are borrowed like
 * those of world_new(). New fleets are added; removed ones drain. If the launch settings of a fleet have
 * changed, its workers become outdated. by: who ordered the reload; NULL: not known. Returns 0, or -ENOMEM
 * with nothing changed. */
int world_reload(struct world *world, const struct settings *settings, const struct orderer *by, usec_t now);

/* Frees removed fleets without workers and templates. Call only when no pending event names them. */
void world_forget_removed(struct world *world);
