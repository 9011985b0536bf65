/* SPDX-License-Identifier: MIT */
/* The config file that `sqmgr init` proposes; see the header. */
#include "init/proposal_rules.h"
#include "base/argv.h"
#include "base/printable.h"
#include "settings/draft.h"
#include "settings/operations.h"
#include "settings/settings.h"
#include <stdarg.h>

#define ACCOUNT_LETTERS FLEET_NAME_LETTERS

void proposal_done(struct proposal *proposal)
{
        environment_done(&proposal->keys);
        free(proposal->notes);
        free(proposal->unit);
        *proposal = (struct proposal){0};
}

static _printf_(2, 0) char *format_text(struct proposal *proposal, const char *format, va_list arguments)
{
        char *text;

        if (vasprintf(&text, format, arguments) >= 0)
                return text;
        proposal->lost = true;
        return NULL;
}

char *proposal_text(struct proposal *proposal, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        char *text = format_text(proposal, format, arguments);
        va_end(arguments);
        return text;
}

/* Appends a line, in which control characters become '?'. Takes over text, which may be NULL. */
static void append(struct proposal *proposal, char **lines, char *text)
{
        _cleanup_free_ char *line = text, *before = *lines;

        if (!line)
                return;
        printable_replace(line, strlen(line), false);
        *lines = proposal_text(proposal, "%s%s\n", before ?: "", line);
}

void proposal_note(struct proposal *proposal, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        append(proposal, &proposal->notes, format_text(proposal, format, arguments));
        va_end(arguments);
}

void proposal_add_unit(struct proposal *proposal, const char *name, const char *value)
{
        append(proposal, &proposal->unit, proposal_text(proposal, "%s=%s", name, value));
}

int proposal_fail(struct proposal *proposal, const char *format, ...)
{
        va_list arguments;

        if (proposal->error[0] != '\0')
                return -EINVAL;
        va_start(arguments, format);
        (void)vsnprintf(proposal->error, sizeof(proposal->error), format, arguments);
        va_end(arguments);
        printable_replace(proposal->error, strlen(proposal->error), false);
        return -EINVAL;
}

/* Returns 0, -EINVAL with the reason, or -ENOMEM. */
static int check_value(const struct proposal *proposal, const char *key, const char *value,
                       char why[static SETTINGS_WHY_MAX])
{
        size_t length = strlen(key) + strlen(" = ") + strlen(value);
        const struct settings_key *known = settings_key_find(SETTINGS_FLEET, key);

        if (!known) {
                bool named = *value != '\0' && *value != '-' && value[strspn(value, ACCOUNT_LETTERS)] == '\0';
                snprintf(why, SETTINGS_WHY_MAX, "must be the name of a user or group");
                return named ? 0 : -EINVAL;
        }
        struct fleet_settings *fleet = fleet_settings_new(NULL);
        if (!fleet)
                return -ENOMEM;
        int r = settings_value_parse(known, value, proposal->surroundings, fleet, why);
        fleet_settings_free(fleet);
        for (const char *p = value; r == 0 && *p != '\0'; p++)
                if ((unsigned char)*p < ' ' && *p != '\t') {
                        snprintf(why, SETTINGS_WHY_MAX,
                                 "a value has one line, without control characters: remove them");
                        r = -EINVAL;
                }
        if (r == 0 && length > SETTINGS_LINE_BYTES_MAX) {
                snprintf(why, SETTINGS_WHY_MAX,
                         "the line would have %zu bytes, the maximum is %d; move a long command to a script, "
                         "a long environment to environment_file",
                         length, SETTINGS_LINE_BYTES_MAX);
                r = -EINVAL;
        }
        return r;
}

static void store(struct proposal *proposal, const char *key, const char *value)
{
        if (environment_set(&proposal->keys, key, value) < 0)
                proposal->lost = true;
}

void proposal_set(struct proposal *proposal, const char *from, const char *key, const char *value)
{
        char why[SETTINGS_WHY_MAX];

        if (!value)
                return;
        int r = check_value(proposal, key, value, why);
        if (r == -ENOMEM)
                proposal->lost = true;
        else if (r < 0)
                proposal_note(proposal, "%s: not taken over: %s", from, why);
        else
                store(proposal, key, value);
}

int proposal_require(struct proposal *proposal, const char *from, const char *key, const char *value)
{
        char why[SETTINGS_WHY_MAX];
        int r = check_value(proposal, key, value, why);

        if (r == -ENOMEM)
                proposal->lost = true;
        if (r < 0)
                return proposal_fail(proposal, "%s: %s", from, r == -ENOMEM ? "out of memory" : why);
        store(proposal, key, value);
        return 0;
}

const char *proposal_get(const struct proposal *proposal, const char *key)
{
        return environment_get(&proposal->keys, key);
}

