/* SPDX-License-Identifier: MIT */
/* Template processes; see the header. */
#include "daemon/workers/templates.h"
#include "base/fd.h"
#include "base/parse.h"
#include "continuity/state.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/exit_log.h"
#include "daemon/workers/process.h"
#include "daemon/workers/start_record.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/signal.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

int template_socket_pair(int *ret_ours, int *ret_theirs)
{
        int pair[2], yes = 1;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0 ||
            setsockopt(ours, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
                return -errno;
        *ret_ours = TAKE_FD(ours);
        *ret_theirs = TAKE_FD(theirs);
        return 0;
}

int template_socket_receive(int fd, struct template_message *ret)
{
        /* Without space for descriptors, the kernel drops them. Receiving one is unsafe: close() of a file on
         * FUSE could wait for its server. */
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(struct ucred))];
        } control;
        struct iovec data = {.iov_base = ret->text, .iov_len = TEMPLATE_MESSAGE_MAX};
        struct msghdr header = {
                .msg_iov = &data,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        struct ucred sender = {0};

        ssize_t n = TEMP_FAILURE_RETRY(recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
        /* A peer that closes with messages unread resets the connection. */
        if (n < 0)
                return errno == ECONNRESET ? 0 : -errno;
        for (struct cmsghdr *item = CMSG_FIRSTHDR(&header); item; item = CMSG_NXTHDR(&header, item)) {
                if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_CREDENTIALS &&
                    item->cmsg_len == CMSG_LEN(sizeof(sender)))
                        memcpy(&sender, CMSG_DATA(item), sizeof(sender));
        }
        if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                return -EBADMSG;
        if (n == 0)
                return 0;
        ret->length = (size_t)n;
        ret->text[n] = '\0';
        ret->pid = sender.pid;
        return 1;
}

int template_socket_fork(int fd, const struct fleet_settings *fleet, unsigned index, uint64_t generation,
                         usec_t started_at, int worker_fd)
{
        const char *log = log_of_workers(fleet->log);
        char text[TEMPLATE_MESSAGE_MAX];
        int n = snprintf(text, sizeof(text),
                         "fork%cSQMGR_WORKER=%s%cSQMGR_INDEX=%u%cSQMGR_GENERATION=%ju%cSQMGR_START=%ju", '\0',
                         WORKER_ID_OF(fleet->name, index), '\0', index, '\0', (uintmax_t)generation, '\0',
                         (uintmax_t)started_at);

        if (n > 0 && strcmp(log, "inherit") != 0)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%clog=%s", '\0', log);
        if (n < 0 || (size_t)n >= sizeof(text))
                return -ENAMETOOLONG;
        return fd_send(fd, text, (size_t)n, worker_fd, MSG_DONTWAIT);
}

int template_socket_go(int fd)
{
        return fd_send(fd, "go", strlen("go"), -1, MSG_DONTWAIT);
}

/* Returns the word at *at and advances *at, which starts at 0; NULL: no more words. */
static const char *message_word(const struct template_message *message, size_t *at)
{
        const char *word = message->text + *at;

        if (*at >= message->length)
                return NULL;
        *at += strlen(word) + 1;
        return word;
}

bool template_message_is(const struct template_message *message, const char *word)
{
        size_t at = 0;
        const char *first = message_word(message, &at);

        return first && strcmp(first, word) == 0;
}

static const char *value_of(const char *word, const char *name)
{
        size_t length = strlen(name);

        return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Appends as much as fits. */
static void append(char *text, size_t size, const char *more)
{
        size_t length = strlen(text);

        snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", more);
}

bool template_message_ready(const struct template_message *message, struct template_ready *ret)
{
        char unsafe[256] = "", threads[256] = "";
        const char *word, *value;
        bool known = false;
        size_t at = 0;

        *ret = (struct template_ready){0};
        if (!template_message_is(message, "ready"))
                return false;
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "version")))
                        known = strcmp(value, "1") == 0;
                else if ((value = value_of(word, "unsafe")))
                        append(unsafe, sizeof(unsafe), value);
                else if ((value = value_of(word, "thread")))
                        append(threads, sizeof(threads), value);
        }
        quoted_set(&ret->unsafe, unsafe);
        quoted_set(&ret->threads, threads);
        return known;
}

bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text)
{
        const char *word, *value;
        uint64_t number = 0;
        size_t at = 0;

        *ret_errno = 0;
        quoted_set(ret_text, NULL);
        if (!template_message_is(message, "error"))
                return false;
        (void)message_word(message, &at);
        while ((word = message_word(message, &at))) {
                if ((value = value_of(word, "errno")) && parse_unsigned(value, 1, INT16_MAX, &number) == 0)
                        *ret_errno = (int)number;
                else
                        quoted_set(ret_text, word);
        }
        return true;
}

#define SIBLING_SCAN_USEC USEC_PER_SEC

struct template_process {
        struct runtime *runtime;
        struct template *template;
        struct child child; /* the command, if our child; else pid 0 */
        struct proc *main;  /* the command */
        struct proc
                /* The process that forks, if not main; else NULL, or not known yet. */
                *serving;
        sd_event_source *main_exit;
        sd_event_source *serving_exit;
        int socket; /* -1: closed */
        sd_event_source *input;
        bool awaits_start; /* the command waits for permission to start */
        int report_fd;     /* for the report of the launch; -1: none */
        struct launch_report report;
        struct exit_status exit;
        bool exit_waits; /* all processes have exited; the proc reader reads the log */
        bool boot_waits; /* the proc reader reads whether it has started to work */

        int worker_socket; /* our end of the pending fork's socket; -1: none */
        sd_event_source *worker_input;
        pid_t hello_pid;      /* forked process that is not our child yet; 0: none */
        uint64_t asked_ticks; /* time of the fork request in the unit of field 22 of /proc/PID/stat */
};

static void forget_fork(struct template_process *process)
{
        process->worker_input = sd_event_source_disable_unref(process->worker_input);
        process->worker_socket = close_fd(process->worker_socket);
        process->hello_pid = 0;
}

static void hang_up(struct template_process *process)
{
        process->input = sd_event_source_disable_unref(process->input);
        process->socket = close_fd(process->socket);
        forget_fork(process);
}

static struct template_process *template_process_free(struct template_process *process)
{
        if (!process)
                return NULL;
        hang_up(process);
        children_remove(&process->runtime->children, &process->child);
        sd_event_source_disable_unref(process->main_exit);
        sd_event_source_disable_unref(process->serving_exit);
        proc_close(process->main);
        proc_close(process->serving);
        close_fd(process->report_fd);
        launch_report_clear(&process->report);
        free(process);
        return NULL;
}

DEFINE_CLEANUP(struct template_process *, template_process_free)
#define _cleanup_template_process_ _cleanup_(template_process_free_pointer)

/* Returns the process that forks or will fork. */
static struct proc *serving(const struct template_process *process)
{
        return process->serving ?: process->main;
}

/* Handles the exit of the last process of the template. */
static void template_process_ended(struct template_process *process, struct exit_status exit)
{
        struct runtime *runtime = process->runtime;
        struct template *template = process->template;
        const struct exit_log_source whose = {
                .fleet = template->fleet,
                .main = process->main,
                .pids = {template->pid, template->serving_pid},
                .since = template->started_at,
        };
        struct quoted lines = {0};

        if (process->report_fd >= 0)
                (void)launch_report_read(process->report_fd, &process->report);
        process->exit = exit;
        process->exit_waits = exit_log_add(runtime, &whose, &process->report,
                                           template->state == TEMPLATE_ENDING, &lines, &exit) == -EINPROGRESS;
        if (process->exit_waits) {
                process->main_exit = sd_event_source_disable_unref(process->main_exit);
                process->serving_exit = sd_event_source_disable_unref(process->serving_exit);
                return;
        }
        template->process = NULL;
        template_observe_exit(template, &exit, runtime->preload_script, clock_now(CLOCK_MONOTONIC));
        template_process_free(process);
        wakeup_changed(runtime->wakeup);
}

