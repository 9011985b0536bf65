/* SPDX-License-Identifier: MIT */
/* Replaces the running sqmgr with the installed version: same process, same children, same sockets. First, a
 * preflight run of the new program checks the settings and the state. */
#include "daemon/lifecycle/reexec.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/printable.h"
#include "daemon/api/handler.h"
#include "daemon/workers/templates.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/program.h"
#include "model/world.h"
#include <fcntl.h>
#include <sys/wait.h>

#define VARIABLE        "SQMGR_REEXEC"
#define ENTRY_MAX_BYTES 40

/* Prefix of the descriptor. For templates, the pid of the command comes in between. */
static const char *const prefixes[] = {
        [HANDED_LISTEN] = "listen:",
        [HANDED_IDLE] = "idle:",
        [HANDED_CALLER] = "caller:",
        [HANDED_TEMPLATE] = "template-",
};
static_assert(ELEMENTSOF(prefixes) == _HANDED_MAX, "one for each kind");

/* Marks all descriptors close-on-exec except these and the standard ones, and sets the environment variable.
 * Returns 0 or -errno. If no execve() follows, call handover_undo() in both cases. */
static int handover_put(const struct handover *handover)
{
        char text[ENTRY_MAX_BYTES * (1 + HANDOVER_MAX)];
        int at = snprintf(text, sizeof(text), "pid:%d ", (int)getpid());
        int r = fd_close_at_exec(STDERR_FILENO + 1);

        for (size_t i = 0; i < handover->n && r == 0; i++) {
                const struct handed *handed = &handover->list[i];
                char pid[16] = "";

                if (handed->kind == HANDED_TEMPLATE)
                        snprintf(pid, sizeof(pid), "%d:", (int)handed->pid);
                at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s%d ", prefixes[handed->kind], pid,
                               handed->fd);
                r = fcntl(handed->fd, F_SETFD, 0) < 0 ? -errno : 0;
        }
        if (r == 0 && setenv(VARIABLE, text, true) < 0)
                r = -errno;
        return r;
}

/* Marks the descriptors close-on-exec again, and unsets the environment variable. Keeps the descriptors
 * open. */
static void handover_undo(const struct handover *handover)
{
        for (size_t i = 0; i < handover->n; i++)
                (void)fcntl(handover->list[i].fd, F_SETFD, FD_CLOEXEC);
        (void)unsetenv(VARIABLE);
}

static void take_fd(struct handover *handover, const char *word)
{
        const char *colon = strchr(word, ':');
        struct handed handed = {.kind = 0};
        struct stat status;
        uint64_t number;

        if (handover->n == HANDOVER_MAX || !colon ||
            parse_unsigned(colon + 1, STDERR_FILENO + 1, INT32_MAX, &number) < 0)
                return;
        handed.fd = (int)number;
        for (size_t i = 0; i < handover->n; i++)
                if (handover->list[i].fd == handed.fd)
                        return;
        if (fstat(handed.fd, &status) < 0 || !S_ISSOCK(status.st_mode) ||
            fcntl(handed.fd, F_SETFD, FD_CLOEXEC) < 0)
                return;
        while (strncmp(word, prefixes[handed.kind], strlen(prefixes[handed.kind])) != 0)
                if (++handed.kind == _HANDED_MAX)
                        return;
        if (handed.kind == HANDED_TEMPLATE)
                handed.pid = (pid_t)strtol(word + strlen(prefixes[HANDED_TEMPLATE]), NULL, 10);
        handover->list[handover->n++] = handed;
}

void handover_take(struct handover *ret)
{
        char *text = getenv(VARIABLE), *rest = text, own[32];
        const char *pid = strsep(&rest, " ");

        /* Ignore descriptors meant for another process whose environment we inherited. */
        snprintf(own, sizeof(own), "pid:%d", (int)getpid());
        *ret = (struct handover){.taken = pid && strcmp(pid, own) == 0};
        for (const char *word; ret->taken && (word = strsep(&rest, " "));)
                take_fd(ret, word);
        (void)unsetenv(VARIABLE);
}

