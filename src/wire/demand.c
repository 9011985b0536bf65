/* SPDX-License-Identifier: MIT */
/* Derives from a reply to GetStatus what the queues of each fleet demand; see the header. */
#include "wire/demand.h"
#include "base/macro.h"

/* Copies a member, with null for one that is missing: the sqmgr may be older. Returns 0, or -1 if memory is
 * short. */
static int copy(json_t *to, const char *to_key, const json_t *from, const char *key)
{
        json_t *value = json_object_get(from, key);

        return json_object_set_new(to, to_key, value ? json_incref(value) : json_null());
}

static json_t *render(const json_t *fleet)
{
        static const struct {
                const char *key;
                bool of_fleet; /* a member of the fleet, else of its scaling */
                const char *from;
        } members[] = {
                {"name", true, "name"},
                {"framework", true, "framework"},
                {"active", true, "active"},
                {"wanted", false, "wanted"},
                {"needed", false, "needed"},
                {"needed_threads", false, "needed_threads"},
                {"min", false, "min"},
                {"max", false, "max"},
                {"waiting", false, "waiting"},
                {"latency_seconds", false, "latency_seconds"},
                {"backlog_seconds", false, "backlog_seconds"},
                {"mode", false, "mode"},
                {"automatic", false, "automatic"},
                {"reason", false, "because"},
        };
        _cleanup_json_ json_t *object = json_object();

        FOREACH_ELEMENT(member, members)
                if (copy(object, member->key, member->of_fleet ? fleet : json_object_get(fleet, "scaling"),
                         member->from) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

json_t *demand_fleets(const json_t *status)
{
        _cleanup_json_ json_t *list = json_array();
        const json_t *fleet;

        json_foreach_in(fleet, status, "fleets")
                if (json_array_append_new(list, render(fleet)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}
