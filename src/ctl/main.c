/* SPDX-License-Identifier: MIT */
/* sqmgrctl: parses the command line and runs the command. */
#include "base/argv.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "config.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* Column of an option's help. */
#define HELP_COLUMN 23
/* Column of a command's help, and the width of the arguments before it. */
#define COMMAND_HELP_COLUMN 30
#define ARGUMENTS_COLUMNS   17

static void print_option(const struct usage_option *option)
{
        char written[HELP_COLUMN * 2] = "  ";

        if (option->letter != '\0')
                text_append(written, sizeof(written), "-%c, ", option->letter);
        text_append(written, sizeof(written), "--%s%s", option->name, option->value);
        text_print_cell(stdout, written, HELP_COLUMN);
        text_print_wrapped(stdout, option->help, HELP_COLUMN, HELP_COLUMN, 0);
}

/* If the arguments are too wide for their column, the help comes on the next line. */
static void print_command(const struct command *command)
{
        bool wide = text_width(command->arguments) > ARGUMENTS_COLUMNS;

        printf("  %-7s  %-*s", command->name, ARGUMENTS_COLUMNS, command->arguments);
        if (wide)
                printf("\n%*s%s\n", COMMAND_HELP_COLUMN, "", command->help);
        else
                printf("  %s\n", command->help);
}

static void print_help(void)
{
        puts("Usage: sqmgrctl [OPTION...] COMMAND [ARGUMENT...]\n"
             "Controls sqmgr, a supervisor of job workers. Without FLEET: all fleets.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < n_commands; i++)
                print_command(&commands[i]);
        puts("\n"
             "Options:");
        for (size_t i = 0; i < usage_n_options; i++)
                print_option(&usage_options[i]);
        puts("\n"
             "Exit codes: 0 success, 1 failure, 2 wrong usage or unknown name,\n"
             "3 cannot connect, 4 not permitted, 5 timed out, 130 interrupted. After the last\n"
             "two the operation continues.\n" REPORT_FAULTS);
}

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

/* Applies the part of an option that its flag does not cover. Returns CTL_DONE or an exit code. */
static int take_option(struct ctl *ctl, enum option_bit option)
{
        switch (option) {
        case OPTION_SOCKET:
                ctl->named_socket = optarg;
                return CTL_DONE;
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
        case OPTION_HELP:
                print_help();
                return CTL_DONE;
        case OPTION_VERSION:
                printf("sqmgrctl " PACKAGE_VERSION "\n%s\n", REPORT_FAULTS);
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

/* Applies options up to a request for help or the version. */
static int take_options(struct ctl *ctl, int argc, char **argv)
{
        int key, r = CTL_DONE;

        while (r == CTL_DONE && !is_answered(ctl)) {
                const struct usage_option *option = usage_next_option(ctl, argc, argv, &key);

                if (key == -1)
                        break;
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

static int run(struct ctl *ctl, int argc, char **argv)
{
        int r = take_options(ctl, argc, argv);

        if (r != CTL_DONE || is_answered(ctl))
                return r;
        if (optind >= argc)
                return output_error(CTL_USAGE, "missing command. For a list, run 'sqmgrctl --help'");
        ctl->command = commands_find(argv[optind]);
        if (!ctl->command && strcmp(argv[optind], "help") == 0) {
                print_help();
                return CTL_DONE;
        }
        if (!ctl->command)
                return report_unknown_command(argv[optind]);
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        r = check_usage(ctl);
        if (r != CTL_DONE)
                return r;
        if (!client_find_socket(ctl))
                return output_error(CTL_FAILED, "not enough memory");
        if (!(ctl->options & OPTION_TIMEOUT))
                ctl->timeout =
                        ctl->wait != CTL_WAIT_NONE || ctl->follow ? USEC_INFINITY : ANSWER_TIMEOUT_USEC;
        return ctl->command->run(ctl);
}

int main(int argc, char **argv)
{
        struct ctl ctl = {.lines = UINT64_MAX, .fd = -1, .signal_fd = -1, .key_fd = -1};
        int code = CTL_DONE;

        /* A closed standard stream is opened read-only, so that writing to it fails. */
        if (fd_open_standard(O_RDONLY) < 0)
                return CTL_FAILED;
        /* For shells only: not listed in --help. */
        if (argc > 1 && strcmp(argv[1], "--complete") == 0)
                complete(&ctl, argc - 1, argv + 1);
        else
                code = run(&ctl, argc, argv);

        client_close(&ctl);
        close_fd(ctl.signal_fd);
        free(ctl.socket);
        if (fflush(stdout) != 0 || ferror(stdout))
                return output_error(CTL_FAILED, "cannot write to standard output: %s",
                                    strerrordesc_np(errno));
        return code;
}
