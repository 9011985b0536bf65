/* SPDX-License-Identifier: MIT */
/* Trials: a restart stops at a few new workers until their jobs show that the release is not worse. */
#pragma once

struct subsystem;

extern const struct subsystem rollout_trial_subsystem;
