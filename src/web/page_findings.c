/* SPDX-License-Identifier: MIT */
/* Findings: problems, their severity, and how to fix them. */
#include "web/page_findings.h"
#include "base/argv.h"
#include "wire/reply_hosts.h"
#include <stdarg.h>
#include <string.h>

#define TITLE_MAX 160

struct finding_search {
        const struct page *page;
        const char *socket;
        page_found found;
        void *userdata;
};

/* Appends a word, quoted for the shell if needed: a fleet's name must not inject commands. A word that does
 * not fit is left out. */
static void add_word(char *text, const char *word)
{
        size_t length = strlen(text), at = length;

        if (argv_is_plain(word)) {
                snprintf(text + length, PAGE_COMMAND_MAX - length, " %s", word);
                return;
        }
        if (length + 4 * strlen(word) + sizeof(" ''") > PAGE_COMMAND_MAX)
                return;
        at += (size_t)snprintf(text + at, PAGE_COMMAND_MAX - at, " '");
        for (; *word != '\0'; word++)
                at += (size_t)snprintf(text + at, PAGE_COMMAND_MAX - at, *word == '\'' ? "'\\''" : "%c",
                                       *word);
        snprintf(text + at, PAGE_COMMAND_MAX - at, "'");
}

/* Derives the control socket from the read socket. "" if sqmgrctl finds the control socket without an option,
 * or if the path has another form. */
static void control_socket(const char *socket, char *text, size_t size)
{
        static const char end[] = "read.sock";
        size_t length = strlen(socket), kept = length - strlen(end);

        text[0] = '\0';
        if (strcmp(socket, "/run/sqmgr/read.sock") == 0 || length < strlen(end) || length >= size ||
            strcmp(socket + kept, end) != 0)
                return;
        if (kept > 1 && socket[kept - 1] == '.')
                snprintf(text, size, "%.*ssock", (int)kept, socket);
        else
                snprintf(text, size, "%.*scontrol.sock", (int)kept, socket);
}

const char *page_command(const char *socket, const char *verb, const char *word,
                         char text[static PAGE_COMMAND_MAX])
{
        char path[128];

        control_socket(socket, path, sizeof(path));
        snprintf(text, PAGE_COMMAND_MAX, "sqmgrctl");
        if (path[0] != '\0') {
                snprintf(text, PAGE_COMMAND_MAX, "sqmgrctl -s");
                add_word(text, path);
        }
        snprintf(text + strlen(text), PAGE_COMMAND_MAX - strlen(text), " %s", verb);
        if (word)
                add_word(text, word);
        return text;
}

enum kind {
        ROLLOUT_HALTED,
        WORKERS_FAIL,
        WORKERS_RECOVER,
        TOO_FEW_WORKERS,
        WORKERS_HANG,
        WORKERS_NEED_ATTENTION,
        NOT_RUNNING,
        TEMPLATE_REFUSED,
        HOSTS_HALTED,
        REDIS_DOWN,
        REDIS_UNKNOWN,
        OTHER,
        _KIND_MAX
};

/* The level and remedy of each kind of finding. Commands are subcommands of sqmgrctl. */
static const struct page_finding kinds[] = {
        [ROLLOUT_HALTED] = {.level = PAGE_ACT,
                            .remedy = "Mend the release, then run",
                            .command = "restart",
                            .or_remedy = "Or go back to the old one, then run",
                            .or_command = "abort"},
        [WORKERS_FAIL] = {.level = PAGE_ACT, .remedy = "Mend that, then run", .command = "restart"},
        [WORKERS_RECOVER] = {.level = PAGE_ATTENTION, .remedy = "See what it died of:", .command = "events"},
        [TOO_FEW_WORKERS] = {.level = PAGE_ACT, .remedy = "See what sqmgr waits for:", .command = "doctor"},
        [WORKERS_HANG] = {.level = PAGE_ACT, .remedy = "See its story:", .command = "why"},
        [WORKERS_NEED_ATTENTION] = {.level = PAGE_ATTENTION, .remedy = "See its story:", .command = "why"},
        [NOT_RUNNING] = {.level = PAGE_ATTENTION, .remedy = "To bring it back:", .command = "start"},
        [TEMPLATE_REFUSED] = {.level = PAGE_ATTENTION, .remedy = "Mend that, then run", .command = "restart"},
        [HOSTS_HALTED] = {.level = PAGE_ACT,
                          .remedy = "Mend that, then run",
                          .command = "restart --everywhere",
                          .or_remedy = "Or end it:",
                          .or_command = "abort --everywhere"},
        [REDIS_DOWN] = {.level = PAGE_ACT,
                        .remedy = "See whether it runs, and what sqmgr says of it:",
                        .command = "doctor"},
        [REDIS_UNKNOWN] = {.level = PAGE_ATTENTION,
                           .remedy = "See whether it runs, and what sqmgr says of it:",
                           .command = "doctor"},
        [OTHER] = {.level = PAGE_ATTENTION},
};
static_assert(ELEMENTSOF(kinds) == _KIND_MAX, "an entry for each kind");