int handover_fd(const struct handover *handover, unsigned kind)
{
        for (size_t i = 0; i < handover->n; i++)
                if (handover->list[i].kind == kind)
                        return handover->list[i].fd;
        return 0;
}

#define PREFLIGHT_USEC (20 * USEC_PER_SEC)

void reexec_end(struct reexec *reexec)
{
        assert(reexec->n_calls == 0);
        children_kill(&reexec->runtime->children, &reexec->child);
        reexec->output = sd_event_source_disable_unref(reexec->output);
        reexec->length = 0;
}

/* Reports to all waiting calls that nothing has changed. Takes ownership of details, a list of lines. */
static void refuse(struct reexec *reexec, const char *why, json_t *details)
{
        _cleanup_json_ json_t *lines = details;
        char reason[640];

        snprintf(reason, sizeof(reason), "re-exec refused; nothing has changed (reason: %s)", why);
        log_error("%s", reason);
        for (size_t i = 0; i < json_array_size(lines); i++)
                log_error("re-exec: %s", json_string_value(json_array_get(lines, i)));
        while (reexec->n_calls > 0)
                call_reply_error(reexec->calls[--reexec->n_calls], CONTROL_REFUSED,
                                 json_pack("{s:o, s:O}", "reason", varlink_text(reason), "details", lines));
}

/* Returns why a re-exec is not possible now, or NULL. */
static const char *why_not(struct reexec *reexec)
{
        if (reexec->runtime->world->shutting_down)
                return "sqmgr is shutting down";
        if (reexec->runtime->end_query)
                return "sqmgr was asked to exit";
        if (reexec->runtime->search)
                return "the search for workers of an earlier sqmgr continues; try again later";
        persist_save_now(reexec->runtime, clock_now(CLOCK_MONOTONIC));
        if (reexec->runtime->save_error < 0)
                return "the state file cannot be written; see the log";
        return NULL;
}

/* Executes the program with this limit of open files. Returns only on failure, with the limit as before:
 * -errno. */
static int execute(const char *program, char *const *argv, const struct rlimit *nofile)
{
        struct rlimit raised;

        if (getrlimit(RLIMIT_NOFILE, &raised) < 0 || setrlimit(RLIMIT_NOFILE, nofile) < 0)
                return -errno;
        log_info("re-exec: handing over to '%s'", program);
        execve(program, argv, environ);
        int r = -errno;
        (void)setrlimit(RLIMIT_NOFILE, &raised);
        return r;
}

/* Returns only on failure: -errno. */
static int replace_image(const struct reexec *reexec)
{
        const struct invocation *invocation = reexec->invocation;
        struct handover handover = {0};

        /* Publish before the connections are listed: writing to a client may drop the client. */
        reexec->publish(reexec->userdata);
        handover.n = api_server_hand(reexec->server, handover.list);
        for (size_t i = 0; i < reexec->n_calls; i++)
                handover.list[handover.n++] =
                        (struct handed){.kind = HANDED_CALLER, .fd = call_fd(reexec->calls[i])};
        handover.n += templates_hand(reexec->runtime, handover.list + handover.n, HANDOVER_MAX - handover.n);
        int r = handover_put(&handover);
        if (r == 0) {
                proc_facts_kill(reexec->runtime->proc_facts);
                order_writer_kill(&reexec->runtime->orders);
                r = execute(invocation->program, invocation->argv, &reexec->runtime->nofile);
        }
        handover_undo(&handover);
        return r;
}

/* Exit status 0 is not enough: programs other than sqmgr return it, too. */
static bool says_ok(const struct reexec *reexec)
{
        static const char ok[] = ": ok\n";
        size_t length = sizeof(ok) - 1;

        return reexec->length >= length && memcmp(reexec->words + reexec->length - length, ok, length) == 0;
}

