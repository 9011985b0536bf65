/* SPDX-License-Identifier: MIT */
/* The plan of a start; see the header. In a block, each value is the number of its item, and a text that ends
 * with a NUL. */
#include "io/launch_plan.h"
#include "base/environment.h"
#include "base/fd.h"
#include "io/file_access.h"
#include "io/marker.h"
#include "settings/redis_url.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum kind { NUMBER, TEXT, LIST };

#define ITEM(kind, member)                                                                                   \
        {                                                                                                    \
                kind, offsetof(struct launch_plan, member), sizeof(((struct launch_plan *)NULL)->member)     \
        }

static const struct item {
        enum kind kind;
        size_t offset, size;
} items[] = {
        ITEM(NUMBER, kind),
        ITEM(NUMBER, journal_required),
        ITEM(NUMBER, nofile.rlim_cur),
        ITEM(NUMBER, nofile.rlim_max),
        ITEM(NUMBER, supervised),
        ITEM(NUMBER, parent),
        ITEM(NUMBER, ledger_inode),
        ITEM(NUMBER, after_timeout),
        ITEM(NUMBER, shim_separator),
        ITEM(NUMBER, identity),
        ITEM(NUMBER, fleet.namespaced),
        ITEM(NUMBER, fleet.boot_timeout),
        ITEM(TEXT, identifier),
        ITEM(TEXT, marker),
        ITEM(TEXT, ledger_path),
        ITEM(TEXT, status_parent),
        ITEM(TEXT, release),
        ITEM(TEXT, outcomes_script),
        ITEM(TEXT, redis_url),
        ITEM(TEXT, template_script),
        ITEM(TEXT, shim_path),
        ITEM(TEXT, shim_variable),
        ITEM(TEXT, shim_value),
        ITEM(TEXT, fleet.name),
        ITEM(TEXT, fleet.directory),
        ITEM(TEXT, fleet.log),
        ITEM(TEXT, fleet.environment_file),
        ITEM(LIST, fleet.argv),
        ITEM(LIST, fleet.before_start_argv),
        ITEM(LIST, fleet.after_exit_argv),
        ITEM(LIST, environment),
};

/* Adds a value at the position *at, or only counts its bytes if block is NULL. */
static void put(char *block, size_t *at, const struct item *item, const char *value)
{
        size_t size = strlen(value) + 1;

        if (block) {
                block[*at] = (char)(item - items);
                memcpy(block + *at + 1, value, size);
        }
        *at += 1 + size;
}

static size_t put_all(const struct launch_plan *plan, char *block)
{
        size_t at = 0;

        FOREACH_ELEMENT(item, items) {
                const void *member = (const char *)plan + item->offset;
                uint64_t number = 0;
                char digits[24];

                if (item->kind == NUMBER) {
                        memcpy(&number, member, item->size);
                        snprintf(digits, sizeof(digits), "%" PRIx64, number);
                        put(block, &at, item, digits);
                } else if (item->kind == TEXT && *(char *const *)member) {
                        put(block, &at, item, *(char *const *)member);
                }
                for (char **p = item->kind == LIST ? *(char **const *)member : NULL; p && *p; p++)
                        put(block, &at, item, *p);
        }
        return at;
}

size_t launch_plan_encode(const struct launch_plan *plan, char **ret)
{
        size_t size = put_all(plan, NULL);

        *ret = malloc(size);
        return *ret ? put_all(plan, *ret) : 0;
}

