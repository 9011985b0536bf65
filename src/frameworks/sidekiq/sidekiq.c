/* SPDX-License-Identifier: MIT */
/* A Sidekiq of 5 to 8 as its machine shows it, and its signals; see the header. */
#include "base/argv.h"
#include "base/parse.h"
#include "frameworks/sidekiq/format.h"
#include <signal.h>

#define SHUTDOWN_SECONDS_MAX (USEC_PER_DAY / USEC_PER_SEC)

/* The last option counts, as in Sidekiq itself. The options of a wrapper command come before Sidekiq's. */
static usec_t words_shutdown_usec(char *const *words)
{
        usec_t found = 0;
        uint64_t seconds;

        for (; *words; words++) {
                const char *value = NULL;

                if (strcmp(*words, "-t") == 0 || strcmp(*words, "--timeout") == 0)
                        value = words[1];
                else if (strncmp(*words, "--timeout=", strlen("--timeout=")) == 0)
                        value = *words + strlen("--timeout=");
                else if (strncmp(*words, "-t", 2) == 0)
                        value = *words + 2;
                if (value && parse_unsigned(value, 1, SHUTDOWN_SECONDS_MAX, &seconds) == 0)
                        found = seconds * USEC_PER_SEC;
        }
        return found;
}

/* The text may contain other commands: only the options after `sidekiq` belong to Sidekiq. */
static usec_t title_shutdown_usec(const char *title)
{
        _cleanup_argv_ char **words = NULL;
        const char *error;

        if (argv_split(title, &words, &error) < 0)
                return 0;
        for (char **word = words; *word; word++) {
                const char *slash = strrchr(*word, '/');

                if (strcmp(slash ? slash + 1 : *word, "sidekiq") == 0)
                        return words_shutdown_usec(word);
        }
        return 0;
}

static usec_t command_shutdown_usec(char *const *argv)
{
        usec_t found = words_shutdown_usec(argv);

        /* For example `sh -c 'exec sidekiq -t 90'`: a whole command within one argument. */
        for (; found == 0 && *argv; argv++)
                if (strchr(*argv, ' '))
                        found = title_shutdown_usec(*argv);
        return found;
}

const struct traits sidekiq_traits = {
        .name = "sidekiq",
        .title = "Sidekiq",
        .id = 0,
        .has_work_list = true,
        .can_rescue = true,
        .resumes_jobs = true,
        .can_preload = true,
        .counts_outcomes = true,
        .outcomes_by_script = true,
        .reports_queues = true,
        .records_workers = true,
        .reports_busy = true,
        .has_job_threads = true,
        .has_title = true,
        /* Default of -t: how long Sidekiq waits for its jobs before it puts them back. */
        .shutdown_usec = 25 * USEC_PER_SEC,
        .shutdown_option = "-t",
        .command_shutdown_usec = command_shutdown_usec,
        .title_shutdown_usec = title_shutdown_usec,
        /* A heartbeat is due every 5 s, or every 10 s from 7.0 on. */
        .sent_usec = 10 * USEC_PER_SEC,
        .stale_usec = 30 * USEC_PER_SEC,
        .signals_by_server = true,
        .shows_due_jobs = true,
        .host_variable = "DYNO",
        .oldest_version = 5,
};

#define NONCE_DIGITS 12

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

bool sidekiq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        if (len < NONCE_DIGITS + 1 || memchr(text, '\0', len))
                return false;
        const char *nonce = text + len - NONCE_DIGITS;
        if (nonce[-1] != ':')
                return false;
        for (size_t i = 0; i < NONCE_DIGITS; i++)
                if (!is_digit(nonce[i]) && !(nonce[i] >= 'a' && nonce[i] <= 'f'))
                        return false;

        const char *colon = memrchr(text, ':', (size_t)(nonce - 1 - text));
        if (!colon || colon == text || !decode_pid(colon + 1, (size_t)(nonce - 1 - (colon + 1)), ret_pid))
                return false;
        *ret_host_len = (size_t)(colon - text);
        return true;
}

/* Is comm this name, as truncated by the kernel? */
static bool comm_is(const char *comm, const char *prefix, const char *capsule, const char *suffix)
{
        char name[HEARTBEAT_COMM_MAX + 1] = "";

        strncat(name, prefix, HEARTBEAT_COMM_MAX);
        strncat(name, capsule, HEARTBEAT_COMM_MAX - strlen(name));
        strncat(name, suffix, HEARTBEAT_COMM_MAX - strlen(name));
        return strcmp(comm, name) == 0;
}

bool sidekiq_thread_is_processor(const char *comm, const struct heartbeat_info *info)
{
        if (strcmp(comm, "processor") == 0) /* Sidekiq 6.x */
                return true;
        if (comm_is(comm, "sidekiq.", "heartbeat", "") || comm_is(comm, "sidekiq.", "scheduler", ""))
                return false;

        size_t n = info ? info->n_capsules : 0;
        for (size_t i = 0; i < MAX(n, 1U); i++) {
                const char *capsule = n > 0 ? info->capsules[i] : "default";
                /* 7.0 names a thread CAPSULE/processor; 7.1 and later sidekiq.CAPSULE/processor, of which
                 * the kernel keeps little more than the capsule. */
                if (comm_is(comm, "", capsule, "/processor") ||
                    comm_is(comm, "sidekiq.", capsule, "/processor") ||
                    comm_is(comm, "sidekiq.", capsule, ""))
                        return true;
        }
        return false;
}

/* Reads the number at *text and the text that must follow it; moves *text behind both. */
static bool take_count(const char **text, const char *follow, unsigned *ret)
{
        unsigned long long value;
        size_t len = strspn(*text, "0123456789");

        if (!decode_count(*text, len, DECODE_COUNT_MAX, &value) ||
            strncmp(*text + len, follow, strlen(follow)) != 0)
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

        /* The tag may contain brackets too: the last one counts. */
        const char *status = strrchr(version + len, '[');
        if (!status || status[-1] != ' ')
                return false;
        status++;
        if (!take_count(&status, " of ", &parsed.busy) || !take_count(&status, " busy]", &parsed.concurrency))
                return false;

        /* Paid editions and plugins append text of their own. */
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

const struct framework sidekiq_framework = {
        .traits = &sidekiq_traits,
        .quiet_signal = SIGTSTP,
        .stop_signal = SIGTERM,
        /* A worker that got TSTP while booting is stopped by the kernel, and TERM would stay pending
         * forever. */
        .wake_signal = SIGCONT,
        .thread_is_processor = sidekiq_thread_is_processor,
        .title_parse = sidekiq_title_parse,
        .title_program = "ruby",
        .identity_parse = sidekiq_identity_parse,
        .member_nsec = 500,
        .has_queues = true,
        .reports_birth = true,
        .queue_names = heartbeat_info_queues,
};
