/* SPDX-License-Identifier: MIT */
/* The flight recorder: with the setting `record`, each pass is written into a ring beside the state file
 * (record_rules.h). sqmgr-replay reads it. */
#pragma once

struct subsystem;

extern const struct subsystem recorder_subsystem;