static const char *const no_word = NULL;

/* Reports a finding of that kind with the title. word is appended to its commands; may be NULL. */
static _printf_(5, 6) void report(const struct finding_search *search, enum kind kind, const char *text,
                                  const char *word, const char *format, ...)
{
        char title[TITLE_MAX], command[PAGE_COMMAND_MAX], or_command[PAGE_COMMAND_MAX];
        struct page_finding finding = kinds[kind];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(title, sizeof(title), format, arguments);
        va_end(arguments);
        finding.title = title;
        finding.text = text;
        if (finding.command)
                finding.command = page_command(search->socket, finding.command, word, command);
        if (finding.or_command)
                finding.or_command = page_command(search->socket, finding.or_command, word, or_command);
        search->found(&finding, search->userdata);
}

/* codes: terminated by NULL. */
static bool waits_for_one_of(const json_t *object, const char *const *codes)
{
        const char *code = reply_string(object, "waits_for_code");

        while (*codes && strcmp(code, *codes) != 0)
                codes++;
        return *codes;
}

bool page_worker_needs_attention(const json_t *worker)
{
        static const char *const codes[] = {"stale", "signal", "beats-elsewhere", NULL};

        return reply_is_true(worker, "hung") || waits_for_one_of(worker, codes);
}

/* Returns true for waits that may last and are not part of normal operation. */
static bool fleet_is_held(const json_t *fleet)
{
        static const char *const codes[] = {"places", "memory", "hung", "fork", "state", NULL};

        return waits_for_one_of(fleet, codes);
}

static bool fleet_is_to_run(const json_t *fleet)
{
        const char *state = reply_string(fleet, "state");

        return state[0] == '\0' || strcmp(state, "running") == 0;
}

static void find_halt(const struct finding_search *search, const json_t *fleet)
{
        const json_t *rollout = json_object_get(fleet, "rollout");
        const char *name = reply_string(fleet, "name");
        char quoting[REPLY_QUOTING_MAX];

        if (reply_is(rollout, "state", "halted"))
                report(search, ROLLOUT_HALTED,
                       reply_quoting(rollout, reply_string(rollout, "error"), quoting), name,
                       "%.100s: the restart has halted, the old workers go on", name);
}

static void find_crash(const struct finding_search *search, const json_t *fleet)
{
        const json_t *crash = json_object_get(fleet, "crash");
        char quoting[REPLY_QUOTING_MAX];
        const char *name = reply_string(fleet, "name"),
                   *text = reply_quoting(crash, reply_string(crash, "text"), quoting);

        if (reply_is(crash, "state", "failing"))
                report(search, WORKERS_FAIL, text, name, "%.100s: workers do not stay, %lld of %lld active",
                       name, page_integer(fleet, "active"), page_integer(fleet, "target"));
        else if (reply_is(crash, "state", "recovering"))
                report(search, WORKERS_RECOVER, text, name, "%.100s: recovers from crashes", name);
}

