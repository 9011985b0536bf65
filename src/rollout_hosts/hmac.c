/* SPDX-License-Identifier: MIT */
/* HMAC of a text; see the header. */
#include "rollout_hosts/hmac.h"
#include <config.h> /* never a config.h beside this file */
#include <stdio.h>
#include <string.h>

#if HAVE_HMAC
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static void write_digest(const unsigned char *digest, unsigned size, char *text)
{
        for (unsigned i = 0; i < size; i++)
                snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
}

int hmac_make(const void *key, size_t key_size, const char *text, char signature[static HMAC_MAX])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;

        if (!HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text, strlen(text), digest,
                  &size) ||
            size != (HMAC_MAX - 1) / 2)
                return -EIO;
        write_digest(digest, size, signature);
        return 0;
}

bool hmac_verify(const void *key, size_t key_size, const char *text, const char *signature)
{
        char right[HMAC_MAX];

        return hmac_make(key, key_size, text, right) == 0 && strlen(signature) == HMAC_MAX - 1 &&
               CRYPTO_memcmp(signature, right, HMAC_MAX - 1) == 0;
}

int hmac_script_sha1(const char *script, char name[static HMAC_SCRIPT_SHA1_MAX])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;

        if (!EVP_Digest(script, strlen(script), digest, &size, EVP_sha1(), NULL) ||
            size != (HMAC_SCRIPT_SHA1_MAX - 1) / 2)
                return -EIO;
        write_digest(digest, size, name);
        return 0;
}

#else

int hmac_make(const void *key _unused_, size_t key_size _unused_, const char *text _unused_,
              char signature[static HMAC_MAX] _unused_)
{
        return -EOPNOTSUPP;
}

bool hmac_verify(const void *key _unused_, size_t key_size _unused_, const char *text _unused_,
                 const char *signature _unused_)
{
        return false;
}

int hmac_script_sha1(const char *script _unused_, char name[static HMAC_SCRIPT_SHA1_MAX] _unused_)
{
        return -EOPNOTSUPP;
}

#endif
