/* SPDX-License-Identifier: MIT */
/* What the page is made of besides its HTML, within the program. */
#pragma once

#include "web/shared.h"

struct asset {
        const char *path; /* has a hash of its contents: another one is at another path */
        const char *type; /* for Content-Type */
        struct shared text;
};

/* NULL: there is none of that path. What is returned lives for ever, whoever holds it. */
struct asset *assets_find(const char *path);

/* The style sheet that the page contains, and the paths of its scripts. */
extern const char *const assets_style;
extern const char assets_page_script[], assets_plot_script[];
