/* SPDX-License-Identifier: MIT */
/* The command `demand`: what the queues of each fleet demand, for scalers outside of sqmgr. */
#include "wire/demand.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "wire/reply.h"
#include <stdio.h>
#include <string.h>

#define CELL_MAX 48

static const struct {
        const char *key, *header;
        bool is_duration;
} columns[] = {
        {"active", "ACTIVE", false},
        {"wanted", "WANTED", false},
        {"needed", "NEEDED", false},
        {"min", "MIN", false},
        {"max", "MAX", false},
        {"waiting", "WAITING", false},
        {"latency_seconds", "LATENCY", true},
        {"backlog_seconds", "BACKLOG", true},
};

static const char *cell_text(const json_t *fleet, size_t column, char text[static CELL_MAX])
{
        const json_t *value = json_object_get(fleet, columns[column].key);

        if (!json_is_number(value))
                snprintf(text, CELL_MAX, "-");
        else if (columns[column].is_duration)
                format_duration(reply_usec(fleet, columns[column].key), text, CELL_MAX);
        else
                snprintf(text, CELL_MAX, "%lld", reply_integer(fleet, columns[column].key));
        return text;
}

/* fleet: NULL for the headers. */
static void print_row(const json_t *fleet, int name_width, const int widths[static ELEMENTSOF(columns)])
{
        char text[CELL_MAX];

        text_print_cell(stdout, fleet ? reply_string(fleet, "name") : "FLEET", name_width);
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                printf("  %*s", widths[i], fleet ? cell_text(fleet, i, text) : columns[i].header);
        putchar('\n');
}

static void print_fleets(json_t *fleets)
{
        struct view view = screen_view();
        int name_width = (int)strlen("FLEET"), widths[ELEMENTSOF(columns)];
        char text[CELL_MAX];
        json_t *fleet;

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                widths[i] = (int)strlen(columns[i].header);
                json_foreach(fleet, fleets)
                        widths[i] = MAX(widths[i], (int)strlen(cell_text(fleet, i, text)));
        }
        json_foreach(fleet, fleets)
                name_width = MAX(name_width, text_width(reply_string(fleet, "name")));
        print_row(NULL, name_width, widths);
        json_foreach(fleet, fleets) {
                print_row(fleet, name_width, widths);
                render_text(stdout, reply_string(fleet, "reason"), "", &view);
        }
}

int ctl_demand(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL;
        int r = client_call(ctl, "GetStatus", json_object(), &status);

        if (r != CTL_DONE)
                return r;
        _cleanup_json_ json_t *reply = json_pack("{s:o}", "fleets", demand_fleets(status));
        if (!reply)
                return output_error(CTL_FAILED, "not enough memory");
        if (ctl->json)
                output_print_json(reply);
        else
                print_fleets(json_object_get(reply, "fleets"));
        return CTL_DONE;
}
