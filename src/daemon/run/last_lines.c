/* SPDX-License-Identifier: MIT */
/* Has the last lines of workers that died read back from the journal, and observes them when they come. */
#include "daemon/supervisor.h"
#include "io/journal.h"
#include "io/log.h"
#include "model/observe.h"
#include <string.h>

/* When many die at once, the lines of some tell enough. */
#define READS_MAX 4

struct last_lines {
        struct last_lines *next;
        struct supervisor *supervisor;
        struct journal_read *read;
        uint64_t token;
        char fleet[]; /* its name */
};

static struct last_lines *last_lines_free(struct last_lines *lines)
{
        struct last_lines *next = lines->next;

        journal_read_free(lines->read);
        free(lines);
        return next;
}

void last_lines_forget(struct supervisor *supervisor)
{
        while (supervisor->last_lines != NULL)
                supervisor->last_lines = last_lines_free(supervisor->last_lines);
}

static void on_lines(const char *text, void *userdata)
{
        struct last_lines *lines = userdata;
        struct supervisor *supervisor = lines->supervisor;
        struct fleet *fleet = world_fleet(supervisor->world, lines->fleet);
        struct last_lines **link = &supervisor->last_lines;

        if (fleet != NULL)
                observe_last_lines(fleet, lines->token, text);
        supervisor_arm_turn(supervisor);
        while (*link != lines)
                link = &(*link)->next;
        *link = last_lines_free(lines);
}

static bool writes_to_journal(const struct fleet_settings *settings)
{
        if (settings->log == NULL || strcmp(settings->log, "inherit") == 0)
                return log_is_journal();
        return strcmp(settings->log, "journal") == 0;
}

uint64_t last_lines_read(struct supervisor *supervisor, const struct worker *worker, pid_t beat_pid)
{
        const char *name = worker->fleet->settings->name;
        struct journal_query query = {
                .pids = {worker->pid, beat_pid != worker->pid ? beat_pid : 0},
                .since = worker->spawned_at,
        };
        unsigned n = 0;

        for (const struct last_lines *i = supervisor->last_lines; i != NULL; i = i->next)
                n++;
        if (n >= READS_MAX || !writes_to_journal(worker->fleet->settings))
                return 0;
        struct last_lines *lines = calloc(1, sizeof(*lines) + strlen(name) + 1);
        if (lines == NULL)
                return 0;
        lines->supervisor = supervisor;
        strcpy(lines->fleet, name);
        if (journal_read_start(supervisor->event, &query, on_lines, lines, &lines->read) < 0) {
                free(lines);
                return 0;
        }
        lines->token = ++supervisor->lines_token;
        lines->next = supervisor->last_lines;
        supervisor->last_lines = lines;
        return lines->token;
}
