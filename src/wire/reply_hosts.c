/* SPDX-License-Identifier: MIT */
/* Formats replies to GetRollouts as the phrases that both the terminal and the page show. */
#include "wire/reply_hosts.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

/* A host reports every minute, and every 10 s while rolling. */
#define SILENT_USEC (150 * USEC_PER_SEC)

static const char *const names[] = {
        [REPLY_HOST_FAILED] = "failed",   [REPLY_HOST_LOST] = "lost", [REPLY_HOST_ROLLING] = "rolling",
        [REPLY_HOST_WAITING] = "waiting", [REPLY_HOST_DONE] = "done",
};
DEFINE_ENUM_NAMES(reply_host_state_name, enum reply_host_state, _REPLY_HOST_MAX, names)

enum reply_host_state reply_host_state(const json_t *host)
{
        const char *name = reply_string(host, "state");

        for (int state = 0; state < _REPLY_HOST_MAX; state++)
                if (strcmp(names[state], name) == 0)
                        return (enum reply_host_state)state;
        return REPLY_HOST_WAITING;
}

bool reply_hosts_is_begun(const json_t *rollout)
{
        return reply_integer(rollout, "epoch") > 0 && !reply_is(rollout, "state", "none");
}

bool reply_host_is_silent(const json_t *host)
{
        return reply_usec(host, "seen_seconds") > SILENT_USEC;
}

bool reply_host_progress(const json_t *host, unsigned *ret_n, unsigned *ret_of)
{
        const json_t *counts = json_object_get(host, "counts");
        long long n = reply_integer(counts, "replaced"), of = reply_integer(counts, "total");

        if (n < 0 || n > of || of == 0 || of > UINT32_MAX)
                return false;
        *ret_n = (unsigned)n;
        *ret_of = (unsigned)of;
        return true;
}

static const char *silence(const json_t *host, char text[static REPLY_HOST_WHY_MAX])
{
        char span[FORMAT_MAX];

        snprintf(text, REPLY_HOST_WHY_MAX, "no report for %s", reply_seconds(host, "seen_seconds", span));
        return text;
}

const char *reply_host_why(const json_t *rollout, const json_t *host, char text[static REPLY_HOST_WHY_MAX])
{
        const char *progress = reply_string(host, "progress");

        text[0] = '\0';
        switch (reply_host_state(host)) {
        case REPLY_HOST_FAILED:
                snprintf(text, REPLY_HOST_WHY_MAX, "%.400s", reply_string(host, "error"));
                return text;
        case REPLY_HOST_LOST:
                return silence(host, text);
        case REPLY_HOST_ROLLING:
                snprintf(text, REPLY_HOST_WHY_MAX, "%.400s",
                         progress[0] != '\0' ? progress : "restart started");
                return text;
        case REPLY_HOST_DONE:
                if (json_is_false(json_object_get(host, "drained")))
                        snprintf(text, REPLY_HOST_WHY_MAX, "old workers finish their jobs");
                return text;
        default:
                if (reply_host_is_silent(host))
                        return silence(host, text);
                if (progress[0] != '\0')
                        snprintf(text, REPLY_HOST_WHY_MAX, "%.400s", progress);
                else if (reply_is(rollout, "state", "running"))
                        snprintf(text, REPLY_HOST_WHY_MAX, "until a rolling host is done");
                else if (reply_is(rollout, "state", "aborted"))
                        snprintf(text, REPLY_HOST_WHY_MAX, "not reached");
                return text;
        }
}

struct reply_hosts reply_hosts_count(const json_t *rollout)
{
        struct reply_hosts count = {0};
        const json_t *host;
        double done = 0;
        unsigned n, of;

        json_foreach_in(host, rollout, "hosts") {
                enum reply_host_state state = reply_host_state(host);

                count.all++;
                count.n[state]++;
                if (state == REPLY_HOST_DONE) {
                        count.draining += json_is_false(json_object_get(host, "drained"));
                        done++;
                } else if (state == REPLY_HOST_ROLLING && reply_host_progress(host, &n, &of)) {
                        done += (double)n / (double)of;
                }
        }
        count.share = count.all > 0 ? done / (double)count.all : 0;
        return count;
}

/* Among done hosts the most recent comes first. Ties are sorted by name in version order: 9 before 10. */
static int compare_hosts(const void *left, const void *right)
{
        const json_t *a = *(const json_t *const *)left, *b = *(const json_t *const *)right;
        enum reply_host_state a_state = reply_host_state(a), b_state = reply_host_state(b);

        if (a_state != b_state)
                return a_state < b_state ? -1 : 1;
        if (a_state == REPLY_HOST_WAITING && reply_host_is_silent(a) != reply_host_is_silent(b))
                return reply_host_is_silent(a) ? -1 : 1;
        if (a_state == REPLY_HOST_DONE) {
                usec_t a_ago = reply_usec(a, "seconds"), b_ago = reply_usec(b, "seconds");

                if (a_ago != b_ago)
                        return a_ago < b_ago ? -1 : 1;
        }
        return strverscmp(reply_string(a, "host"), reply_string(b, "host"));
}