static void finish(struct reexec *reexec, const siginfo_t *info)
{
        char why[512];

        if (info->si_code == CLD_EXITED && info->si_status == 0 && !says_ok(reexec)) {
                snprintf(why, sizeof(why), "'%s --check-state' does not answer like sqmgr",
                         reexec->invocation->program);
        } else if (info->si_code == CLD_EXITED && info->si_status == 0) {
                const char *still = why_not(reexec);

                reexec->length = 0; /* the output "ok" is no reason for a failure */
                if (still)
                        snprintf(why, sizeof(why), "%s", still);
                else
                        snprintf(why, sizeof(why), "'%s' cannot take over: %s", reexec->invocation->program,
                                 strerrordesc_np(-replace_image(reexec)));
        } else if (info->si_code == CLD_EXITED) {
                snprintf(why, sizeof(why), "'%s --check-state' failed with exit status %d",
                         reexec->invocation->program, info->si_status);
        } else {
                snprintf(why, sizeof(why), "'%s --check-state' was killed by SIG%s",
                         reexec->invocation->program, sigabbrev_np(info->si_status) ?: "?");
        }
        printable_replace(reexec->words, reexec->length, true);
        reexec->words[reexec->length] = '\0';
        refuse(reexec, why, handler_lines(reexec->words));
        reexec_end(reexec);
}

static void read_words(struct reexec *reexec)
{
        int fd = sd_event_source_get_io_fd(reexec->output);
        size_t max = sizeof(reexec->words) - 1;

        for (;;) {
                char scrap[256];
                bool full = reexec->length == max;
                ssize_t n = read(fd, full ? scrap : reexec->words + reexec->length,
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

static int on_output(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                     void *userdata)
{
        read_words(userdata);
        return 0;
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct reexec *reexec = CHILD_OWNER(child, struct reexec);

        if (reexec->output)
                read_words(reexec);
        finish(reexec, info);
}

static int start_preflight(struct reexec *reexec)
{
        const struct program_check check = {
                .program = reexec->invocation->program,
                .config_path = reexec->invocation->config_path,
                .state_path = reexec->runtime->world->settings->state_file,
                .nofile = reexec->runtime->nofile,
        };
        struct program_checking checking;

        int r = program_check_start(&check, &checking);
        if (r < 0)
                return r;
        _cleanup_close_ int output_fd = checking.output_fd;
        reexec->child = (struct child){.pid = checking.pid, .exited = on_exited};
        children_add(&reexec->runtime->children, &reexec->child);
        r = sd_event_add_io(reexec->runtime->event, &reexec->output, output_fd, EPOLLIN, on_output, reexec);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(reexec->output, true);
        TAKE_FD(output_fd);
        return r < 0 ? r : child_limit(&reexec->child, reexec->runtime->event, PREFLIGHT_USEC);
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct reexec *reexec = userdata;
        size_t i = 0;

        while (reexec->calls[i] != call)
                i++;
        reexec->calls[i] = reexec->calls[--reexec->n_calls];
}

void reexec_request(struct reexec *reexec, struct call *call)
{
        const char *why;

        if (call && !call_wants_reply(call)) {
                call_reply(call, json_object(), false);
                call = NULL;
        }
        if (call && reexec->n_calls == ELEMENTSOF(reexec->calls)) {
                handler_refuse(call, "too many callers already wait for a re-exec; try again later");
                return;
        }
        if (call) {
                reexec->calls[reexec->n_calls++] = call;
                call_keep(call, on_cancelled, reexec);
        }
        if (reexec->child.pid > 0)
                return;
        why = why_not(reexec);
        if (!why) {
                int r = start_preflight(reexec);

                why = r < 0 ? strerrordesc_np(-r) : NULL;
        }
        if (!why)
                return;
        refuse(reexec, why, json_array());
        reexec_end(reexec);
}
