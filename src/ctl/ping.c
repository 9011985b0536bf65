/* SPDX-License-Identifier: MIT */
/* The command `ping`: does sqmgr answer, and are the workers there that are to be? */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "wire/ready.h"
#include <stdio.h>

static int tell_lacks(json_t *lacks)
{
        _cleanup_free_ char *text = NULL;
        size_t size, i;
        json_t *sentence;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return say_error(CTL_FAILED, "there is too little memory");
        json_array_foreach(lacks, i, sentence)
                fprintf(out, "%s%s", i > 0 ? "; " : "", json_string_value(sentence));
        if (fclose(out) != 0)
                return say_error(CTL_FAILED, "there is too little memory");
        return say_error_as("not-ready", CTL_FAILED, "not ready: %s", text);
}

static int ask_ready(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL, *lacks = NULL;
        int r = client_call(ctl, "GetStatus", json_object(), &reply);

        if (r != CTL_DONE)
                return r;
        lacks = ready_lacks(reply);
        if (!lacks)
                return say_error(CTL_FAILED, "there is too little memory");
        if (json_array_size(lacks) > 0)
                return tell_lacks(lacks);
        if (ctl->json) {
                _cleanup_json_ json_t *ready = json_pack("{s:b}", "ready", 1);

                reply_print_json(ready);
        } else {
                say_line("sqmgr is ready: each fleet that is to run has its workers");
        }
        return r;
}

int ctl_ping(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;

        if (ctl->ready)
                return ask_ready(ctl);
        int r = client_ask(ctl, "Ping", json_object(), &reply);

        if (r == CTL_DONE && reply)
                say_line("sqmgr answers");
        return r;
}
