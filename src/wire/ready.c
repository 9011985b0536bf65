/* SPDX-License-Identifier: MIT */
/* Readiness for probes, judged by a reply to GetStatus. */
#include "wire/ready.h"
#include "wire/reply.h"

static int add_fleet(json_t *lacks, const json_t *fleet)
{
        long long target = reply_integer(fleet, "target"), active = reply_integer(fleet, "active");

        if (!reply_is(fleet, "state", "running") || active >= target)
                return 0;
        return json_array_append_new(
                lacks, json_sprintf("fleet '%s' has %lld of %lld worker%s active, %lld starting",
                                    reply_string(fleet, "name"), active, target, target == 1 ? "" : "s",
                                    reply_integer(fleet, "starting")));
}

json_t *ready_lacks(const json_t *status)
{
        _cleanup_json_ json_t *lacks = json_array();
        const json_t *fleets = json_object_get(status, "fleets");

        if (!lacks)
                return NULL;
        if (!json_is_array(fleets) &&
            json_array_append_new(lacks, json_string("sqmgr has not told its status")) < 0)
                return NULL;
        /* During a shutdown the count of every fleet is 0, so fleets lack nothing. */
        if (json_is_object(json_object_get(status, "shutdown")) &&
            json_array_append_new(lacks, json_string("sqmgr is shutting down")) < 0)
                return NULL;
        for (size_t i = 0; i < json_array_size(fleets); i++)
                if (add_fleet(lacks, json_array_get(fleets, i)) < 0)
                        return NULL;
        return TAKE_PTR(lacks);
}
