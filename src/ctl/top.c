/* SPDX-License-Identifier: MIT */
/* The command `top`: the live view with keys. top_model.h decides what is shown and what keys do. */
#include "base/printable.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/top_model.h"
#include "wire/reply.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>

#define POLL_USEC   USEC_PER_SEC
#define ANSWER_USEC (3 * USEC_PER_SEC)
/* Limits for reading a worker's log tail: lines, bytes and time. */
#define LINES      200
#define LINES_MAX  ((size_t)256 * 1024)
#define LINES_USEC (5 * USEC_PER_SEC)
/* A journal is large and is searched from the beginning each time. */
#define LINES_AGAIN_USEC (5 * USEC_PER_SEC)

struct show {
        struct ctl *ctl;
        struct top top;
        struct top_replies replies;
        char *lines;
        char lines_of[TOP_ID_MAX];
        usec_t lines_at;
        usec_t polled_at; /* time of the last attempt */
        usec_t status_at;
        char error[TOP_REPORTED_MAX];
        bool ends;
};

static void draw(FILE *out, const struct view *view, void *userdata)
{
        struct show *show = userdata;

        top_draw(out, &show->top, &show->replies, view);
}

static void redraw(struct show *show)
{
        show->replies.now = time(NULL);
        show->replies.age = usec_sub(client_now(), show->status_at);
        show->replies.error = show->error;
        screen_draw(draw, show);
}

/* Takes over the reference to parameters. Returns CTL_DONE with *ret replaced, or another code with *ret
 * unchanged. */
static int ask(struct show *show, const char *method, json_t *parameters, json_t **ret)
{
        json_t *reply = NULL;
        int r = client_call(show->ctl, method, parameters, &reply);

        client_close(show->ctl);
        if (r != CTL_DONE)
                return r;
        json_decref(*ret);
        *ret = reply;
        return CTL_DONE;
}

/* Runs in the child of read_lines(): like `sqmgrctl logs`. */
static void write_lines(const struct ctl *ctl, const char *id, int fd)
{
        char worker[TOP_ID_MAX], *arguments[] = {worker, NULL};
        struct ctl copy = *ctl;
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        sigset_t none;

        snprintf(worker, sizeof(worker), "%s", id);
        copy.lines = LINES;
        copy.arguments = arguments;
        copy.n_arguments = 1;
        copy.signal_fd = copy.key_fd = -1;
        output_errors_to(NULL, 0);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setpgid(0, 0);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
            dup2(fd, STDERR_FILENO) < 0)
                return;
        (void)ctl_logs(&copy);
        fflush(stdout);
}

/* Reads fd to its end into *ret. Returns CTL_DONE, CTL_TIMEOUT, or CTL_WOKEN after a key, a signal or an
 * error. */
static int read_to_end(const struct show *show, int fd, char **ret)
{
        _cleanup_free_ char *text = malloc(LINES_MAX + 1);
        usec_t until = usec_add(client_now(), LINES_USEC);
        ssize_t n = 1;
        size_t length = 0;

        while (text && n > 0 && length < LINES_MAX) {
                struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                                       {.fd = show->ctl->signal_fd, .events = POLLIN},
                                       {.fd = show->ctl->key_fd, .events = POLLIN}};
                int left = (int)(usec_sub(until, client_now()) / USEC_PER_MSEC);

                int r = poll(fds, ELEMENTSOF(fds), left);

                if (r == 0)
                        return CTL_TIMEOUT;
                if (r < 0 || fds[1].revents != 0 || fds[2].revents != 0)
                        return CTL_WOKEN;
                n = read(fd, text + length, LINES_MAX - length);
                length += n > 0 ? (size_t)n : 0;
        }
        if (!text)
                return CTL_WOKEN;
        length = printable_drop_colours(text, length);
        printable_replace(text, length, true);
        text[length] = '\0';
        *ret = TAKE_PTR(text);
        return CTL_DONE;
}

/* Reading a log may take long and executes another program, so it runs in a child process. Returns CTL_DONE
 * or CTL_WOKEN. */
static int read_lines(struct show *show)
{
        char *lines = NULL;
        int ends[2], r = CTL_DONE;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return CTL_DONE;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
                write_lines(show->ctl, show->top.chosen, ends[1]);
                _exit(0);
        }
        close_fd(ends[1]);
        if (pid > 0) {
                (void)setpgid(pid, pid);
                r = read_to_end(show, ends[0], &lines);
                (void)kill(-pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
        }
        close_fd(ends[0]);
        if (r == CTL_TIMEOUT)
                lines = strdup("reading the log takes long. Run 'sqmgrctl logs'\n");
        if (lines) {
                free(show->lines);
                show->lines = lines;
                show->lines_at = client_now();
                memcpy(show->lines_of, show->top.chosen, sizeof(show->lines_of));
        }
        return r == CTL_WOKEN ? CTL_WOKEN : CTL_DONE;
}

/* Returns true if the log tail of the chosen worker is recent. */
static bool has_lines(const struct show *show)
{
        return strcmp(show->lines_of, show->top.chosen) == 0 &&
               usec_add(show->lines_at, LINES_AGAIN_USEC) > client_now();
}

static int poll_worker_at(struct show *show)
{
        const struct top *top = &show->top;

        if (top->tab == TOP_WORKER_REPORT)
                return ask(show, "GetEvents", json_object(), &show->replies.events);
        if (top->tab == TOP_JOBS)
                return ask(show, "GetJobs",
                           json_pack("{s:[s%]}", "fleets", top->chosen, strcspn(top->chosen, "/")),
                           &show->replies.jobs);
        return has_lines(show) ? CTL_DONE : read_lines(show);
}

