/* SPDX-License-Identifier: MIT */
/* Prints the table of keys for tests/check-docs: section, key, `value` or `words`, the default as such,
 * `reload`, `outdates` or `restart`; separated by tabs. */
#include "settings/keys.h"
#include <stdio.h>

static const char *const words[] = {
        [SETTINGS_KEPT] = "restart", [SETTINGS_APPLIED] = "reload", [SETTINGS_OUTDATES] = "outdates"};

int main(void)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                printf("%s\t%s\t%s\t%s\t%s\n", settings_scope_name(key->scope), key->name,
                       key->fallback ? "value" : "words", key->fallback ? key->fallback : key->unset,
                       words[key->reload]);
        }
        return ferror(stdout) || fflush(stdout) != 0;
}
