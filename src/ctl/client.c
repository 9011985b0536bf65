/* SPDX-License-Identifier: MIT */
/* Calls sqmgr over its socket and reports errors. */
#include "base/fd.h"
#include "base/locate.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/screen.h"
#include "wire/control.h"
#include "wire/reply.h"
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define READ_BYTES ((size_t)64 * 1024)
/* Limits for the duration of one reconnect attempt. */
#define AGAIN_USEC_MIN (250 * USEC_PER_MSEC)
#define AGAIN_USEC_MAX (30 * USEC_PER_SEC)

usec_t client_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}

static int report_timeout(const struct ctl *ctl)
{
        char span[FORMAT_MAX];

        format_duration(ctl->timeout, span, sizeof(span));
        if (ctl->fd < 0)
                return output_error(CTL_TIMEOUT, "sqmgr did not accept the call within %s", span);
        if (ctl->wait != CTL_WAIT_NONE)
                return output_error(CTL_TIMEOUT,
                                    "the restart did not end within %s and continues. To follow it, run "
                                    "'sqmgrctl status --watch'",
                                    span);
        return output_error(CTL_TIMEOUT, "sqmgr did not answer within %s; the order may still be carried out",
                            span);
}

static int report_connect_error(struct ctl *ctl, int error, const char *reason)
{
        struct stat status;

        switch (error) {
        case EACCES:
        case EPERM:
                return output_error(CTL_PERMISSION, "not permitted to connect to '%s'", ctl->socket);
        case EKEYREJECTED:
                return output_error_as("not-trusted", CTL_CONNECT,
                                       "'%s' is not trusted: %s. Nothing was sent", ctl->socket, reason);
        case EAGAIN:
                return report_timeout(ctl);
        case ENOENT:
                if (ctl->instance)
                        return output_error(
                                CTL_CONNECT,
                                "the instance '%s' does not run: no socket '%s'. Start it, or give "
                                "another by -i",
                                ctl->instance, ctl->socket);
                return output_error(CTL_CONNECT,
                                    "no socket '%s'. Start sqmgr, or give its instance by -i, or its socket "
                                    "by -s or SQMGR_SOCKET",
                                    ctl->socket);
        case ECONNREFUSED:
                if (stat(ctl->socket, &status) == 0 && !S_ISSOCK(status.st_mode))
                        return output_error(
                                CTL_CONNECT,
                                "'%s' is not a socket. Give the socket of sqmgr by -s or SQMGR_SOCKET",
                                ctl->socket);
                return output_error(CTL_CONNECT,
                                    "sqmgr is not running on '%s': connection refused. Start sqmgr",
                                    ctl->socket);
        case ENAMETOOLONG:
                return output_error(CTL_CONNECT,
                                    "the path of the socket is too long (at most %zu bytes): '%s'",
                                    sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1, ctl->socket);
        default:
                return output_error(CTL_CONNECT, "cannot connect to '%s': %s", ctl->socket,
                                    strerrordesc_np(error));
        }
}

/* Sends a call on the connection. Takes over the reference to parameters. */
static int send_call(struct ctl *ctl, const char *method, json_t *parameters, bool more)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0, sent = 0;
        char name[64];

        ctl->method = method;
        snprintf(name, sizeof(name), CONTROL_INTERFACE ".%s", method);
        if (varlink_encode_call(name, parameters, more, &text, &size) < 0)
                return output_error(CTL_USAGE, "an argument is not valid UTF-8");
        while (sent < size) {
                ssize_t n = send(ctl->fd, text + sent, size - sent, MSG_NOSIGNAL);

                if (n > 0)
                        sent += (size_t)n;
                else if (errno == EAGAIN)
                        return report_timeout(ctl);
                else if (errno != EINTR)
                        /* sqmgr may have sent an error before it closed the connection. */
                        break;
        }
        return CTL_DONE;
}

/* Reads the name of the instance that answers, and compares it with the one that was chosen. */
static int check_name(struct ctl *ctl)
{
        struct varlink_reply reply = {0};
        usec_t again_until = ctl->again_until;
        int r = send_call(ctl, "GetVersion", json_object(), false);

        ctl->again_until = 0;
        if (r == CTL_DONE)
                r = client_receive(ctl, &reply);
        ctl->again_until = again_until;
        if (r == CTL_DONE && !reply_is(reply.parameters, "instance", ctl->instance))
                r = output_error_as("not-trusted", CTL_CONNECT,
                                    "'%s' is not trusted: the instance that answers calls itself '%s'",
                                    ctl->socket, reply_string(reply.parameters, "instance"));
        varlink_reply_free(&reply);
        if (r != CTL_DONE)
                client_close(ctl);
        return r == CTL_LOST && again_until == 0 ? client_report_lost(ctl) : r;
}