/* Queries the data of the current view. A key interrupts the query, which is repeated after the key. */
static void query(struct show *show)
{
        char error[TOP_REPORTED_MAX] = "";

        output_errors_to(error, sizeof(error));
        int r = ask(show, "GetStatus", json_object(), &show->replies.status);
        if (r == CTL_DONE)
                show->status_at = client_now();
        if (r == CTL_DONE && show->top.opened)
                r = poll_worker_at(show);
        output_errors_to(NULL, 0);
        if (r == CTL_WOKEN)
                return;
        printable_replace(error, strlen(error), false);
        memcpy(show->error, error, sizeof(error));
        show->polled_at = client_now();
}

/* Runs a confirmed action. */
static void order(struct show *show, enum top_do what)
{
        struct top *top = &show->top;
        int key_fd = show->ctl->key_fd;
        char error[TOP_REPORTED_MAX] = "";
        json_t *reply = NULL;

        /* A further key must not interrupt a call that was sent. */
        show->ctl->key_fd = -1;
        output_errors_to(error, sizeof(error));
        int r = what == TOP_QUIET ? ask(show, "Quiet", json_pack("{s:s}", "target", top->target), &reply)
                                  : ask(show, "Restart", json_pack("{s:[s]}", "fleets", top->target), &reply);
        output_errors_to(NULL, 0);
        show->ctl->key_fd = key_fd;
        printable_replace(error, strlen(error), false);
        json_t *fleet = json_array_get(json_object_get(reply, "fleets"), 0);
        if (reply_is(fleet, "state", "stopped") || reply_is(fleet, "state", "quiet"))
                snprintf(top->reported, sizeof(top->reported),
                         "%s is %s, not restarted. Run 'sqmgrctl start %s'", top->target,
                         reply_string(fleet, "state"), top->target);
        else if (r == CTL_DONE)
                snprintf(top->reported, sizeof(top->reported),
                         what == TOP_QUIET ? "%s quieted; a new worker replaces it"
                                           : "%s: restart ordered; jobs are not interrupted",
                         top->target);
        else
                snprintf(top->reported, sizeof(top->reported), "%s",
                         r == CTL_WOKEN ? "sqmgr did not answer" : error);
        json_decref(reply);
        show->polled_at = 0;
}

static void forget_worker(struct show *show)
{
        json_decref(show->replies.jobs);
        json_decref(show->replies.events);
        show->replies.jobs = show->replies.events = NULL;
        show->replies.lines = NULL;
}

static void press(struct show *show, int key)
{
        struct view view = screen_view();
        enum top_do todo = top_press(&show->top, key, &show->replies, &view);

        if (todo == TOP_QUIT)
                show->ends = true;
        else if (todo == TOP_POLL) {
                forget_worker(show);
                show->polled_at = 0;
        } else if (todo != TOP_NOTHING)
                order(show, todo);
}

/* End of input ends the view: without keys only a signal could end it. */
static void take_keys(struct show *show)
{
        struct pollfd poll_fd = {.fd = show->ctl->key_fd, .events = POLLIN};
        char bytes[64], *at = bytes;
        int key;

        if (poll(&poll_fd, 1, 0) <= 0)
                return;
        ssize_t n = read(show->ctl->key_fd, bytes, sizeof(bytes));
        if (n <= 0)
                show->ends = true;
        while (n > 0 && !show->ends) {
                size_t taken = top_take_key(at, (size_t)n, &key);
                bool asked = show->top.asked != TOP_NOTHING;

                press(show, key);
                at += taken;
                n -= (ssize_t)taken;
                /* Input typed or pasted before the question was visible must not answer it. */
                if (!asked && show->top.asked != TOP_NOTHING) {
                        (void)tcflush(show->ctl->key_fd, TCIFLUSH);
                        return;
                }
        }
}

static void run(struct show *show)
{
        screen_enter(true);
        redraw(show);
        while (!show->ends) {
                usec_t next = show->polled_at == 0 ? 0 : usec_add(show->polled_at, POLL_USEC);
                usec_t now = client_now();

                if (now < next)
                        (void)client_wait(show->ctl, next - now);
                else
                        query(show);
                show->replies.lines = strcmp(show->lines_of, show->top.chosen) == 0 ? show->lines : NULL;
                take_keys(show);
                show->ends = show->ends || show->ctl->signal != 0;
                redraw(show);
        }
        screen_leave();
}

int ctl_top(struct ctl *ctl)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
        struct show show = {.ctl = ctl};

        if (!screen_is_there() || !isatty(STDIN_FILENO))
                return output_error(CTL_USAGE,
                                    "'top' needs a terminal. Without one, run 'sqmgrctl status --watch'");
        ctl->timeout = ANSWER_USEC;
        /* Errors at the start are printed without the view. */
        int r = ask(&show, "GetStatus", json_object(), &show.replies.status);
        if (r != CTL_DONE)
                return r;
        show.status_at = show.polled_at = client_now();
        r = client_catch_signals(ctl, signals, ELEMENTSOF(signals));
        if (r == CTL_DONE) {
                ctl->key_fd = STDIN_FILENO;
                run(&show);
        }
        forget_worker(&show);
        json_decref(show.replies.status);
        free(show.lines);
        /* A signal ends `top` normally: the exit code does not change. */
        return r;
}
