/* SPDX-License-Identifier: MIT */
/* The state of the last restart. */
#pragma once

enum rollout_state {
        ROLLOUT_NONE,
        ROLLOUT_RUNNING,
        ROLLOUT_DONE,
        ROLLOUT_HALTED,
        ROLLOUT_ABORTED,
        _ROLLOUT_STATE_MAX,
};
