/* SPDX-License-Identifier: MIT */
/* The reader's view of Celery. */
#pragma once

#include "frameworks/live_format.h"

extern const struct live_format celery_live_format;