int launch_plan_decode(char *block, size_t size, struct launch_plan *ret, char ***ret_pointers)
{
        size_t n = 2 * ELEMENTSOF(items);

        *ret = (struct launch_plan){0};
        for (const char *at = block; at < block + size; at += strlen(at + 1) + 2)
                n++;
        char **pointer = *ret_pointers = calloc(n, sizeof(*pointer));
        if (!pointer)
                return -ENOMEM;
        for (char *at = block; at < block + size; at += strlen(at + 1) + 2) {
                if ((unsigned char)*at >= ELEMENTSOF(items))
                        return -EBADMSG;
                const struct item *item = &items[(unsigned char)*at];
                void *member = (char *)ret + item->offset;
                if (item->kind == NUMBER) {
                        uint64_t number = strtoull(at + 1, NULL, 16);
                        memcpy(member, &number, item->size);
                } else if (item->kind == TEXT) {
                        *(char **)member = at + 1;
                } else {
                        /* Behind the NULL of the list before, and a free place. */
                        if (!*(char ***)member)
                                *(char ***)member = pointer += 2;
                        *pointer++ = at + 1;
                }
        }
        return 0;
}

bool launch_plan_needs_program(const struct launch_plan *plan)
{
        const struct fleet_settings *fleet = &plan->fleet;

        return (plan->kind != LAUNCH_WORKER && plan->kind < LAUNCH_ALERT) || plan->status_parent ||
               fleet->environment_file || fleet->before_start_argv;
}

/* No part of a URL leaves but the number of the database. REDIS_PROVIDER names the variable for Sidekiq. */
void launch_plan_compare_redis(const struct launch_plan *plan, const struct environment *environment,
                               int report_fd)
{
        const char *provider = environment_get(environment, "REDIS_PROVIDER");
        const char *url = environment_get(environment, provider && *provider ? provider : "REDIS_URL");

        if (!url || !plan->redis_url)
                return;
        struct redis_comparison redis = redis_url_compare(url, plan->redis_url);
        const struct launch_message message = {.kind = LAUNCH_MESSAGE_REDIS,
                                               .redis_difference = redis.difference,
                                               .redis_db = redis.db,
                                               .redis_other_db = redis.other_db};

        if (redis.difference != REDIS_SAME)
                (void)launch_send(report_fd, &message, -1);
}

/* Adds `-rSCRIPT` to RUBYOPT. Ruby loads the scripts in their order. */
static int add_ruby(struct environment *environment, const char *script, bool first)
{
        char option[PATH_MAX + 2];

        snprintf(option, sizeof(option), "-r%s", script);
        return environment_extend(environment, "RUBYOPT", option, ' ', first);
}

/* Node.js does not start with a file that it cannot read, so such a file is left out. */
static int add_shim(const struct launch_plan *plan, struct environment *environment, int report_fd)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_SHIM};

        if (access(plan->shim_path, R_OK) < 0)
                message.shim_error = (uint32_t)errno;
        else if (strpbrk(plan->shim_path, " :\"\\"))
                message.shim_error = EINVAL;
        else
                return environment_extend(environment, plan->shim_variable, plan->shim_value,
                                          plan->shim_separator, false);
        (void)launch_send(report_fd, &message, -1);
        return 0;
}

int launch_plan_add_scripts(const struct launch_plan *plan, struct environment *environment, int report_fd)
{
        char number[16];
        int r = 0;

        if (plan->kind != LAUNCH_REHEARSAL && plan->outcomes_script &&
            access(plan->outcomes_script, R_OK) == 0)
                r = add_ruby(environment, plan->outcomes_script, false);
        if (r == 0 && plan->shim_path)
                r = add_shim(plan, environment, report_fd);
        if (r < 0 || !plan->template_script)
                return r;
        snprintf(number, sizeof(number), "%d", LAUNCH_TEMPLATE_FD);
        r = add_ruby(environment, plan->template_script, true);
        return r < 0 ? r : environment_set(environment, "SQMGR_TEMPLATE", number);
}

int launch_send(int report_fd, const struct launch_message *message, int fd)
{
        return fd_send(report_fd, message, sizeof(*message), fd, 0);
}

/* Appends text where it fits. */
static char *append(char *to, const char *end, const char *text)
{
        while (*text != '\0' && to < end)
                *to++ = *text++;
        *to = '\0';
        return to;
}

