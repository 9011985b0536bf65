/* SPDX-License-Identifier: MIT */
/* Values derived from a fleet's settings and its framework's traits. */
#include "settings/settings.h"
#include "settings/database_url.h"
#include "settings/presets.h"
#include <errno.h>
#include <string.h>

usec_t fleet_settings_stop_usec(const struct fleet_settings *fleet)
{
        const struct traits *traits = fleet->traits;
        usec_t shutdown =
                traits->command_shutdown_usec && fleet->argv ? traits->command_shutdown_usec(fleet->argv) : 0;

        shutdown = shutdown ?: traits->shutdown_usec;
        return shutdown > 0 ? shutdown + SETTINGS_STOP_MARGIN_USEC : 0;
}

bool fleet_settings_database_fits(const struct fleet_settings *fleet)
{
        _cleanup_database_url_ struct database_url url = {0};

        return !fleet->traits->postgresql_only || !fleet->database_url ||
               database_url_parse(fleet->database_url, &url, NULL) < 0 || url.engine == DATABASE_POSTGRESQL;
}

int fleet_settings_stop_signal(const struct fleet_settings *fleet)
{
        if (!fleet->traits->stop_chosen)
                return 0;
        if (fleet->stop_signal != 0)
                return fleet->stop_signal;
        return fleet->preset != PRESET_NONE ? presets[fleet->preset].stop_signal : 0;
}

const char *shim_error_text(int error)
{
        return error == EINVAL ? "the path contains a blank, a colon, a quote or a backslash"
                               : strerrordesc_np(error);
}
