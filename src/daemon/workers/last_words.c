/* SPDX-License-Identifier: MIT */
/* Has the last lines of workers that died read back from the journal, and observes them when they come. */
#include "daemon/workers/last_words.h"
#include "io/journal.h"
#include "io/launch.h"
#include "io/log.h"
#include "model/exit_status.h"
#include "model/fleet.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include <string.h>

/* When many die at once, the lines of some tell enough. */
#define READS_MAX 4

struct last_words {
        struct last_words *next;
        struct runtime *runtime;
        struct journal_read *read;
        uint64_t token;
        char fleet[]; /* its name */
};

static struct last_words *last_words_free(struct last_words *lines)
{
        struct last_words *next = lines->next;

        journal_read_free(lines->read);
        free(lines);
        return next;
}

void last_words_forget(struct runtime *runtime)
{
        while (runtime->last_words)
                runtime->last_words = last_words_free(runtime->last_words);
}

static void on_lines(const char *text, void *userdata)
{
        struct last_words *lines = userdata;
        struct runtime *runtime = lines->runtime;
        struct fleet *fleet = world_fleet(runtime->world, lines->fleet);

        if (fleet) {
                template_observe_log_tail(fleet, lines->token, text, runtime->preload_script);
                observe_log_tail(fleet, lines->token, text);
        }
        wakeup_arm(runtime->wakeup);
        LIST_UNLINK(runtime->last_words, lines);
        last_words_free(lines);
}

static bool writes_to_journal(const struct fleet_settings *settings)
{
        if (!settings->log || strcmp(settings->log, "inherit") == 0)
                return log_is_journal();
        return strcmp(settings->log, "journal") == 0;
}

/* Begins to read what went to the journal. Returns the token of the answer, or 0 where none will come. */
static uint64_t read_journal(struct runtime *runtime, const struct last_words_of *of)
{
        const char *name = of->fleet->settings->name;
        struct journal_query query = {
                .pids = {of->pids[0], of->pids[1] != of->pids[0] ? of->pids[1] : 0},
                .since = of->since,
        };
        unsigned n = 0;

        for (const struct last_words *i = runtime->last_words; i; i = i->next)
                n++;
        if (n >= READS_MAX || !writes_to_journal(of->fleet->settings))
                return 0;
        size_t size = strlen(name) + 1;
        struct last_words *lines = calloc(1, sizeof(*lines) + size);
        if (!lines)
                return 0;
        lines->runtime = runtime;
        memcpy(lines->fleet, name, size);
        if (journal_read_start(runtime->event, &query, on_lines, lines, &lines->read) < 0) {
                free(lines);
                return 0;
        }
        lines->token = ++runtime->lines_token;
        lines->next = runtime->last_words;
        runtime->last_words = lines;
        return lines->token;
}

void last_words_add(struct runtime *runtime, const struct last_words_of *of, const struct launch_report *report,
                    bool expected, char lines[static LOG_TAIL_MAX_BYTES + 1], struct exit_status *exit)
{
        if (report->outcome == LAUNCH_FAILED)
                exit->launch_error = report->error ?: "it could not be prepared";
        if (report->log_fd >= 0 &&
            log_tail_read(report->log_fd, report->log_start_bytes, lines, LOG_TAIL_MAX_BYTES + 1) == 0)
                exit->log_tail = lines;
        if (!exit->launch_error && !exit->log_tail && !expected)
                exit->lines_token = read_journal(runtime, of);
}
