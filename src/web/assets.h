/* SPDX-License-Identifier: MIT */
/* The page's files other than HTML, embedded in the program. */
#pragma once

#include "web/stream.h"

struct asset {
        const char *path; /* contains a hash of the contents, so a changed file has another path */
        const char *type; /* value of Content-Type */
        struct shared text;
};

/* Returns NULL if there is no asset of that path. Assets are never freed, whoever holds their text. */
struct asset *assets_find(const char *path);

/* The style sheet embedded in the page, and the paths of its scripts. */
extern const char *const assets_style;
extern const char assets_page_script[], assets_plot_script[];
