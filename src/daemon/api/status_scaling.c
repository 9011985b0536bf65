/* SPDX-License-Identifier: MIT */
/* Renders how the count of a fleet follows its queues. */
#include "daemon/api/status_scaling.h"
#include "model/autoscale.h"
#include "model/fleet.h"
#include "wire/varlink.h"

static json_t *arithmetic(const struct fleet *fleet)
{
        _cleanup_json_ json_t *lines = json_array();
        char text[AUTOSCALE_TEXT_MAX];

        for (size_t i = 0; autoscale_line(fleet, i, text); i++)
                if (json_array_append_new(lines, varlink_text(text)) < 0)
                        return NULL;
        return TAKE_PTR(lines);
}

json_t *status_scaling(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;
        char because[AUTOSCALE_TEXT_MAX];

        if (!fleet_scales(fleet))
                return json_null();
        return json_pack("{s:I, s:I, s:I, s:b, s:o, s:o}", "min", (json_int_t)settings->active_process_count,
                         "max", (json_int_t)settings->active_process_max, "wanted",
                         (json_int_t)autoscale_wanted(fleet), "automatic", (int)(fleet->scale == 0),
                         "because", varlink_text(autoscale_text(fleet, because)), "arithmetic",
                         arithmetic(fleet));
}
