/* SPDX-License-Identifier: MIT */
/* The connections of the HTTP server: which requests wait, and which connections are ended when time, places
 * or memory run short. */
#include "web/http_clients.h"
#include <netinet/in.h>
#include <string.h>

uint64_t http_clients_peer(const struct sockaddr *address)
{
        uint64_t peer = 0;

        if (address && address->sa_family == AF_INET) {
                const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

                peer = in->sin_addr.s_addr;
        } else if (address && address->sa_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;

                memcpy(&peer, &in6->sin6_addr, sizeof(peer));
        }
        return peer;
}

void http_clients_touch(struct http_clients *clients, struct http_request *request, usec_t now)
{
        request->since = now;
        TAILQ_REMOVE(&clients->list, request, entry);
        TAILQ_INSERT_TAIL(&clients->list, request, entry);
}

void http_clients_leave_stream(struct http_clients *clients, struct http_request *request)
{
        if (request->viewer.stream) {
                stream_leave(&request->viewer);
                clients->counts.streams--;
        }
        request->viewer = (struct viewer){0};
}

/* Ends the connection. The request stays in the list until the library closes the connection. */
static void end_client(struct http_clients *clients, struct http_request *request)
{
        bool suspended = request->put_off || request->viewer.waits;

        if (request->ended)
                return;
        request->ended = true;
        clients->counts.refused++;
        request->put_off = false;
        http_clients_leave_stream(clients, request);
        (void)shutdown(request->fd, SHUT_RDWR);
        if (suspended)
                clients->resume(request);
}

void http_clients_stop_waiting(struct http_clients *clients)
{
        struct http_request *request;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (!request->put_off)
                        continue;
                request->put_off = false;
                clients->resume(request);
        }
}

/* Returns how many streams there are from the address of the request. */
static unsigned count_streams(const struct http_clients *clients, const struct http_request *request)
{
        const struct http_request *each;
        unsigned n = 0;

        TAILQ_FOREACH(each, &clients->list, entry) {
                n += each->viewer.stream && each->peer == request->peer;
        }
        return n;
}

/* Returns the oldest of the streams whose address has the most. Returns NULL if there is no stream. */
static struct http_request *find_stream(const struct http_clients *clients)
{
        struct http_request *request, *found = NULL;
        unsigned most = 0;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (!request->viewer.stream || (found && request->peer == found->peer))
                        continue;
                unsigned n = count_streams(clients, request);
                if (n > most) {
                        most = n;
                        found = request;
                }
        }
        return found;
}

bool http_clients_make_room(struct http_clients *clients)
{
        struct http_request *request, *found = NULL, *last = NULL;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (request->ended || request->viewer.stream)
                        continue;
                if (request->put_off)
                        last = request;
                else if (!found)
                        found = request;
        }
        found = found ?: find_stream(clients) ?: last;
        if (found)
                end_client(clients, found);
        return found;
}

void http_clients_make_room_for_stream(struct http_clients *clients)
{
        while (clients->counts.streams >= clients->limits.streams) {
                struct http_request *found = find_stream(clients);

                if (!found)
                        return;
                end_client(clients, found);
        }
}

static bool takes_too_long(const struct http_clients *clients, const struct http_request *request, usec_t now)
{
        const struct http_limits *limits = &clients->limits;

        /* A viewer that has read everything waits for new messages, so it has no timeout. */
        if (request->viewer.stream)
                return !request->viewer.waits && usec_sub(now, request->text_at) > limits->message_usec;
        return usec_sub(now, request->since) > (request->asked ? limits->answer_usec : limits->wait_usec);
}

/* Returns the text that the client reads, or NULL. */
static struct shared *text_of(const struct http_request *request)
{
        return request->ended ? NULL : request->viewer.stream ? request->viewer.text : request->text;
}

/* Returns the size of all texts that clients read, each counted once. */
static size_t count_unread(struct http_clients *clients)
{
        const struct http_request *request;
        size_t bytes = 0;

        clients->sweeps++;
        TAILQ_FOREACH(request, &clients->list, entry) {
                struct shared *text = text_of(request);

                if (!text || text->counted == clients->sweeps)
                        continue;
                text->counted = clients->sweeps;
                bytes += text->size;
        }
        return bytes;
}

/* Returns the text that a client has been reading for the longest time. Returns NULL if there is none, or
 * only a single text. */
static const struct shared *find_oldest_text(const struct http_clients *clients)
{
        const struct http_request *request, *oldest = NULL;
        bool several = false;

        TAILQ_FOREACH(request, &clients->list, entry) {
                const struct shared *text = text_of(request);

                if (!text)
                        continue;
                several |= oldest && text_of(oldest) != text;
                if (!oldest || request->text_at < oldest->text_at)
                        oldest = request;
        }
        return several ? text_of(oldest) : NULL;
}

static void end_readers(struct http_clients *clients, const struct shared *text)
{
        struct http_request *request;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (text_of(request) == text)
                        end_client(clients, request);
        }
}

void http_clients_sweep(struct http_clients *clients, usec_t now)
{
        struct http_request *request;
        const struct shared *text;

        TAILQ_FOREACH(request, &clients->list, entry) {
                if (takes_too_long(clients, request, now))
                        end_client(clients, request);
        }
        /* Slow clients keep texts that newer ones have superseded. */
        for (size_t bytes = count_unread(clients); bytes > clients->limits.unread_bytes;) {
                text = find_oldest_text(clients);
                if (!text)
                        return;
                bytes -= text->size;
                end_readers(clients, text);
        }
}
