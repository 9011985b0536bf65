/* SPDX-License-Identifier: MIT */
/* A connection to a Redis, reconnected as long as the object exists. Never blocks the loop. */
#pragma once

#include "model/fleet.h"
#include <systemd/sd-event.h>

struct redis;
struct redis_settings;
struct settings_tls_refusal;
struct redisReply; /* of hiredis */

/* Called from the loop if the state or the error changed. error: NULL: no error. The callback may do
 * anything, including redis_free(). */
typedef void (*redis_state_fn)(struct redis *redis, enum reader_state state, const struct error_report *error,
                               void *userdata);

/* Called exactly once for each accepted command, never from within redis_command(). reply is owned by redis;
 * an error of the server is a reply too. NULL: the command failed, and may or may not have been executed. The
 * callback may do anything, including redis_free(). */
typedef void (*redis_reply_fn)(struct redis *redis, const struct redisReply *reply, void *userdata);

/* Creates a connection to settings->url. With settings->sentinels, connects to the master that the Sentinels
 * name, with the database, user, password and scheme of the URL. User and password come from the URL; if it
 * has no password, from the settings. Copies all arguments. Connects as soon as the loop runs. on_state and
 * refusal may be NULL.
 *
 * Returns 0 with *ret to be freed by redis_free(); -EINVAL if the URL or a TLS file is invalid, with the file
 * in *refusal; or another -errno. */
int redis_new(sd_event *event, const struct redis_settings *settings, struct settings_tls_refusal *refusal,
              redis_state_fn on_state, void *userdata, struct redis **ret);

/* Sets the key that a connection must be able to read, existing or not, to count as up. Needed if an ACL
 * forbids other keys. Has the connection check, too, whether the server accepts writes; unknown, and so
 * READER_STATE_CONNECTED, if an ACL forbids that check. Call before the loop runs. Returns 0 or -ENOMEM. */
int redis_probe(struct redis *redis, const char *key);

/* Has decoding called with true before bytes of the server, or of a Sentinel, are decoded and with false
 * afterwards, also if redis is freed in between: userdata must outlive each pair of calls. Call before the
 * loop runs. */
void redis_on_decoding(struct redis *redis, void (*decoding)(bool begins, void *userdata), void *userdata);

/* Closes the connection. From within this call, calls back all pending commands with NULL. on_state() is not
 * called any more. Returns NULL. */
struct redis *redis_free(struct redis *redis);

/* Queues a command. All commands queued in one iteration of the loop are sent together. argvlen has the
 * lengths of the arguments; NULL if they are strings. callback may be NULL. A command without a reply within
 * the timeout closes the connection; a reply that keeps arriving may take ten times as long. A command
 * whose reply was too large is skipped for some minutes: the reply is then an error.
 *
 * Returns 0; -ENOTCONN or -ENOMEM, also beyond the bound of redis/memory_share.h, and callback is not called.
 */
int redis_command(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                  const char *const argv[], const size_t argvlen[]);

/* As redis_command(), for a command that sqmgr can do without. If an ACL or a replica configured as the
 * server forbids the command, the callback gets that error. Other commands end the connection in this
 * case. */
int redis_command_forbiddable(struct redis *redis, redis_reply_fn callback, void *userdata, int argc,
                              const char *const argv[], const size_t argvlen[]);

enum reader_state redis_state(const struct redis *redis);
/* Returns the reason for the state down; NULL: no error. */
const struct error_report *redis_error(const struct redis *redis);
/* With Sentinels, while connected: returns `host:port` of the current master. Otherwise NULL. */
const char *redis_server_text(const struct redis *redis);
/* Returns the number of the database. */
unsigned redis_database(const struct redis *redis);
/* Returns the duration of the last command; 0: unknown. */
usec_t redis_rtt_usec(const struct redis *redis);
/* Returns the number of successful connections. If the number changed, earlier replies may come from another
 * server. */
uint64_t redis_connection_count(const struct redis *redis);
