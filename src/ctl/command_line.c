/* SPDX-License-Identifier: MIT */
/* The command line: the tables of commands and options, --help, the check of the command line and its
 * completion by shells, all by these tables. */
#include "base/argv.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "config.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "wire/reply.h"
#include <getopt.h>
#include <limits.h>

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers",
         "Prints for each fleet a summary and a table of its workers: id, process, state and its age, "
         "generation, busy and all threads, memory and its share of memory_threshold, age, and why the "
         "worker leaves or what it waits for.",
         NULL, 0, SIZE_MAX, OPTION_WATCH | OPTION_JSON, ctl_status, true},
        {"top", "", "shows workers live; keys sort, open and act",
         "Fills the terminal, of at least 40 columns and 8 rows, and shows fleets and workers each second.",
         NULL, 0, 0, 0, ctl_top, false},
        {"restart", "[FLEET...]", "replaces all workers without interrupting jobs",
         "Starts workers of a new generation, and quiets an old worker for each new one that is ready. "
         "Running jobs finish on the old code. A quieted or stopped fleet stays so, with a message on "
         "standard error and exit code 0. With --resume quieted fleets are restarted, too, and then accept "
         "jobs. Ctrl-C ends the waiting, not the restart.",
         "a restart halted or was aborted, or the release was not found", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_RESUME | OPTION_RELEASE | OPTION_JSON, ctl_restart, false},
        {"abort", "[FLEET...]", "ends a restart; remaining old workers keep running",
         "Ends a restart: no further old worker is quieted, and quieted ones finish and exit. A halted "
         "restart is acknowledged: workers stay as they are, and status and doctor no longer report it, nor "
         "the failed starts that caused it.",
         NULL, 0, SIZE_MAX, OPTION_JSON, ctl_call, false},
        {"rollback", "[FLEET...]", "returns to the release before the last restart",
         "Replaces all workers by workers of the generation before the last restart, within seconds and "
         "without interrupting jobs: they are forked from its template, which preload = yes keeps in memory "
         "during a restart, and for 10 minutes after it. A running restart is aborted. Until the next "
         "restart new workers come from that template, too. Without a name, those fleets return whose "
         "previous release is in memory.",
         "the previous release is not in memory, or the rollback was aborted", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_JSON, ctl_rollback, false},
        {"quiet", "FLEET|WORKER", "stops accepting jobs; a worker is then replaced",
         "A fleet accepts no more jobs: its workers are stopped as they become idle, and not replaced until "
         "start or restart --resume. A worker is stopped when it is idle, and replaced; a starting one is "
         "quieted after its boot.",
         NULL, 1, 1, OPTION_JSON, ctl_call, false},
        {"stop", "FLEET|WORKER", "stops workers once their jobs are done",
         "A fleet is drained, and stays stopped until start. A worker exits once it is idle, and is "
         "replaced. With --force workers are asked to exit at once, and their jobs are cut off. This also "
         "ends a worker whose heartbeat is not found.",
         NULL, 1, 1, OPTION_FORCE | OPTION_JSON, ctl_call, false},
        {"start", "FLEET", "starts a stopped or quieted fleet", "Starts a fleet that was stopped or quieted.",
         NULL, 1, 1, OPTION_JSON, ctl_call, false},
        {"scale", "FLEET N|auto", "sets the number of active workers",
         "Sets the count, from 1 to max_processes, until the file names another count. 0 is possible only if "
         "active_process_count is 0 without active_process_max, and takes the order back. With "
         "active_process_max the count then no longer follows the queues, and may be outside of the "
         "configured range; auto returns the count to autoscaling.",
         "the count was refused", 2, 2, OPTION_JSON, ctl_scale, false},
        {"events", "[FLEET...|WORKER]", "shows what has happened",
         "Prints the last 512 events since sqmgr(8) started, oldest first. The journal has all events.", NULL,
         0, SIZE_MAX, OPTION_FOLLOW | OPTION_LINES | OPTION_JSON, ctl_events, true},
        {"jobs", "[FLEET...]", "shows the running jobs",
         "Prints the running jobs, the longest first: class, id, queue, worker and age. If a Redis or a "
         "database does not answer, or a job cannot be read, the others are printed, with the reason.",
         "a Redis or a database did not answer", 0, SIZE_MAX, OPTION_JSON, ctl_call, true},
        {"queues", "", "shows the queues: size and latency",
         "Prints for each Redis and database the size of each queue, the wait of its oldest job, whether it "
         "is paused, and the number of jobs to be retried, scheduled and dead.",
         "a Redis or a database did not answer", 0, 0, OPTION_JSON, ctl_call, true},
        {"doctor", "", "checks servers, the machine and the settings",
         "Checks Redis (persistence, eviction), databases (processes, failed jobs), the machine and its "
         "clocks, the state file and open files. For each fleet it checks user, log, command, timeouts, "
         "memory, crash loops, orders that are still in effect, versions and heartbeats. Each finding is ok, "
         "warning or problem, the last two with a remedy.",
         "there is a problem", 0, 0, OPTION_JSON, ctl_call, true},
        {"metrics", "", "prints metrics in the format of Prometheus",
         "Prints metrics in the text format of Prometheus. Queues are read at that moment. They are left out "
         "if their server does not answer, and a queue if its name is not printable. Counters begin at 0 "
         "with each sqmgr(8).",
         NULL, 0, 0, OPTION_JSON, ctl_call, true},
        {"why", "FLEET|WORKER", "explains a worker's history, or a fleet's count",
         "Prints the history of a worker from the events that are kept; then its state, the reason, what it "
         "waits for, and the evidence for that. For a fleet with active_process_max it prints the "
         "calculation of the count: waiting jobs of each queue, busy threads, time per job, threads needed.",
         NULL, 1, 1, OPTION_JSON, ctl_why, true},
        {"logs", "FLEET|WORKER", "shows the log of workers",
         "Prints what workers have written: the last 50 lines, or the number given by --lines (-n); with "
         "--follow (-f) also new lines. Files and journal are read with the rights of the caller.",
         NULL, 1, 1, OPTION_FOLLOW | OPTION_LINES | OPTION_PREVIOUS, ctl_logs, true},
        {"reload", "", "reads the configuration again, shows changes",
         "Reads the configuration again, and prints each changed key and whether the change applies at once. "
         "If the configuration has errors, they are printed, and the old one stays current.",
         "the configuration has errors", 0, 0, OPTION_JSON, ctl_call, false},
        {"reexec", "", "replaces the running sqmgr by the installed one",
         "Replaces the running sqmgr(8) by the installed one, newer or older, at the path that it was "
         "started by. Process, control socket and workers stay. If the new program does not accept the "
         "configuration or the state, its message is printed, and nothing changes. Only root and the user of "
         "sqmgr(8) may give this order.",
         "the re-exec was refused", 0, 0, OPTION_JSON, ctl_call, false},
        {"ping", "", "checks whether sqmgr answers",
         "Asks whether sqmgr(8) answers. With --ready it also exits with 1 if a fleet has fewer active "
         "workers than its count, and prints what is missing. Fleets that are quieted, stopped or have the "
         "count 0 are not checked. sqmgr(8) is not ready while it shuts down.",
         "workers are missing", 0, 0, OPTION_READY | OPTION_JSON, ctl_ping, true},
        {"version", "", "shows the version of the running sqmgr",
         "Prints the version of the running sqmgr(8).", NULL, 0, 0, OPTION_JSON, ctl_call, true},
};
const size_t n_commands = ELEMENTSOF(commands);

