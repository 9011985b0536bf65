/* SPDX-License-Identifier: MIT */
/* Commands to Redis; see the header. */
#include "redis/redis_command.h"
#include "base/macro.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void command_clear(struct redis_command *command)
{
        for (size_t i = 0; i < ELEMENTSOF(command->keys); i++)
                free(command->keys[i]);
}

int command_make(struct redis_command *ret, char *key, const char *const words[])
{
        if (!key)
                return -ENOMEM;
        *ret = (struct redis_command){.argv = {words[0], key}, .argc = 2, .keys = {key}};
        for (words++; *words; words++)
                ret->argv[ret->argc++] = *words;
        return 0;
}

int command_make_pair(struct redis_command *ret, const char *command, char *key, char *second)
{
        *ret = (struct redis_command){.argv = {command, key, second}, .argc = 3, .keys = {key, second}};
        if (key && second)
                return 0;
        command_clear(ret);
        return -ENOMEM;
}

int command_add_get(struct redis_command *command, char *pattern)
{
        size_t i = 0;

        if (!pattern) {
                command_clear(command);
                return -ENOMEM;
        }
        while (command->keys[i])
                i++;
        command->keys[i] = pattern;
        command->argv[command->argc++] = "GET";
        command->argv[command->argc++] = pattern;
        return 0;
}

bool reply_is_wrong_type(const redisReply *reply)
{
        return strncmp(reply->str, "WRONGTYPE ", strlen("WRONGTYPE ")) == 0;
}
