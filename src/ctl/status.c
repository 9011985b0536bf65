/* SPDX-License-Identifier: MIT */
/* The command `status`: a table for people. */
#include "base/parse.h"
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>

enum column {
        COLUMN_WORKER,
        COLUMN_PID,
        COLUMN_STATE,
        COLUMN_GENERATION,
        COLUMN_BUSY,
        COLUMN_MEMORY,
        COLUMN_UPTIME,
        COLUMN_WHY,
        _COLUMN_MAX,
};

struct row {
        char cells[_COLUMN_MAX][320];
};

static const struct row header = {{"WORKER", "PID", "STATE", "GEN", "BUSY", "MEMORY", "UPTIME", "WHY"}};

static const char *state_colour(const char *state)
{
        if (strcmp(state, "active") == 0)
                return "\033[32m";
        if (strcmp(state, "starting") == 0)
                return "\033[33m";
        if (strcmp(state, "quiet") == 0)
                return "\033[36m";
        if (strcmp(state, "stopping") == 0)
                return "\033[35m";
        return "";
}

static const char *format_seconds(json_t *object, const char *key, char *text)
{
        double seconds = json_number_value(json_object_get(object, key));
        usec_t usec = seconds > 0 ? (usec_t)(seconds * (double)USEC_PER_SEC) : 0;

        /* In a table tenths of seconds are noise. */
        if (usec >= USEC_PER_SEC)
                usec -= usec % USEC_PER_SEC;
        return format_duration(usec, text, FORMAT_MAX);
}

static const char *format_memory(json_t *object, char *text)
{
        long long bytes = ctl_integer(object, "memory_bytes");

        if (bytes <= 0) {
                snprintf(text, FORMAT_MAX, "-");
                return text;
        }
        return format_size((uint64_t)bytes, text, FORMAT_MAX);
}

/* Appends a phrase to text, which has size bytes. */
static void add_phrase(char *text, size_t size, const char *phrase)
{
        size_t length = strlen(text);

        if (phrase[0] != '\0')
                snprintf(text + length, size - length, "%s%s", length > 0 ? "; " : "", phrase);
}

static void explain_worker(json_t *worker, char *text, size_t size)
{
        const char *state = ctl_string(worker, "state"), *evidence = ctl_string(worker, "evidence");
        const char *waits_for = ctl_string(worker, "waits_for");
        bool active = strcmp(state, "active") == 0;

        text[0] = '\0';
        add_phrase(text, size, ctl_string(worker, "reason"));
        if (json_is_true(json_object_get(worker, "outdated")) && text[0] == '\0')
                add_phrase(text, size, "outdated");
        add_phrase(text, size, waits_for);
        if (active && strcmp(evidence, "redis") != 0 && waits_for[0] == '\0')
                add_phrase(text, size,
                           strcmp(evidence, "title") == 0 ? "known by its title only" : "no fresh beat");
        else if (active && !json_is_true(json_object_get(worker, "ready")))
                add_phrase(text, size, "not ready yet");
}

static void fill_row(struct row *row, json_t *worker)
{
        char span[FORMAT_MAX];
        size_t size = sizeof(row->cells[0]);

        snprintf(row->cells[COLUMN_WORKER], size, "%s", ctl_string(worker, "id"));
        snprintf(row->cells[COLUMN_PID], size, "%lld", ctl_integer(worker, "pid"));
        snprintf(row->cells[COLUMN_STATE], size, "%s", ctl_string(worker, "state"));
        snprintf(row->cells[COLUMN_GENERATION], size, "%lld", ctl_integer(worker, "generation"));
        if (ctl_integer(worker, "concurrency") > 0)
                snprintf(row->cells[COLUMN_BUSY], size, "%lld/%lld", ctl_integer(worker, "busy"),
                         ctl_integer(worker, "concurrency"));
        else if (json_is_null(json_object_get(worker, "beat_age_seconds")))
                snprintf(row->cells[COLUMN_BUSY], size, "-");
        else
                snprintf(row->cells[COLUMN_BUSY], size, "%lld", ctl_integer(worker, "busy"));
        snprintf(row->cells[COLUMN_MEMORY], size, "%s", format_memory(worker, span));
        snprintf(row->cells[COLUMN_UPTIME], size, "%s", format_seconds(worker, "uptime_seconds", span));
        explain_worker(worker, row->cells[COLUMN_WHY], size);
}

static void print_row(const struct row *row, const int *widths, bool colour)
{
        for (int i = 0; i < _COLUMN_MAX; i++) {
                const char *cell = row->cells[i], *start = "", *end = "";

                if (i == COLUMN_STATE && colour) {
                        start = state_colour(cell);
                        end = start[0] != '\0' ? "\033[0m" : "";
                }
                if (i == COLUMN_WHY)
                        printf("%s%s", cell[0] != '\0' ? "  " : "", cell);
                else if (i == COLUMN_PID || i == COLUMN_GENERATION)
                        printf("  %*s", widths[i], cell);
                else
                        printf("  %s%s%s%*s", start, cell, end,
                               i < COLUMN_UPTIME || row->cells[COLUMN_WHY][0] != '\0'
                                       ? widths[i] - (int)strlen(cell)
                                       : 0,
                               "");
        }
        putchar('\n');
}