const char *proposal_find_program(const char *command, const char *name)
{
        size_t length = strlen(name);

        /* strchr() also finds the end of the command. */
        for (const char *at = command; (at = strstr(at, name)); at += length)
                if ((at == command || strchr(" \t/'\"", at[-1])) && strchr(" \t'\":.", at[length]))
                        return at;
        return NULL;
}

static bool is_started_by(const struct traits *traits, const char *command)
{
        return traits->heartbeat != HEARTBEAT_NONE &&
               proposal_find_program(command, traits->program ?: traits->name) &&
               (!traits->subcommand || proposal_find_program(command, traits->subcommand));
}

/* Sets where the database is, if the environment says that. Returns false if it does not. */
static bool add_database_url(struct proposal *proposal)
{
        const char *file = proposal_get(proposal, "environment_file"), *variable = "QUEUE_DATABASE_URL";
        _cleanup_environment_ struct environment variables = {0};
        const char *url = NULL;

        if (proposal_get(proposal, "database_url") || proposal_get(proposal, "database_url_file"))
                return true;
        if (proposal_get_variables(proposal, &variables) == 0)
                url = environment_get(&variables, variable);
        if (!url && variables.n > 0)
                url = environment_get(&variables, variable = "DATABASE_URL");
        if (url)
                proposal_set(proposal, variable, "database_url", url);
        else if (file && file[0] == '/')
                proposal_set(proposal, "environment_file", "database_url_file", file);
        return proposal_get(proposal, "database_url") || proposal_get(proposal, "database_url_file");
}

static void take_framework(struct proposal *proposal, const struct traits *traits)
{
        if (traits->heartbeat != HEARTBEAT_DATABASE || add_database_url(proposal)) {
                store(proposal, "framework", traits->name);
                return;
        }
        store(proposal, "framework", "plain");
        proposal_note(proposal,
                      "command: starts %s, but DATABASE_URL is not known: set 'framework = %s' and "
                      "database_url, so that sqmgr reads the heartbeats",
                      traits->title, traits->name);
}

static void recognize_framework(struct proposal *proposal)
{
        const char *command = proposal_get(proposal, "command");
        const struct settings_choice *preset = settings_key_find(SETTINGS_FLEET, "preset")->choices;

        for (const struct traits *const *traits = proposal->surroundings->frameworks; *traits; traits++)
                if (is_started_by(*traits, command)) {
                        take_framework(proposal, *traits);
                        return;
                }
        store(proposal, "framework", "plain");
        for (; preset->name; preset++)
                /* Superseded by frameworks. */
                if (preset->value != PRESET_CELERY && preset->value != PRESET_GOOD_JOB &&
                    proposal_find_program(command, preset->name)) {
                        store(proposal, "preset", preset->name);
                        return;
                }
        proposal_note(proposal, "command: the framework is not recognized, 'plain' is set: if the command "
                                "starts Sidekiq, Resque, RQ, Celery, BullMQ, Solid Queue or GoodJob, set "
                                "'framework'");
}

int proposal_get_variables(struct proposal *proposal, struct environment *variables)
{
        const char *text = proposal_get(proposal, "environment"), *error;
        _cleanup_argv_ char **words = NULL;
        int r = text ? argv_split(text, &words, &error) : 0;

        for (char **word = words; r == 0 && word && *word; word++)
                r = environment_put(variables, *word);
        proposal->lost |= r == -ENOMEM;
        return r;
}

static void note_flaws(struct proposal *proposal, const struct traits *traits)
{
        const char *command = proposal_get(proposal, "command");
        const char *environment = proposal_get(proposal, "environment") ?: "", *error;
        _cleanup_argv_ char **argv = NULL, **list = NULL;
        char text[COMMAND_FLAW_MAX];

        if (argv_split(command, &argv, &error) < 0 || argv_split(environment, &list, &error) < 0)
                return;
        const struct fleet_settings fleet = {
                .traits = traits, .command = (char *)command, .argv = argv, .environment_list = list};
        for (const struct command_flaw *flaw = traits->command_flaws; flaw && flaw->text; flaw++)
                if (command_has_flaw(&fleet, flaw))
                        proposal_note(proposal, "%s. %s", command_flaw_text(flaw, text), flaw->remedy);
}