/* Reports missing workers, unless another finding explains them. */
static void find_shortage(const struct finding_search *search, const json_t *fleet)
{
        long long active = page_integer(fleet, "active"), target = page_integer(fleet, "target"),
                  starting = page_integer(fleet, "starting");
        const char *name = reply_string(fleet, "name"), *text = reply_string(fleet, "waits_for");

        if (!fleet_is_to_run(fleet) || active >= target ||
            reply_is(json_object_get(fleet, "crash"), "state", "failing"))
                return;
        /* Hung workers have findings of their own. */
        if (page_integer(fleet, "hung") > 0 && active + starting + page_integer(fleet, "hung") >= target)
                return;
        if (active + starting >= target)
                report(search, OTHER, text, no_word, "%.80s: %lld of %lld active, %lld starting", name,
                       active, target, starting);
        else
                report(search, TOO_FEW_WORKERS, text, no_word, "%.80s: %lld of %lld active", name, active,
                       target);
}

static void find_workers(const struct finding_search *search, const json_t *fleet)
{
        const json_t *first = NULL, *worker;
        unsigned n = 0, hung = 0;
        const char *name = reply_string(fleet, "name");

        json_foreach_in(worker, fleet, "workers") {
                if (!page_worker_needs_attention(worker))
                        continue;
                if (!first || (hung == 0 && reply_is_true(worker, "hung")))
                        first = worker;
                hung += reply_is_true(worker, "hung");
                n++;
        }
        if (n == 0)
                return;
        const char *id = reply_string(first, "id"), *text = reply_string(first, "waits_for");
        if (hung > 0)
                report(search, WORKERS_HANG, text, id, "%.100s: %u worker%s", name, hung,
                       hung == 1 ? " hangs" : "s hang");
        else
                report(search, WORKERS_NEED_ATTENTION, text, id, "%.100s: look at %u worker%s", name, n,
                       n == 1 ? "" : "s");
}

static void find_order(const struct finding_search *search, const json_t *fleet)
{
        const char *name = reply_string(fleet, "name"), *state = reply_string(fleet, "state");
        const char *ordered = reply_string(fleet, "state_text");
        char text[512];

        if (fleet_is_to_run(fleet))
                return;
        /* Text below the title: an age in the headline would grow and move what is below. */
        snprintf(text, sizeof(text), "%.32s %.400s", state, ordered);
        report(search, NOT_RUNNING, ordered[0] != '\0' ? text : "", name, "%.100s: %.32s", name, state);
}

static void find_other_findings(const struct finding_search *search, const json_t *fleet)
{
        const char *refused = reply_string(json_object_get(fleet, "template"), "refused");
        const char *name = reply_string(fleet, "name"), *waits_for = reply_string(fleet, "waits_for");

        /* If workers are missing, find_shortage() has reported that. */
        if (fleet_is_held(fleet) && page_integer(fleet, "active") >= page_integer(fleet, "target"))
                report(search, OTHER, waits_for, no_word, "%.100s: it is held up", name);
        if (refused[0] != '\0')
                report(search, TEMPLATE_REFUSED, refused, name, "%.100s: its workers boot separately", name);
}

static void find_in_fleet(const struct finding_search *search, const json_t *fleet)
{
        find_halt(search, fleet);
        find_crash(search, fleet);
        find_shortage(search, fleet);
        find_workers(search, fleet);
        find_order(search, fleet);
        find_other_findings(search, fleet);
}

static void find_missing_host(const struct finding_search *search, const json_t *rollout)
{
        const json_t *host = reply_hosts_missing(rollout);
        const char *fleet = reply_string(rollout, "fleet"), *name = reply_string(host, "host");
        char title[TITLE_MAX], why[REPLY_HOST_WHY_MAX], command[PAGE_COMMAND_MAX];

        if (!host)
                return;
        snprintf(title, sizeof(title), "%.60s: the host %.70s is missing", fleet, name);
        page_command(search->socket, "rollout forget", fleet, command);
        add_word(command, name);
        search->found(
                &(struct page_finding){
                        .level = PAGE_ATTENTION,
                        .title = title,
                        .text = reply_host_why(rollout, host, why),
                        .remedy = "It goes on when its sqmgr does. Where it is gone for good, run",
                        .command = command,
                },
                search->userdata);
}

/* Findings of a rollout over the hosts of a group. */
static void find_in_rollout(const struct finding_search *search, const json_t *rollout)
{
        const char *fleet = reply_string(rollout, "fleet"), *trouble = reply_string(rollout, "trouble");

        if (reply_is(rollout, "state", "halted"))
                report(search, HOSTS_HALTED, reply_string(rollout, "error"), fleet,
                       "%.100s: the rollout over many hosts has halted", fleet);
        find_missing_host(search, rollout);
        if (trouble[0] != '\0')
                report(search, OTHER, trouble, no_word, "%.100s: this host takes no part in rollouts", fleet);
}

