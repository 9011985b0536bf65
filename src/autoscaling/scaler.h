/* SPDX-License-Identifier: MIT */
/* Has the queues read of each fleet whose count follows them, and applies the count that follows. Nothing is
 * read where there is no such fleet. */
#pragma once

#include "autoscaling/scaled_link.h"

struct persist;

/* Functions of the subsystem. self is the struct links. poll() begins a reading of each Redis whose fleets
 * need one; observe() folds in what was answered since, and changes what the state holds if a count has
 * changed. */
int scaler_begin(struct persist *persist, void **ret);
void scaler_join(void *self);
void scaler_poll(void *self, usec_t now);
void scaler_observe(void *self, usec_t now);
void scaler_end(void *self);

/* NULL: the count of no fleet of this link has followed its queues yet. */
struct scaled_link *scaled_link_of(const struct link *link);