static int on_serving_exit(sd_event_source *source, int fd, uint32_t events, void *userdata);

/* The command has exited: the serving process, reparented to us, becomes the template. */
static bool promote(struct template_process *process)
{
        if (!process->serving || proc_has_exited(process->serving))
                return false;
        proc_close(process->main);
        process->main = TAKE_PTR(process->serving);
        sd_event_source_disable_unref(process->main_exit);
        process->main_exit = TAKE_PTR(process->serving_exit);
        template_observe_promoted(process->template);
        wakeup_changed(process->runtime->wakeup);
        return true;
}

static void main_exited(struct template_process *process, const struct exit_status *exit)
{
        if (!promote(process))
                template_process_ended(process, *exit);
}

static void on_child_exited(struct child *child, const siginfo_t *info)
{
        struct template_process *process = CHILD_OWNER(child, struct template_process);
        const struct exit_status exit = children_status(info);

        main_exited(process, &exit);
}

static int on_main_exit(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                        void *userdata)
{
        struct template_process *process = userdata;

        if (process->child.pid == 0 || !children_reap(&process->runtime->children, process->child.pid))
                main_exited(process, &(struct exit_status){.known = false});
        return 0;
}

/* The serving process has exited: what remains of the command is killed. */
static int on_serving_exit(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                           void *userdata)
{
        struct template_process *process = userdata;

        /* Promoted meanwhile. */
        if (!process->serving)
                return on_main_exit(source, fd, events, userdata);
        process->serving_exit = sd_event_source_disable_unref(process->serving_exit);
        process->serving = proc_close(process->serving);
        hang_up(process);
        (void)signal_process(process->main, SIGKILL);
        return 0;
}

/* Closes the connection to a template that violates the protocol, and kills it if it serves. A loading
 * template may turn out to be a worker and is not killed. */
static void reject_template(struct template_process *process, const char *how)
{
        const struct template *template = process->template;

        log_warning("template of fleet '%s' (pid %d) %s (reason: %s)", template->fleet->settings->name,
                    (int)template_pid(template),
                    template->serving_pid != 0 ? "was killed" : "is ignored from now on", how);
        hang_up(process);
        if (template->serving_pid == 0)
                return;
        (void)signal_process(serving(process), SIGKILL);
        (void)signal_process(process->main, SIGKILL);
}

static void poll_memory(struct template_process *process)
{
        uint64_t bytes;

        if (proc_rss_bytes(serving(process), &bytes) == 0)
                template_observe_memory(process->template, bytes);
}

/* Attaches the process that reports ready: the command, or a descendant. */
static int attach_serving(struct template_process *process, const struct template_message *message)
{
        const struct template *template = process->template;
        _cleanup_proc_ struct proc *proc = NULL;

        if (message->pid <= 0)
                return -EPERM;
        if (message->pid == template->pid)
                return 0;
        int r = proc_open(message->pid, &proc);
        if (r >= 0)
                r = proc_has_ancestor(message->pid, template->pid, template->pid_start);
        if (r <= 0)
                return r < 0 ? r : -EPERM;
        r = sd_event_add_io(process->runtime->event, &process->serving_exit, proc_pidfd(proc), EPOLLIN,
                            on_serving_exit, process);
        if (r >= 0)
                process->serving = TAKE_PTR(proc);
        return r;
}

static void handle_message(struct template_process *process, const struct template_message *message)
{
        struct template *template = process->template;
        struct template_ready ready;

        if (!template_message_ready(message, &ready) || template->serving_pid != 0) {
                reject_template(process, "unexpected message");
                return;
        }
        int r = attach_serving(process, message);
        if (r < 0) {
                reject_template(process,
                                r == -EPERM ? "the process that reports ready is not part of the template"
                                            : strerrordesc_np(-r));
                return;
        }
        if (!quoted_is_empty(&ready.threads))
                log_quoted(LOG_INFO, &ready.threads,
                           "fleet '%s': the application leaves threads running in the template; workers do "
                           "not have them",
                           template->fleet->settings->name);
        template_observe_ready(template, proc_pid(serving(process)), proc_start_time(serving(process)),
                               quoted_is_empty(&ready.unsafe) ? NULL : &ready.unsafe,
                               clock_now(CLOCK_MONOTONIC));
        poll_memory(process);
        wakeup_changed(process->runtime->wakeup);
}

