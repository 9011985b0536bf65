/* SPDX-License-Identifier: MIT */
/* The story of one worker: its events and its current state. No I/O. */
#include "ctl/worker_report.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/render.h"
#include "wire/reply.h"
#include <string.h>

/* Returns true if the event concerns the worker's whole fleet, or all of sqmgr. */
static bool is_context(const struct worker_report *worker_report, json_t *event)
{
        const char *fleet = reply_string(event, "fleet");
        size_t length = strlen(fleet);

        if (reply_string(event, "worker")[0] != '\0')
                return false;
        return length == 0 ||
               (strncmp(fleet, worker_report->id, length) == 0 && worker_report->id[length] == '/' &&
                !strchr(worker_report->id + length + 1, '/'));
}

/* Finds the events of the last worker with this id: ids are reused after a worker is gone. */
static void find_worker_events(struct worker_report *worker_report, json_t *events, size_t *ret_first,
                               size_t *ret_last)
{
        size_t i, beginning = SIZE_MAX, last = 0;
        bool ended = false;
        json_t *event;

        json_array_foreach(events, i, event)
        {
                const char *kind = reply_string(event, "event");

                if (!reply_is(event, "worker", worker_report->id))
                        continue;
                if (beginning == SIZE_MAX || (ended && strcmp(kind, "started") == 0)) {
                        worker_report->earlier_workers = beginning != SIZE_MAX;
                        worker_report->from_start = strcmp(kind, "started") == 0;
                        beginning = i;
                        ended = false;
                }
                ended = ended || strcmp(kind, "gone") == 0 || strcmp(kind, "crashed") == 0;
                last = i;
        }
        /* For a living worker without events of its own, report everything that is kept. */
        *ret_first = worker_report->worker && beginning == SIZE_MAX ? 0 : beginning;
        *ret_last = worker_report->worker ? SIZE_MAX : last;
}

static int collect_events(struct worker_report *worker_report, json_t *events)
{
        size_t i, first, last;
        json_t *event;

        find_worker_events(worker_report, events, &first, &last);
        worker_report->events = json_array();
        if (!worker_report->events)
                return -ENOMEM;
        json_array_foreach(events, i, event)
        {
                bool own = reply_is(event, "worker", worker_report->id);

                if (i < first || i > last || (!own && !is_context(worker_report, event)))
                        continue;
                if (json_array_append(worker_report->events, event) < 0)
                        return -ENOMEM;
                worker_report->n_own += own;
        }
        return 0;
}

static void find_worker(struct worker_report *worker_report)
{
        json_t *fleet, *worker;

        json_foreach_in(fleet, worker_report->status, "fleets") {
                json_foreach_in(worker, fleet, "workers") {
                        if (!reply_is(worker, "id", worker_report->id))
                                continue;
                        worker_report->fleet = fleet;
                        worker_report->worker = worker;
                }
        }
}

int worker_report_find(struct worker_report *ret, const char *id, json_t *status, json_t *events)
{
        *ret = (struct worker_report){.id = id, .status = status};
        find_worker(ret);
        return collect_events(ret, events);
}

static void print_state(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        json_t *worker = worker_report->worker;
        const char *reason = reply_string(worker, "reason_text"),
                   *waits_for = reply_string(worker, "waits_for");
        const char *state = reply_string(worker, "state");
        bool leaves = strcmp(state, "quiet") == 0 || strcmp(state, "stopping") == 0;
        char span[FORMAT_MAX], left[FORMAT_MAX], ready[FORMAT_MAX + 16] = "", text[1024];

        if (json_is_number(json_object_get(worker, "ready_seconds")))
                snprintf(ready, sizeof(ready), ", ready in %s",
                         reply_seconds_left(worker, "ready_seconds", left));
        snprintf(text, sizeof(text), "Now: %s for %s%s%s%s%s%s", state,
                 reply_seconds(worker, "state_seconds", span),
                 reason[0] == '\0' ? ""
                 : leaves          ? ": "
                                   : ", to be replaced: ",
                 reason, waits_for[0] != '\0' ? "; " : "", waits_for,
                 reason[0] != '\0' || waits_for[0] != '\0' ? ""
                 : reply_is_true(worker, "ready")          ? ", healthy"
                                                           : ready);
        text_print_wrapped(out, text, 0, 2, view->columns);
}

/* Prints what is known of the worker, and the source. */
static void print_evidence(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        const json_t *worker = worker_report->worker;
        long long busy = reply_integer(worker, "busy"), memory = reply_integer(worker, "memory_bytes");
        long long threshold = reply_integer(worker_report->fleet, "memory_threshold_bytes");
        const char *evidence = reply_string(worker, "evidence"),
                   *reaches = reply_string(worker, "memory_text");
        char span[FORMAT_MAX], size[FORMAT_MAX], text[256];

        snprintf(text, sizeof(text), "  process %lld, generation %lld%s, %s %s ago",
                 reply_integer(worker, "pid"), reply_integer(worker, "generation"),
                 reply_is_true(worker, "outdated") ? " (outdated)" : "",
                 reply_is_true(worker, "forked") ? "forked" : "started",
                 reply_seconds(worker, "uptime_seconds", span));
        text_print_wrapped(out, text, 0, 4, view->columns);
        if (json_is_null(json_object_get(worker, "busy")))
                snprintf(text, sizeof(text), "  running jobs: not reported by the framework");
        else if (!reply_has_heartbeat(worker))
                snprintf(text, sizeof(text), "  no heartbeat yet");
        else
                snprintf(text, sizeof(text), "  %lld job%s running%s heartbeat %s ago%s", busy, plural(busy),
                         /* A database shows jobs that began after the heartbeat, too. */
                         strcmp(evidence, "database") == 0 ? ", last" : " at the last",
                         reply_heartbeat_age(worker, span),
                         strcmp(evidence, "title") == 0  ? "; the server with the heartbeats is unreachable, "
                                                           "jobs as in the process title"
                         : strcmp(evidence, "none") == 0 ? "; no longer fresh"
                                                         : "");
        text_print_wrapped(out, text, 0, 4, view->columns);
        if (reply_is_true(worker, "remote"))
                text_print_wrapped(out, "  out of reach: signals go through Redis", 0, 4, view->columns);
        if (memory <= 0)
                return;
        snprintf(text, sizeof(text), "  memory %s", format_size((uint64_t)memory, size, FORMAT_MAX));
        if (threshold > 0)
                text_append(text, sizeof(text), ", %lld%% of memory_threshold %s",
                            reply_percent(memory, threshold),
                            format_size((uint64_t)threshold, size, FORMAT_MAX));
        if (reaches[0] != '\0')
                text_append(text, sizeof(text), "; growing, %s", reaches);
        text_print_wrapped(out, text, 0, 4, view->columns);
}

static void print_beginning(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        char text[512] = "";

        if (!worker_report->from_start)
                snprintf(text, sizeof(text),
                         "Older events are not kept. To look for them in the journal, run 'journalctl "
                         "SQMGR_WORKER=%s'",
                         worker_report->id);
        else if (worker_report->earlier_workers)
                snprintf(text, sizeof(text), "Earlier workers had the same id: run 'sqmgrctl events %s'",
                         worker_report->id);
        if (text[0] != '\0')
                text_print_wrapped(out, text, 0, 0, view->columns);
}

void worker_report_print(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        json_t *event;

        print_beginning(out, worker_report, view);
        json_foreach(event, worker_report->events)
                render_event(out, event, view);
        if (worker_report->worker) {
                print_state(out, worker_report, view);
                print_evidence(out, worker_report, view);
        } else {
                fputs("Now: gone\n", out);
        }
}
