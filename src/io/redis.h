/* SPDX-License-Identifier: MIT */
/* One connection to one Redis, kept up for as long as the object lives. It never blocks the loop.
 *
 * The process must ignore SIGPIPE: hiredis writes without MSG_NOSIGNAL. */
#pragma once

#include "base/usec.h"
#include <stddef.h>
#include <systemd/sd-event.h>

struct redis;
struct redis_settings;
struct redisReply; /* hiredis's */

enum redis_state {
        REDIS_STATE_CONNECTING, /* nobody knows yet: the first attempt */
        REDIS_STATE_CONNECTED,
        REDIS_STATE_DOWN, /* it is tried again all the while */
        _REDIS_STATE_MAX,
};

/* "connecting", "connected", "down". */
const char *redis_state_name(enum redis_state value);

/* The state changed, or the error did. error: one sentence without secrets, NULL while there is none. */
typedef void (*redis_state_fn)(struct redis *redis, enum redis_state state, const char *error,
                               void *userdata);

/* The reply to a command, owned by redis: a server's error is a reply too. NULL: the command failed, and
 * nobody knows whether it was carried out. Called exactly once for each command that was accepted, never from
 * within redis_command(). In it everything is allowed, redis_free() too. */
typedef void (*redis_reply_fn)(struct redis *redis, const struct redisReply *reply, void *userdata);

/* Makes a connection to url; where that is NULL to settings->url, or with settings->sentinels to the master
 * that those name, with the database, user, password and scheme of settings->url. User and password come from
 * the URL; where it has no password, from the settings. All is copied. It connects as soon as the loop runs;
 * on_state may be NULL. Returns 0 with *ret to be freed by redis_free(); -EINVAL: the URL is not valid, or a
 * file of TLS; -EPROTONOSUPPORT: it asks for TLS, which this build cannot do; or another -errno. */
int redis_new(sd_event *event, const char *url, const struct redis_settings *settings,
              redis_state_fn on_state, void *userdata, struct redis **ret);

/* Before the loop runs: a connection counts as up once this key could be read, be there anything or not;
 * where an ACL lets no other be read. Returns 0 or -ENOMEM. */
int redis_probe(struct redis *redis, const char *key);

/* Closes the connection. Commands that wait for their reply are called back with NULL; on_state is not called
 * any more. Returns NULL. */
struct redis *redis_free(struct redis *redis);

/* Queues a command; all that are queued in one pass of the loop go out together. argvlen: the lengths of the
 * words, or NULL where they are strings. callback may be NULL. A command that is not answered within
 * command_timeout closes the connection. Returns 0; -ENOTCONN: not connected, callback is not called;
 * -ENOMEM. One whose reply was too large is left out for some minutes: it is answered by an error. */
int redis_command(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                  const char *const argv[], const size_t argvlen[]);

/* The same for one that sqmgr can do without: where an ACL forbids it, or a replica that was named as the
 * server does, the callback gets that error, while it ends the connection otherwise. */
int redis_command_forbiddable(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                              const char *const argv[], const size_t argvlen[]);

enum redis_state redis_state(const struct redis *redis);
/* Why it is down; NULL while there is no error. */
const char *redis_error(const struct redis *redis);
/* The URL without user and password; with Sentinels their name of the master in the place of the host. */
const char *redis_url_text(const struct redis *redis);
/* With Sentinels, while connected: `host:port` of the master in use. NULL else. */
const char *redis_server_text(const struct redis *redis);
/* How long the last reply took; 0: not known. */
usec_t redis_rtt_usec(const struct redis *redis);
/* How many connections came up so far: a change tells that what was read before may be another server's. */
uint64_t redis_connection_count(const struct redis *redis);
