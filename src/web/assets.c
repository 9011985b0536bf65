/* SPDX-License-Identifier: MIT */
/* The page's files other than HTML, embedded in the program. */
#include "web/assets.h"
#include "base/embed.h"
/* Generated from the files below whenever they change, so that this file is recompiled, too. */
#include "web/assets_made.h"
#include <string.h>

EMBED_FILE(asset_style, ASSETS_STYLE_FILE)
EMBED_FILE(asset_page, ASSETS_PAGE_FILE)
EMBED_FILE(asset_plot, ASSETS_PLOT_FILE)

const char *const assets_style = asset_style_begin;
const char assets_page_script[] = "/page." ASSETS_PAGE_HASH ".js";
const char assets_plot_script[] = "/uplot." ASSETS_PLOT_HASH ".js";

static size_t size_between(const char *begin, const char *end)
{
        return (uintptr_t)end - (uintptr_t)begin;
}

struct asset *assets_find(const char *path)
{
        static struct asset assets[] = {
                {.path = assets_page_script,
                 .type = "text/javascript; charset=utf-8",
                 .text = {.holders = 1, .data = (char *)asset_page_begin}},
                {.path = assets_plot_script,
                 .type = "text/javascript; charset=utf-8",
                 .text = {.holders = 1, .data = (char *)asset_plot_begin}},
        };

        assets[0].text.size = size_between(asset_page_begin, asset_page_end);
        assets[1].text.size = size_between(asset_plot_begin, asset_plot_end);
        for (size_t i = 0; i < ELEMENTSOF(assets); i++)
                if (strcmp(assets[i].path, path) == 0)
                        return &assets[i];
        return NULL;
}
