/* SPDX-License-Identifier: MIT */
/* The heartbeat of a worker that implements sqmgr-heartbeat(7); see the header. */
#include "frameworks/native/native.h"
#include "base/usec.h"
#include "frameworks/decode_outcomes.h"
#include "frameworks/framework.h"
#include "model/worker.h"
#include "settings/traits.h"
#include <signal.h>
#include <string.h>

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
};

/* No process has more jobs or threads: a larger number is garbage. */
#define COUNT_MAX 1000000

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

bool native_decode(const struct field fields[static _NATIVE_FIELD_MAX], struct heartbeat *ret)
{
        const struct field *heartbeat = &fields[NATIVE_HEARTBEAT];
        unsigned long long busy, quiet, concurrency = 0, start = 0;
        struct heartbeat decoded = {0};

        if (!decode_field_is(&fields[NATIVE_V], "1"))
                return false;
        if (!heartbeat->text || !decode_seconds(heartbeat->text, heartbeat->len, &decoded.sent_usec))
                return false;
        if (!decode_number(&fields[NATIVE_BUSY], COUNT_MAX, true, &busy) ||
            !decode_number(&fields[NATIVE_QUIET], 1, true, &quiet) ||
            !decode_number(&fields[NATIVE_CONCURRENCY], COUNT_MAX, false, &concurrency))
                return false;
        /* The kernel never reports 0. */
        if (!decode_number(&fields[NATIVE_START], UINT64_MAX, false, &start) ||
            (fields[NATIVE_START].text && start == 0))
                return false;
        if (!decode_signal(&fields[NATIVE_QUIET_SIG], false, &decoded.quiet_signal) ||
            !resume_is_permitted(&fields[NATIVE_RESUME_SIG]) ||
            !decode_signal(&fields[NATIVE_STOP_SIG], true, &decoded.stop_signal))
                return false;
        decoded.busy = (unsigned)busy;
        decoded.quiet = quiet == 1;
        decoded.concurrency = (unsigned)concurrency;
        decoded.start = start;
        decoded.outcomes = decode_outcomes(&fields[NATIVE_PROCESSED], &fields[NATIVE_FAILED]);
        *ret = decoded;
        return true;
}

static struct field *find_field(const char *name, size_t len, struct field fields[static _NATIVE_FIELD_MAX])
{
        for (size_t i = 0; i < _NATIVE_FIELD_MAX; i++)
                if (strlen(native_field_names[i]) == len && memcmp(native_field_names[i], name, len) == 0)
                        return &fields[i];
        return NULL;
}

bool native_lines(const char *text, size_t len, struct field ret[static _NATIVE_FIELD_MAX])
{
        const char *end = text + len;

        memset(ret, 0, _NATIVE_FIELD_MAX * sizeof(ret[0]));
        while (text < end) {
                const char *line_end = memchr(text, '\n', (size_t)(end - text));
                if (!line_end)
                        return false;
                const char *equals = memchr(text, '=', (size_t)(line_end - text));
                if (!equals)
                        return false;
                struct field *field = find_field(text, (size_t)(equals - text), ret);
                if (field && field->text)
                        return false;
                if (field)
                        *field = (struct field){equals + 1, (size_t)(line_end - (equals + 1))};
                text = line_end + 1;
        }
        return true;
}

bool native_take_record(const char *text, size_t len, struct heartbeat *ret)
{
        struct field fields[_NATIVE_FIELD_MAX];

        return native_lines(text, len, fields) && native_decode(fields, ret);
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
        .take_record = native_take_record,
};