static int on_template_message(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                               void *userdata)
{
        struct template_process *process = userdata;
        struct template_message message = {.length = 0};

        int r = template_socket_receive(fd, &message);
        if (r == -EAGAIN)
                return 0;
        if (r > 0) {
                handle_message(process, &message);
                return 0;
        }
        /* A loading command may have closed the socket it was given; it may still work. */
        if (r == 0 && process->template->serving_pid == 0)
                process->input = sd_event_source_disable_unref(process->input);
        else
                reject_template(process, r == 0 ? "connection closed" : "invalid message from the template");
        return 0;
}

/* said: what the template says of it; NULL: nothing. */
static void fork_failed(struct template_process *process, int error, const char *why,
                        const struct quoted *said)
{
        forget_fork(process);
        template_observe_fork_failed(process->template, error, why, said, clock_now(CLOCK_MONOTONIC));
        wakeup_changed(process->runtime->wakeup);
}

/* Attaches a fork that said hello, once its parent has exited and it is our child. */
static void attach_forked_worker(struct template_process *process, usec_t now)
{
        struct runtime *runtime = process->runtime;
        struct template *template = process->template;
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;

        int r = proc_open(process->hello_pid, &proc);
        if (r >= 0)
                r = proc_place(proc, &place);
        if (r < 0) {
                fork_failed(process, -r, r == -ESRCH ? "the fork exited at once" : strerrordesc_np(-r), NULL);
                return;
        }
        /* Reject a process that started before the request. The fork, or any process that got its pid since,
         * started later. */
        if (proc_start_time(proc) + 1 < process->asked_ticks ||
            world_has_process(runtime->world, process->hello_pid, 0)) {
                reject_template(process, "the process that reports as forked is not a fork of the template");
                return;
        }
        if (place.parent != getpid())
                return;
        int socket = TAKE_FD(process->worker_socket);
        struct worker *worker =
                template_observe_hello(template, process->hello_pid, proc_start_time(proc), now);
        forget_fork(process);
        wakeup_changed(runtime->wakeup);
        if (!worker) {
                close_fd(socket);
                template_observe_fork_failed(template, ENOMEM, "out of memory", NULL, now);
                return;
        }
        r = attach_forked(runtime, worker, TAKE_PTR(proc), socket);
        if (r >= 0)
                return;
        log_error("cannot monitor the new worker %s: %s; the worker is killed", WORKER_ID(worker),
                  strerrordesc_np(-r));
        (void)signal_child(worker->process.pid, SIGKILL);
        observe_unwatched(worker, -r, now);
}

static int on_worker_message(sd_event_source *source _unused_, int fd, uint32_t events _unused_,
                             void *userdata)
{
        struct template_process *process = userdata;
        struct template_message message = {.length = 0};
        struct quoted said;
        int error;

        int r = template_socket_receive(fd, &message);
        if (r == -EAGAIN)
                return 0;
        if (r == 0) {
                fork_failed(process, 0, "the fork exited before it reported", NULL);
        } else if (r > 0 && process->hello_pid == 0 && message.pid > 0 &&
                   template_message_is(&message, "hello")) {
                process->hello_pid = message.pid;
                attach_forked_worker(process, clock_now(CLOCK_MONOTONIC));
        } else if (r > 0 && template_message_error(&message, &error, &said)) {
                fork_failed(process, error, error > 0 ? strerrordesc_np(error) : "the template failed",
                            &said);
        } else {
                reject_template(process, "invalid message from a fork");
        }
        return 0;
}

