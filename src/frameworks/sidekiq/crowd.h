/* SPDX-License-Identifier: MIT */
/* Counts the Sidekiqs of a Redis that are nobody's here. */
#pragma once

#include "frameworks/framework.h"

extern const struct crowd_ops sidekiq_crowd;
