/* SPDX-License-Identifier: MIT */
/* Resource limits and CPU affinity of workers, in systemd's syntax. */
#include "settings/resources.h"
#include "base/parse.h"
#include <string.h>

#define SEPARATORS " \t,"

/* Copies length bytes from text into word and appends a NUL. Returns false if word is too small. */
static bool cut(const char *text, size_t length, char word[static FORMAT_MAX])
{
        if (length >= FORMAT_MAX)
                return false;
        memcpy(word, text, length);
        word[length] = '\0';
        return true;
}

static int parse_one(const char *text, bool is_size, uint64_t min, rlim_t *ret)
{
        uint64_t value = 0;

        if (strcmp(text, "infinity") == 0) {
                *ret = RLIM_INFINITY;
                return 0;
        }
        int r = is_size ? parse_size(text, 0, &value) : parse_unsigned(text, 0, UINT64_MAX, &value);
        if (r < 0 || value < min || value >= RLIM_INFINITY)
                return -EINVAL;
        *ret = value;
        return 0;
}

int resource_limit_parse(const char *text, bool is_size, uint64_t min, struct rlimit *ret)
{
        const char *colon = strchr(text, ':');
        char soft[FORMAT_MAX];
        struct rlimit limit = {0};

        if (!cut(text, colon ? (size_t)(colon - text) : strlen(text), soft) ||
            parse_one(soft, is_size, min, &limit.rlim_cur) < 0 ||
            parse_one(colon ? colon + 1 : soft, is_size, min, &limit.rlim_max) < 0 ||
            limit.rlim_cur > limit.rlim_max)
                return -EINVAL;
        *ret = limit;
        return 0;
}

int resource_cpus_parse(const char *text, cpu_set_t *ret)
{
        bool any = false;

        CPU_ZERO(ret);
        for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
                size_t length = strcspn(text, SEPARATORS);
                char word[FORMAT_MAX];
                uint64_t first = 0, last = 0;

                if (!cut(text, length, word))
                        return -EINVAL;
                char *dash = strchr(word, '-');
                if (dash)
                        *dash = '\0';
                if (parse_unsigned(word, 0, CPU_SETSIZE - 1, &first) < 0 ||
                    parse_unsigned(dash ? dash + 1 : word, first, CPU_SETSIZE - 1, &last) < 0)
                        return -EINVAL;
                for (; first <= last; first++)
                        CPU_SET(first, ret);
                any = true;
                text += length;
        }
        return any ? 0 : -EINVAL;
}
