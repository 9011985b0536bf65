/* SPDX-License-Identifier: MIT */
/* TLS for connections to Redis. No function blocks, raises SIGPIPE, or asks for a password. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* The most bytes that a record carries. A buffer of this size takes all that one read decrypts. */
#define TLS_RECORD_MAX 16384

struct redis_settings;
struct settings_tls_refusal;
struct tls;         /* shared by connections: trusted authorities and our own certificate */
struct tls_session; /* of one connection */

/* Reads the files named in the settings. Never reports any content of the key. Returns 0 with *ret to be
 * freed by tls_free() after all its sessions; -EINVAL with the file at fault in *refusal; or -ENOMEM. */
int tls_new(const struct redis_settings *settings, struct tls **ret, struct settings_tls_refusal *refusal);
/* Returns NULL. */
struct tls *tls_free(struct tls *tls);

/* Starts TLS over a connected, non-blocking socket. The handshake happens during reads and writes. host is
 * the name or address that the server's certificate must match, unless the settings say otherwise. Returns 0
 * with *ret, to be freed by tls_session_free() before the socket is closed; or -errno. */
int tls_session_new(struct tls *tls, int fd, const char *host, struct tls_session **ret);
/* Returns NULL. */
struct tls_session *tls_session_free(struct tls_session *session);

/* As recv() and send(). Return the number of bytes; 0: the server has ended the connection; -EAGAIN: see
 * tls_wants_write(); -EPROTO: see tls_error(); or another -errno. tls_read() takes one record from the socket
 * at most, whatever the server sends. After -EAGAIN, repeat tls_write() with the same bytes; more may follow
 * them. */
ssize_t tls_read(struct tls_session *session, void *buffer, size_t n);
ssize_t tls_write(struct tls_session *session, const void *bytes, size_t n);

/* Returns true once the handshake is complete. */
bool tls_is_up(const struct tls_session *session);
/* Whether the last tls_read() or tls_write() waits until the socket accepts bytes, or has some. */
bool tls_wants_write(const struct tls_session *session);
bool tls_wants_read(const struct tls_session *session);
/* Returns why the last call failed. Valid until the next call. */
const char *tls_error(const struct tls_session *session);
