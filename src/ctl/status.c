/* SPDX-License-Identifier: MIT */
/* The command `status`, once or again and again. */
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WATCH_USEC USEC_PER_SEC

static int get_status(struct ctl *ctl, json_t **ret)
{
        return client_call(ctl, "GetStatus", json_pack("{s:o}", "fleets", client_fleets(ctl)), ret);
}

static int show(struct ctl *ctl, json_t *status)
{
        struct view view = screen_view();

        if (!ctl->json)
                return render_status(stdout, status, &view);
        reply_print_json(status);
        return CTL_DONE;
}

struct picture {
        json_t *status;
        bool keys;       /* come to us */
        char error[512]; /* "", or why status is an old one */
};

static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct picture *picture = userdata;
        time_t now = time(NULL);
        struct tm local;
        char clock[16];

        /* Where there is little room the workers matter more. */
        if (!view->brief && localtime_r(&now, &local) &&
            strftime(clock, sizeof(clock), "%H:%M:%S", &local) > 0)
                fprintf(out, "%s, each second; %s quits\n", clock, picture->keys ? "q" : "Ctrl-C");
        if (picture->error[0] != '\0') {
                fputs(view->colour ? "\033[31m" : "", out);
                text_print_wrapped(out, picture->error, 0, 2, view->columns);
                fprintf(out, "%sThis is how it was then; trying again, q ends this.\n\n",
                        view->colour ? "\033[0m" : "");
        }
        (void)render_status(out, picture->status, view);
}

/* Has `q` been pressed? */
static bool take_keys(struct ctl *ctl)
{
        char keys[64];
        struct pollfd poll_fd = {.fd = ctl->key_fd, .events = POLLIN};

        if (ctl->key_fd < 0 || poll(&poll_fd, 1, 0) <= 0)
                return false;
        ssize_t n = read(ctl->key_fd, keys, sizeof(keys));
        if (n <= 0) {
                ctl->key_fd = -1;
                return false;
        }
        return memchr(keys, 'q', (size_t)n) || memchr(keys, 'Q', (size_t)n);
}

/* Paints the status anew each second, an sqmgr that is away for a while notwithstanding. */
static int watch_on_screen(struct ctl *ctl, json_t *status)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
        struct picture picture = {.status = status};
        int r = client_catch_signals(ctl, signals, ELEMENTSOF(signals));

        if (r != CTL_DONE)
                return r;
        ctl->key_fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1;
        picture.keys = ctl->key_fd >= 0;
        json_incref(status);
        screen_enter(true);
        for (;;) {
                json_t *newer = NULL;

                screen_draw(draw, &picture);
                (void)client_wait(ctl, WATCH_USEC);
                if (ctl->signal != 0 || take_keys(ctl))
                        break;
                picture.error[0] = '\0';
                say_errors_to(picture.error, sizeof(picture.error));
                r = get_status(ctl, &newer);
                say_errors_to(NULL, 0);
                if (r == CTL_DONE) {
                        json_decref(picture.status);
                        picture.status = newer;
                }
        }
        screen_leave();
        json_decref(picture.status);
        /* It was asked to end. */
        return CTL_DONE;
}

int ctl_status(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL;
        int r = get_status(ctl, &status);

        if (r != CTL_DONE)
                return r;
        if (ctl->watch && !ctl->json && screen_is_there())
                return watch_on_screen(ctl, status);
        r = show(ctl, status);
        while (ctl->watch && r == CTL_DONE && !ferror(stdout)) {
                _cleanup_json_ json_t *newer = NULL;

                fflush(stdout);
                (void)client_wait(ctl, WATCH_USEC);
                r = get_status(ctl, &newer);
                if (r != CTL_DONE)
                        return r;
                if (!ctl->json)
                        putchar('\n');
                r = show(ctl, newer);
        }
        return r;
}
