/* SPDX-License-Identifier: MIT */
/* Autoscaling in status, metrics and doctor. Functions of struct subsystem; see there. */
#pragma once

#include "base/usec.h"
#include "wire/json.h"

struct problems;
struct fleet;
struct link;
struct metrics;
struct world;

int scaling_status(const void *self, const struct fleet *fleet, json_t *object);
void scaling_metrics(const void *self, const struct world *world, struct metrics *metrics);
void scaling_diagnose(const void *self, const struct fleet *fleet, struct problems *findings);
void scaling_diagnose_link(const void *self, const struct link *link, struct problems *findings, usec_t now);
