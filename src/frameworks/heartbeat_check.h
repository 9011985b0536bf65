/* SPDX-License-Identifier: MIT */
/* The rules for a heartbeat on a server. The decoders of the frameworks keep to these rules; every heartbeat
 * is checked once more before it is given on, as decisions depend on it. Pure. */
#pragma once

#include "frameworks/framework.h"
#include "model/heartbeat_info.h"

/* Returns false if no process of the framework writes this. info: NULL: none. */
bool heartbeat_check(const struct framework *framework, const struct heartbeat *heartbeat,
                     const struct heartbeat_info *info);
