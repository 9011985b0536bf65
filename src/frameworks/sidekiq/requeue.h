/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue, in one script. */
#pragma once

#include "frameworks/framework.h"

int sidekiq_requeue(const struct requeue_request *request, requeue_fn done, void *userdata);
