/* SPDX-License-Identifier: MIT */
/* Shows what sqmgr tells, once, or with --watch again and again: on a terminal in the place of what stood
 * there. */
#include "ctl/watch.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/say.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WATCH_USEC USEC_PER_SEC

static int show(struct ctl *ctl, const struct watched *watched, json_t *reply)
{
        struct view view = screen_view();

        return ctl->json ? watched->print_json(reply) : watched->render(stdout, reply, &view);
}

struct picture {
        const struct watched *watched;
        json_t *reply;
        bool keys;       /* come to us */
        char error[512]; /* "", or why reply is an old one */
};

static void draw_head(FILE *out, const struct view *view, const struct picture *picture)
{
        time_t now = time(NULL);
        struct tm local;
        char clock[16];

        /* Where there is little room what is below matters more. */
        if (!view->brief && localtime_r(&now, &local) &&
            strftime(clock, sizeof(clock), "%H:%M:%S", &local) > 0)
                fprintf(out, "%s, each second; %s quits\n", clock, picture->keys ? "q" : "Ctrl-C");
        if (picture->error[0] == '\0')
                return;
        fputs(view->colour ? "\033[31m" : "", out);
        text_print_wrapped(out, picture->error, 0, 2, view->columns);
        fprintf(out, "%sThis is how it was then; trying again, q ends this.\n\n",
                view->colour ? "\033[0m" : "");
}

static void draw(FILE *out, const struct view *view, void *userdata)
{
        const struct picture *picture = userdata;
        struct view below = *view;
        _cleanup_free_ char *head = NULL;
        size_t size;
        FILE *memory = open_memstream(&head, &size);

        if (!memory)
                return;
        draw_head(memory, view, picture);
        if (fclose(memory) != 0)
                return;
        fputs(head, out);
        below.rows = MAX(view->rows - screen_count_lines(head), 1);
        (void)picture->watched->render(out, picture->reply, &below);
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

/* Paints it anew each second, an sqmgr that is away for a while notwithstanding. */
static int watch_on_screen(struct ctl *ctl, const struct watched *watched, json_t *reply)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
        struct picture picture = {.watched = watched, .reply = reply};
        int r = client_catch_signals(ctl, signals, ELEMENTSOF(signals));

        if (r != CTL_DONE)
                return r;
        ctl->key_fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1;
        picture.keys = ctl->key_fd >= 0;
        json_incref(reply);
        screen_enter(true);
        for (;;) {
                json_t *newer = NULL;

                screen_draw(draw, &picture);
                (void)client_wait(ctl, WATCH_USEC);
                if (ctl->signal != 0 || take_keys(ctl))
                        break;
                picture.error[0] = '\0';
                say_errors_to(picture.error, sizeof(picture.error));
                r = watched->get(ctl, &newer);
                say_errors_to(NULL, 0);
                if (r == CTL_DONE) {
                        json_decref(picture.reply);
                        picture.reply = newer;
                }
        }
        screen_leave();
        json_decref(picture.reply);
        /* It was asked to end. */
        return CTL_DONE;
}

int watch_show(struct ctl *ctl, const struct watched *watched)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = watched->get(ctl, &reply);

        if (r != CTL_DONE)
                return r;
        if (ctl->watch && !ctl->json && screen_is_there())
                return watch_on_screen(ctl, watched, reply);
        r = show(ctl, watched, reply);
        while (ctl->watch && r == CTL_DONE && !ferror(stdout)) {
                _cleanup_json_ json_t *newer = NULL;

                fflush(stdout);
                (void)client_wait(ctl, WATCH_USEC);
                r = watched->get(ctl, &newer);
                if (r != CTL_DONE)
                        return r;
                if (!ctl->json)
                        putchar('\n');
                r = show(ctl, watched, newer);
        }
        return r;
}
