/* SPDX-License-Identifier: MIT */
/* Any process: it writes no heartbeat, so that nothing is known of its jobs. */
#pragma once

#include "frameworks/framework.h"

extern const struct traits plain_traits;
extern const struct framework plain_framework;
