/* SPDX-License-Identifier: MIT */
/* A process that runs workers of BullMQ, versions 5 and 6. */
#pragma once

extern const struct traits bullmq_traits;
extern const struct framework bullmq_framework;
