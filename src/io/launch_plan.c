/* SPDX-License-Identifier: MIT */
/* The plan of a start; see the header. In a block, each value is the number of its item, and a text that ends
 * with a NUL. */
#include "io/launch_plan.h"
#include "base/environment.h"
#include "base/fd.h"
#include "settings/redis_url.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum kind { NUMBER, TEXT, LIST };

#define ITEM(kind, member)                                                                                   \
        {                                                                                                    \
                kind, offsetof(struct launch_plan, member), sizeof(((struct launch_plan *)NULL)->member)     \
        }

static const struct item {
        enum kind kind;
        size_t offset, size;
} items[] = {
        ITEM(NUMBER, kind),
        ITEM(NUMBER, journal_required),
        ITEM(NUMBER, nofile.rlim_cur),
        ITEM(NUMBER, nofile.rlim_max),
        ITEM(NUMBER, supervised),
        ITEM(NUMBER, parent),
        ITEM(NUMBER, ledger_inode),
        ITEM(NUMBER, after_timeout),
        ITEM(NUMBER, shim_separator),
        ITEM(NUMBER, identity),
        ITEM(NUMBER, fleet.namespaced),
        ITEM(NUMBER, fleet.boot_timeout),
        ITEM(TEXT, identifier),
        ITEM(TEXT, marker),
        ITEM(TEXT, ledger_path),
        ITEM(TEXT, status_parent),
        ITEM(TEXT, release),
        ITEM(TEXT, outcomes_script),
        ITEM(TEXT, redis_url),
        ITEM(TEXT, template_script),
        ITEM(TEXT, shim_path),
        ITEM(TEXT, shim_variable),
        ITEM(TEXT, shim_value),
        ITEM(TEXT, fleet.name),
        ITEM(TEXT, fleet.directory),
        ITEM(TEXT, fleet.log),
        ITEM(TEXT, fleet.environment_file),
        ITEM(LIST, fleet.argv),
        ITEM(LIST, fleet.before_start_argv),
        ITEM(LIST, fleet.after_exit_argv),
        ITEM(LIST, environment),
};

/* Adds a value at the position *at, or only counts its bytes if block is NULL. */
static void put(char *block, size_t *at, const struct item *item, const char *value)
{
        size_t size = strlen(value) + 1;

        if (block) {
                block[*at] = (char)(item - items);
                memcpy(block + *at + 1, value, size);
        }
        *at += 1 + size;
}

static size_t put_all(const struct launch_plan *plan, char *block)
{
        size_t at = 0;

        FOREACH_ELEMENT(item, items) {
                const void *member = (const char *)plan + item->offset;
                uint64_t number = 0;
                char digits[24];

                if (item->kind == NUMBER) {
                        memcpy(&number, member, item->size);
                        snprintf(digits, sizeof(digits), "%" PRIx64, number);
                        put(block, &at, item, digits);
                } else if (item->kind == TEXT && *(char *const *)member) {
                        put(block, &at, item, *(char *const *)member);
                }
                for (char **p = item->kind == LIST ? *(char **const *)member : NULL; p && *p; p++)
                        put(block, &at, item, *p);
        }
        return at;
}

size_t launch_plan_encode(const struct launch_plan *plan, char **ret)
{
        size_t size = put_all(plan, NULL);

        *ret = malloc(size);
        return *ret ? put_all(plan, *ret) : 0;
}

int launch_plan_decode(char *block, size_t size, struct launch_plan *ret, char ***ret_pointers)
{
        size_t n = 2 * ELEMENTSOF(items);

        *ret = (struct launch_plan){0};
        for (const char *at = block; at < block + size; at += strlen(at + 1) + 2)
                n++;
        char **pointer = *ret_pointers = calloc(n, sizeof(*pointer));
        if (!pointer)
                return -ENOMEM;
        for (char *at = block; at < block + size; at += strlen(at + 1) + 2) {
                if ((unsigned char)*at >= ELEMENTSOF(items))
                        return -EBADMSG;
                const struct item *item = &items[(unsigned char)*at];
                void *member = (char *)ret + item->offset;
                if (item->kind == NUMBER) {
                        uint64_t number = strtoull(at + 1, NULL, 16);
                        memcpy(member, &number, item->size);
                } else if (item->kind == TEXT) {
                        *(char **)member = at + 1;
                } else {
                        /* Behind the NULL of the list before, and a free place. */
                        if (!*(char ***)member)
                                *(char ***)member = pointer += 2;
                        *pointer++ = at + 1;
                }
        }
        return 0;
}

bool launch_plan_needs_program(const struct launch_plan *plan)
{
        const struct fleet_settings *fleet = &plan->fleet;

        return (plan->kind != LAUNCH_WORKER && plan->kind < LAUNCH_ALERT) || plan->status_parent ||
               fleet->environment_file || fleet->before_start_argv;
}

/* No part of a URL leaves but the number of the database. REDIS_PROVIDER names the variable for Sidekiq. */
void launch_plan_compare_redis(const struct launch_plan *plan, const struct environment *environment,
                               int report_fd)
{
        const char *provider = environment_get(environment, "REDIS_PROVIDER");
        const char *url = environment_get(environment, provider && *provider ? provider : "REDIS_URL");

        if (!url || !plan->redis_url)
                return;
        struct redis_comparison redis = redis_url_compare(url, plan->redis_url);
        const struct launch_message message = {.kind = LAUNCH_MESSAGE_REDIS,
                                               .redis_difference = redis.difference,
                                               .redis_db = redis.db,
                                               .redis_other_db = redis.other_db};

        if (redis.difference != REDIS_SAME)
                (void)launch_send(report_fd, &message, -1);
}

/* Adds `-rSCRIPT` to RUBYOPT. Ruby loads the scripts in their order. */
static int add_ruby(struct environment *environment, const char *script, bool first)
{
        char option[PATH_MAX + 2];

        snprintf(option, sizeof(option), "-r%s", script);
        return environment_extend(environment, "RUBYOPT", option, ' ', first);
}

/* Node.js does not start with a file that it cannot read, so such a file is left out. */
static int add_shim(const struct launch_plan *plan, struct environment *environment, int report_fd)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_SHIM};

        if (access(plan->shim_path, R_OK) < 0)
                message.shim_error = (uint32_t)errno;
        else if (strpbrk(plan->shim_path, " :\"\\"))
                message.shim_error = EINVAL;
        else
                return environment_extend(environment, plan->shim_variable, plan->shim_value,
                                          plan->shim_separator, false);
        (void)launch_send(report_fd, &message, -1);
        return 0;
}

int launch_plan_add_scripts(const struct launch_plan *plan, struct environment *environment, int report_fd)
{
        char number[16];
        int r = 0;

        if (plan->kind != LAUNCH_REHEARSAL && plan->outcomes_script &&
            access(plan->outcomes_script, R_OK) == 0)
                r = add_ruby(environment, plan->outcomes_script, false);
        if (r == 0 && plan->shim_path)
                r = add_shim(plan, environment, report_fd);
        if (r < 0 || !plan->template_script)
                return r;
        snprintf(number, sizeof(number), "%d", LAUNCH_TEMPLATE_FD);
        r = add_ruby(environment, plan->template_script, true);
        return r < 0 ? r : environment_set(environment, "SQMGR_TEMPLATE", number);
}
