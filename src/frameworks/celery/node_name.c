/* SPDX-License-Identifier: MIT */
/* Names of Celery workers; see the header. */
#include "frameworks/celery/node_name.h"
#include "base/printable.h"
#include <stdint.h>
#include <string.h>

bool celery_is_utf8(const char *text, size_t len, bool printable)
{
        for (const char *end = text + len; text < end;) {
                uint32_t character;
                size_t n = printable_utf8(text, (size_t)(end - text), &character);

                if (n == 0 || (printable && (character < 0x20 || (character >= 0x7f && character < 0xa0))))
                        return false;
                text += n;
        }
        return true;
}

const char *celery_node_host(const char *node)
{
        const char *at = strchr(node, '@');
        size_t len = strlen(node);

        if (!at || at == node || at[1] == '\0' || len > CELERY_NAME_MAX || !celery_is_utf8(node, len, true))
                return NULL;
        return at + 1;
}
