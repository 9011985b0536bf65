/* SPDX-License-Identifier: MIT */
/* Prints the table of keys for tests/check-docs: section, key, `value` or `words`, the default as such,
 * `reload` or `restart`; separated by tabs. */
#include "core/settings_keys.h"
#include <stdio.h>

int main(void)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                printf("%s\t%s\t%s\t%s\t%s\n", settings_scope_name(key->scope), key->name,
                       key->fallback ? "value" : "words", key->fallback ? key->fallback : key->unset,
                       key->reloadable ? "reload" : "restart");
        }
        return ferror(stdout) || fflush(stdout) != 0;
}
