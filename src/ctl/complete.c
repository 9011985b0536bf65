/* SPDX-License-Identifier: MIT */
/* Answers the shells' completion (contrib/completion): what may stand in the place of the last word. Nothing
 * goes to stderr, and what takes long is left out: somebody is typing. */
#include "base/words.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/say.h"
#include "wire/reply.h"
#include <stdio.h>
#include <string.h>

#define COMPLETE_USEC USEC_PER_SEC

/* The words before the one that is completed. */
struct typed {
        const struct command *command; /* NULL: none yet */
        char **arguments;              /* of the command, owned; the words are not */
        size_t n_arguments;
        bool everywhere; /* only fleets with a group are meant */
        bool value;      /* the last one wants a value, which is not ours to know */
};

static void offer(const char *word, const char *help, const char *partial)
{
        if (strncmp(word, partial, strlen(partial)) == 0)
                printf("%s%s%s\n", word, help[0] != '\0' ? "\t" : "", help);
}

/* The option that the word is, where its value is the next word; else NULL. */
static const struct usage_option *option_with_value(const char *word)
{
        for (size_t i = 0; i < usage_n_options; i++) {
                const struct usage_option *option = &usage_options[i];
                bool letter = word[0] == '-' && word[1] == option->key && word[2] == '\0';

                if (option->value[0] == ' ' &&
                    (letter || (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0)))
                        return option;
        }
        return NULL;
}

static int read_words(struct ctl *ctl, char **words, size_t n, struct typed *ret)
{
        ret->arguments = calloc(n + 1, sizeof(*ret->arguments));
        if (!ret->arguments)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *socket = NULL;

                const struct usage_option *option = option_with_value(words[i]);

                if (option) {
                        ret->value = i + 1 == n;
                        if (option->key == 's')
                                socket = words[i + 1];
                        i++;
                } else if (strncmp(words[i], "--socket=", strlen("--socket=")) == 0) {
                        socket = strchr(words[i], '=') + 1;
                } else if (strcmp(words[i], "--everywhere") == 0) {
                        ret->everywhere = true;
                } else if (words[i][0] != '-' && !ret->command) {
                        ret->command = commands_find(words[i]);
                        if (!ret->command)
                                return -EINVAL;
                } else if (words[i][0] != '-') {
                        ret->arguments[ret->n_arguments++] = words[i];
                }
                if (socket && !ret->value) {
                        free(ctl->socket);
                        ctl->socket = strdup(socket);
                        if (!ctl->socket)
                                return -ENOMEM;
                }
        }
        return 0;
}

static void offer_name(const struct typed *typed, const char *name, const char *partial)
{
        for (size_t i = 0; i < typed->n_arguments; i++)
                if (strcmp(typed->arguments[i], name) == 0)
                        return;
        offer(name, "", partial);
}

static bool is_rollout(const struct typed *typed)
{
        return strcmp(typed->command->name, "rollout") == 0;
}

/* Has `rollout forget` been typed? */
static bool forgets(const struct typed *typed)
{
        return is_rollout(typed) && typed->n_arguments > 0 && strcmp(typed->arguments[0], "forget") == 0;
}

/* May another name follow? A worker stands alone, and what comes after the first of several kinds is no name:
 * scale FLEET N. */
static bool takes_name(const struct typed *typed)
{
        if (typed->n_arguments == 0)
                return typed->command->max > 0;
        if (forgets(typed))
                return typed->n_arguments < 3;
        return typed->n_arguments < typed->command->max && !typed->everywhere &&
               !strchr(typed->command->arguments, ' ') && !strchr(typed->arguments[0], '/');
}

/* The names that are in use now. */
static void offer_names(struct ctl *ctl, const struct typed *typed, const char *partial)
{
        const char *wanted = typed->command->arguments;
        bool grouped = typed->everywhere || is_rollout(typed);
        _cleanup_json_ json_t *status = NULL;
        json_t *fleet, *worker;

        if (client_call(ctl, "GetStatus", json_object(), &status) != CTL_DONE)
                return;
        json_foreach_in(fleet, status, "fleets") {
                if (grouped && reply_string(fleet, "rollout_group")[0] == '\0')
                        continue;
                if (strstr(wanted, "FLEET"))
                        offer_name(typed, reply_string(fleet, "name"), partial);
                if (!strstr(wanted, "WORKER") || typed->n_arguments > 0)
                        continue;
                json_foreach_in(worker, fleet, "workers")
                        offer_name(typed, reply_string(worker, "id"), partial);
        }
}

/* The hosts of the fleet's group. Whoever writes to Redis names them, and a shell puts what is offered where
 * it will be run: so those alone that it takes for a word. */
static void offer_hosts(struct ctl *ctl, const struct typed *typed, const char *partial)
{
        _cleanup_json_ json_t *reply = NULL;
        json_t *host;

        if (client_call(ctl, "GetRollouts", json_pack("{s:[s]}", "fleets", typed->arguments[1]), &reply) !=
            CTL_DONE)
                return;
        json_foreach_in(host, json_array_get(json_object_get(reply, "rollouts"), 0), "hosts")
                if (words_is_plain(reply_string(host, "host")))
                        offer(reply_string(host, "host"), reply_string(host, "state"), partial);
}

static void offer_arguments(struct ctl *ctl, const struct typed *typed, const char *partial)
{
        if (is_rollout(typed) && typed->n_arguments == 0)
                offer("forget", "leaves a host out of it", partial);
        if (!takes_name(typed) || !client_find_socket(ctl))
                return;
        if (forgets(typed) && typed->n_arguments == 2)
                offer_hosts(ctl, typed, partial);
        else
                offer_names(ctl, typed, partial);
}

static void offer_options(const struct typed *typed, const char *partial)
{
        char word[64];

        for (size_t i = 0; i < usage_n_options; i++) {
                const struct usage_option *option = &usage_options[i];

                if (option->command != 0 && (!typed->command || !(typed->command->options & option->command)))
                        continue;
                snprintf(word, sizeof(word), "--%s", option->name);
                offer(word, option->hint, partial);
                if (!option->value_hint)
                        continue;
                /* Without the brackets. */
                snprintf(word, sizeof(word), "--%s%.*s", option->name, (int)strlen(option->value) - 2,
                         option->value + 1);
                offer(word, option->value_hint, partial);
        }
}

void complete(struct ctl *ctl, char **words, size_t n_words)
{
        struct typed typed = {0};
        char error[8];

        say_errors_to(error, sizeof(error));
        ctl->timeout = COMPLETE_USEC;
        if (n_words > 0 && read_words(ctl, words, n_words - 1, &typed) == 0 && !typed.value) {
                const char *partial = words[n_words - 1];

                if (partial[0] == '-')
                        offer_options(&typed, partial);
                else if (!typed.command)
                        for (size_t i = 0; i < n_commands; i++)
                                offer(commands[i].name, commands[i].help, partial);
                else if (typed.n_arguments == 1 && strcmp(typed.command->name, "scale") == 0)
                        offer("auto", "its count follows its queues", partial);
                else
                        offer_arguments(ctl, &typed, partial);
        }
        say_errors_to(NULL, 0);
        free(typed.arguments);
}