/* The caller reports why a reconnect failed. */
static int client_connect(struct ctl *ctl)
{
        const char *reason = NULL;

        usec_t now = client_now(), again = MIN(usec_sub(ctl->again_until, now), AGAIN_USEC_MAX);

        if (ctl->again_until == 0)
                ctl->deadline = usec_add(now, ctl->timeout);
        int fd = locate_connect(ctl->socket, ctl->instance, 0,
                                ctl->again_until == 0 ? ctl->timeout : MAX(again, AGAIN_USEC_MIN), &reason);
        ctl->fd = MAX(fd, -1);
        ctl->connect_error = -MIN(fd, 0);
        if (fd >= 0)
                return ctl->instance ? check_name(ctl) : CTL_DONE;
        return ctl->again_until != 0 ? CTL_LOST : report_connect_error(ctl, ctl->connect_error, reason);
}

int client_catch_signals(struct ctl *ctl, const int *signals, size_t n_signals)
{
        struct sigaction action;
        sigset_t set;

        sigemptyset(&set);
        for (size_t i = 0; i < n_signals; i++)
                /* A signal that was ignored at the start, as with nohup, stays ignored. */
                if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
                        sigaddset(&set, signals[i]);
        ctl->signal_fd = signalfd(ctl->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (ctl->signal_fd < 0)
                return output_error(CTL_FAILED, "cannot wait for signals: %s", strerrordesc_np(errno));
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        return CTL_DONE;
}

static void take_signal(struct ctl *ctl)
{
        struct signalfd_siginfo info;

        if (read(ctl->signal_fd, &info, sizeof(info)) != sizeof(info))
                return;
        if (info.ssi_signo == SIGTSTP)
                screen_suspend();
        else if (info.ssi_signo != SIGWINCH)
                ctl->signal = (int)info.ssi_signo;
}

/* Waits for a reply, a key or a signal. Returns CTL_DONE for a reply or at the time `until`. Returns
 * CTL_WOKEN for a key or a signal, or an exit code. */
static int wait_until(struct ctl *ctl, usec_t until)
{
        struct pollfd fds[] = {
                {.fd = ctl->fd, .events = POLLIN},
                {.fd = ctl->signal_fd, .events = POLLIN},
                {.fd = ctl->key_fd, .events = POLLIN},
        };
        usec_t now = client_now();
        int timeout_msec = -1;

        if (until != USEC_INFINITY)
                timeout_msec = (int)MIN((usec_sub(until, now) + USEC_PER_MSEC - 1) / USEC_PER_MSEC,
                                        (usec_t)INT32_MAX);
        int r = poll(fds, ELEMENTSOF(fds), timeout_msec);
        if (r < 0 && errno != EINTR)
                return output_error(CTL_FAILED, "cannot wait for sqmgr: %s", strerrordesc_np(errno));
        if (r <= 0)
                return CTL_DONE;
        if (fds[1].revents != 0)
                take_signal(ctl);
        return fds[1].revents != 0 || fds[2].revents != 0 ? CTL_WOKEN : CTL_DONE;
}

int client_wait(struct ctl *ctl, usec_t usec)
{
        usec_t until = usec_add(client_now(), usec);
        int r = CTL_DONE;

        client_close(ctl);
        while (r == CTL_DONE && client_now() < until)
                r = wait_until(ctl, until);
        return r;
}

int client_detach(const struct ctl *ctl, const char *sentence)
{
        sigset_t set;

        if (sentence && isatty(STDERR_FILENO))
                fputc('\n', stderr); /* the terminal has printed ^C on this line */
        if (sentence)
                output_error(CTL_DONE, "%s", sentence);
        fflush(stdout);
        sigemptyset(&set);
        sigaddset(&set, ctl->signal);
        (void)raise(ctl->signal);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        return 128 + ctl->signal;
}

int client_send(struct ctl *ctl, const char *method, json_t *parameters, bool more)
{
        int r = parameters ? client_connect(ctl) : CTL_DONE;

        if (r == CTL_DONE)
                return send_call(ctl, method, parameters, more);
        json_decref(parameters);
        return r;
}

int client_report_lost(const struct ctl *ctl)
{
        return output_error(
                CTL_CONNECT,
                "sqmgr closed the connection on '%s' before its last reply. Check the log of sqmgr",
                ctl->socket);
}

/* Reads the next part of the reply. */
static int read_more(struct ctl *ctl)
{
        char *space;

        if (ctl->deadline <= client_now())
                return report_timeout(ctl);
        int r = wait_until(ctl, ctl->deadline);
        if (r != CTL_DONE)
                return r;
        if (varlink_input_reserve(&ctl->input, READ_BYTES, &space) < 0)
                return output_error(CTL_FAILED, "not enough memory");
        ssize_t n = recv(ctl->fd, space, READ_BYTES, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return CTL_LOST;
        if (n > 0)
                varlink_input_filled(&ctl->input, (size_t)n);
        return CTL_DONE;
}

static int report_permission(json_t *parameters)
{
        const char *group = reply_string(parameters, "group"), *name = reply_string(parameters, "method");
        const char *dot = strrchr(name, '.');
        const struct control_method *method = control_find_method(dot ? dot + 1 : name);

        /* The caller may make no call at all. */
        if (name[0] == '\0')
                return output_error(CTL_PERMISSION, "not permitted: %s", reply_string(parameters, "reason"));
        if (method && method->access == CONTROL_OWN)
                return output_error(CTL_PERMISSION,
                                    "not permitted: only root and the user of sqmgr can do this");
        if (group[0] == '\0')
                return output_error(CTL_PERMISSION,
                                    "not permitted: only root and the user of sqmgr can do this. To permit a "
                                    "group, set 'socket_group' in sqmgr.ini");
        return output_error(
                CTL_PERMISSION,
                "not permitted: only root, the user of sqmgr and members of group '%s' can do this", group);
}

static bool is_among(json_t *names, const char *name, size_t length)
{
        json_t *each;

        json_foreach(each, names)
                if (json_string_length(each) == length && strncmp(json_string_value(each), name, length) == 0)
                        return true;
        return false;
}

static int report_unknown(const char *kind, const char *name, json_t *known)
{
        bool any = json_array_size(known) > 0;
        char word[32];

        snprintf(word, sizeof(word), "unknown-%s", kind);
        return output_error_as(word, CTL_USAGE, "unknown %s '%s'; %s%s", kind, name,
                               any ? "known: " : "none are known", output_names(known));
}

/* Suggests what the user may have meant. */
static int report_unknown_fleet(const struct ctl *ctl, json_t *parameters)
{
        const char *name = reply_string(parameters, "name"), *slash = strrchr(name, '/');
        json_t *fleets = json_object_get(parameters, "fleets");
        bool restarts = strcmp(ctl->command->name, "restart") == 0;

        if (restarts && (strcmp(name, "drained") == 0 || strcmp(name, "replaced") == 0))
                return output_error_as("unknown-fleet", CTL_USAGE,
                                       "unknown fleet '%s'. Did you mean '--wait=%s'?", name, name);
        if (slash && is_among(fleets, name, (size_t)(slash - name)))
                return restarts ? output_error_as("unknown-fleet", CTL_USAGE,
                                                  "'%s' is a worker. To replace it, run 'sqmgrctl quiet %s'",
                                                  name, name)
                                : output_error_as("unknown-fleet", CTL_USAGE,
                                                  "'%s' is a worker; '%s' takes a fleet", name,
                                                  ctl->command->name);
        return report_unknown("fleet", name, fleets);
}

int client_report_not_in_memory(json_t *parameters, int code)
{
        const char *fleet = reply_string(parameters, "fleet"),
                   *directory = reply_string(parameters, "directory");
        long long generation = reply_integer(parameters, "generation");
        char why[160];

        if (reply_is(parameters, "reason", "no_restart"))
                snprintf(
                        why, sizeof(why),
                        "no previous release is known: no restart has replaced one since the settings of the "
                        "fleet changed");
        else if (reply_is(parameters, "reason", "template_ended"))
                snprintf(why, sizeof(why),
                         "generation %lld is not in memory (its template has ended, as 10 minutes after a "
                         "restart)",
                         generation);
        else
                snprintf(why, sizeof(why),
                         "generation %lld is not in memory (its workers are not forked from a template: "
                         "preload = no)",
                         generation);
        return output_error_as("not-in-memory", code,
                               "%s: %s%s. Let %s%s point to the previous release, then run 'sqmgrctl restart "
                               "%s'",
                               fleet, code == CTL_DONE ? "not rolled back: " : "", why, directory,
                               directory[0] != '\0' ? " (the fleet's working directory)"
                                                    : "the fleet's working directory",
                               fleet);
}

static int report_error(const struct ctl *ctl, const struct varlink_reply *reply)
{
        const char *error = reply->error;
        json_t *parameters = reply->parameters;
        char reason[REPLY_QUOTING_MAX];

        if (strcmp(error, CONTROL_REFUSED) == 0)
                return output_refusal(reply_quoting(parameters, reply_string(parameters, "reason"), reason),
                                      json_object_get(parameters, "details"));
        if (strcmp(error, VARLINK_PERMISSION_DENIED) == 0)
                return report_permission(parameters);
        if (strcmp(error, CONTROL_UNKNOWN_FLEET) == 0)
                return report_unknown_fleet(ctl, parameters);
        if (strcmp(error, CONTROL_NOT_IN_MEMORY) == 0)
                return client_report_not_in_memory(parameters, CTL_FAILED);
        if (strcmp(error, CONTROL_UNKNOWN_WORKER) == 0)
                return report_unknown("worker", reply_string(parameters, "name"),
                                      json_object_get(parameters, "workers"));
        if (strcmp(error, VARLINK_INVALID_PARAMETER) == 0)
                return output_error(CTL_USAGE,
                                    "sqmgr does not know the parameter '%s'. Check whether sqmgr and "
                                    "sqmgrctl have the same version",
                                    reply_string(parameters, "parameter"));
        return output_error(
                CTL_FAILED,
                "sqmgr returned the error %s. Check whether sqmgr and sqmgrctl have the same version", error);
}

/* Decodes a reply within the limits, and makes its strings printable. Returns CTL_DONE or an exit code. */
static int decode(const struct ctl *ctl, const char *text, size_t size, struct varlink_reply *ret)
{
        bool metrics = strcmp(ctl->method, "GetMetrics") == 0;
        enum instance_query query = metrics ? INSTANCE_QUERY_METRICS : INSTANCE_QUERY_TERMINAL;
        char reason[REPLY_REASON_MAX] = "";
        int r = -EBADMSG;

        if (reply_limits_scan(query, text, size, reason))
                r = reply_decode(text, size, VARLINK_REPLY_MAX, metrics ? "text" : NULL, ret);
        if (r == 0 && (ret->error || reply_limits_check(query, ret->parameters, reason)))
                return CTL_DONE;
        if (r == 0)
                varlink_reply_free(ret);
        if (reason[0] != '\0')
                return output_error(CTL_CONNECT, "a reply on '%s' is refused: it has %s", ctl->socket,
                                    reason);
        if (r == -ENOMEM)
                return output_error(CTL_FAILED, "not enough memory");
        return output_error(CTL_CONNECT, "the process on '%s' is not sqmgr: it does not speak Varlink",
                            ctl->socket);
}

int client_receive(struct ctl *ctl, struct varlink_reply *ret)
{
        struct varlink_reply reply = {0};
        const char *text;
        size_t size;
        int r;

        while ((r = varlink_input_take(&ctl->input, VARLINK_REPLY_MAX, &text, &size)) == 0) {
                int code = read_more(ctl);
                if (code != CTL_DONE)
                        return code;
        }
        if (r < 0)
                return output_error(CTL_CONNECT, "a reply on '%s' is refused: it has more than %zu bytes",
                                    ctl->socket, VARLINK_REPLY_MAX);
        r = decode(ctl, text, size, &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl->again_until != 0)
                output_error(CTL_DONE, "reconnected");
        ctl->again_until = 0;
        if (!reply.error) {
                *ret = reply;
                return CTL_DONE;
        }
        r = report_error(ctl, &reply);
        varlink_reply_free(&reply);
        return r;
}

int client_call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret)
{
        struct varlink_reply reply = {0};
        int r = client_send(ctl, method, parameters, false);

        if (r == CTL_DONE)
                r = client_receive(ctl, &reply);
        if (r == CTL_LOST)
                return client_report_lost(ctl);
        if (r != CTL_DONE)
                return r;
        *ret = json_incref(reply.parameters);
        varlink_reply_free(&reply);
        return CTL_DONE;
}

json_t *client_fleets(const struct ctl *ctl)
{
        _cleanup_json_ json_t *fleets = json_array();

        if (ctl->n_arguments == 0)
                return json_null();
        for (size_t i = 0; i < ctl->n_arguments; i++)
                if (json_array_append_new(fleets, json_string(ctl->arguments[i])) < 0)
                        return NULL;
        return TAKE_PTR(fleets);
}

void client_close(struct ctl *ctl)
{
        ctl->fd = close_fd(ctl->fd);
        varlink_input_free(&ctl->input);
}
