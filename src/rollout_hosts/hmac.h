/* SPDX-License-Identifier: MIT */
/* A seal over a text, which only who has the key can make: HMAC-SHA256 (RFC 2104), by OpenSSL. */
#pragma once

#include "base/macro.h"

#define HMAC_MAX             (64 + 1)
#define HMAC_SCRIPT_SHA1_MAX (40 + 1)

/* Writes it in lowercase hexadecimal. Returns 0, -EOPNOTSUPP where this build has no OpenSSL, or -EIO. */
int hmac_make(const void *key, size_t key_size, const char *text, char seal[static HMAC_MAX]);

/* Is that the seal of text? How long that takes tells nothing of how much of it is right. */
bool hmac_verify(const void *key, size_t key_size, const char *text, const char *seal);

/* The name by which Redis keeps a script, its SHA-1 in lowercase hexadecimal, is no seal, but is made by
 * OpenSSL as well. Returns 0, -EOPNOTSUPP where this build has none, or -EIO where it makes no SHA-1. */
int hmac_script_sha1(const char *script, char name[static HMAC_SCRIPT_SHA1_MAX]);
