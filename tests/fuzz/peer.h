/* SPDX-License-Identifier: MIT */
/* The server that sqmgr connects to: an end of a socket pair, at which the input speaks. What hiredis would
 * connect to is not asked. */
#pragma once

#include "fuzz.h"
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

static sd_event *event;
static int peer_fd = -1;
static char unsent[8192]; /* that is to go out in one piece */
static size_t unsent_len;

static redisContext *peer_connect(void)
{
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        close_fd(peer_fd);
        peer_fd = fds[1];
        unsent_len = 0;
        redisContext *context = redisConnectFd(fds[0]);
        fuzz_check(context);
        context->flags &= ~REDIS_BLOCK;
        return context;
}

/* In the place of hiredis's. */
redisContext *redisConnectNonBlock(const char *ip, int port)
{
        fuzz_check(ip && port > 0);
        return peer_connect();
}

redisContext *redisConnectUnixNonBlock(const char *path)
{
        fuzz_check(path);
        return peer_connect();
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

/* What was asked is of no interest, but must not fill the socket. */
static void peer_listen(void)
{
        char bytes[65536];

        while (peer_fd >= 0 && recv(peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
}

/* Lets go what was said, and turns the loop until it has nothing to do. */
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

/* A step's byte: bytes of the input follow, so many; or a number; and what comes then is of the same piece.
 */
#define STEP_RAW   0x80
#define STEP_HOLD  0x40
#define STEP_VALUE 0x3f

/* Takes one step of the input: says raw bytes or one of these phrases. Returns the number of what else is to
 * be done, from 0; or -1. */
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
