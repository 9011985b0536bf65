/* SPDX-License-Identifier: MIT */
/* Shell completion (contrib/completion): candidates for the last argument. The timeout is short, because a
 * user is typing. The shells discard stderr. */
#include "base/argv.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/instances.h"
#include "ctl/output.h"
#include "wire/reply.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define COMPLETE_USEC USEC_PER_SEC

static void offer(const char *word, const char *help, const char *partial)
{
        if (strncmp(word, partial, strlen(partial)) == 0)
                printf("%s%s%s\n", word, help[0] != '\0' ? "\t" : "", help);
}

/* Parses the arguments before the one to complete. Returns false if nothing more can be offered: the command
 * is unknown, or an option's value is being typed. */
static bool read_words(struct ctl *ctl, int argc, char **argv, const char *partial)
{
        int key;

        do {
                const struct usage_option *option = usage_next_option(ctl, argc, argv, &key);

                if (option && option->bit & (OPTION_SOCKET | OPTION_INSTANCE))
                        (void)command_line_take_socket(ctl, option->bit, optarg);
                if (key != ':')
                        continue;
                if (optopt == 'i' || optopt == OPTION_INSTANCE)
                        instances_offer(offer, partial);
                return false;
        } while (key != -1);
        if (optind >= argc || (optind == argc - 1 && strcmp(argv[optind], "help") == 0))
                return true;
        ctl->command = commands_find(argv[optind]);
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        return ctl->command;
}

/* The shell inserts the name into a command line, and the socket may belong to another user: offers only
 * plain shell words. */
static void offer_name(const struct ctl *ctl, const char *name, const char *partial)
{
        if (!argv_is_plain(name))
                return;
        for (size_t i = 0; i < ctl->n_arguments; i++)
                if (strcmp(ctl->arguments[i], name) == 0)
                        return;
        offer(name, "", partial);
}

/* Returns true if another name may follow. A worker stands alone. In commands with several kinds of arguments
 * only the first is a name: scale FLEET N. */
static bool takes_name(const struct ctl *ctl)
{
        if (ctl->n_arguments == 0)
                return ctl->command->max > 0;
        return ctl->n_arguments < ctl->command->max && !strchr(ctl->command->arguments, ' ') &&
               !strchr(ctl->arguments[0], '/');
}

/* Offers the names of current fleets and workers. */
static void offer_names(struct ctl *ctl, const char *partial)
{
        const char *wanted = ctl->command->arguments;
        _cleanup_json_ json_t *status = NULL;
        json_t *fleet, *worker;

        if (!takes_name(ctl) || instances_choose(ctl) < 0 ||
            client_call(ctl, "GetStatus", json_object(), &status) != CTL_DONE)
                return;
        json_foreach_in(fleet, status, "fleets") {
                if (strstr(wanted, "FLEET"))
                        offer_name(ctl, reply_string(fleet, "name"), partial);
                if (!strstr(wanted, "WORKER") || ctl->n_arguments > 0)
                        continue;
                json_foreach_in(worker, fleet, "workers")
                        offer_name(ctl, reply_string(worker, "id"), partial);
        }
}

static void offer_options(const struct ctl *ctl, const char *partial)
{
        unsigned had = OPTIONS_COMMON | (ctl->command ? ctl->command->options : 0);
        char word[64];

        for (size_t i = 0; i < usage_n_options; i++) {
                const struct usage_option *option = &usage_options[i];

                if (!(had & option->bit))
                        continue;
                snprintf(word, sizeof(word), "--%s", option->name);
                offer(word, option->help, partial);
                if (!option->value_help)
                        continue;
                /* Omit the brackets. */
                snprintf(word, sizeof(word), "--%s%.*s", option->name, (int)strlen(option->value) - 2,
                         option->value + 1);
                offer(word, option->value_help, partial);
        }
}

static void offer_words(struct ctl *ctl, const char *partial)
{
        if (partial[0] == '-')
                offer_options(ctl, partial);
        else if (!ctl->command)
                for (size_t i = 0; i < n_commands; i++)
                        offer(commands[i].name, commands[i].help, partial);
        else if (ctl->n_arguments == 1 && strcmp(ctl->command->name, "scale") == 0)
                offer("auto", "its count follows its queues", partial);
        else
                offer_names(ctl, partial);
}

void complete(struct ctl *ctl, int argc, char **argv)
{
        char error[8];

        output_errors_to(error, sizeof(error));
        ctl->timeout = COMPLETE_USEC;
        if (argc > 1 && read_words(ctl, argc - 1, argv, argv[argc - 1]))
                offer_words(ctl, argv[argc - 1]);
        output_errors_to(NULL, 0);
}
