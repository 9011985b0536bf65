/* SPDX-License-Identifier: MIT */
/* Puts the installed sqmgr in the place of the one that runs: same process, same children, same socket. The
 * new program is asked first whether it takes what it would find. */
#include "base/fd.h"
#include "base/printable.h"
#include "daemon/api/handover.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define PREFLIGHT_USEC (20 * USEC_PER_SEC)
#define CALLS_MAX      16

struct reexec {
        struct supervisor *supervisor;
        struct child child; /* the new program, while it is asked */
        int output_fd;
        sd_event_source *output;
        sd_event_source *deadline;
        char words[2048]; /* what the new program said */
        size_t length;
        struct call *calls[CALLS_MAX]; /* to be answered: here, or by the new image */
        size_t n_calls;
};

struct reexec *reexec_free(struct reexec *reexec)
{
        if (reexec == NULL)
                return NULL;
        assert(reexec->n_calls == 0);
        if (reexec->child.pid > 0) {
                children_remove(&reexec->supervisor->children, &reexec->child);
                (void)kill(reexec->child.pid, SIGKILL);
                (void)waitpid(reexec->child.pid, NULL, 0);
        }
        sd_event_source_disable_unref(reexec->output);
        sd_event_source_disable_unref(reexec->deadline);
        close_fd(reexec->output_fd);
        free(reexec);
        return NULL;
}

/* Tells those who asked that nothing has changed. Takes details over, a list of lines. */
static void refuse(struct reexec *reexec, const char *why, json_t *details)
{
        _cleanup_json_ json_t *lines = details;
        char reason[640];

        snprintf(reason, sizeof(reason), "re-exec refused, nothing has changed: %s", why);
        log_error("%s", reason);
        for (size_t i = 0; i < json_array_size(lines); i++)
                log_error("re-exec: %s", json_string_value(json_array_get(lines, i)));
        while (reexec->n_calls > 0)
                server_reply_error(reexec->calls[--reexec->n_calls], CONTROL_REFUSED,
                                   json_pack("{s:o, s:O}", "reason", varlink_text(reason), "details", lines));
}

static json_t *words_to_lines(struct reexec *reexec)
{
        _cleanup_json_ json_t *lines = json_array();
        char *rest = reexec->words;

        printable_replace(reexec->words, reexec->length, true);
        reexec->words[reexec->length] = '\0';
        for (const char *line; (line = strsep(&rest, "\n")) != NULL;)
                if (line[0] != '\0' && json_array_append_new(lines, varlink_text(line)) < 0)
                        return NULL;
        return TAKE_PTR(lines);
}

/* Why not now, or NULL. */
static const char *why_not(struct supervisor *supervisor)
{
        if (supervisor->world->shutting_down)
                return "sqmgr is shutting down";
        if (supervisor->query != NULL)
                return "sqmgr is told to end";
        if (supervisor->adoption != NULL)
                return "the workers of an earlier sqmgr are still being looked for: try again";
        supervisor->pass.unsaved = !keep(supervisor, NULL, clock_now(CLOCK_MONOTONIC));
        if (supervisor->save_error < 0)
                return "the state file cannot be written, see the log";
        return NULL;
}

/* Returns only where it could not: -errno. */
static int replace_image(const struct reexec *reexec)
{
        struct supervisor *supervisor = reexec->supervisor;
        const struct invocation *invocation = supervisor->invocation;
        struct handover handover = {.listen_fd = server_listen_fd(supervisor->server)};
        struct rlimit raised;

        handover.n_idle = server_idle_fds(supervisor->server, handover.idle, ELEMENTSOF(handover.idle));
        for (size_t i = 0; i < reexec->n_calls; i++)
                handover.callers[handover.n_callers++] = call_fd(reexec->calls[i]);
        int r = handover_put(&handover);
        if (r == 0 && getrlimit(RLIMIT_NOFILE, &raised) == 0 &&
            setrlimit(RLIMIT_NOFILE, &supervisor->nofile) == 0) {
                log_info("re-exec: '%s' takes over", invocation->program);
                execve(invocation->program, invocation->argv, environ);
                r = -errno;
                (void)setrlimit(RLIMIT_NOFILE, &raised);
        } else if (r == 0) {
                r = -errno;
        }
        handover_undo(&handover);
        return r;
}

static void finish(struct reexec *reexec, const siginfo_t *info)
{
        struct supervisor *supervisor = reexec->supervisor;
        char why[512];

        if (info->si_code == CLD_EXITED && info->si_status == 0) {
                const char *still = why_not(supervisor);

                if (still != NULL)
                        snprintf(why, sizeof(why), "%s", still);
                else
                        snprintf(why, sizeof(why), "'%s' could not take over: %s",
                                 supervisor->invocation->program, strerrordesc_np(-replace_image(reexec)));
        } else if (info->si_code == CLD_EXITED) {
                snprintf(why, sizeof(why), "'%s --check-state' refuses (exit status %d)",
                         supervisor->invocation->program, info->si_status);
        } else {
                snprintf(why, sizeof(why), "'%s --check-state' was ended by SIG%s",
                         supervisor->invocation->program, sigabbrev_np(info->si_status) ?: "?");
        }
        refuse(reexec, why, words_to_lines(reexec));
        supervisor->reexec = reexec_free(reexec);
}