void launch_fail_parts(const char *const *parts)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_ERROR};
        char *to = message.text;

        for (; *parts; parts++)
                to = append(to, message.text + sizeof(message.text) - 2, *parts);
        /* Without a report, the sentence belongs to the output. */
        if (launch_send(LAUNCH_REPORT_FD, &message, -1) == -EBADF) {
                *to++ = '\n';
                (void)fd_write_all(STDERR_FILENO, message.text, (size_t)(to - message.text));
        }
        _exit(127);
}

void launch_enter_directory(const struct launch_plan *plan)
{
        if (plan->fleet.directory && chdir(plan->fleet.directory) < 0)
                launch_fail("cannot change to directory '", plan->fleet.directory,
                            "': ", strerrordesc_np(errno));
}

/* Sends the log to the parent, which reads its tail back. As O_PATH: closing a descriptor that was opened for
 * reading can wait for a file server, and the parent must never wait. */
static void send_log(int fd)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_LOG};
        struct stat st;
        char path[] = "/proc/self/fd/N";

        /* Few descriptors are open here. */
        if (fd > 9 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        path[sizeof(path) - 2] = (char)('0' + fd);
        _cleanup_close_ int held = open(path, O_PATH | O_CLOEXEC);
        if (held < 0)
                return;
        message.log_start_bytes = (uint64_t)st.st_size;
        (void)launch_send(LAUNCH_REPORT_FD, &message, held);
}

/* Like sd_journal_stream_fd(), which allocates. A journal stream has no custom fields: the identifier names
 * the worker. Returns a descriptor or -errno. */
static int open_journal(const char *identifier)
{
        static const struct sockaddr_un address = {AF_UNIX, "/run/systemd/journal/stdout"};
        /* The unit: none; LOG_INFO; with prefixes of levels; to syslog, kmsg and the console: no. */
        static const char rest[] = "\n\n6\n1\n0\n0\n0\n";
        char header[128];
        int bytes = 8 << 20;

        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        (void)shutdown(fd, SHUT_RD);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
        const char *end = append(append(header, header + sizeof(header) - 1, identifier),
                                 header + sizeof(header) - 1, rest);
        int r = fd_write_all(fd, header, (size_t)(end - header));
        return r < 0 ? r : TAKE_FD(fd);
}

static int open_log(const char *log)
{
        int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
        char remedy[FILE_REMEDY_MAX];
        int fd = open(log, flags | O_RDWR, 0640);

        if (fd >= 0)
                send_log(fd);
        else if (errno == EACCES)
                fd = open(log, flags | O_WRONLY, 0640);
        if (fd < 0) {
                file_access_log_remedy(errno, remedy);
                launch_fail("cannot open log '", log, "': ", strerrordesc_np(errno), remedy);
        }
        return fd;
}

static void open_output(const struct launch_plan *plan)
{
        int fd;

        if (strcmp(plan->fleet.log, "inherit") == 0)
                return;
        if (strcmp(plan->fleet.log, "journal") == 0) {
                fd = open_journal(plan->identifier);
                if (fd < 0 && !plan->journal_required)
                        return;
                if (fd < 0)
                        launch_fail("cannot connect to the journal: ", strerrordesc_np(-fd),
                                    "; set log to a file or to inherit");
        } else {
                fd = open_log(plan->fleet.log);
        }
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                launch_fail("cannot redirect the worker's output: ", strerrordesc_np(errno));
        close_fd(fd);
}

void launch_open_streams(const struct launch_plan *plan)
{
        if (plan->kind == LAUNCH_ALERT)
                return;
        open_output(plan);
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                launch_fail("cannot open '/dev/null': ", strerrordesc_np(errno));
        close_fd(null);
}

/* Returns PATH of the environment, or that of execvp(). */
static const char *path_of(char *const *environment)
{
        for (; environment && *environment; environment++)
                if (strncmp(*environment, "PATH=", strlen("PATH=")) == 0)
                        return *environment + strlen("PATH=");
        return "/bin:/usr/bin";
}

/* Calls try() for each file that the command may be, as execvp() does, until it returns something else than
 * that the file is missing or must not be executed. try() returns 0 or a positive errno. Returns the last or
 * EACCES. */
