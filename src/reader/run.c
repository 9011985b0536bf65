/* SPDX-License-Identifier: MIT */
/* Runs a reader program; see the header.
 *
 * Standard input is a SOCK_SEQPACKET socket to sqmgr. */
#include "reader/run.h"
#include "base/macro.h"
#include "reader/server.h"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The largest reply (redis/reply_limit.h) is in memory up to three times: in the buffer of hiredis, as
 * hiredis objects, and in the answer to sqmgr. That takes 96 MiB, and 26 MiB for 262,144 objects. The
 * remaining memory is for decoded JSON, TLS, and threads that still wait for a name server, with 8 MiB of
 * stack each. */
#define MEMORY_MAX_BYTES ((rlim_t)256 << 20)

static void on_end(void *userdata)
{
        (void)sd_event_exit(userdata, 0);
}

static bool is_socket(int fd)
{
        int type;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int run_loop(sd_event *event, const struct reader_backend *backend)
{
        const struct reader_server_ops ops = {.backend = backend, .on_end = on_end};
        struct reader_server *server;
        int r = reader_server_new(event, STDIN_FILENO, &ops, event, &server);

        if (r < 0)
                return r;
        r = sd_event_loop(event);
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

int reader_run(const char *name, const struct reader_backend *backend)
{
        sd_event *event = NULL;

        if (!is_socket(STDIN_FILENO)) {
                fprintf(stderr, "%s: only sqmgr starts this program\n", program_invocation_short_name);
                return EXIT_FAILURE;
        }
        /* Libraries would take settings of servers and of name lookups from it. */
        (void)clearenv();
        /* hiredis writes without MSG_NOSIGNAL. */
        (void)signal(SIGPIPE, SIG_IGN);
        /* Linux before 6.14 names a program that is executed by a descriptor after the descriptor's
         * number. */
        (void)prctl(PR_SET_NAME, name);
        int r = limit_memory();
        if (r >= 0)
                r = sd_event_new(&event);
        if (r >= 0)
                r = run_loop(event, backend);
        sd_event_unref(event);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
