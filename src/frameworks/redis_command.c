/* SPDX-License-Identifier: MIT */
/* Commands to Redis; see the header. */
#include "frameworks/redis_command.h"
#include "base/macro.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int command_make(struct beats_command *ret, char *key, const char *const words[])
{
        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){.argv = {words[0], key}, .argc = 2, .keys = {key}};
        for (words++; *words; words++)
                ret->argv[ret->argc++] = *words;
        return 0;
}

void command_clear(struct beats_command *command)
{
        for (size_t i = 0; i < ELEMENTSOF(command->keys); i++)
                free(command->keys[i]);
}

bool reply_is_wrong_type(const redisReply *reply)
{
        return strncmp(reply->str, "WRONGTYPE ", strlen("WRONGTYPE ")) == 0;
}
