/* SPDX-License-Identifier: MIT */
/* Reads what Resque's workers run. */
#pragma once

#include "frameworks/framework.h"

extern const struct works_ops resque_works;
