/* SPDX-License-Identifier: MIT */
/* Replaces the running sqmgr with the installed version: same process, same children, same sockets. */
#pragma once

#include "daemon/api/api_server.h"
#include "daemon/takeover/persist.h"

/* The listening socket, each connection once, and template sockets. Templates beyond this limit are loaded
 * anew. */
#define HANDOVER_MAX (1 + API_CONNECTIONS_MAX + 256)

struct handover {
        struct handed list[HANDOVER_MAX];
        size_t n;
        bool taken; /* a previous image existed */
};

/* How sqmgr was invoked; the new image is invoked the same way. */
struct invocation {
        const char *program; /* absolute path of the executed program */
        char **argv;
        const char *config_path;
};

struct reexec {
        const struct invocation *invocation; /* not owned; the same holds for all fields down to server */
        struct runtime *runtime;
        struct api_server *server;
        void (*publish)(void *userdata); /* publishes pending events, which end with this image */
        void *userdata;

        struct child child;      /* the preflight run of the new program; pid 0: none */
        sd_event_source *output; /* the output pipe of the preflight; NULL: closed */
        char words[2048];        /* the output of the preflight */
        size_t length;
        struct call *calls[16]; /* waiting calls, answered by the new image or on failure */
        size_t n_calls;
};

/* Runs a preflight of the new program with the settings and the state, then executes the new program. The new
 * image replies to the call; on failure, this one replies. call may be NULL: requested by a signal. */
void reexec_request(struct reexec *reexec, struct call *call);
/* Kills a running preflight. No call may be waiting. */
void reexec_end(struct reexec *reexec);

/* Takes the descriptors of the previous image, if any. Unsets the variable, which workers must not
 * inherit. */
void handover_take(struct handover *ret);
/* Returns the first descriptor of this kind, or 0 if there is none. */
int handover_fd(const struct handover *handover, unsigned kind);
