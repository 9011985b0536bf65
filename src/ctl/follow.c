/* SPDX-License-Identifier: MIT */
/* Waits until an operation of sqmgr has ended. */
#include "ctl/follow.h"
#include "base/parse.h"
#include "ctl/client.h"
#include "ctl/output.h"
#include <poll.h>
#include <signal.h>
#include <string.h>

#define REPEAT_USEC USEC_PER_SEC
/* Maximum time and interval of reconnect attempts. */
#define AWAY_USEC  (30 * USEC_PER_SEC)
#define RETRY_USEC (250 * USEC_PER_MSEC)

void follow_keep(struct follow *follow, json_t *reply)
{
        json_decref(follow->reply);
        follow->reply = json_incref(reply);
}

int follow_away(struct follow *follow)
{
        struct ctl *ctl = follow->ctl;
        char span[FORMAT_MAX + 8] = "";
        usec_t now = client_now();

        if (ctl->again_until == 0) {
                ctl->again_until =
                        follow->what ? MIN(usec_add(now, AWAY_USEC), follow->until) : follow->until;
                if (ctl->again_until != USEC_INFINITY) {
                        memcpy(span, " for ", 6);
                        format_duration(usec_sub(ctl->again_until, now), span + 5, FORMAT_MAX);
                }
                output_error(CTL_LOST, "connection to sqmgr lost%s%s%s; reconnecting%s",
                             follow->what ? "; the " : "", follow->what ?: "",
                             follow->what ? " continues" : "", span);
        }
        /* Delay the first attempt, too: a peer that accepts and closes at once must not cause a busy loop. */
        follow->next_at = usec_add(now, RETRY_USEC);
        return now < ctl->again_until ? CTL_DONE : CTL_LOST;
}

static void redraw(struct follow *follow)
{
        if (!follow->live || !follow->reply)
                return;
        if (!follow->painted)
                screen_enter(follow->whole);
        follow->painted = true;
        screen_draw(follow->draw, follow);
}

/* Returns true if `q` was pressed. */
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

/* Returns CTL_WOKEN if a signal or a key came first. */
static int get_reply(struct follow *follow, struct varlink_reply *ret)
{
        struct ctl *ctl = follow->ctl;
        usec_t now = client_now();
        int r = CTL_DONE;

        if (now < follow->next_at && client_wait(ctl, follow->next_at - now) != CTL_DONE)
                return CTL_WOKEN;
        if (follow->quiet) {
                if (ctl->again_until == 0)
                        follow->why[0] = '\0';
                output_errors_to(follow->why, sizeof(follow->why));
        }
        if (ctl->fd < 0)
                r = follow->send(follow);
        if (r == CTL_DONE)
                r = client_receive(ctl, ret);
        if (r == CTL_LOST && follow->each_second && ctl->again_until == 0)
                r = client_report_lost(ctl);
        output_errors_to(NULL, 0);
        return r;
}

static int step(struct follow *follow)
{
        struct varlink_reply reply = {0};
        struct ctl *ctl = follow->ctl;
        int r = get_reply(follow, &reply);

        follow->ended = take_keys(ctl) || ctl->signal != 0;
        if (r == CTL_WOKEN || follow->ended) {
                varlink_reply_free(&reply);
                if (!follow->ended)
                        redraw(follow);
                return CTL_DONE;
        }
        bool again = r != CTL_DONE || !reply.continues;
        if (again) {
                client_close(ctl);
                follow->next_at =
                        follow->each_second ? MIN(usec_add(client_now(), REPEAT_USEC), follow->until) : 0;
        }
        if (r != CTL_DONE) {
                r = follow->fail(follow, r);
                if (r == CTL_DONE && follow->whole)
                        redraw(follow);
                return r;
        }
        follow->ended = again && !follow->each_second;
        r = follow->take(follow, reply.parameters);
        varlink_reply_free(&reply);
        if (r == CTL_DONE)
                redraw(follow);
        return r;
}

int follow_run(struct follow *follow)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
        struct ctl *ctl = follow->ctl;
        int r = CTL_DONE;

        /* Without a live picture only SIGINT needs handling: nothing on the terminal must be restored. */
        if (follow->live || follow->detached)
                r = client_catch_signals(ctl, signals, follow->live ? ELEMENTSOF(signals) : 1);
        if (follow->whole && isatty(STDIN_FILENO))
                ctl->key_fd = STDIN_FILENO;
        redraw(follow);
        while (r == CTL_DONE && !follow->ended)
                r = step(follow);
        screen_leave();
        if (ctl->signal != 0 && (follow->detached || !follow->reply))
                r = client_detach(ctl, follow->detached);
        else if (r == CTL_DONE && follow->end)
                r = follow->end(follow);
        json_decref(follow->reply);
        return r;
}
