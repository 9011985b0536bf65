/* SPDX-License-Identifier: MIT */
/* Starts reader processes; see the header. */
#include "daemon/runtime/reader_process.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/own_program.h"
#include "io/reader_start.h"
#include "io/signal.h"
#include "model/exit_status.h"
#include "queries/configuration.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Readers of databases that were killed and have not ended. A reader of a file may wait for a file system
 * that does not answer, which SIGKILL does not end. */
#define STUCK_MAX 4
/* How long reader_starter_clear() waits for the ends of processes. */
#define END_USEC USEC_PER_SEC

/* Time limit of reader_judge_tls(), which a reload waits for. */
#define JUDGE_USEC (5 * USEC_PER_SEC)

struct reader_process {
        struct child child;
        bool of_database;
        void (*ended)(const char *how, void *userdata); /* NULL: sqmgr has stopped it */
        void *userdata;
};

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct reader_process *process = (struct reader_process *)child;
        const struct exit_status exit = {
                .known = true, .by_signal = info->si_code != CLD_EXITED, .status = info->si_status};
        char how[128];

        exit_status_text(&exit, how, sizeof(how));
        if (process->ended)
                process->ended(how, process->userdata);
        free(process);
}

static const char *const program_names[] = {
        [DATABASE_POSTGRESQL] = "sqmgr-reader-postgresql",
        [DATABASE_SQLITE] = "sqmgr-reader-sqlite",
        [_DATABASE_ENGINE_MAX] = "sqmgr-reader",
};
static_assert(ELEMENTSOF(program_names) == _DATABASE_ENGINE_MAX + 1,
              "a program for each engine and for Redis");

/* Returns a descriptor or -errno. */
static int open_program(const struct reader_starter_daemon *starter, unsigned engine)
{
        const char *name = program_names[engine];
        const char *suffix = name + strlen(program_names[_DATABASE_ENGINE_MAX]);
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s%s", starter->path ?: READER_PROGRAM, suffix);
        if (!starter->path)
                return own_program_open(name, path);
        int fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Returns true if no more readers of databases may be started. */
static bool is_stuck(const struct reader_starter_daemon *starter)
{
        unsigned n = 0;

        for (const struct child *child = starter->children->first; child; child = child->next) {
                const struct reader_process *process = (const struct reader_process *)child;

                n += child->exited == on_exited && !process->ended && process->of_database;
        }
        return n >= STUCK_MAX;
}

static int start(struct reader_starter *base, const struct reader_configuration *configuration,
                 void (*ended)(const char *how, void *userdata), void *userdata, struct reader_process **ret,
                 int *ret_fd)
{
        struct reader_starter_daemon *starter = (struct reader_starter_daemon *)base;
        int *program_fd = &starter->program_fds[configuration->engine];
        bool of_database = configuration->engine != _DATABASE_ENGINE_MAX;
        pid_t pid;

        /* The program may be installed by now. */
        if (*program_fd < 0)
                *program_fd = open_program(starter, configuration->engine);
        if (*program_fd < 0)
                return *program_fd;
        if (of_database && is_stuck(starter))
                return -EBUSY;
        struct reader_process *process = calloc(1, sizeof(*process));
        if (!process)
                return -ENOMEM;
        int r = reader_start(*program_fd, program_names[configuration->engine], &pid, ret_fd);
        if (r < 0) {
                free(process);
                return r;
        }
        *process = (struct reader_process){.child = {.pid = pid, .exited = on_exited},
                                           .of_database = of_database,
                                           .ended = ended,
                                           .userdata = userdata};
        children_add(starter->children, &process->child);
        *ret = process;
        return 0;
}

/* Kills the process without waiting: a file system can delay its end. on_exited() frees it. */
static void stop(struct reader_process *process)
{
        process->ended = NULL;
        (void)signal_child(process->child.pid, SIGKILL);
}

void reader_starter_init(struct reader_starter_daemon *ret, struct children *children, const char *path)
{
        *ret = (struct reader_starter_daemon){
                .starter = {.start = start, .stop = stop},
                .children = children,
                .path = path,
        };
        for (unsigned engine = 0; engine < ELEMENTSOF(ret->program_fds); engine++)
                ret->program_fds[engine] = open_program(ret, engine);
        /* Workers can run without Redis, so its absence ends nothing. */
        int r = ret->program_fds[_DATABASE_ENGINE_MAX];
        if (r < 0)
                log_error("cannot open %s: %s", path ?: READER_PROGRAM, strerror(-r));
}

/* Waits for the end of a killed process until the deadline: a file system can delay that end. */
static void await_end(pid_t pid, siginfo_t *info, usec_t deadline)
{
        *info = (siginfo_t){0};
        while (TEMP_FAILURE_RETRY(waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG)) == 0 &&
               info->si_pid == 0 && clock_now(CLOCK_MONOTONIC) < deadline)
                (void)usleep(USEC_PER_MSEC);
}

void reader_starter_clear(struct reader_starter_daemon *starter)
{
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), END_USEC);
        struct child *first = starter->children ? starter->children->first : NULL;

        for (struct child *child = first; child; child = child->next)
                if (child->exited == on_exited)
                        (void)signal_child(child->pid, SIGKILL);
        for (struct child *child = first, *next; child; child = next) {
                siginfo_t info;

                next = child->next;
                if (child->exited != on_exited)
                        continue;
                await_end(child->pid, &info, deadline);
                children_remove(starter->children, child);
                child->exited(child, &info);
        }
        FOREACH_ELEMENT(fd, starter->program_fds)
                *fd = close_fd(MAX(*fd, -1));
}

/* The context of on_judgment(). */
struct judgment {
        sd_event *event;
        struct settings_tls_refusal *refusal;
};

static void on_judgment(struct reader *reader, enum reader_state state _unused_,
                        const struct error_report *error, void *userdata)
{
        struct judgment *judgment = userdata;

        judgment->refusal->file = reader_refused_file(reader);
        snprintf(judgment->refusal->why, sizeof(judgment->refusal->why), "%s", error ? error->text : "");
        (void)sd_event_exit(judgment->event, !error                                         ? 0
                                             : judgment->refusal->file != _SETTINGS_TLS_MAX ? -EINVAL
                                                                                            : -EIO);
}

static int on_late(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        return sd_event_exit(userdata, -ETIMEDOUT);
}

/* Runs event, a loop of its own, until the reader has judged the TLS files. Returns as reader_judge_tls(). */
static int judge(sd_event *event, struct reader_starter *starter, struct reader_configuration *configuration,
                 struct settings_tls_refusal *ret)
{
        struct judgment judgment = {.event = event, .refusal = ret};
        struct reader *reader = NULL;

        int r = sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, JUDGE_USEC, 0, on_late, event);
        if (r >= 0)
                r = reader_new(event, starter, configuration, on_judgment, &judgment, &reader);
        if (r < 0)
                return r;
        r = sd_event_loop(event);
        reader_free(reader);
        return r;
}

int reader_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret)
{
        struct children children = {0};
        struct reader_starter_daemon starter;
        struct reader_configuration configuration;
        sd_event *event = NULL;

        int r = reader_configuration_make(settings, settings->url, 0, &configuration);
        if (r < 0)
                return r;
        configuration.check = true;
        r = sd_event_new(&event);
        if (r >= 0) {
                reader_starter_init(&starter, &children, NULL);
                r = judge(event, &starter.starter, &configuration, ret);
                reader_starter_clear(&starter);
        }
        reader_configuration_clear(&configuration);
        sd_event_unref(event);
        return r;
}
