/* SPDX-License-Identifier: MIT */
/* Counts the processes of one server that accept jobs there and are not workers of this host. A count runs
 * periodically at a bounded share of the server's capacity. Each count scans all identities page by page, and
 * sends one query per foreign identity. */
#pragma once

#include "autoscaling/autoscale_rules.h"
#include "frameworks/framework.h"
#include "servers/server.h"

struct foreign_consumers;

/* framework: one whose workers report their queues. is_ours: true if the process of this identity is ours.
 * reader must outlive the object. Returns 0 with *ret, which the caller frees with
 * foreign_consumers_free(), or -ENOMEM. */
int foreign_consumers_new(const struct framework *framework, struct reader *reader,
                          bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                          struct foreign_consumers **ret);
/* Starts a count if one is due. */
void foreign_consumers_poll(struct foreign_consumers *consumers, usec_t now);
/* Returns the result of the last count. names: a list as in struct autoscale. */
struct foreign_count foreign_consumers_count(const struct foreign_consumers *consumers, const char *names,
                                             usec_t now);
/* Takes NULL. Returns NULL. */
struct foreign_consumers *foreign_consumers_free(struct foreign_consumers *consumers);
