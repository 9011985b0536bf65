/* SPDX-License-Identifier: MIT */
/* Reads the log tail of exited workers from the journal, and observes it when it arrives. */
#include "daemon/workers/exit_log.h"
#include "io/log.h"
#include "model/exit_status.h"
#include "model/fleet.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "privileged/journal.h"
#include "privileged/launch.h"
#include <string.h>

/* When many workers die at once, the log tails of some are enough. */
#define READS_MAX 4

struct exit_log {
        struct exit_log *next;
        struct runtime *runtime;
        struct journal_read *read;
        uint64_t token;
        char fleet[]; /* name of the fleet */
};

static struct exit_log *exit_log_free(struct exit_log *lines)
{
        struct exit_log *next = lines->next;

        journal_read_free(lines->read);
        free(lines);
        return next;
}

void exit_log_forget(struct runtime *runtime)
{
        while (runtime->exit_log)
                runtime->exit_log = exit_log_free(runtime->exit_log);
}

static void on_lines(const char *text, void *userdata)
{
        struct exit_log *lines = userdata;
        struct runtime *runtime = lines->runtime;
        struct fleet *fleet = world_fleet(runtime->world, lines->fleet);

        if (fleet) {
                template_observe_log_tail(fleet, lines->token, text, runtime->preload_script);
                observe_log_tail(fleet, lines->token, text);
        }
        wakeup_arm(runtime->wakeup);
        LIST_UNLINK(runtime->exit_log, lines);
        exit_log_free(lines);
}

static bool writes_to_journal(const struct fleet_settings *settings)
{
        if (!settings->log || strcmp(settings->log, "inherit") == 0)
                return log_is_journal();
        return strcmp(settings->log, "journal") == 0;
}

/* Starts reading the journal. Returns the token of the answer, or 0 if none will come. */
static uint64_t read_journal(struct runtime *runtime, const struct exit_log_source *of)
{
        const char *name = of->fleet->settings->name;
        struct journal_query query = {
                .pids = {of->pids[0], of->pids[1] != of->pids[0] ? of->pids[1] : 0},
                .since = of->since,
        };
        unsigned n = 0;

        for (const struct exit_log *i = runtime->exit_log; i; i = i->next)
                n++;
        if (n >= READS_MAX || !writes_to_journal(of->fleet->settings))
                return 0;
        size_t size = strlen(name) + 1;
        struct exit_log *lines = calloc(1, sizeof(*lines) + size);
        if (!lines)
                return 0;
        lines->runtime = runtime;
        memcpy(lines->fleet, name, size);
        if (journal_read_start(runtime->event, &query, on_lines, lines, &lines->read) < 0) {
                free(lines);
                return 0;
        }
        lines->token = ++runtime->lines_token;
        lines->next = runtime->exit_log;
        runtime->exit_log = lines;
        return lines->token;
}

void exit_log_ask(struct runtime *runtime, const struct proc *main, uid_t user,
                  const struct launch_report *report)
{
        const struct proc_log log = {.fd = report->log_fd, .start_bytes = report->log_start_bytes};
        char lines[LOG_TAIL_MAX_BYTES + 1];

        /* Without readers, exit_log_add() reads the log itself. */
        if (runtime->proc_facts && report->log_fd >= 0)
                (void)proc_facts_log_tail(runtime->proc_facts, main, user, &log, lines, sizeof(lines));
}

int exit_log_add(struct runtime *runtime, const struct exit_log_source *of,
                 const struct launch_report *report, bool expected, char lines[static LOG_TAIL_MAX_BYTES + 1],
                 struct exit_status *exit)
{
        const struct proc_log log = {.fd = report->log_fd, .start_bytes = report->log_start_bytes};
        int r = -ENODATA;

        if (report->log_fd >= 0 && !expected)
                r = proc_facts_log_tail(runtime->proc_facts, of->main, of->user, &log, lines,
                                        LOG_TAIL_MAX_BYTES + 1);
        if (r == -EINPROGRESS)
                return r;
        if (report->outcome == LAUNCH_FAILED)
                exit->launch_error = report->error ?: "it could not be prepared";
        if (r == 0)
                exit->log_tail = lines;
        if (!exit->launch_error && !exit->log_tail && !expected)
                exit->lines_token = read_journal(runtime, of);
        return 0;
}