static int find_command(char *const *environment, const char *name,
                        int (*try)(const char *file, void *userdata), void *userdata)
{
        size_t name_size = strlen(name) + 1;
        char file[PATH_MAX];
        int error = ENOENT;

        if (strchr(name, '/') || name[0] == '\0')
                return try(name, userdata);
        for (const char *at = path_of(environment), *end; at; at = *end != '\0' ? end + 1 : NULL) {
                end = strchrnul(at, ':');
                size_t length = (size_t)(end - at);

                if (length + 1 + name_size > sizeof(file))
                        continue;
                memcpy(file, at, length);
                file[length] = '/';
                memcpy(file + length + (length > 0), name, name_size);
                int r = try(file, userdata);
                if (r == EACCES)
                        error = r;
                else if (r != ENOENT && r != ENOTDIR && r != ESTALE && r != ENODEV && r != ETIMEDOUT)
                        return r;
        }
        return error;
}

static _Noreturn void fail_command(const char *step, const char *name, char *const *environment, int error)
{
        const char *path = path_of(environment);

        if (error != ENOENT)
                launch_fail(step, "cannot run '", name, "': ", strerrordesc_np(error));
        if (!strchr(name, '/'))
                launch_fail(step, "cannot run '", name, "': ", strerrordesc_np(error), " in PATH '", path,
                            "'");
        if (access(name, F_OK) == 0)
                launch_fail(step, "cannot run '", name, "': the interpreter of that file does not exist");
        launch_fail(step, "cannot run '", name, "': ", strerrordesc_np(error));
}

/* Returns what execve() would if the content of the file is valid. */
static int may_execute(const char *file, void *userdata _unused_)
{
        struct stat st;

        if (stat(file, &st) < 0 || access(file, X_OK) < 0)
                return errno;
        return S_ISREG(st.st_mode) ? 0 : EACCES;
}

void launch_check_command(const char *step, const char *name, char *const *environment)
{
        int error = find_command(environment, name, may_execute, NULL);

        if (error != 0)
                fail_command(step, name, environment, error);
}

struct command {
        char **argv;
        char *const *environment;
        bool exact;
};

/* Like execvp() for one file. Returns a positive errno. */
static int execute_file(const char *file, void *userdata)
{
        const struct command *command = userdata;

        execve(file, command->argv, command->environment);
        if (errno != ENOEXEC || command->exact)
                return errno;
        /* A script without an interpreter, whose words follow the shell. */
        command->argv[-1] = (char *)"/bin/sh";
        command->argv[0] = (char *)file;
        execve("/bin/sh", command->argv - 1, command->environment);
        return errno;
}

void launch_execute(const char *step, bool exact, char **argv, char *const *environment)
{
        const char *name = argv[0];
        struct command command = {argv, environment, exact};

        fail_command(step, name, environment, find_command(environment, name, execute_file, &command));
}

static bool ledger_is_in_place(const struct launch_plan *plan)
{
        struct stat status;

        return plan->ledger_path &&
               (lstat(plan->ledger_path, &status) == 0 ? status.st_ino == plan->ledger_inode
                                                       : errno != ENOENT);
}

void launch_run(const struct launch_plan *plan)
{
        if (plan->supervised && getppid() != plan->parent && !ledger_is_in_place(plan))
                _exit(0);
        if (plan->marker)
                marker_put(plan->marker);
        if (plan->kind == LAUNCH_TEMPLATE && fcntl(LAUNCH_TEMPLATE_FD, F_SETFD, 0) < 0)
                launch_fail("cannot hand on the template's socket: ", strerrordesc_np(errno));
        /* So that conmon, and the container of `podman run`, remain descendants of the worker's process. */
        if (plan->fleet.namespaced && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                launch_fail("cannot keep the processes of a container: ", strerrordesc_np(errno));
        launch_execute(plan->kind == LAUNCH_ALERT ? "alert_command: " : "", plan->kind == LAUNCH_CHECK,
                       plan->fleet.argv, plan->environment);
}
