/* SPDX-License-Identifier: MIT */
/* The output of --help, made from the tables of commands and options. */
#include "base/text.h"
#include "config.h"
#include "ctl/commands.h"
#include <limits.h>
#include <stdio.h>

/* Width of --help, and the column of an option's help. */
#define HELP_WIDTH  80
#define HELP_COLUMN 23
/* Column of a command's help, and the width of the arguments before it. */
#define COMMAND_HELP_COLUMN 30
#define ARGUMENTS_COLUMNS   17

/* command NULL: the help of all commands names those that have the option, unless most do. */
static void print_option(const struct usage_option *option, const struct command *command)
{
        char written[HELP_COLUMN * 2] = "  ", help[256] = "";

        if (option->letter != '\0')
                text_append(written, sizeof(written), "-%c, ", option->letter);
        text_append(written, sizeof(written), "--%s%s", option->name, option->value);
        for (size_t i = 0; !command && option->bit != OPTION_JSON && i < n_commands; i++)
                if (commands[i].options & option->bit)
                        text_append(help, sizeof(help), "%s%s", help[0] != '\0' ? ", " : "",
                                    commands[i].name);
        text_append(help, sizeof(help), "%s%s", help[0] != '\0' ? ": " : "", option->help);
        text_print_cell(stdout, written, HELP_COLUMN);
        text_print_wrapped(stdout, help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
}

/* If the arguments are too wide for their column, the help comes on the next line. */
static void print_command(const struct command *command)
{
        bool wide = text_width(command->arguments) > ARGUMENTS_COLUMNS;

        printf("  %-8s %-*s", command->name, ARGUMENTS_COLUMNS, command->arguments);
        if (wide)
                printf("\n%*s%s\n", COMMAND_HELP_COLUMN, "", command->help);
        else
                printf("  %s\n", command->help);
}

static void print_commands(void)
{
        puts("Usage: sqmgrctl [OPTION...] COMMAND [ARGUMENT...]\n"
             "Controls sqmgr, a supervisor of job workers. Without FLEET: all fleets.\n"
             "For help on one command, run 'sqmgrctl COMMAND --help'.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < n_commands; i++)
                print_command(&commands[i]);
}

void help_print(const struct command *command)
{
        unsigned had = command ? command->options | OPTIONS_COMMON : UINT_MAX;
        char codes[512];

        if (command) {
                printf("Usage: sqmgrctl %s [OPTION...]%s%s\n", command->name,
                       command->arguments[0] != '\0' ? " " : "", command->arguments);
                text_print_wrapped(stdout, command->about, 0, 0, HELP_WIDTH);
        } else {
                print_commands();
        }
        puts("\n"
             "Options:");
        for (size_t i = 0; i < usage_n_options; i++)
                if (had & usage_options[i].bit)
                        print_option(&usage_options[i], command);
        snprintf(
                codes, sizeof(codes),
                "\n"
                "Exit codes: 0 success, 1 failure%s%s%s, 2 wrong usage or unknown name, 3 cannot connect, "
                "4 not permitted, 5 timed out, 130 interrupted. After the last two the operation continues.\n"
                "%s",
                command && command->failure ? " (" : "", command && command->failure ? command->failure : "",
                command && command->failure ? ")" : "", command ? "See sqmgrctl(1)." : REPORT_FAULTS);
        text_print_wrapped(stdout, codes, 0, 0, HELP_WIDTH);
}
