/* SPDX-License-Identifier: MIT */
/* A reply that several calls share; see the header. */
#include "daemon/api/shared_reply.h"
#include "wire/quoted.h"

void shared_reply_make(struct shared_reply *ret, bool is_view, const char *error, json_t *parameters)
{
        int r;

        *ret = (struct shared_reply){.is_view = is_view};
        if (is_view)
                quoted_drop(parameters);
        if (error)
                r = varlink_encode_error(error, parameters, &ret->text, &ret->size);
        else
                r = varlink_encode_reply(parameters, false, &ret->text, &ret->size);
        if (r < 0)
                ret->text = NULL;
}

void shared_reply_clear(struct shared_reply *reply)
{
        free(reply->text);
        *reply = (struct shared_reply){0};
}