/* Takes ownership of main in all cases. Returns 0 with *ret, to be owned by the template, or -errno. */
static int template_process_new(struct runtime *runtime, struct proc *main, struct template_process **ret)
{
        struct template_process *process = calloc(1, sizeof(*process));

        if (!process) {
                proc_close(main);
                return -ENOMEM;
        }
        *process = (struct template_process){
                .runtime = runtime,
                .main = main,
                .socket = -1,
                .report_fd = -1,
                .report = LAUNCH_REPORT_INIT,
                .worker_socket = -1,
        };
        int r = sd_event_add_io(runtime->event, &process->main_exit, proc_pidfd(main), EPOLLIN, on_main_exit,
                                process);
        if (r < 0)
                template_process_free(process);
        else
                *ret = process;
        return r;
}

/* Takes ownership of the socket in all cases. */
static int listen_to(struct template_process *process, int socket)
{
        process->socket = socket;
        return sd_event_add_io(process->runtime->event, &process->input, socket, EPOLLIN, on_template_message,
                               process);
}

static int launch(struct runtime *runtime, struct fleet *fleet, usec_t now, struct template_process **ret)
{
        _cleanup_template_process_ struct template_process *process = NULL;
        _cleanup_close_ int ours = -1, theirs = -1, report_fd = -1;
        struct proc *proc;
        struct launched launched;

        int r = template_socket_pair(&ours, &theirs);
        if (r < 0)
                return r;
        const struct launch_request request = {
                .fleet = fleet->settings,
                .generation = fleet->generation,
                .started_at = now,
                .instance = runtime->instance,
                .nofile = runtime->nofile,
                .base_environment = environ,
                .outcomes_script = runtime->outcomes_script,
                .kind = LAUNCH_TEMPLATE,
                .template_fd = theirs,
                .template_script = runtime->preload_script,
        };
        r = launch_start(&request, &launched);
        if (r < 0)
                return r;
        report_fd = launched.report_fd;
        r = proc_open(launched.pid, &proc);
        if (r >= 0)
                r = template_process_new(runtime, proc, &process);
        if (r >= 0)
                r = listen_to(process, TAKE_FD(ours));
        if (r < 0) {
                (void)signal_child(launched.pid, SIGKILL);
                return r;
        }
        process->awaits_start = true;
        process->report_fd = TAKE_FD(report_fd);
        process->child = (struct child){.pid = launched.pid, .exited = on_child_exited};
        children_add(&runtime->children, &process->child);
        *ret = TAKE_PTR(process);
        return 0;
}

void templates_load(struct runtime *runtime, struct fleet *fleet, usec_t now)
{
        struct template_process *process = NULL;

        int r = launch(runtime, fleet, now, &process);
        if (r < 0) {
                template_observe_start_failed(fleet, -r, now);
                return;
        }
        process->template =
                template_observe_started(fleet, proc_pid(process->main), proc_start_time(process->main), now);
        process->template->process = process;
}

void templates_fork(const struct action *action, usec_t now)
{
        struct template *template = action->template;
        struct template_process *process = template->process;
        _cleanup_close_ int ours = -1, theirs = -1;

        usec_t tick_usec = USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK);
        process->asked_ticks = clock_now(CLOCK_BOOTTIME) / tick_usec;
        int r = process->socket < 0 ? -EPIPE : template_socket_pair(&ours, &theirs);
        if (r >= 0)
                r = sd_event_add_io(process->runtime->event, &process->worker_input, ours, EPOLLIN,
                                    on_worker_message, process);
        if (r >= 0)
                r = template_socket_fork(process->socket, template->fleet->settings, action->index,
                                         template->generation, now, theirs);
        if (r < 0)
                process->worker_input = sd_event_source_disable_unref(process->worker_input);
        else
                process->worker_socket = TAKE_FD(ours);
        template_observe_fork_asked(template, action->index, action->reason, r < 0 ? -r : 0, now);
}

struct boot_poll {
        struct proc_facts *facts;
        const struct framework *framework;
        bool found;
        int unknown; /* -errno of a process that was not read yet, or cannot be; 0: none */
};

