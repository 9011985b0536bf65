/* SPDX-License-Identifier: MIT */
/* Reads the command line by the tables of commands and options. */
#include "base/argv.h"
#include "base/parse.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "config.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

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

#define ANSWER_TIMEOUT_USEC (30 * USEC_PER_SEC)

/* The best suggestion for a mistyped word. */
struct near {
        const char *word; /* NULL: none yet */
        unsigned distance;
};

static void compare_words(struct near *near, const char *typed, const char *word)
{
        unsigned distance = edit_distance(typed, word);

        if (distance < (near->word ? near->distance : 3) && distance < strlen(word))
                *near = (struct near){.word = word, .distance = distance};
}

static int report_unknown_command(const char *name)
{
        struct near near = {0};

        for (size_t i = 0; i < n_commands; i++)
                compare_words(&near, name, commands[i].name);
        if (near.word)
                return output_error(CTL_USAGE, "unknown command '%s'. Did you mean '%s'?", name, near.word);
        return output_error(CTL_USAGE, "unknown command '%s'. For a list, run 'sqmgrctl --help'", name);
}

/* Reports an option that getopt_long() rejected. option: '?' or ':'. */
static int report_bad_option(int option, const char *word)
{
        struct near near = {0};
        char name[64];

        if (option == ':')
                return output_error(CTL_USAGE, "'%s' needs a value. See 'sqmgrctl --help'", word);
        if (strncmp(word, "--", 2) != 0)
                return output_error(CTL_USAGE, "unknown option '-%c'. For a list, run 'sqmgrctl --help'",
                                    optopt);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
        for (size_t i = 0; i < usage_n_options; i++) {
                if (strcmp(usage_options[i].name, name) == 0)
                        return output_error(CTL_USAGE, "--%s takes no value", name);
                /* A suggestion may be followed without a thought, and this option cuts off jobs. */
                if (usage_options[i].bit != OPTION_FORCE)
                        compare_words(&near, name, usage_options[i].name);
        }
        /* Other programs call this option --tail. */
        if (strcmp(name, "tail") == 0)
                near.word = "lines";
        if (strcmp(name, "once") == 0)
                return output_error(
                        CTL_USAGE,
                        "unknown option '--once'. To print the workers once, run 'sqmgrctl status'");
        if (near.word)
                return output_error(CTL_USAGE, "unknown option '--%s'. Did you mean '--%s'?", name,
                                    near.word);
        return output_error(CTL_USAGE, "unknown option '--%s'. For a list, run 'sqmgrctl --help'", name);
}

int command_line_take_socket(struct ctl *ctl, enum option_bit option, const char *value)
{
        const char *at = strchr(value, '@');

        free(ctl->socket);
        free(ctl->instance);
        ctl->socket = ctl->instance = NULL;
        if ((ctl->options & OPTION_SOCKET) && (ctl->options & OPTION_INSTANCE))
                return output_error(CTL_USAGE, "-s and -i both name a socket. Give one of them");
        int r = option == OPTION_INSTANCE ? socket_path_instance(value, &ctl->socket) : 0;
        if (r == -EINVAL)
                return output_error(CTL_USAGE,
                                    "'%s' is not the name of an instance: give NAME for sqmgr@NAME.service",
                                    value);
        if (option == OPTION_SOCKET)
                ctl->socket = strdup(value);
        else
                ctl->instance = strdup(at ? at + 1 : value);
        return ctl->socket && (ctl->instance || option == OPTION_SOCKET)
                       ? CTL_DONE
                       : output_error(CTL_FAILED, "not enough memory");
}

/* Applies the part of an option that its flag does not cover. Returns CTL_DONE or an exit code. */
static int take_option(struct ctl *ctl, enum option_bit option)
{
        switch (option) {
        case OPTION_SOCKET:
        case OPTION_INSTANCE:
                return command_line_take_socket(ctl, option, optarg);
        case OPTION_JSON:
                output_json();
                return CTL_DONE;
        case OPTION_TIMEOUT:
                if (parse_duration(optarg, &ctl->timeout) == 0)
                        return CTL_DONE;
                return output_error(CTL_USAGE, "'%s' is not a duration: use " PARSE_DURATION_HINT, optarg);
        case OPTION_WAIT:
                ctl->wait = optarg && strcmp(optarg, "drained") == 0 ? CTL_WAIT_DRAINED : CTL_WAIT_REPLACED;
                if (!optarg || ctl->wait == CTL_WAIT_DRAINED || strcmp(optarg, "replaced") == 0)
                        return CTL_DONE;
                return output_error(CTL_USAGE, "--wait=%s: use 'replaced' or 'drained'", optarg);
        case OPTION_LINES:
                if (parse_unsigned(optarg, 0, INT32_MAX, &ctl->lines) == 0)
                        return CTL_DONE;
                return output_error(CTL_USAGE, "'%s' is not a number of lines", optarg);
        case OPTION_RELEASE:
                ctl->release = optarg;
                return CTL_DONE;
        default:
                return CTL_DONE;
        }
}

/* Returns true if help or the version was requested. */
static bool is_answered(const struct ctl *ctl)
{
        return ctl->options & (OPTION_HELP | OPTION_VERSION);
}

/* Applies the options. After a request for help or the version, the others are not checked. */
static int take_options(struct ctl *ctl, int argc, char **argv)
{
        int key, r = CTL_DONE;

        while (r == CTL_DONE) {
                const struct usage_option *option = usage_next_option(ctl, argc, argv, &key);

                if (key == -1)
                        break;
                if (!is_answered(ctl))
                        r = option ? take_option(ctl, option->bit) : report_bad_option(key, argv[optind - 1]);
        }
        return r;
}

static const char *command_with(unsigned option)
{
        for (size_t i = 0; i < n_commands; i++)
                if (commands[i].options & option)
                        return commands[i].name;
        return "none";
}

static int check_usage(const struct ctl *ctl)
{
        const struct command *command = ctl->command;
        unsigned wrong = ctl->options & ~(command->options | OPTIONS_COMMON);

        for (size_t i = 0; i < usage_n_options; i++)
                if (wrong & usage_options[i].bit)
                        return output_error(CTL_USAGE, "'%s' has no option --%s; '%s' has", command->name,
                                            usage_options[i].name, command_with(usage_options[i].bit));
        if (ctl->n_arguments < command->min)
                return usage_error(command, "missing argument");
        if (ctl->n_arguments > command->max)
                return usage_error(command, "too many arguments");
        return CTL_DONE;
}

int command_line_read(struct ctl *ctl, int argc, char **argv)
{
        int r = take_options(ctl, argc, argv);

        if (r != CTL_DONE)
                return r;
        if (ctl->options & OPTION_VERSION) {
                printf("sqmgrctl " PACKAGE_VERSION "\n%s\n", REPORT_FAULTS);
                return CTL_DONE;
        }
        if (optind < argc && strcmp(argv[optind], "help") == 0) {
                ctl->options |= OPTION_HELP;
                optind++;
        }
        const struct command *command = optind < argc ? commands_find(argv[optind]) : NULL;
        if (optind < argc && !command)
                return report_unknown_command(argv[optind]);
        if (ctl->options & OPTION_HELP) {
                help_print(command);
                return CTL_DONE;
        }
        if (!command)
                return output_error(CTL_USAGE, "missing command. For a list, run 'sqmgrctl --help'");
        ctl->command = command;
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        if (!(ctl->options & OPTION_TIMEOUT))
                ctl->timeout =
                        ctl->wait != CTL_WAIT_NONE || ctl->follow ? USEC_INFINITY : ANSWER_TIMEOUT_USEC;
        return check_usage(ctl);
}
