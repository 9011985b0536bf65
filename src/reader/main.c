/* SPDX-License-Identifier: MIT */
/* sqmgr-reader: speaks to one server for sqmgr, which starts it. It has no rights: see reader/sandbox.h.
 *
 * Descriptor 3 is a SOCK_SEQPACKET socket to sqmgr, and descriptor 4 one that brings connected sockets. */
#include "base/macro.h"
#include "reader/sandbox.h"
#include "reader/server.h"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { FD_SQMGR = 3, FD_CONNECTIONS = 4 };

static void on_end(void *userdata)
{
        (void)sd_event_exit(userdata, 0);
}

/* Enters the sandbox now that the files for TLS are loaded. */
static int on_configured(void *userdata _unused_)
{
        return sandbox_enter();
}

static bool is_socket(int fd)
{
        int type;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int run(sd_event *event)
{
        static const struct reader_server_ops ops = {
                .asks = reader_asks, .on_end = on_end, .on_configured = on_configured};
        struct reader_server *server;
        int r = reader_server_new(event, FD_SQMGR, FD_CONNECTIONS, &ops, event, &server);

        if (r < 0)
                return r;
        r = sd_event_loop(event);
        reader_server_free(server);
        return r;
}

int main(void)
{
        sd_event *event = NULL;

        if (!is_socket(FD_SQMGR) || !is_socket(FD_CONNECTIONS)) {
                fprintf(stderr, "sqmgr-reader: only sqmgr starts this program\n");
                return EXIT_FAILURE;
        }
        /* hiredis writes without MSG_NOSIGNAL. */
        (void)signal(SIGPIPE, SIG_IGN);
        /* Linux before 6.14 names a program that is executed by a descriptor after the descriptor's
         * number. */
        (void)prctl(PR_SET_NAME, "sqmgr-reader");
        int r = sandbox_limits();
        if (r >= 0)
                r = sd_event_new(&event);
        if (r >= 0)
                r = run(event);
        sd_event_unref(event);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
