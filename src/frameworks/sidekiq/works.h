/* SPDX-License-Identifier: MIT */
/* Reads the work lists of Sidekiq's processes. */
#pragma once

#include "frameworks/framework.h"

extern const struct works_ops sidekiq_works;
