/* SPDX-License-Identifier: MIT */
/* Tests of signatures (rollout_hosts/hmac.h), with the test cases of RFC 4231. */
#include "rollout_hosts/hmac.h"
#include "unit.h"

TEST(makes_what_the_standard_says)
{
        char signature[HMAC_MAX], key[131];

        hmac_make("Jefe", 4, "what do ya want for nothing?", signature);
        ck_assert_str_eq(signature, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        memset(key, 0xaa, sizeof(key));
        hmac_make(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", signature);
        ck_assert_str_eq(signature, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(another_text_key_or_signature_is_refused)
{
        char signature[HMAC_MAX];

        hmac_make("key", 3, "text", signature);
        ck_assert(hmac_verify("key", 3, "text", signature));
        ck_assert(!hmac_verify("kez", 3, "text", signature));
        ck_assert(!hmac_verify("key", 3, "texts", signature));
        ck_assert(!hmac_verify("key", 3, "text", ""));
        signature[HMAC_MAX - 2] ^= 1;
        ck_assert(!hmac_verify("key", 3, "text", signature));
}

/* As FIPS 180 has it. */
TEST(a_script_has_the_name_that_redis_gives_it)
{
        char name[HMAC_SCRIPT_SHA1_MAX];

        hmac_script_sha1("abc", name);
        ck_assert_str_eq(name, "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST_MAIN("hmac")
