/* SPDX-License-Identifier: MIT */
/* Fuzzes the URL of a Redis and a list of Sentinels. No part that may be a secret is shown. */
#include "fuzz.h"
#include "settings/redis_url.h"

static void check_url(const char *text)
{
        _cleanup_redis_url_ struct redis_url url = {0}, shown = {0};
        _cleanup_free_ char *redacted = redis_url_redact(text);
        const char *error = NULL;
        int r = redis_url_parse(text, &url, &error);

        fuzz_check(redacted);
        fuzz_check(r == 0 || (r == -EINVAL && error));
        if (r < 0)
                return;
        fuzz_check(!url.host != !url.path && (url.path || (url.port > 0 && url.port <= 65535)));
        fuzz_check(redis_url_parse(redacted, &shown, &error) == 0);
        fuzz_check(!shown.username && !shown.password);
        fuzz_check(shown.port == url.port && shown.db == url.db && shown.tls == url.tls);
        fuzz_check(url.path ? strcmp(url.path, shown.path) == 0 : strcmp(url.host, shown.host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct field text = input_field(&input, size);
        struct redis_url *list = NULL;
        const char *error = NULL;
        size_t n = 0;

        check_url(text.text);
        int r = redis_sentinels_parse(text.text, &list, &n, &error);
        fuzz_check(r == 0 || (r == -EINVAL && error));
        for (size_t i = 0; r == 0 && i < n; i++)
                fuzz_check(*list[i].host && list[i].port > 0 && list[i].port <= 65535);
        if (r == 0)
                redis_sentinels_free(list, n);
        field_free(&text);
        return 0;
}