const json_t **reply_hosts_sort(const json_t *rollout, size_t *ret_n)
{
        const json_t *list = json_object_get(rollout, "hosts");
        size_t n = json_array_size(list);
        const json_t **sorted = calloc(n + 1, sizeof(*sorted));

        if (!sorted)
                return NULL;
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(list, i);
        qsort(sorted, n, sizeof(*sorted), compare_hosts);
        *ret_n = n;
        return sorted;
}

/* Appends to a buffer of REPLY_HOSTS_MAX bytes. */
#define add(text, ...) text_append(text, REPLY_HOSTS_MAX, __VA_ARGS__)

/* Redis did not answer: a reply that Redis answered lists at least this host. */
static bool is_unreported(const json_t *rollout)
{
        return reply_string(rollout, "trouble")[0] != '\0' &&
               json_array_size(json_object_get(rollout, "hosts")) == 0;
}

const char *reply_hosts_title(const json_t *rollout, char text[static REPLY_HOSTS_MAX])
{
        const char *group = reply_string(rollout, "group");
        long long epoch = reply_integer(rollout, "epoch");

        text[0] = '\0';
        if (reply_hosts_is_begun(rollout))
                add(text, "rollout %lld of group '%.256s' %.32s", epoch, group,
                    reply_string(rollout, "state"));
        else if (is_unreported(rollout) && epoch > 0)
                add(text, "group '%.256s': state of rollout %lld unknown (Redis does not answer)", group,
                    epoch);
        else if (is_unreported(rollout))
                add(text, "group '%.256s': unknown whether a rollout was started (Redis does not answer)",
                    group);
        else
                add(text, "group '%.256s': no rollout started yet", group);
        return text;
}

/* Appends the separator if text is not empty. */
static char *next(char *text)
{
        add(text, "%s", text[0] != '\0' ? ", " : "");
        return text;
}

const char *reply_hosts_details(const json_t *rollout, char text[static REPLY_HOSTS_MAX])
{
        const char *release = reply_string(rollout, "release"), *on = reply_string(rollout, "began_by");
        const char *at_once = reply_string(rollout, "hosts_at_once");
        bool continues = reply_is(rollout, "state", "running") || reply_is(rollout, "state", "halted");
        char span[FORMAT_MAX];

        text[0] = '\0';
        if (!reply_hosts_is_begun(rollout))
                return text;
        if (release[0] != '\0')
                add(next(text), "release '%.256s'", release);
        if (continues && at_once[0] != '\0')
                add(next(text), "%.16s%s at a time", at_once,
                    strchr(at_once, '%')        ? " of the hosts"
                    : strcmp(at_once, "1") == 0 ? " host"
                                                : " hosts");
        if (json_is_number(json_object_get(rollout, "age_seconds")))
                add(next(text), "started %s ago", reply_seconds(rollout, "age_seconds", span));
        else if (on[0] != '\0')
                add(next(text), "started");
        if (on[0] != '\0')
                add(text, " on %.256s", on);
        return text;
}

const char *reply_hosts_progress(const json_t *rollout, char text[static REPLY_HOSTS_MAX])
{
        static const enum reply_host_state others[] = {REPLY_HOST_ROLLING, REPLY_HOST_FAILED,
                                                       REPLY_HOST_LOST};
        struct reply_hosts count = reply_hosts_count(rollout);
        usec_t left = reply_usec(rollout, "left_seconds");
        char span[FORMAT_MAX];

        text[0] = '\0';
        add(text, "%zu of %zu host%s done", count.n[REPLY_HOST_DONE], count.all, count.all == 1 ? "" : "s");
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (count.n[others[i]] > 0)
                        add(text, ", %zu %s", count.n[others[i]], names[others[i]]);
        if (count.draining > 0)
                add(text, ", %zu draining", count.draining);
        /* From 2 minutes up, seconds would be false precision. */
        usec_t unit = left < 2 * USEC_PER_MIN ? USEC_PER_SEC : USEC_PER_MIN;
        if (reply_is(rollout, "state", "running") && left > 0)
                add(text, ", about %s left",
                    format_duration((left + unit - 1) / unit * unit, span, sizeof(span)));
        return text;
}

const char *reply_hosts_left(const json_t *rollout, char text[static REPLY_HOSTS_MAX])
{
        const json_t *list = json_object_get(rollout, "left"), *name;
        size_t i;

        text[0] = '\0';
        json_array_foreach(list, i, name)
        {
                if (strlen(text) > REPLY_HOSTS_MAX - 400) {
                        add(text, " and %zu more", json_array_size(list) - i);
                        break;
                }
                add(text, "%s%.256s", i == 0 ? "no longer waited for: " : ", ",
                    json_string_value(name) ?: "?");
        }
        return text;
}

const json_t *reply_hosts_missing(const json_t *rollout)
{
        const json_t *host, *silent = NULL;

        json_foreach_in(host, rollout, "hosts") {
                enum reply_host_state state = reply_host_state(host);

                if (state == REPLY_HOST_LOST)
                        return host;
                if (!silent && state == REPLY_HOST_WAITING && reply_host_is_silent(host))
                        silent = host;
        }
        return reply_is(rollout, "state", "running") ? silent : NULL;
}
