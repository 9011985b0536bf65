/* SPDX-License-Identifier: MIT */
/* The external interfaces of an RQ worker; see the header. */
#include "frameworks/rq/rq.h"
#include "frameworks/framework.h"
#include <signal.h>
#include <stdio.h>

#define ONE_NAME ", which gives all workers one name: RQ refuses a second one, so each restart halts"
#define OWN_NAME "Remove the option, or have a shell add $SQMGR_INDEX-$SQMGR_START to the name"
#define IS_BURST ", so workers without a job exit, and are started again"
#define IS_SHORT ", so a worker exits after its last job, before another one has booted"
#define IS_POOL  ", which starts several workers behind one process"
#define USE_SIZE "Use 'rq worker', and let sqmgr choose the number of workers"

/* rq/cli/cli.py. */
static const struct command_flaw command_flaws[] = {
        {{"-n"}, true, ONE_NAME, OWN_NAME, {NULL}},
        {{"--name"}, true, ONE_NAME, OWN_NAME, {NULL}},
        {{"-b"}, false, IS_BURST, "Remove the option", {NULL}},
        {{"--burst"}, false, IS_BURST, "Remove the option", {NULL}},
        {{"--max-jobs"}, false, IS_SHORT, "Use memory_threshold or max_age instead", {NULL}},
        {{"worker-pool"}, true, IS_POOL, USE_SIZE, {NULL}},
        {.text = NULL},
};

static bool passes_option(char *const *argv, const char *option);

const struct traits rq_traits = {
        .name = "rq",
        .title = "RQ",
        .id = 3,
        .quiet_is_stop = true,
        .quiet_when_idle = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .counts_outcomes = true,
        /* An idle worker sends a heartbeat every 405 s; its record expires after 480 s. */
        .process_is_heartbeat = true,
        .stale_usec = 480 * USEC_PER_SEC,
        .command_flaws = command_flaws,
        .command_passes_option = passes_option,
};

#define KEY_PREFIX "rq:worker:"
#define KEY_MAX    1024

static bool begins(const char *text, size_t len, const char *prefix)
{
        return len > strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_key(const char *text, size_t len)
{
        return len <= KEY_MAX && begins(text, len, KEY_PREFIX) && !memchr(text, '\0', len);
}

char *rq_identity_make(const struct rq_worker *worker, int *ret_error)
{
        const struct field *host = &worker->host, *key = &worker->key;
        char *identity;
        pid_t pid;

        *ret_error = -EINVAL;
        if (!host->text || !key->text || !worker->pid.text || !decode_is_host(host->text, host->len) ||
            !is_key(key->text, key->len) || !decode_pid(worker->pid.text, worker->pid.len, &pid))
                return NULL;
        *ret_error = -ENOMEM;
        if (asprintf(&identity, "%.*s:%d:%.*s", (int)host->len, host->text, (int)pid, (int)key->len,
                     key->text) < 0)
                return NULL;
        return identity;
}

bool rq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        return decode_identity(text, len, is_key, ret_host_len, ret_pid);
}

const char *rq_identity_key(const char *identity)
{
        size_t host_len;
        pid_t pid;

        if (!rq_identity_parse(identity, strlen(identity), &host_len, &pid))
                return NULL;
        return strchr(identity + host_len + 1, ':') + 1;
}

/* The words of a command line. A wrapper may have several of them in one argument, and quotes around them. */
struct words {
        char *const *argv;
        const char *at; /* in *argv; NULL: at its start */
};

static bool next_word(struct words *words, struct field *ret)
{
        static const char between[] = " \t\n'\";";

        for (; *words->argv; words->argv++, words->at = NULL) {
                const char *from = words->at ?: *words->argv;

                from += strspn(from, between);
                if (*from == '\0')
                        continue;
                *ret = (struct field){.text = from, .len = strcspn(from, between)};
                words->at = from + ret->len;
                return true;
        }
        return false;
}

/* Skips `rq worker`, or `rqworker` as in old versions and Django, and a wrapper before it. */
static bool skip_to_arguments(struct words *words)
{
        struct field word;

        while (next_word(words, &word)) {
                const char *slash = memrchr(word.text, '/', word.len);
                size_t skipped = slash ? (size_t)(slash + 1 - word.text) : 0;
                const struct field name = {.text = word.text + skipped, .len = word.len - skipped};

                if (decode_field_is(&word, "worker") || decode_field_is(&name, "rqworker"))
                        return true;
        }
        return false;
}

/* The value of a short option may follow at once: `-nNAME`. */
static bool is_option(const struct field *word, const char *option)
{
        size_t len = strlen(option);

        return word->len >= len && memcmp(word->text, option, len) == 0 &&
               (option[1] != '-' || word->len == len || word->text[len] == '=');
}

/* A name with a variable of the shell, such as $SQMGR_INDEX, may differ by worker and does not count. */
static bool passes_option(char *const *argv, const char *option)
{
        bool is_name = strcmp(option, "-n") == 0 || strcmp(option, "--name") == 0;
        struct words words = {.argv = argv}, from = words;
        struct field word;

        /* A user, for whom another program starts RQ, may have the name `worker`, too. */
        while (option[0] == '-' && skip_to_arguments(&words))
                from = words;
        if (option[0] == '-' && !from.at)
                return false;
        /* In a script, another program may follow. */
        while (next_word(&from, &word) && !strchr("|&", word.text[0])) {
                if (!is_option(&word, option))
                        continue;
                if (word.len == strlen(option) && is_name && !next_word(&from, &word))
                        return false;
                return !is_name || !memchr(word.text, '$', word.len);
        }
        return false;
}

bool rq_title_parse(const char *title, struct title *ret)
{
        static const char prefix[] = "rq", named[] = ":worker:", listening[] = ": Listening on ";

        if (strncmp(title, prefix, strlen(prefix)) != 0)
                return false;
        const char *text = title + strlen(prefix);
        bool has_name = strncmp(text, named, strlen(named)) == 0;
        const char *listens = strstr(text, listening), *forked = strstr(text, ": Forked ");
        if (!listens && !forked)
                return false;
        if (!has_name && text != listens && text != forked)
                return false;
        *ret = (struct title){.busy = !!forked, .concurrency = 1};
        return true;
}

const struct framework rq_framework = {
        .traits = &rq_traits,
        .stop_signal = SIGTERM,
        .title_parse = rq_title_parse,
        .title_may_lack = true,
        .identity_parse = rq_identity_parse,
        .member_nsec = 1700,
        .reports_birth = true,
        .has_queues = true,
};