static void read_words(struct reexec *reexec)
{
        size_t max = sizeof(reexec->words) - 1;

        for (;;) {
                char scrap[256];
                bool full = reexec->length == max;
                ssize_t n = read(reexec->output_fd, full ? scrap : reexec->words + reexec->length,
                                 full ? sizeof(scrap) : max - reexec->length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        reexec->output = sd_event_source_disable_unref(reexec->output);
                        return;
                }
                reexec->length += full ? 0 : (size_t)n;
        }
}

static int on_output(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        read_words(userdata);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        const struct reexec *reexec = userdata;

        (void)source, (void)usec;
        (void)kill(reexec->child.pid, SIGKILL);
        return 0;
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct reexec *reexec = (struct reexec *)((char *)child - offsetof(struct reexec, child));

        read_words(reexec);
        finish(reexec, info);
}

/* In the child. */
static _Noreturn void run_preflight(const struct supervisor *supervisor, int output_fd)
{
        const struct invocation *invocation = supervisor->invocation;
        _cleanup_free_ char *check = NULL;
        char *arguments[] = {(char *)invocation->program, (char *)"-c", (char *)supervisor->config_path, NULL,
                             NULL};
        sigset_t none;

        sigemptyset(&none);
        if (asprintf(&check, "--check-state=%s", supervisor->settings->state_file) >= 0) {
                arguments[3] = check;
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                (void)signal(SIGPIPE, SIG_DFL);
                (void)setrlimit(RLIMIT_NOFILE, &supervisor->nofile);
                if (dup2(output_fd, STDOUT_FILENO) >= 0 && dup2(output_fd, STDERR_FILENO) >= 0 &&
                    fd_close_range(STDERR_FILENO + 1, UINT_MAX, true) == 0)
                        execve(invocation->program, arguments, environ);
        }
        dprintf(output_fd, "%s: %s\n", invocation->program, strerrordesc_np(errno));
        _exit(127);
}

static int start_preflight(struct reexec *reexec)
{
        struct supervisor *supervisor = reexec->supervisor;
        int pair[2];

        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        reexec->output_fd = pair[0];
        _cleanup_close_ int write_fd = pair[1];
        if (fcntl(reexec->output_fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        int r = sd_event_add_io(supervisor->event, &reexec->output, reexec->output_fd, EPOLLIN, on_output,
                                reexec);
        if (r >= 0)
                r = sd_event_add_time_relative(supervisor->event, &reexec->deadline, CLOCK_MONOTONIC,
                                               PREFLIGHT_USEC, 0, on_deadline, reexec);
        if (r < 0)
                return r;
        pid_t pid = fork();
        if (pid == 0)
                run_preflight(supervisor, write_fd);
        if (pid < 0)
                return -errno;
        reexec->child = (struct child){.pid = pid, .exited = on_exited};
        children_add(&supervisor->children, &reexec->child);
        return 0;
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct reexec *reexec = userdata;
        size_t i = 0;

        while (reexec->calls[i] != call)
                i++;
        reexec->calls[i] = reexec->calls[--reexec->n_calls];
}

void reexec_request(struct supervisor *supervisor, struct call *call)
{
        struct reexec *reexec = supervisor->reexec;
        const char *why = NULL;

        if (call != NULL && !call_wants_reply(call)) {
                server_reply(call, json_object(), false);
                call = NULL;
        }

        if (reexec == NULL) {
                reexec = calloc(1, sizeof(*reexec));
                if (reexec == NULL) {
                        log_error("re-exec refused: memory is short");
                        if (call != NULL)
                                server_reply(call, NULL, false);
                        return;
                }
                *reexec = (struct reexec){.supervisor = supervisor, .output_fd = -1};
                supervisor->reexec = reexec;
        }
        if (call != NULL && reexec->n_calls == CALLS_MAX) {
                server_reply_error(
                        call, CONTROL_REFUSED,
                        json_pack("{s:s, s:[]}", "reason", "too many wait for this already", "details"));
                return;
        }
        if (call != NULL) {
                reexec->calls[reexec->n_calls++] = call;
                server_keep(call, on_cancelled, reexec);
        }
        if (reexec->child.pid > 0)
                return;
        why = why_not(supervisor);
        if (why == NULL) {
                int r = start_preflight(reexec);

                why = r < 0 ? strerrordesc_np(-r) : NULL;
        }
        if (why == NULL)
                return;
        refuse(reexec, why, json_array());
        supervisor->reexec = reexec_free(reexec);
}