/* Returns NULL if there is no command of that name. */
static const struct command *find_command(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

const struct usage_option usage_options[] = {
        {'\0', OPTION_WAIT, "wait", "[=drained]",
         "shows progress until the old workers are replaced and quiet; drained: until they are gone",
         "shows progress until the old workers are gone"},
        {'\0', OPTION_RESUME, "resume", "", "also quieted fleets, which then accept jobs", NULL},
        {'\0', OPTION_RELEASE, "release", " TEXT",
         "restarts nothing unless the directory of each fleet leads to a path that ends in TEXT", NULL},
        {'\0', OPTION_WATCH, "watch", "", "updates each second, until q is pressed", NULL},
        {'\0', OPTION_FORCE, "force", "", "does not wait for running jobs", NULL},
        {'n', OPTION_LINES, "lines", " N", "at most the last N so far", NULL},
        {'f', OPTION_FOLLOW, "follow", "", "continues with new ones", NULL},
        {'\0', OPTION_PREVIOUS, "previous", "", "of earlier processes of a worker", NULL},
        {'\0', OPTION_READY, "ready", "", "also checks that each fleet has its workers", NULL},
        {'\0', OPTION_JSON, "json", "", "prints JSON, one object on a line", NULL},
        {'\0', OPTION_TIMEOUT, "timeout", " DURATION", "maximum wait (30s; with --wait: unlimited)", NULL},
        {'i', OPTION_INSTANCE, "instance", " NAME", "connects to sqmgr@NAME.service", NULL},
        {'s', OPTION_SOCKET, "socket", " SOCKET", "the control socket; also SQMGR_SOCKET in the environment",
         NULL},
        {'h', OPTION_HELP, "help", "", "shows this text", NULL},
        {'V', OPTION_VERSION, "version", "", "shows the version of sqmgrctl", NULL},
};
const size_t usage_n_options = ELEMENTSOF(usage_options);

static int has_argument(const char *value)
{
        return value[0] == '\0' ? no_argument : value[0] == '[' ? optional_argument : required_argument;
}

/* Reads the next option of a command line with getopt_long() and sets its bit in ctl. Returns its row.
 * Returns NULL at the end of the options (*ret is -1) or for a wrong option (*ret is '?' or ':'). */
static const struct usage_option *next_option(struct ctl *ctl, int argc, char **argv, int *ret)
{
        struct option known[ELEMENTSOF(usage_options) + 1] = {0};

        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                known[i] = (struct option){usage_options[i].name, has_argument(usage_options[i].value), NULL,
                                           (int)usage_options[i].bit};
        *ret = getopt_long(argc, argv, ":s:i:fn:hV", known, NULL);
        FOREACH_ELEMENT(option, usage_options) {
                if (*ret != option->letter && *ret != (int)option->bit)
                        continue;
                ctl->options |= option->bit;
                return option;
        }
        return NULL;
}

/* Prints the error `what` and the usage of the command. Returns CTL_USAGE. */
static int usage_error(const struct command *command, const char *what)
{
        char options[256] = "";

        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                if (command->options & ~(unsigned)OPTION_JSON & usage_options[i].bit)
                        text_append(options, sizeof(options), " [--%s%s]", usage_options[i].name,
                                    usage_options[i].value);
        return output_error(CTL_USAGE, "%s: usage: sqmgrctl %s%s%s%s", what, command->name,
                            command->arguments[0] != '\0' ? " " : "", command->arguments, options);
}

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

static void print_help(const struct command *command)
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

/* Takes over the socket that the option, -s or -i, names. Returns CTL_DONE or an exit code. */
static int take_socket(struct ctl *ctl, enum option_bit option, const char *value)
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

/* Applies what an option is beyond its bit. Returns CTL_DONE or an exit code. */
static int take_option(struct ctl *ctl, enum option_bit option)
{
        switch (option) {
        case OPTION_SOCKET:
        case OPTION_INSTANCE:
                return take_socket(ctl, option, optarg);
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
                const struct usage_option *option = next_option(ctl, argc, argv, &key);

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
        bool worker = ctl->n_arguments > 0 && strchr(ctl->arguments[0], '/');
        unsigned wrong = ctl->options & ~(command->options | OPTIONS_COMMON);

        for (size_t i = 0; i < usage_n_options; i++)
                if (wrong & usage_options[i].bit)
                        return output_error(CTL_USAGE, "'%s' has no option --%s; '%s' has", command->name,
                                            usage_options[i].name, command_with(usage_options[i].bit));
        if (ctl->n_arguments < command->min)
                return usage_error(command, "missing argument");
        if (ctl->n_arguments > command->max)
                return usage_error(command, "too many arguments");
        if (worker && ctl->n_arguments > 1 && strstr(command->arguments, "|WORKER"))
                return usage_error(command, "give one worker, or fleets");
        if (ctl_has(ctl, OPTION_PREVIOUS) && ctl_has(ctl, OPTION_FOLLOW))
                return usage_error(command, "--previous cannot be used with --follow");
        if (ctl_has(ctl, OPTION_PREVIOUS) && !worker)
                return usage_error(command, "--previous needs a worker");
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
        const struct command *command = optind < argc ? find_command(argv[optind]) : NULL;
        if (optind < argc && !command)
                return report_unknown_command(argv[optind]);
        if (ctl->options & OPTION_HELP) {
                print_help(command);
                return CTL_DONE;
        }
        if (!command)
                return output_error(CTL_USAGE, "missing command. For a list, run 'sqmgrctl --help'");
        ctl->command = command;
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        if (!(ctl->options & OPTION_TIMEOUT))
                ctl->timeout = ctl->wait != CTL_WAIT_NONE || ctl_has(ctl, OPTION_FOLLOW)
                                       ? USEC_INFINITY
                                       : ANSWER_TIMEOUT_USEC;
        return check_usage(ctl);
}

/* A user is typing. */
#define COMPLETE_USEC USEC_PER_SEC

static void offer(const char *word, const char *help, const char *partial)
{
        if (strncmp(word, partial, strlen(partial)) == 0)
                printf("%s%s%s\n", word, help[0] != '\0' ? "\t" : "", help);
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

static void offer_instances(const struct ctl *ctl, const char *partial)
{
        _cleanup_json_ json_t *list = instances_list();
        json_t *entry;

        json_foreach(entry, list)
                offer_name(ctl, reply_string(entry, "name"), partial);
}

/* Parses the arguments before the one to complete. Returns false if nothing more can be offered: the command
 * is unknown, or an option's value is being typed. */
static bool read_words(struct ctl *ctl, int argc, char **argv, const char *partial)
{
        int key;

        do {
                const struct usage_option *option = next_option(ctl, argc, argv, &key);

                if (option && option->bit & (OPTION_SOCKET | OPTION_INSTANCE))
                        (void)take_socket(ctl, option->bit, optarg);
                if (key != ':')
                        continue;
                if (optopt == 'i' || optopt == OPTION_INSTANCE)
                        offer_instances(ctl, partial);
                return false;
        } while (key != -1);
        if (optind >= argc || (optind == argc - 1 && strcmp(argv[optind], "help") == 0))
                return true;
        ctl->command = find_command(argv[optind]);
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        return ctl->command;
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
