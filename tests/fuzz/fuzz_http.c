/* SPDX-License-Identifier: MIT */
/* Fuzzes what a client sends to sqmgr-web, in pieces, through libmicrohttpd. Each answer must begin as an
 * HTTP response, none may contain a file, and the next client must be served. The first byte of a piece is
 * its length. */
#include "fuzz.h"
#include "web/web.h"
#include <signal.h>

static sd_event *event;
static struct web *web;

static void start(void)
{
        static const char *const sockets[] = {"/nonexistent/sqmgr-fuzz.sock"};
        static const struct watch_places places = {.sockets = sockets, .n = 1};

        (void)signal(SIGPIPE, SIG_IGN);
        fuzz_check(sd_event_new(&event) >= 0);
        fuzz_check(web_new(&web, event, &places, NULL) == 0);
}

static int connect_client(void)
{
        const struct sockaddr_un peer = {.sun_family = AF_UNIX};
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        fuzz_check(http_add(web_http(web), fds[0], (const struct sockaddr *)&peer, sizeof(peer)) == 0);
        return fds[1];
}

static void turn(void)
{
        for (unsigned i = 0; i < 50; i++)
                http_run(web_http(web));
}

/* Reads what the server sends. Returns its size. */
static size_t hear(int fd, char *text, size_t size)
{
        size_t length = 0;
        ssize_t n;

        while (length < size - 1 && (n = recv(fd, text + length, size - 1 - length, MSG_DONTWAIT)) > 0)
                length += (size_t)n;
        text[length] = '\0';
        return length;
}

static void check_next(void)
{
        static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        char text[4096];
        int fd = connect_client();

        fuzz_check(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
        turn();
        fuzz_check(hear(fd, text, sizeof(text)) > 0);
        fuzz_check(strncmp(text, "HTTP/1.1 200 OK\r\n", 17) == 0);
        close_fd(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char text[1 << 16];
        struct input input = {.at = data, .left = size};

        if (!web)
                start();
        int fd = connect_client();
        bool first = true;
        while (input.left > 0) {
                struct field piece = input_field(&input, (size_t)input_byte(&input) * 4 + 1);

                (void)send(fd, piece.text, piece.len, MSG_DONTWAIT | MSG_NOSIGNAL);
                field_free(&piece);
                turn();
                size_t length = hear(fd, text, sizeof(text));
                fuzz_check(!first || length == 0 || strncmp(text, "HTTP/1.", 7) == 0);
                fuzz_check(!strstr(text, "root:x:0:"));
                first = first && length == 0;
        }
        close_fd(fd);
        check_next();
        turn();
        return 0;
}
