/* SPDX-License-Identifier: MIT */
/* The heartbeat of a worker that implements sqmgr-heartbeat(7); see the header. */
#include "frameworks/native/native.h"
#include "base/printable.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include "model/queues.h"
#include <signal.h>

const struct traits native_traits = {
        .name = "native",
        .title = "the worker",
        .id = 2,
        .memory_of_tree = true,
        .heartbeat = HEARTBEAT_REDIS,
        .heartbeat_chosen = true,
        .reports_busy = true,
        .uncaught_is_stop = true,
        .counts_outcomes = true,
        .sent_usec = 5 * USEC_PER_SEC,
        .stale_usec = 30 * USEC_PER_SEC,
};

const char *const native_field_names[_NATIVE_FIELD_MAX] = {
        [NATIVE_V] = "v",
        [NATIVE_HEARTBEAT] = "beat",
        [NATIVE_BUSY] = "busy",
        [NATIVE_QUIET] = "quiet",
        [NATIVE_START] = "start",
        [NATIVE_CONCURRENCY] = "concurrency",
        [NATIVE_QUIET_SIG] = "quiet_sig",
        [NATIVE_RESUME_SIG] = "resume_sig",
        [NATIVE_STOP_SIG] = "stop_sig",
        [NATIVE_PROCESSED] = "processed",
        [NATIVE_FAILED] = "failed",
        [NATIVE_LOOKED] = "looked",
        [NATIVE_POLLING] = "polling",
};

/* The longest job id, job class and queue name in a file. */
#define ID_BYTES_MAX    64
#define CLASS_BYTES_MAX 128
#define QUEUE_BYTES_MAX 250

/* Another party may write a record. Signals that cannot be caught, or that report a fault, are never sent
 * because of a record. */
struct permitted {
        const char *name;
        int signo;
        bool stops; /* may be used as the stop signal */
};

static const struct permitted permitted[] = {
        {"TERM", SIGTERM, true},    {"INT", SIGINT, true},    {"QUIT", SIGQUIT, true},
        {"HUP", SIGHUP, true},      {"USR1", SIGUSR1, true},  {"USR2", SIGUSR2, true},
        {"TSTP", SIGTSTP, false},   {"TTIN", SIGTTIN, false}, {"TTOU", SIGTTOU, false},
        {"WINCH", SIGWINCH, false}, {"CONT", SIGCONT, false},
};

static bool signal_is_permitted(int signo, bool stops)
{
        for (size_t i = 0; i < ELEMENTSOF(permitted); i++)
                if (permitted[i].signo == signo)
                        return permitted[i].stops || !stops;
        return false;
}

bool native_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        const char *colon = memrchr(text, ':', len);

        if (!colon || colon == text || memchr(text, '\0', len) ||
            !decode_pid(colon + 1, (size_t)(text + len - (colon + 1)), ret_pid))
                return false;
        *ret_host_len = (size_t)(colon - text);
        return true;
}

static bool decode_signal(const struct field *field, bool stops, int *ret)
{
        if (!field->text)
                return true;
        for (size_t i = 0; i < ELEMENTSOF(permitted); i++)
                if ((permitted[i].stops || !stops) && decode_field_is(field, permitted[i].name)) {
                        *ret = permitted[i].signo;
                        return true;
                }
        return false;
}

/* The resume signal is never sent by this version. An empty field says that there is none. */
static bool resume_is_permitted(const struct field *field)
{
        int signo;

        return decode_field_is(field, "") || decode_signal(field, false, &signo);
}

static bool decode_number(const struct field *field, unsigned long long max, bool required,
                          unsigned long long *ret)
{
        return field->text ? decode_count(field->text, field->len, max, ret) : !required;
}

/* A span of 0 becomes 1, as 0 means that there is none. */
static bool decode_since(const struct field *field, usec_t *ret_usec)
{
        if (!field->text)
                return true;
        if (!decode_span(field->text, field->len, ret_usec))
                return false;
        *ret_usec = MAX(*ret_usec, (usec_t)1);
        return true;
}

bool native_decode(const struct field fields[static _NATIVE_FIELD_MAX], struct heartbeat *ret)
{
        const struct field *heartbeat = &fields[NATIVE_HEARTBEAT];
        unsigned long long busy, quiet, concurrency = 0, start = 0;
        struct heartbeat decoded = {0};

        if (!decode_field_is(&fields[NATIVE_V], "1"))
                return false;
        if (!heartbeat->text || !decode_seconds(heartbeat->text, heartbeat->len, &decoded.sent_usec))
                return false;
        if (!decode_number(&fields[NATIVE_BUSY], DECODE_COUNT_MAX, true, &busy) ||
            !decode_number(&fields[NATIVE_QUIET], 1, true, &quiet) ||
            !decode_number(&fields[NATIVE_CONCURRENCY], DECODE_COUNT_MAX, false, &concurrency))
                return false;
        /* The kernel never reports 0. */
        if (!decode_number(&fields[NATIVE_START], UINT64_MAX, false, &start) ||
            (fields[NATIVE_START].text && start == 0))
                return false;
        if (!decode_signal(&fields[NATIVE_QUIET_SIG], false, &decoded.quiet_signal) ||
            !resume_is_permitted(&fields[NATIVE_RESUME_SIG]) ||
            !decode_signal(&fields[NATIVE_STOP_SIG], true, &decoded.stop_signal))
                return false;
        if (!decode_since(&fields[NATIVE_LOOKED], &decoded.looked_usec) ||
            !decode_since(&fields[NATIVE_POLLING], &decoded.polling_usec))
                return false;
        decoded.busy = (unsigned)busy;
        decoded.quiet = quiet == 1;
        decoded.concurrency = (unsigned)concurrency;
        decoded.start = start;
        decoded.outcomes = decode_outcomes(&fields[NATIVE_PROCESSED], &fields[NATIVE_FAILED]);
        *ret = decoded;
        return true;
}