static int print_workers(json_t *workers, bool colour)
{
        size_t n = json_array_size(workers);
        int widths[_COLUMN_MAX] = {0};

        if (n == 0)
                return CTL_DONE;
        _cleanup_free_ struct row *rows = calloc(n + 1, sizeof(*rows));
        if (!rows)
                return ctl_error(CTL_FAILED, "there is too little memory");
        rows[0] = header;
        for (size_t i = 0; i < n; i++)
                fill_row(&rows[i + 1], json_array_get(workers, i));
        for (size_t i = 0; i <= n; i++)
                for (int k = 0; k < _COLUMN_MAX; k++)
                        widths[k] = MAX(widths[k], (int)strlen(rows[i].cells[k]));
        for (size_t i = 0; i <= n; i++)
                print_row(&rows[i], widths, colour && i > 0);
        return CTL_DONE;
}

static void print_rollout(json_t *rollout)
{
        const char *state = ctl_string(rollout, "state");
        long long replaced = ctl_integer(rollout, "replaced"), outdated = ctl_integer(rollout, "outdated");

        if (strcmp(state, "none") == 0)
                return;
        printf(", restart %s", state);
        if (strcmp(state, "done") != 0)
                printf(" (%lld replaced, %lld outdated)", replaced, outdated);
}

/* What is wrong or is waited for, a line each: it may be long. */
static void print_troubles(json_t *fleet)
{
        json_t *crash = json_object_get(fleet, "crash");
        const char *error = ctl_string(json_object_get(fleet, "rollout"), "error");
        const char *waits_for = ctl_string(fleet, "waits_for"), *last = ctl_string(crash, "last");
        long long count = ctl_integer(crash, "count");
        char span[FORMAT_MAX];

        if (error[0] != '\0')
                printf("  restart: %s\n", error);
        if (count > 0) {
                printf("  crash: %lld short li%s in a row", count, count == 1 ? "fe" : "ves");
                if (!json_is_null(json_object_get(crash, "next_start_seconds")))
                        printf(", the next start in %s", format_seconds(crash, "next_start_seconds", span));
                /* Where it made the restart halt it has been told. */
                if (last[0] != '\0' && strstr(error, last) == NULL)
                        printf("; the last: %s", last);
                putchar('\n');
        }
        if (waits_for[0] != '\0')
                printf("  %s\n", waits_for);
}

static int print_fleet(json_t *fleet, bool colour)
{
        static const char *const states[] = {"starting", "quiet", "stopping"};
        const char *state = ctl_string(fleet, "state");
        char memory[FORMAT_MAX];

        printf("%s (%s): ", ctl_string(fleet, "name"), ctl_string(fleet, "framework"));
        if (strcmp(state, "running") != 0)
                printf("%s, ", state);
        printf("%lld of %lld active", ctl_integer(fleet, "active"), ctl_integer(fleet, "target"));
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (ctl_integer(fleet, states[i]) > 0)
                        printf(", %lld %s", ctl_integer(fleet, states[i]), states[i]);
        printf(", %s, generation %lld", format_memory(fleet, memory), ctl_integer(fleet, "generation"));
        print_rollout(json_object_get(fleet, "rollout"));
        putchar('\n');
        print_troubles(fleet);
        return print_workers(json_object_get(fleet, "workers"), colour);
}

static void print_sqmgr(json_t *status)
{
        json_t *redis;
        char span[FORMAT_MAX];
        size_t i;

        printf("sqmgr %s, pid %lld, up %s", ctl_string(status, "version"), ctl_integer(status, "pid"),
               format_seconds(status, "uptime_seconds", span));
        json_array_foreach(json_object_get(status, "redis"), i, redis)
        {
                json_t *rtt = json_object_get(redis, "rtt_ms");

                printf("; redis %s %s", ctl_string(redis, "url"), ctl_string(redis, "state"));
                if (ctl_string(redis, "server")[0] != '\0')
                        printf(" to %s", ctl_string(redis, "server"));
                if (json_is_number(rtt))
                        printf(" (%.1fms)", json_number_value(rtt));
        }
        putchar('\n');
}

int command_status(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL;
        int r = client_call(ctl, "GetStatus", json_pack("{s:o}", "fleets", ctl_fleets(ctl)), &status);
        bool colour = ctl_colour();
        json_t *fleet;
        size_t i;

        if (r != CTL_DONE)
                return r;
        if (ctl->json) {
                ctl_print_json(status);
                return CTL_DONE;
        }
        print_sqmgr(status);
        json_array_foreach(json_object_get(status, "fleets"), i, fleet)
        {
                putchar('\n');
                r = print_fleet(fleet, colour);
                if (r != CTL_DONE)
                        return r;
        }
        return CTL_DONE;
}