static int poll_each(pid_t pid, void *userdata)
{
        struct boot_poll *boot = userdata;
        _cleanup_proc_ struct proc *proc = NULL;

        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_evidence_has_booted(boot->facts, proc, boot->framework);
        if (proc_facts_is_unknown(r)) {
                boot->unknown = boot->unknown == -EINPROGRESS ? -EINPROGRESS : r;
                return 0;
        }
        boot->found |= r > 0;
        return is_shortage(r) ? r : r > 0;
}

/* Checks whether a loading template has started to work: then it is a worker and no longer a template.
 * Returns true if the template may be ended. */
static bool poll_loading(struct template_process *process, usec_t now)
{
        struct template *template = process->template;
        struct runtime *runtime = process->runtime;
        struct boot_poll boot = {
                .facts = runtime->proc_facts,
                .framework = framework_of(template->fleet->settings->traits),
        };

        /* If the tree cannot be read, nothing is known. */
        int r = proc_tree_each(template->pid, poll_each, &boot);
        process->boot_waits = boot.unknown == -EINPROGRESS && !boot.found;
        if (r < 0 || (boot.unknown < 0 && !boot.found))
                return false;
        struct worker *worker = template_observe_booted(template, boot.found, now);
        if (!worker)
                return !boot.found;
        template->process = NULL;
        wakeup_changed(runtime->wakeup);
        /* The loop accepts only one source per pidfd. */
        process->main_exit = sd_event_source_disable_unref(process->main_exit);
        r = attach_started(runtime, worker, TAKE_PTR(process->main), TAKE_FD(process->report_fd));
        if (r < 0)
                log_error("cannot monitor worker %s: %s", WORKER_ID(worker), strerrordesc_np(-r));
        if (worker->handle)
                worker->handle->record = start_record_add(runtime, worker);
        template_process_free(process);
        return false;
}

void templates_end(struct template *template, usec_t now)
{
        struct template_process *process = template->process;

        /* The processes were reaped: other processes may have the pids. */
        if (process->exit_waits)
                return;
        if (template->serving_pid == 0) {
                if (!poll_loading(process, now))
                        return;
                hang_up(process);
                (void)signal_group(process->main, SIGTERM);
                (void)signal_group(process->main, SIGCONT);
        } else {
                hang_up(process);
                (void)signal_process(serving(process), SIGKILL);
        }
        template_observe_ended(template, now);
}

/* Kills all processes of a loading template. Other processes of a serving template's command may serve its
 * workers. */
void templates_kill(struct template *template, usec_t now)
{
        if (template->process->exit_waits)
                return;
        if (template->serving_pid == 0)
                (void)signal_group(template->process->main, SIGKILL);
        (void)signal_process(template->process->main, SIGKILL);
        template_observe_killed(template, now);
}

/* Heartbeats under the fork's pid before it continues belong to another process. Detecting that takes a scan
 * of all identities, awaited for a limited time. */
static bool siblings_are_seen(const struct worker *worker, usec_t now)
{
        const struct process *process = worker->handle;

        return !worker->fleet->redis_up || heartbeats_scanned_at(process->slot) >= worker->state_at ||
               now >= usec_add(worker->state_at, SIBLING_SCAN_USEC);
}

void templates_go(struct worker *worker, usec_t now)
{
        struct process *process = worker->handle;

        if (!siblings_are_seen(worker, now)) {
                heartbeats_want(process->slot, POLL_HEARTBEAT);
                (void)heartbeats_poll(worker->fleet->link->heartbeats);
                return;
        }
        ledger_go(&process->runtime->ledger.ledger, process->record);
        /* If the fork has ended meanwhile, its exit reports that. */
        (void)template_socket_go(process->go_fd);
        process->go_fd = close_fd(process->go_fd);
        template_observe_go(worker, now);
}

static void poll_template(struct template_process *process, bool fast, usec_t now)
{
        struct template *template = process->template;
        struct proc_place place;

        if (template_forks(template)) {
                bool held = proc_place(serving(process), &place) >= 0 &&
                            (place.state == 'T' || place.state == 't' || place.state == 'D');

                template_observe_fork_waits(template, held, now);
        }
        if (!fast)
                poll_memory(process);
        if (process->hello_pid != 0)
                attach_forked_worker(process, now);
        else if (!fast && template->state == TEMPLATE_LOADING && template->serving_pid == 0)
                (void)poll_loading(process, now);
}

