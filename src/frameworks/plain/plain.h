/* SPDX-License-Identifier: MIT */
/* Any process. A plain process sends no heartbeats, so its jobs are unknown. */
#pragma once

#include "frameworks/framework.h"

extern const struct traits plain_traits;
extern const struct framework plain_framework;
