/* SPDX-License-Identifier: MIT */
/* HMAC-SHA256 (RFC 2104) of a text, by Nettle. Only a holder of the key can make it. */
#pragma once

#include "base/macro.h"

#define HMAC_MAX             (64 + 1)
#define HMAC_SCRIPT_SHA1_MAX (40 + 1)

/* Writes the HMAC in lowercase hexadecimal. */
void hmac_make(const void *key, size_t key_size, const char *text, char signature[static HMAC_MAX]);

/* True if signature is the HMAC of text. The time taken does not reveal how much of signature is right. */
bool hmac_verify(const void *key, size_t key_size, const char *text, const char *signature);

/* Writes the SHA-1 of a script in lowercase hexadecimal, the name under which Redis caches the script.
 * Unkeyed; here because Nettle makes it, too. */
void hmac_script_sha1(const char *script, char name[static HMAC_SCRIPT_SHA1_MAX]);
