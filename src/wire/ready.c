/* SPDX-License-Identifier: MIT */
/* Derives the readiness for probes from a reply to GetStatus. */
#include "wire/ready.h"
#include "wire/reply.h"

json_t *ready_lacks(const json_t *status)
{
        _cleanup_json_ json_t *lacks = json_array();
        const json_t *problems = json_object_get(status, "problems"), *problem;
        int r = lacks ? 0 : -1;

        if (!json_is_array(json_object_get(status, "fleets")) || !json_is_array(problems))
                r = r < 0 ? r
                          : json_array_append_new(lacks, json_string("sqmgr has not reported its status"));
        json_foreach(problem, r < 0 ? NULL : problems)
                if (reply_is_true(problem, "unready"))
                        r = r < 0 ? r : json_array_append(lacks, json_object_get(problem, "summary"));
        return r < 0 ? NULL : TAKE_PTR(lacks);
}
