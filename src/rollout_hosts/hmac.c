/* SPDX-License-Identifier: MIT */
/* HMAC of a text; see the header. */
#include "rollout_hosts/hmac.h"
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

static_assert(HMAC_MAX == 2 * SHA256_DIGEST_SIZE + 1, "room for a digest in hexadecimal");
static_assert(HMAC_SCRIPT_SHA1_MAX == 2 * SHA1_DIGEST_SIZE + 1, "room for a digest in hexadecimal");

static void write_digest(const uint8_t *digest, size_t size, char *text)
{
        for (size_t i = 0; i < size; i++)
                snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

void hmac_make(const void *key, size_t key_size, const char *text, char signature[static HMAC_MAX])
{
        struct hmac_sha256_ctx ctx;
        uint8_t digest[SHA256_DIGEST_SIZE];

        hmac_sha256_set_key(&ctx, key_size, key);
        hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
        hmac_sha256_digest(&ctx, sizeof(digest), digest);
        write_digest(digest, sizeof(digest), signature);
}

bool hmac_verify(const void *key, size_t key_size, const char *text, const char *signature)
{
        char right[HMAC_MAX];

        hmac_make(key, key_size, text, right);
        return strlen(signature) == HMAC_MAX - 1 && memeql_sec(signature, right, HMAC_MAX - 1);
}

void hmac_script_sha1(const char *script, char name[static HMAC_SCRIPT_SHA1_MAX])
{
        struct sha1_ctx ctx;
        uint8_t digest[SHA1_DIGEST_SIZE];

        sha1_init(&ctx);
        sha1_update(&ctx, strlen(script), (const uint8_t *)script);
        sha1_digest(&ctx, sizeof(digest), digest);
        write_digest(digest, sizeof(digest), name);
}
