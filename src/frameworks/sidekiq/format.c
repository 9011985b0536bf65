/* SPDX-License-Identifier: MIT */
/* What Sidekiq 5 to 8 looks like from outside; see the header. */
#include "frameworks/sidekiq/format.h"
#include "base/parse.h"
#include "wire/json.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

static usec_t command_shutdown_usec(char *const *argv)
{
        uint64_t seconds;

        for (; argv && *argv; argv++) {
                const char *value = NULL;

                if (strcmp(*argv, "-t") == 0 || strcmp(*argv, "--timeout") == 0)
                        value = argv[1];
                else if (strncmp(*argv, "--timeout=", strlen("--timeout=")) == 0)
                        value = *argv + strlen("--timeout=");
                else if (strncmp(*argv, "-t", 2) == 0)
                        value = *argv + 2;
                if (value && parse_unsigned(value, 1, USEC_PER_DAY, &seconds) == 0)
                        return seconds * USEC_PER_SEC;
        }
        return 0;
}

const struct traits sidekiq_traits = {
        .name = "sidekiq",
        .title = "Sidekiq",
        .id = 0,
        .has_work_list = true,
        .has_job_threads = true,
        /* Its -t: so long it waits for its jobs before it puts them back. */
        .shutdown_usec = 25 * USEC_PER_SEC,
        .shutdown_option = "-t",
        .command_shutdown_usec = command_shutdown_usec,
        /* A beat is due every 5 s, or 10 s from 7.0 on. */
        .stale_usec = 30 * USEC_PER_SEC,
        .host_variable = "DYNO",
        .oldest_version = 5,
};

#define NONCE_DIGITS 12

/* More jobs or threads than this no process has: such a number is garbage. */
#define COUNT_MAX 1000000
/* What no machine has, as yet. */
#define RSS_KIB_MAX (1ULL << 40)

/* Above it a stamp counts milliseconds: as seconds it would be of the year 5138. */
#define STAMP_SECONDS_MAX 1e11

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* A decimal number of len digits, at most max, without needless zeros in front. */
static bool parse_count(const char *text, size_t len, unsigned long long max, unsigned long long *ret)
{
        unsigned long long value = 0;

        if (len == 0 || len > 18 || (len > 1 && text[0] == '0'))
                return false;
        for (const char *end = text + len; text < end; text++) {
                unsigned digit = (unsigned)*text - '0';

                if (digit > 9)
                        return false;
                value = value * 10 + digit;
        }
        if (value > max)
                return false;
        *ret = value;
        return true;
}

bool sidekiq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        unsigned long long pid;

        if (len < NONCE_DIGITS + 1 || memchr(text, '\0', len))
                return false;
        const char *nonce = text + len - NONCE_DIGITS;
        if (nonce[-1] != ':')
                return false;
        for (size_t i = 0; i < NONCE_DIGITS; i++)
                if (!is_digit(nonce[i]) && !(nonce[i] >= 'a' && nonce[i] <= 'f'))
                        return false;

        const char *colon = memrchr(text, ':', (size_t)(nonce - 1 - text));
        if (!colon || colon == text)
                return false;
        if (!parse_count(colon + 1, (size_t)(nonce - 1 - (colon + 1)), INT_MAX, &pid) || pid == 0)
                return false;
        *ret_host_len = (size_t)(colon - text);
        *ret_pid = (pid_t)pid;
        return true;
}

char *sidekiq_key(const char *namespace, const char *name, const char *suffix)
{
        bool prefixed = namespace && *namespace;
        char *key;

        if (asprintf(&key, "%s%s%s%s%s", prefixed ? namespace : "", prefixed ? ":" : "", name,
                     suffix ? ":" : "", suffix ? suffix : "") < 0)
                return NULL;
        return key;
}

char *sidekiq_identity_pattern(const char *host)
{
        char *pattern = malloc(2 * strlen(host) + sizeof(":*"));
        char *out = pattern;

        if (!pattern)
                return NULL;
        for (; *host; host++) {
                if (strchr("*?[]^-\\", *host))
                        *out++ = '\\';
                *out++ = *host;
        }
        memcpy(out, ":*", sizeof(":*"));
        return pattern;
}

bool sidekiq_time_parse(const char *text, size_t len, uint64_t *ret_usec)
{
        const char *dot = memchr(text, '.', len);
        size_t whole = dot ? (size_t)(dot - text) : len;
        unsigned long long seconds;
        uint64_t fraction = 0;

        /* Up to the year 5138, which leaves a count of microseconds all its room. */
        if (!parse_count(text, whole, 99999999999ULL, &seconds) || seconds == 0)
                return false;
        if (dot) {
                uint64_t unit = USEC_PER_SEC / 10;
                if (whole + 1 == len)
                        return false;
                for (size_t i = whole + 1; i < len; i++, unit /= 10) {
                        if (!is_digit(text[i]))
                                return false;
                        fraction += unit * (unsigned)(text[i] - '0');
                }
        }
        *ret_usec = seconds * USEC_PER_SEC + fraction;
        return true;
}

bool sidekiq_stamp_decode(const json_t *stamp, uint64_t *ret_usec)
{
        double at = json_number_value(stamp);

        if (!(at > 0) || at > STAMP_SECONDS_MAX * 1000)
                return false;
        *ret_usec = (uint64_t)(at > STAMP_SECONDS_MAX ? at * 1e3 : at * 1e6);
        return true;
}