static struct field *find_field(const struct field *name, struct field fields[static _NATIVE_FIELD_MAX])
{
        for (size_t i = 0; i < _NATIVE_FIELD_MAX; i++)
                if (decode_field_is(name, native_field_names[i]))
                        return &fields[i];
        return NULL;
}

static bool take_line(struct native_lines *lines, const struct field *name, const struct field *value)
{
        struct native_items *items = decode_field_is(name, "job") ? &lines->jobs : NULL;

        if (decode_field_is(name, "queue"))
                items = &lines->queues;
        if (items) {
                if (items->n == NATIVE_ITEMS_MAX)
                        return false;
                items->list[items->n++] = *value;
                return true;
        }
        struct field *field = find_field(name, lines->fields);
        if (field && field->text)
                return false;
        if (field)
                *field = *value;
        return true;
}

bool native_split(const char *text, size_t len, struct native_lines *ret)
{
        const char *end = text + len;

        memset(ret, 0, sizeof(*ret));
        while (text < end) {
                const char *line_end = memchr(text, '\n', (size_t)(end - text));
                if (!line_end)
                        return false;
                const char *equals = memchr(text, '=', (size_t)(line_end - text));
                if (!equals)
                        return false;
                const struct field name = {text, (size_t)(equals - text)};
                const struct field value = {equals + 1, (size_t)(line_end - (equals + 1))};
                if (!take_line(ret, &name, &value))
                        return false;
                text = line_end + 1;
        }
        return true;
}

static void put_printable(char *ret, const char *text, size_t len)
{
        memcpy(ret, text, len);
        ret[len] = '\0';
        printable_replace(ret, len, false);
}

static char *copy_printable(const char *text, size_t len)
{
        char *copy = malloc(len + 1);

        if (copy)
                put_printable(copy, text, len);
        return copy;
}

/* Decodes `ID START CLASS`. The class may be empty or contain spaces. */
static int decode_job_line(struct job *job)
{
        const char *id = job->entry, *end = id + job->entry_len;
        const char *start = memchr(id, ' ', job->entry_len);
        const char *class = start ? memchr(start + 1, ' ', (size_t)(end - (start + 1))) : NULL;

        if (!class || start == id || start - id > ID_BYTES_MAX || end - (class + 1) > CLASS_BYTES_MAX ||
            !decode_seconds(start + 1, (size_t)(class - (start + 1)), &job->started_usec))
                return -EINVAL;
        for (const char *at = id; at < start; at++)
                if ((unsigned char)*at < ' ' || *at == 0x7F)
                        return -EINVAL;
        job->jid = copy_printable(id, (size_t)(start - id));
        job->class = copy_printable(class + 1, (size_t)(end - (class + 1)));
        job->queue = strdup("");
        return job->jid && job->class && job->queue ? 0 : -ENOMEM;
}

static int take_jobs(const struct native_items *lines, struct job_list *ret)
{
        const struct field no_thread = {.text = ""};
        size_t bytes = SIZE_MAX;

        for (size_t i = 0; i < lines->n; i++)
                if (job_list_add(ret, false, &no_thread, &lines->list[i]) < 0)
                        return -ENOMEM;
        if (job_list_decode(ret, decode_job_line, &bytes) < 0)
                return -ENOMEM;
        return job_list_unknown(ret) > 0 ? -EINVAL : 0;
}

/* The names that a worker serves, without those that HEARTBEAT_QUEUES_MAX leaves out. */
static int take_queues(const struct native_items *lines, unsigned concurrency, struct heartbeat_info **ret)
{
        size_t size = 1, length = 0;

        for (size_t i = 0; i < lines->n; i++) {
                if (lines->list[i].len == 0 || lines->list[i].len > QUEUE_BYTES_MAX)
                        return -EINVAL;
                size += lines->list[i].len + 1;
        }
        if (lines->n == 0)
                return 0;
        struct heartbeat_info *info = calloc(1, sizeof(*info) + size);
        if (!info)
                return -ENOMEM;
        info->concurrency = concurrency;
        for (size_t i = 0; i < lines->n; i++) {
                char name[QUEUE_BYTES_MAX + 1];
                size_t bytes = lines->list[i].len + 1;

                put_printable(name, lines->list[i].text, lines->list[i].len);
                if (length + bytes > HEARTBEAT_QUEUES_MAX || queue_names_have(info->queues, name))
                        continue;
                memcpy(info->queues + length, name, bytes);
                length += bytes;
        }
        *ret = info;
        return 0;
}

int native_take_record(const char *text, size_t len, struct heartbeat_record *ret)
{
        struct heartbeat_record record = {0};
        struct native_lines lines;

        if (!native_split(text, len, &lines) || !native_decode(lines.fields, &record.heartbeat))
                return -EINVAL;
        int r = take_jobs(&lines.jobs, &record.jobs);
        if (r == 0)
                r = take_queues(&lines.queues, record.heartbeat.concurrency, &record.info);
        if (r < 0) {
                heartbeat_record_clear(&record);
                return r;
        }
        *ret = record;
        return 0;
}

const struct framework native_framework = {
        .traits = &native_traits,
        .quiet_signal = SIGTSTP,
        .stop_signal = SIGTERM,
        /* No wake_signal: CONT may be the worker's resume signal, and the worker would accept jobs again.
         * A frozen worker gets its stop_timeout. */
        .identity_parse = native_identity_parse,
        .member_nsec = 500,
        .signal_is_permitted = signal_is_permitted,
        .reports_start = true,
};
