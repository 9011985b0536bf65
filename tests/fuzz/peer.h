/* SPDX-License-Identifier: MIT */
/* The server that sqmgr connects to: one end of a socket pair, which sends the input. */
#pragma once

#include "fuzz.h"
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

static sd_event *event;
static int peer_fd = -1;
static char unsent[8192]; /* sent in one piece */
static size_t unsent_len;

/* Replaces the function of libc: the descriptor becomes one end of a socket pair. */
int connect(int fd, __CONST_SOCKADDR_ARG address _unused_, socklen_t length _unused_)
{
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        fuzz_check(dup3(fds[0], fd, O_CLOEXEC) == fd);
        close_fd(fds[0]);
        close_fd(peer_fd);
        peer_fd = fds[1];
        unsent_len = 0;
        return 0;
}

static void peer_begin(void)
{
        (void)signal(SIGPIPE, SIG_IGN);
        fuzz_check(sd_event_new(&event) >= 0);
        unsent_len = 0;
}

static void peer_end(void)
{
        event = sd_event_unref(event);
        peer_fd = close_fd(peer_fd);
}

/* Reads and ignores commands, which must not fill the socket. */
static void peer_listen(void)
{
        char bytes[65536];

        while (peer_fd >= 0 && recv(peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
}

/* Sends what is unsent, and runs the loop until it has nothing to do. */
static void peer_run(void)
{
        if (peer_fd >= 0 && unsent_len > 0)
                (void)send(peer_fd, unsent, unsent_len, MSG_DONTWAIT | MSG_NOSIGNAL);
        unsent_len = 0;
        for (unsigned turn = 0; turn < 1000 && sd_event_run(event, 0) > 0; turn++)
                peer_listen();
}

static void peer_hang_up(void)
{
        peer_fd = close_fd(peer_fd);
}

static void peer_send(const void *bytes, size_t n)
{
        n = MIN(n, sizeof(unsent) - unsent_len);
        if (n > 0)
                memcpy(unsent + unsent_len, bytes, n);
        unsent_len += n;
}

/* Parts of the byte of a step. RAW: raw bytes of the input follow, as many as the value says. HOLD: the next
 * step belongs to the same piece. VALUE: that length, or the number of a phrase or action. */
#define STEP_RAW   0x80
#define STEP_HOLD  0x40
#define STEP_VALUE 0x3f

/* Takes a step of the input: sends raw bytes or one of these phrases. Returns the number of another action,
 * from 0; or -1 for none. */
static int peer_step(struct input *input, const char *const phrases[], size_t n)
{
        uint8_t step = input_byte(input);
        size_t value = step & STEP_VALUE;
        int action = -1;

        if (step & STEP_RAW) {
                size_t len = MIN(value, input->left);

                peer_send(input->at, len);
                input->at += len;
                input->left -= len;
        } else if (value < n) {
                peer_send(phrases[value], strlen(phrases[value]));
        } else {
                action = (int)(value - n);
        }
        if (!(step & STEP_HOLD))
                peer_run();
        return action;
}