static bool field_is(const struct field *field, const char *text)
{
        return field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

enum sidekiq_beat sidekiq_beat_decode(const struct field *busy, const struct field *beat,
                                      const struct field *quiet, const struct field *concurrency,
                                      const struct field *rss, struct heartbeat *ret)
{
        unsigned long long n_busy, n_concurrency = 0, rss_kib = 0;
        uint64_t beat_usec;

        if (!busy->text && !beat->text && !quiet->text && !concurrency->text)
                return SIDEKIQ_BEAT_MISSING;
        if (!busy->text || !beat->text || !quiet->text)
                return SIDEKIQ_BEAT_MALFORMED;

        bool is_quiet = field_is(quiet, "true");
        if (!is_quiet && !field_is(quiet, "false"))
                return SIDEKIQ_BEAT_MALFORMED;
        if (!parse_count(busy->text, busy->len, COUNT_MAX, &n_busy) ||
            !sidekiq_time_parse(beat->text, beat->len, &beat_usec))
                return SIDEKIQ_BEAT_MALFORMED;
        if (concurrency->text && !parse_count(concurrency->text, concurrency->len, COUNT_MAX, &n_concurrency))
                return SIDEKIQ_BEAT_MALFORMED;
        /* Nothing is decided by it. */
        if (rss->text && !parse_count(rss->text, rss->len, RSS_KIB_MAX, &rss_kib))
                rss_kib = 0;

        *ret = (struct heartbeat){
                .beat_usec = beat_usec,
                .busy = (unsigned)n_busy,
                .concurrency = (unsigned)n_concurrency,
                .quiet = is_quiet,
                .rss_bytes = rss_kib * 1024,
        };
        return SIDEKIQ_BEAT_DECODED;
}

/* Names come from outside: one that does not fit is cut, which is what the kernel does to thread names too.
 */
static void copy_cut(char *to, size_t size, const char *from)
{
        snprintf(to, size, "%s", from);
}

int sidekiq_info_decode(const struct field *field, struct sidekiq_info *ret)
{
        struct sidekiq_info info = {0};
        const char *name;
        json_t *capsule;

        json_t *root = NULL;
        if (!field->text || json_load(field->text, field->len, 0, &root) < 0 || !json_is_object(root)) {
                json_decref(root);
                return -EINVAL;
        }

        json_int_t concurrency = json_integer_value(json_object_get(root, "concurrency"));
        if (concurrency > 0 && concurrency <= COUNT_MAX)
                info.concurrency = (unsigned)concurrency;
        const char *version = json_string_value(json_object_get(root, "version"));
        if (version)
                copy_cut(info.version, sizeof(info.version), version);
        json_object_foreach(json_object_get(root, "capsules"), name, capsule)
        {
                if (info.n_capsules == SIDEKIQ_CAPSULES_MAX)
                        break;
                copy_cut(info.capsules[info.n_capsules++], sizeof(info.capsules[0]), name);
        }
        json_decref(root);
        *ret = info;
        return 0;
}

/* Is comm this name, as the kernel cuts it? */
static bool comm_is(const char *comm, const char *prefix, const char *capsule, const char *suffix)
{
        char name[SIDEKIQ_COMM_MAX + 1];

        copy_cut(name, sizeof(name), prefix);
        strncat(name, capsule, SIDEKIQ_COMM_MAX - strlen(name));
        strncat(name, suffix, SIDEKIQ_COMM_MAX - strlen(name));
        return strcmp(comm, name) == 0;
}

bool sidekiq_thread_is_processor(const char *comm, const struct sidekiq_info *info)
{
        if (strcmp(comm, "processor") == 0) /* 6.x */
                return true;
        if (comm_is(comm, "sidekiq.", "heartbeat", "") || comm_is(comm, "sidekiq.", "scheduler", ""))
                return false;

        size_t n = info ? info->n_capsules : 0;
        for (size_t i = 0; i < MAX(n, 1U); i++) {
                const char *capsule = n > 0 ? info->capsules[i] : "default";
                /* 7.0 names a thread CAPSULE/processor, 7.1 on sidekiq.CAPSULE/processor, of which little
                 * more than the capsule is left. */
                if (comm_is(comm, "", capsule, "/processor") ||
                    comm_is(comm, "sidekiq.", capsule, "/processor") ||
                    comm_is(comm, "sidekiq.", capsule, ""))
                        return true;
        }
        return false;
}

/* Reads the number at *text, and what must follow it; moves *text behind both. */
static bool take_count(const char **text, const char *follow, unsigned *ret)
{
        unsigned long long value;
        size_t len = strspn(*text, "0123456789");

        if (!parse_count(*text, len, COUNT_MAX, &value) || strncmp(*text + len, follow, strlen(follow)) != 0)
                return false;
        *text += len + strlen(follow);
        *ret = (unsigned)value;
        return true;
}

bool sidekiq_title_parse(const char *title, struct title *ret)
{
        struct title parsed = {0};

        if (strncmp(title, "sidekiq ", 8) != 0 || !is_digit(title[8]))
                return false;
        const char *version = title + 8;
        size_t len = strcspn(version, " ");
        if (len >= sizeof(parsed.version))
                return false;
        memcpy(parsed.version, version, len);

        /* The tag may hold brackets too: the last one counts. */
        const char *status = strrchr(version + len, '[');
        if (!status || status[-1] != ' ')
                return false;
        status++;
        if (!take_count(&status, " of ", &parsed.busy) || !take_count(&status, " busy]", &parsed.concurrency))
                return false;

        /* Paid editions and plugins add words of their own behind it. */
        static const char stopping[] = " stopping";
        if (strncmp(status, stopping, strlen(stopping)) == 0) {
                status += strlen(stopping);
                parsed.quiet = true;
        }
        if (*status != '\0' && *status != ' ')
                return false;
        *ret = parsed;
        return true;
}
