/* SPDX-License-Identifier: MIT */
/* What a restart has come to. */
#pragma once

enum rollout_state {
        ROLLOUT_NONE,
        ROLLOUT_RUNNING,
        ROLLOUT_DONE,
        ROLLOUT_HALTED,
        ROLLOUT_ABORTED,
        _ROLLOUT_STATE_MAX,
};
