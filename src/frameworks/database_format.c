/* SPDX-License-Identifier: MIT */
/* The table of frameworks that keep data in a database; each entry is defined in the framework's own folder.
 */
#include "frameworks/database_format.h"
#include "settings/traits.h"

static const struct database_format *const formats[] = {
        &solid_queue_database_format,
        &good_job_database_format,
};

const struct database_format *database_format_of(unsigned id)
{
        for (size_t i = 0; i < ELEMENTSOF(formats); i++)
                if (formats[i]->traits->id == id)
                        return formats[i];
        return NULL;
}
