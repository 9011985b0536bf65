/* SPDX-License-Identifier: MIT */
/* Builds the text that the HMAC of an order covers. The text holds the Redis, the namespace and the group: a
 * signed order counts nowhere else, and all hosts of a group must name these alike. A Redis on the host's own
 * machine counts as any name. */
#pragma once

#include "rollout_hosts/reply_rules.h"

struct rollout_place {
        char server[ROLLOUT_SERVER_MAX + 1];
        unsigned database;
        const char *namespace; /* NULL: none */
        const char *group;
};

/* Returns how this host calls the Redis that the URL or the Sentinels name. master_name: of the Sentinels;
 * NULL: the URL is the address of the server. "" is a Redis on this machine, which other hosts call by
 * another name. namespace and group are borrowed, and have no line breaks. */
struct rollout_place rollout_place(const char *url, const char *master_name, const char *namespace,
                                   const char *group);
/* True if a host at this place may obey an order that was signed for the Redis of that name. */
bool rollout_place_is_same(const struct rollout_place *place, const char *server);

/* Returns the text for `begin` of this rollout with its parameters, or `abort` of this rollout. The caller
 * frees the result; NULL: out of memory. */
char *rollout_signed_text(const char *order, const struct rollout_place *place,
                          const struct rollout_reply *rollout);
