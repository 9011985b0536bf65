/* SPDX-License-Identifier: MIT */
/* Runs a reader program; see the header.
 *
 * Descriptor 3 is a SOCK_SEQPACKET socket to sqmgr. */
#include "reader/run.h"
#include "base/macro.h"
#include "reader/server.h"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* The largest reply (redis/reply_limit.h) is in memory up to three times: in the buffer of hiredis, as
 * hiredis objects, and in the answer to sqmgr. That takes 96 MiB, and 26 MiB for 262,144 objects. The
 * remaining memory is for decoded JSON, TLS, and threads that still wait for a name server, with 8 MiB of
 * stack each. */
#define MEMORY_MAX_BYTES ((rlim_t)256 << 20)

#define FD_SQMGR 3

struct run {
        const struct reader_program *program;
        sd_event *event;
};

static void on_end(void *userdata)
{
        const struct run *run = userdata;

        (void)sd_event_exit(run->event, 0);
}

static bool is_socket(int fd)
{
        int type;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int run_loop(struct run *run)
{
        const struct reader_server_ops ops = {.backend = run->program->backend, .on_end = on_end};
        struct reader_server *server;
        int r = reader_server_new(run->event, FD_SQMGR, &ops, run, &server);

        if (r < 0)
                return r;
        r = sd_event_loop(run->event);
        reader_server_free(server);
        return r;
}

/* The address sanitizer reserves terabytes. */
static int limit_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
        return 0;
#else
        struct rlimit limit;

        if (getrlimit(RLIMIT_DATA, &limit) < 0)
                return -errno;
        limit.rlim_max = MIN(limit.rlim_max, MEMORY_MAX_BYTES);
        limit.rlim_cur = MIN(limit.rlim_cur, MEMORY_MAX_BYTES);
        return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
#endif
}

int reader_run(const struct reader_program *program)
{
        struct run run = {.program = program};

        if (!is_socket(FD_SQMGR)) {
                fprintf(stderr, "%s: only sqmgr starts this program\n", program_invocation_short_name);
                return EXIT_FAILURE;
        }
        /* hiredis writes without MSG_NOSIGNAL. */
        (void)signal(SIGPIPE, SIG_IGN);
        /* Linux before 6.14 names a program that is executed by a descriptor after the descriptor's
         * number. */
        (void)prctl(PR_SET_NAME, program->name);
        int r = limit_memory();
        if (r >= 0)
                r = sd_event_new(&run.event);
        if (r >= 0)
                r = run_loop(&run);
        sd_event_unref(run.event);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
