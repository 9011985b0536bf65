/* SPDX-License-Identifier: MIT */
/* Resolves a host name in a detached thread, which sends the answer through a socket. The thread shares no
 * memory: the caller may be gone long before the thread finishes. */
#include "io/resolve.h"
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct resolve {
        sd_event_source *source;
        int fd;
        resolve_fn callback;
        void *userdata;
};

/* Owned by the thread. */
struct resolve_request {
        int fd;
        char host[];
};

static const struct addrinfo numeric_hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                              .ai_socktype = SOCK_STREAM};
static const struct addrinfo name_hints = {.ai_socktype = SOCK_STREAM};

socklen_t resolve_numeric(const char *host, unsigned port, struct sockaddr_storage *ret)
{
        struct addrinfo *list;
        char service[16];

        snprintf(service, sizeof(service), "%u", port);
        if (getaddrinfo(host, service, &numeric_hints, &list) != 0)
                return 0;
        socklen_t length = list->ai_addrlen;
        memcpy(ret, list->ai_addr, length);
        freeaddrinfo(list);
        return length;
}

bool resolve_is_numeric(const char *host)
{
        return resolve_numeric(host, 0, &(struct sockaddr_storage){0}) > 0;
}

void resolve_and_wait(const char *host, struct resolve_answer *ret)
{
        /* RFC 6761: this name is the machine itself and must not be sent to a name server. A minimal system
         * has no /etc/hosts entry for it. */
        static const struct resolve_answer localhost = {.n_addresses = 2, .addresses = {"::1", "127.0.0.1"}};
        bool is_local = strcasecmp(host, "localhost") == 0;
        struct addrinfo *list = NULL;

        *ret = is_local ? localhost : (struct resolve_answer){0};
        if (is_local || (ret->error = getaddrinfo(host, NULL, &name_hints, &list)) != 0)
                return;
        for (struct addrinfo *i = list; i && ret->n_addresses < RESOLVE_ADDRESSES_MAX; i = i->ai_next)
                if (getnameinfo(i->ai_addr, i->ai_addrlen, ret->addresses[ret->n_addresses],
                                RESOLVE_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
                        ret->n_addresses++;
        freeaddrinfo(list);
}

static void *resolve_thread(void *userdata)
{
        struct resolve_request *question = userdata;
        struct resolve_answer answer;

        resolve_and_wait(question->host, &answer);
        (void)send(question->fd, &answer, sizeof(answer), MSG_NOSIGNAL);
        (void)close(question->fd);
        free(question);
        return NULL;
}

static int resolve_on_answer(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events,
                             void *userdata)
{
        struct resolve *resolve = userdata;
        struct resolve_answer answer;

        ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n != (ssize_t)sizeof(answer))
                answer = (struct resolve_answer){.error = EAI_SYSTEM};
        resolve->source = sd_event_source_disable_unref(resolve->source);
        resolve->callback(&answer, resolve->userdata);
        return 0;
}

/* Signals are blocked in this thread: the thread of the loop handles them. */
static int start_thread(struct resolve_request *question)
{
        sigset_t all, before;
        pthread_attr_t attributes;
        pthread_t thread;

        int r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, resolve_thread, question);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attributes);
        return -r;
}

int resolve_start(sd_event *event, const char *host, resolve_fn callback, void *userdata,
                  struct resolve **ret)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        _cleanup_close_ int our_end = fds[0];
        _cleanup_close_ int thread_end = fds[1];
        _cleanup_free_ struct resolve_request *question = calloc(1, sizeof(*question) + strlen(host) + 1);
        struct resolve *resolve = question ? malloc(sizeof(*resolve)) : NULL;
        if (!resolve)
                return -ENOMEM;
        *resolve = (struct resolve){.fd = TAKE_FD(our_end), .callback = callback, .userdata = userdata};
        question->fd = thread_end;
        memcpy(question->host, host, strlen(host) + 1);

        int r = sd_event_add_io(event, &resolve->source, resolve->fd, EPOLLIN, resolve_on_answer, resolve);
        if (r >= 0)
                r = start_thread(question);
        if (r < 0) {
                resolve_free(resolve);
                return r;
        }
        /* The thread owns both now. */
        (void)TAKE_FD(thread_end);
        (void)TAKE_PTR(question);
        *ret = resolve;
        return 0;
}

struct resolve *resolve_free(struct resolve *resolve)
{
        if (!resolve)
                return NULL;
        sd_event_source_disable_unref(resolve->source);
        close_fd(resolve->fd);
        free(resolve);
        return NULL;
}