void templates_poll(struct runtime *runtime, bool fast, usec_t now)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        if (template_is_alive(template) && template->process &&
                            !template->process->exit_waits)
                                poll_template(template->process, fast, now);
}

void templates_resume(struct runtime *runtime, usec_t now)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_TEMPLATE(fleet, template) {
                        struct template_process *process = template->process;

                        if (process && process->exit_waits)
                                template_process_ended(process, process->exit);
                        else if (process && process->boot_waits && template->state == TEMPLATE_LOADING &&
                                 template->serving_pid == 0)
                                (void)poll_loading(process, now);
                }
}

void templates_begin(const struct runtime *runtime)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_TEMPLATE(fleet, template) {
                        struct template_process *process = template->process;

                        if (process && process->awaits_start)
                                (void)template_socket_go(process->socket);
                        if (process)
                                process->awaits_start = false;
                }
}

static int take_handed(struct runtime *runtime, pid_t pid)
{
        for (size_t i = 0; i < runtime->n_handed; i++)
                if (runtime->handed[i].kind == HANDED_TEMPLATE && runtime->handed[i].pid == pid)
                        return TAKE_FD(runtime->handed[i].fd);
        return -1;
}

static int adopt(struct runtime *runtime, struct fleet *fleet, const struct template *known)
{
        _cleanup_template_process_ struct template_process *process = NULL;
        _cleanup_proc_ struct proc *main = NULL, *served = NULL;
        _cleanup_close_ int socket = take_handed(runtime, known->pid);

        int r = proc_find(known->pid, known->pid_start, &main);
        if (r >= 0)
                r = proc_find(known->serving_pid, known->serving_start, &served);
        if (r < 0)
                return r;
        if (!main && !served)
                return 0;
        /* The command was only a wrapper of the serving process. */
        if (main && !served && known->serving_pid != 0)
                (void)signal_process(main, SIGKILL);
        bool promoted = !main;
        r = template_process_new(runtime, promoted ? TAKE_PTR(served) : TAKE_PTR(main), &process);
        if (r >= 0 && served && known->serving_pid != known->pid)
                r = sd_event_add_io(runtime->event, &process->serving_exit, proc_pidfd(served), EPOLLIN,
                                    on_serving_exit, process);
        if (r >= 0 && process->serving_exit)
                process->serving = TAKE_PTR(served);
        bool connected = socket >= 0;
        if (r >= 0 && connected)
                r = listen_to(process, TAKE_FD(socket));
        if (r < 0)
                return r;
        process->template = template_observe_adopted(fleet, known, connected, promoted ? 0 : known->pid_start,
                                                     promoted || process->serving ? known->serving_start : 0);
        if (!process->template)
                return 0;
        process->template->process = process;
        /* After a re-exec, the process is still our child. */
        process->child = (struct child){.pid = proc_pid(process->main), .exited = on_child_exited};
        children_add(&runtime->children, &process->child);
        TAKE_PTR(process);
        return 0;
}

int templates_adopt(struct runtime *runtime, struct fleet *fleet, const struct state_fleet *saved)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < TEMPLATES_MAX; i++)
                if (template_is_alive(&saved->templates[i]))
                        r = adopt(runtime, fleet, &saved->templates[i]);
        return r;
}

size_t templates_hand(const struct runtime *runtime, struct handed *ret, size_t max)
{
        size_t n = 0;

        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        if (n < max && template->process && template->process->socket >= 0)
                                ret[n++] = (struct handed){.kind = HANDED_TEMPLATE,
                                                           .fd = template->process->socket,
                                                           .pid = template->pid};
        return n;
}

void templates_forget(struct runtime *runtime)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        template->process = template_process_free(template->process);
        for (size_t i = 0; i < runtime->n_handed; i++)
                if (runtime->handed[i].kind == HANDED_TEMPLATE)
                        close_fd(runtime->handed[i].fd);
}
