/* SPDX-License-Identifier: MIT */
/* A client of the control socket that shares the loop with the server it talks to. */
#pragma once

#include "daemon/api/api_server.h"
#include "unit.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

struct client {
        int fd;
        struct varlink_input input;
        bool closed; /* by the server */
};

/* Far beyond what any test needs: a test that waits for this long hangs. */
#define CLIENT_PATIENCE_SECONDS 30

static inline struct client client_open(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct client client = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        ck_assert_int_ge(client.fd, 0);
        ck_assert_int_eq(connect(client.fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return client;
}

/* Connects as another user of that group, which only root can. */
static inline struct client client_open_as(const char *path, uid_t uid, gid_t gid)
{
        ck_assert_int_eq(setegid(gid), 0);
        ck_assert_int_eq(seteuid(uid), 0);
        struct client client = client_open(path);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        return client;
}

static inline void client_end(struct client *client)
{
        client->fd = close_fd(client->fd);
        varlink_input_free(&client->input);
}

static inline void client_write(struct client *client, const char *data, size_t size)
{
        ck_assert_int_eq(send(client->fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Sends text and its NUL. */
static inline void client_send(struct client *client, const char *text)
{
        client_write(client, text, strlen(text) + 1);
}

/* Turns the loop until the client has a whole reply or is closed. Returns 1 with *ret, or 0 where it is
 * closed. */
static inline int client_wait(sd_event *event, struct client *client, struct varlink_reply *ret)
{
        time_t limit = time(NULL) + CLIENT_PATIENCE_SECONDS;
        const char *text;
        size_t size;

        for (;;) {
                char *room;
                int r = varlink_input_take(&client->input, VARLINK_REPLY_MAX, &text, &size);

                ck_assert_int_ge(r, 0);
                if (r == 1) {
                        ck_assert_int_eq(varlink_decode_reply(text, size, VARLINK_REPLY_MAX, ret), 0);
                        return 1;
                }
                if (client->closed)
                        return 0;
                ck_assert_msg(time(NULL) < limit, "the server does not answer");
                ck_assert_int_ge(sd_event_run(event, 10000), 0);
                ck_assert_int_eq(varlink_input_reserve(&client->input, 65536, &room), 0);
                ssize_t n = recv(client->fd, room, 65536, MSG_DONTWAIT);
                if (n > 0)
                        varlink_input_filled(&client->input, (size_t)n);
                else if (n == 0 || errno != EAGAIN)
                        client->closed = true;
        }
}

/* Sends a call and returns its reply, to be freed. */
static inline struct varlink_reply client_call(sd_event *event, struct client *client, const char *text)
{
        struct varlink_reply reply = {0};

        client_send(client, text);
        ck_assert_int_eq(client_wait(event, client, &reply), 1);
        return reply;
}

/* Sends a call, and expects that error, or none where it is NULL. */
static inline void client_expect(sd_event *event, struct client *client, const char *text, const char *error)
{
        struct varlink_reply reply = client_call(event, client, text);

        ck_assert_pstr_eq(reply.error, error);
        varlink_reply_free(&reply);
}

static inline void client_expect_closed(sd_event *event, struct client *client)
{
        struct varlink_reply reply;

        ck_assert_int_eq(client_wait(event, client, &reply), 0);
}

/* Waits for the answer. Returns the reason why it is refused, until the next call; "": it is not. */
static inline const char *client_answer(sd_event *event, struct client *client)
{
        static char reason[256];
        struct varlink_reply reply = {0};

        ck_assert_int_eq(client_wait(event, client, &reply), 1);
        snprintf(reason, sizeof(reason), "%s",
                 reply.error ? json_string_value(json_object_get(reply.parameters, "reason")) : "");
        varlink_reply_free(&reply);
        return reason;
}

/* Lets the server do what there is to be done. */
static inline void client_settle(sd_event *event)
{
        while (sd_event_run(event, 0) > 0)
                ;
}