static void find_in_redis(const struct finding_search *search, const json_t *redis)
{
        bool down = reply_is(redis, "state", "down");
        char text[REPLY_REDIS_MAX];

        if (!reply_is(redis, "state", "connected"))
                report(search, down ? REDIS_DOWN : REDIS_UNKNOWN, reply_redis_away(redis, text), no_word,
                       down ? "Redis does not answer" : "Redis has not answered yet");
}

/* Writes the command for the systemd unit of the instance, derived from its read socket. The default is the
 * unit `sqmgr`. */
static const char *service_command(const char *socket, char text[static PAGE_COMMAND_MAX])
{
        static const char begin[] = "/run/sqmgr/", end[] = "/read.sock";
        size_t length = strlen(socket), least = strlen(begin) + strlen(end);
        char unit[160] = "sqmgr";

        if (length > least && strncmp(socket, begin, strlen(begin)) == 0 &&
            strcmp(socket + length - strlen(end), end) == 0)
                snprintf(unit, sizeof(unit), "sqmgr@%.*s", (int)MIN(length - least, 100),
                         socket + strlen(begin));
        snprintf(text, PAGE_COMMAND_MAX, "systemctl status");
        add_word(text, unit);
        return text;
}

/* Reports an instance that does not answer. The last known state remains visible. */
static void find_away(const struct finding_search *search, const json_t *instance)
{
        const char *error = reply_string(instance, "error");
        char title[TITLE_MAX], age[FORMAT_MAX], text[1024], command[PAGE_COMMAND_MAX];
        bool known = json_is_object(json_object_get(instance, "status"));

        if (json_array_size(search->page->instances) > 1)
                snprintf(title, sizeof(title), "sqmgr at %.120s does not answer", search->socket);
        else
                snprintf(title, sizeof(title), "sqmgr does not answer");
        if (known)
                snprintf(text, sizeof(text),
                         "%.700s%sIts workers go on without it. What is shown of it here is how it was %s "
                         "ago.",
                         error, error[0] != '\0' ? ". " : "", reply_seconds(instance, "age_seconds", age));
        else
                snprintf(text, sizeof(text), "%.700s%sNothing has been heard of it yet.", error,
                         error[0] != '\0' ? ". " : "");
        search->found(
                &(struct page_finding){
                        .level = PAGE_ACT,
                        .title = title,
                        .text = text,
                        .remedy = "See whether its service runs:",
                        .command = service_command(search->socket, command),
                },
                search->userdata);
}

static void find_in_instance(const struct finding_search *search, const json_t *instance)
{
        const json_t *status = json_object_get(instance, "status"), *entry;
        const char *stopping = reply_string(json_object_get(status, "shutdown"), "text");

        /* Without a connection all other data is old. The page shows old data below and marks it. */
        if (!page_is_current(instance)) {
                find_away(search, instance);
                return;
        }
        if (stopping[0] != '\0')
                report(search, OTHER, stopping, no_word, "sqmgr is stopping");
        json_foreach_in(entry, status, "redis")
                find_in_redis(search, entry);
        json_foreach_in(entry, status, "fleets")
                find_in_fleet(search, entry);
        json_foreach_in(entry, instance, "rollouts")
                find_in_rollout(search, entry);
}

void page_findings(const struct page *page, page_found found, void *userdata)
{
        struct finding_search search = {.page = page, .found = found, .userdata = userdata};
        const json_t *instance;

        json_foreach(instance, page->instances) {
                search.socket = reply_string(instance, "socket");
                find_in_instance(&search, instance);
        }
}

static void keep_worst(const struct page_finding *finding, void *userdata)
{
        enum page_level *worst = userdata;

        *worst = MAX(*worst, finding->level);
}

enum page_level page_fleet_level(const json_t *fleet)
{
        enum page_level worst = PAGE_OK;

        find_in_fleet(&(struct finding_search){.socket = "", .found = keep_worst, .userdata = &worst}, fleet);
        return worst;
}
