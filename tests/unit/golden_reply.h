/* SPDX-License-Identifier: MIT */
/* The replies in tests/golden/NAME.json. What most objects of status*.json have alike stands once, in
 * status-defaults.json. */
#pragma once

#include "golden.h"
#include "unit.h"
#include <jansson.h>

static inline json_t *golden_load(const char *name)
{
        char file[64], path[GOLDEN_PATH_MAX];

        snprintf(file, sizeof(file), "%s.json", name);
        json_t *json = json_load_file(golden_path(file, path), 0, NULL);
        ck_assert_msg(json, "'%s' is no JSON", path);
        return json;
}

/* Adds the defaults of the kind that the object lacks; null stays null. */
static inline void golden_complete(json_t *object, const json_t *defaults, const char *kind)
{
        json_t *missing = json_deep_copy(json_object_get(defaults, kind));

        ck_assert_int_eq(json_object_update_missing(object, missing), 0);
        json_decref(missing);
}

/* Returns the reply, to be freed. */
static inline json_t *golden_reply(const char *name)
{
        json_t *reply = golden_load(name), *defaults = golden_load("status-defaults");
        json_t *fleet, *worker;
        size_t i, j;

        json_array_foreach(json_object_get(reply, "fleets"), i, fleet)
        {
                golden_complete(fleet, defaults, "fleet");
                json_array_foreach(json_object_get(fleet, "workers"), j, worker)
                {
                        golden_complete(worker, defaults, "worker");
                }
        }
        json_decref(defaults);
        return reply;
}
