/* SPDX-License-Identifier: MIT */
/* Autoscaling: the count of workers of a fleet follows its queues. */
#pragma once

struct subsystem;

extern const struct subsystem autoscaling_subsystem;
