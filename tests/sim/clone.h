/* SPDX-License-Identifier: MIT */
/* Another host of the same name as ours, see clone.c. */
#pragma once

#include "sim.h"

void clones_open(struct sim *sim);
/* A process of ours begins: a clone with its pid may appear on another host, sooner or later. */
void clone_of(struct sim *sim, const struct process *process);
usec_t clones_next_at(const struct sim *sim);
void clones_step(struct sim *sim);
/* Redis loses the clones' records. heartbeat_on: the clones continue to send heartbeats. */
void clones_end(struct sim *sim, bool heartbeat_on);
/* Our wall clock was stepped back: times of earlier registrations prove nothing any more. */
void clones_lose_births(struct sim *sim);
void clones_serve(struct sim *sim, unsigned fleet);
/* Returns true if a clone may not be older than the process. */
bool clones_resemble(const struct sim *sim, const struct process *process);
/* Returns NULL if serial is no clone's. */
const struct clone *clone_find(const struct sim *sim, unsigned serial);
