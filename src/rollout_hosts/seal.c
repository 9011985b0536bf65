/* SPDX-License-Identifier: MIT */
/* A seal over a text; see the header. */
#include "rollout_hosts/seal.h"
#include <config.h> /* not the one beside this file */
#include <stdio.h>
#include <string.h>

#if HAVE_SEAL
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static void write_digest(const unsigned char *digest, unsigned size, char *text)
{
        for (unsigned i = 0; i < size; i++)
                snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
}

int seal_make(const void *key, size_t key_size, const char *text, char seal[static SEAL_MAX])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;

        if (!HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text, strlen(text), digest,
                  &size) ||
            size != (SEAL_MAX - 1) / 2)
                return -EIO;
        write_digest(digest, size, seal);
        return 0;
}

bool seal_is(const void *key, size_t key_size, const char *text, const char *seal)
{
        char right[SEAL_MAX];

        return seal_make(key, key_size, text, right) == 0 && strlen(seal) == SEAL_MAX - 1 &&
               CRYPTO_memcmp(seal, right, SEAL_MAX - 1) == 0;
}

int seal_script(const char *script, char name[static SEAL_SCRIPT_MAX])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;

        if (!EVP_Digest(script, strlen(script), digest, &size, EVP_sha1(), NULL) ||
            size != (SEAL_SCRIPT_MAX - 1) / 2)
                return -EIO;
        write_digest(digest, size, name);
        return 0;
}

#else

int seal_make(const void *key _unused_, size_t key_size _unused_, const char *text _unused_,
              char seal[static SEAL_MAX] _unused_)
{
        return -EOPNOTSUPP;
}

bool seal_is(const void *key _unused_, size_t key_size _unused_, const char *text _unused_,
             const char *seal _unused_)
{
        return false;
}

int seal_script(const char *script _unused_, char name[static SEAL_SCRIPT_MAX] _unused_)
{
        return -EOPNOTSUPP;
}

#endif
