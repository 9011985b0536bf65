/* SPDX-License-Identifier: MIT */
/* The host name of a worker in namespaces of its own; see the header. */
#include "model/unique_host.h"
#include "base/hash.h"
#include <stdio.h>
#include <string.h>

const char *unique_host(const struct unique_host *of, const char *host, char text[static UNIQUE_HOST_MAX])
{
        static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
        uint64_t hash = hash_bytes(HASH_INIT, of->boot_id, strlen(of->boot_id) + 1);
        char token[14] = "";

        hash = hash_bytes(hash, of->instance, strlen(of->instance) + 1);
        hash = hash_bytes(hash, of->fleet, strlen(of->fleet) + 1);
        hash = hash_bytes(hash, &of->index, sizeof(of->index));
        hash = hash_bytes(hash, &of->started_at, sizeof(of->started_at));
        for (size_t i = 0; i < sizeof(token) - 1; i++, hash >>= 5)
                token[i] = digits[hash & 31];
        snprintf(text, UNIQUE_HOST_MAX, "%.255s:%s.%u.%s", host, of->fleet, of->index, token);
        return text;
}

size_t unique_host_base(const char *text, size_t len)
{
        const char *colon = memchr(text, ':', len);

        return colon ? (size_t)(colon - text) : len;
}