/* The heartbeats are on the server that the workers use. */
static void add_url(struct proposal *proposal, const char *framework)
{
        const struct traits *const *traits = proposal->surroundings->frameworks;
        const char *variable;
        _cleanup_environment_ struct environment variables = {0};
        const char *url = NULL;

        while (*traits && strcmp((*traits)->name, framework) != 0)
                traits++;
        if (!*traits || strcmp(framework, "native") == 0)
                return;
        note_flaws(proposal, *traits);
        if ((*traits)->heartbeat == HEARTBEAT_DATABASE)
                (void)add_database_url(proposal);
        if ((*traits)->heartbeat != HEARTBEAT_REDIS)
                return;
        variable = (*traits)->url_variable ?: "REDIS_URL";
        if (proposal_get_variables(proposal, &variables) == 0)
                url = environment_get(&variables, variable);
        proposal_set(proposal, variable, "redis_url", url);
}

int proposal_finish(struct proposal *proposal)
{
        static const char *const of_plain[] = {"stop_signal", "stop_timeout", "preset"};

        if (!proposal_get(proposal, "command"))
                return proposal_fail(proposal, "there is no command: give it by --command");
        if (!proposal_get(proposal, "framework"))
                recognize_framework(proposal);
        if (!proposal_get(proposal, "active_process_count"))
                store(proposal, "active_process_count", "1");
        const char *framework = proposal_get(proposal, "framework");
        if (framework)
                add_url(proposal, framework);
        for (size_t i = 0; framework && i < ELEMENTSOF(of_plain); i++) {
                if (strcmp(framework, "plain") == 0 || !proposal_get(proposal, of_plain[i]))
                        continue;
                proposal_note(proposal, "%s: left out: sqmgr knows how '%s' stops", of_plain[i], framework);
                environment_remove(&proposal->keys, of_plain[i]);
        }
        return proposal->lost ? proposal_fail(proposal, "out of memory") : 0;
}

static const struct {
        const char *key, *comment;
} comments[] = {
        {"command", "Starts one worker, in the foreground. No shell, unless it is named here."},
        {"framework", "How sqmgr knows what a worker is doing: sidekiq, resque, rq, celery, bullmq, "
                      "solid_queue, good_job, native or plain."},
        {"active_process_count", "The number of workers."},
        {"memory_threshold", "A worker above this is replaced. Its running jobs finish first."},
};

static const char *comment_on(const char *key)
{
        for (size_t i = 0; i < ELEMENTSOF(comments); i++)
                if (strcmp(comments[i].key, key) == 0)
                        return comments[i].comment;
        return NULL;
}

void proposal_print(const struct proposal *proposal, const struct proposal_names *names, FILE *out)
{
        const char *user = proposal_get(proposal, PROPOSAL_USER) ?: "USER";

        fprintf(out,
                "# Written by 'sqmgr init' from %s. sqmgr.ini(5) has all keys.\n"
                "# Install: install -m 640 -g %s FILE %s/%s.ini\n"
                "# Check:   runuser -u %s -- sqmgr -c %s/%s.ini --check-config\n\n[fleet:%s]\n",
                names->source, proposal_get(proposal, PROPOSAL_GROUP) ?: user, names->folder, names->instance,
                user, names->folder, names->instance, names->fleet);
        for (size_t i = 0; i < settings_keys_n; i++) {
                const char *key = settings_keys[i].name, *comment = comment_on(key);
                const char *value =
                        settings_keys[i].scope == SETTINGS_FLEET ? proposal_get(proposal, key) : NULL;

                if (value && comment)
                        fprintf(out, "# %s\n", comment);
                if (value)
                        fprintf(out, "%s = %s\n", key, value);
                else if (strcmp(key, "memory_threshold") == 0)
                        fprintf(out, "# %s\n# memory_threshold = 1G\n", comment);
        }
}

bool proposal_print_unit(const struct proposal *proposal, const struct proposal_names *names,
                         const char *prefix, FILE *out)
{
        const char *user = proposal_get(proposal, PROPOSAL_USER), *line = proposal->unit ?: "";
        const char *group = proposal_get(proposal, PROPOSAL_GROUP);
        bool other_user = user && strcmp(user, names->instance) != 0;
        bool other_group = group && strcmp(group, user ?: "") != 0;

        if (*line == '\0' && !other_user && !other_group)
                return false;
        fprintf(out,
                "%s# What the unit of sqmgr sets, for all workers together, from %s%s.\n"
                "# Install: /etc/systemd/system/sqmgr@%s.service.d/init.conf; run 'systemctl daemon-reload'\n"
                "%s[Service]\n",
                *prefix != '\0' ? "\n" : "", names->source,
                *prefix != '\0' ? "; --drop-in FILE writes it to a file" : "", names->instance, prefix);
        if (other_user)
                fprintf(out, "%sUser=%s\n", prefix, user);
        if (other_group)
                fprintf(out, "%sGroup=%s\n", prefix, group);
        for (; *line != '\0'; line += strcspn(line, "\n") + 1)
                fprintf(out, "%s%.*s\n", prefix, (int)strcspn(line, "\n"), line);
        return true;
}
