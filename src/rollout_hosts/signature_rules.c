/* SPDX-License-Identifier: MIT */
/* Builds the text that the HMAC of an order covers; see the header. */
#include "rollout_hosts/signature_rules.h"
#include "settings/redis_url.h"
#include <stdio.h>
#include <string.h>

struct rollout_place rollout_place(const char *url, const char *master_name, const char *namespace,
                                   const char *group)
{
        struct rollout_place place = {.namespace = namespace, .group = group};
        _cleanup_redis_url_ struct redis_url parsed = {0};

        if (redis_url_parse(url, &parsed, NULL) < 0)
                return place;
        place.database = parsed.db;
        if (master_name)
                snprintf(place.server, sizeof(place.server), "sentinel/%s", master_name);
        else if (!redis_url_is_local(&parsed))
                snprintf(place.server, sizeof(place.server), "%s:%u", parsed.host, parsed.port);
        return place;
}

bool rollout_place_is_same(const struct rollout_place *place, const char *server)
{
        return place->server[0] == '\0' || server[0] == '\0' || strcasecmp(place->server, server) == 0;
}

char *rollout_signed_text(const char *order, const struct rollout_place *place,
                          const struct rollout_reply *rollout)
{
        char *text;

        /* Each value has a line, so that part of one value cannot pass for another. */
        if (asprintf(&text, "%s\n%s\n%u\n%s\n%s\n%llu\n%s\n%s\n%u\n%u\n%s\n", order, rollout->server,
                     place->database, place->namespace ?: "", place->group,
                     (unsigned long long)rollout->number, rollout->id, rollout->asked,
                     rollout->canary_seconds, rollout->failures, rollout->release) < 0)
                return NULL;
        return text;
}
