/* SPDX-License-Identifier: MIT */
/* The command `status`: shows fleets and workers once, or with --watch each second. On a terminal, --watch
 * repaints in place. */
#include "base/memstream.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/follow.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include <stdio.h>

static void draw_head(FILE *out, const struct view *view, const struct follow *follow)
{
        /* Omit the heading if there is little room. */
        if (!view->brief)
                fprintf(out, "%.8s, updated each second; %s quits\n", output_stamp(),
                        isatty(STDIN_FILENO) ? "q" : "Ctrl-C");
        if (follow->why[0] == '\0')
                return;
        fputs(view->colour ? "\033[31m" : "", out);
        text_print_wrapped(out, follow->why, 0, 2, view->columns);
        fprintf(out, "%sState of that time; reconnecting. q quits.\n\n", view->colour ? "\033[0m" : "");
}

static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct follow *follow = userdata;
        struct view below = *view;
        _cleanup_free_ char *head = NULL;
        size_t size;
        FILE *memory = open_memstream(&head, &size);

        if (memory)
                draw_head(memory, view, follow);
        if (memstream_close(memory, &head) < 0)
                return;
        fputs(head, out);
        below.rows = MAX(view->rows - screen_count_lines(head), 1);
        (void)render_status(out, follow->reply, &below);
}

static int send_call(struct follow *follow)
{
        return client_send(follow->ctl, "GetStatus", json_pack("{s:o}", "fleets", client_fleets(follow->ctl)),
                           false);
}

/* A live picture stays, with the reason why it is not current. */
static int fail(struct follow *follow, int code)
{
        return follow->live && follow->reply ? CTL_DONE : code;
}

static int take_reply(struct follow *follow, json_t *reply)
{
        const struct ctl *ctl = follow->ctl;
        struct view view = screen_view();
        int r = CTL_DONE;

        if (follow->reply && !follow->live && !ctl->json)
                putchar('\n');
        follow_keep(follow, reply);
        follow->quiet = follow->live;
        if (!follow->live) {
                if (!ctl->json)
                        r = render_status(stdout, reply, &view);
                else
                        output_print_json(reply);
                fflush(stdout);
        }
        follow->ended = !ctl->watch || ferror(stdout);
        return r;
}

int ctl_status(struct ctl *ctl)
{
        struct follow follow = {.ctl = ctl,
                                .send = send_call,
                                .take = take_reply,
                                .fail = fail,
                                .draw = draw,
                                .each_second = true,
                                .live = ctl->watch && !ctl->json && screen_is_there(),
                                .until = USEC_INFINITY};

        follow.whole = follow.live;
        return follow_run(&follow);
}
