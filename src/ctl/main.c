/* SPDX-License-Identifier: MIT */
/* sqmgrctl: reads the command line, and runs the command that it names. */
#include "base/fd.h"
#include "base/parse.h"
#include "base/words.h"
#include "config.h"
#include "ctl/ctl.h"
#include "wire/control.h"
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_TIMEOUT_USEC (30 * USEC_PER_SEC)

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers", 0, SIZE_MAX, OPTION_WATCH,
         command_status},
        {"restart", "[FLEET...]", "replaces all workers by new ones, no job cut off", 0, SIZE_MAX,
         OPTION_WAIT, command_restart},
        {"abort", "[FLEET...]", "ends a restart: no further old worker is quieted", 0, SIZE_MAX, 0,
         command_abort},
        {"quiet", "FLEET|WORKER", "no new jobs; a worker is replaced, a fleet is not", 1, 1, 0,
         command_quiet},
        {"stop", "FLEET", "stops the fleet's workers as their jobs are done", 1, 1, OPTION_FORCE,
         command_stop},
        {"start", "FLEET", "brings a stopped or quieted fleet back", 1, 1, 0, command_start},
        {"scale", "FLEET N", "sets how many workers take jobs", 2, 2, 0, command_scale},
        {"events", "[FLEET...|WORKER]", "tells what has happened", 0, SIZE_MAX, OPTION_FOLLOW,
         command_events},
        {"jobs", "[FLEET...]", "shows the jobs that run now", 0, SIZE_MAX, 0, command_jobs},
        {"queues", "", "shows what waits in Redis, and for how long", 0, 0, 0, command_queues},
        {"doctor", "", "checks Redis, the machine and the settings", 0, 0, 0, command_doctor},
        {"metrics", "", "prints numbers as Prometheus reads them", 0, 0, 0, command_metrics},
        {"why", "WORKER", "tells what happened to a worker, and why", 1, 1, 0, command_why},
        {"reload", "", "reads the configuration again, says what changed", 0, 0, 0, command_reload},
        {"reexec", "", "has the installed sqmgr take over from this one", 0, 0, 0, command_reexec},
        {"ping", "", "asks whether sqmgr answers", 0, 0, 0, command_ping},
        {"version", "", "tells the version of the sqmgr that runs", 0, 0, 0, command_version},
};
const size_t n_commands = ELEMENTSOF(commands);

static void print_help(void)
{
        puts("Usage: sqmgrctl [OPTION...] COMMAND [ARGUMENT...]\n"
             "Drives sqmgr, which supervises job workers. FLEET left out means all fleets.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                printf("  %-7s  %-17s  %s\n", commands[i].name, commands[i].arguments, commands[i].help);
        puts("\n"
             "Options:\n"
             "  -s, --socket SOCKET  the control socket; also SQMGR_SOCKET in the environment\n"
             "  --json               prints JSON, one object on a line\n"
             "  --timeout DURATION   waits no longer (30s; with --wait: as long as it takes)\n"
             "  --wait[=drained]     restart: shows progress until the old workers are\n"
             "                       replaced and quiet; drained: until they are gone\n"
             "  --follow             events: goes on with those to come\n"
             "  --watch              status: shows it anew each second, until q is pressed\n"
             "  --force              stop: does not wait for running jobs\n"
             "  -h, --help           shows this text\n"
             "  -V, --version        shows the version of sqmgrctl\n"
             "\n"
             "Exit codes: 0 done, 1 the operation failed, 2 usage or an unknown name,\n"
             "3 cannot connect, 4 not permitted, 5 timed out, 130 interrupted; after the last\n"
             "two the operation goes on.");
}

const struct command *find_command(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

/* A word that may have been meant. */
struct near {
        const char *word; /* NULL: none so far */
        unsigned distance;
};

static void compare_words(struct near *near, const char *typed, const char *word)
{
        unsigned distance = words_distance(typed, word);

        if (distance < (near->word ? near->distance : 3) && distance < strlen(word))
                *near = (struct near){.word = word, .distance = distance};
}

static int tell_unknown_command(const char *name)
{
        struct near near = {0};

        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                compare_words(&near, name, commands[i].name);
        if (near.word)
                return ctl_error(CTL_USAGE, "unknown command '%s', did you mean '%s'?", name, near.word);
        return ctl_error(CTL_USAGE, "unknown command '%s': 'sqmgrctl --help' lists them", name);
}

/* The socket that is meant where none is named; to be freed, or NULL where memory is short. */
static char *default_socket(void)
{
        const char *from_environment = getenv("SQMGR_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
        char *path;

        if (from_environment && from_environment[0] != '\0')
                return strdup(from_environment);
        if (geteuid() == 0 || !runtime || runtime[0] == '\0' || access(CONTROL_DEFAULT_SOCKET, F_OK) == 0)
                return strdup(CONTROL_DEFAULT_SOCKET);
        return asprintf(&path, "%s/%s", runtime, CONTROL_USER_SOCKET) < 0 ? NULL : path;
}

bool ctl_find_socket(struct ctl *ctl)
{
        if (!ctl->socket)
                ctl->socket = default_socket();
        return ctl->socket != NULL;
}

enum { OPT_JSON = 256, OPT_TIMEOUT, OPT_WAIT, OPT_FORCE, OPT_FOLLOW, OPT_WATCH };

static const struct option long_options[] = {
        {"socket", required_argument, NULL, 's'},
        {"json", no_argument, NULL, OPT_JSON},
        {"timeout", required_argument, NULL, OPT_TIMEOUT},
        {"wait", optional_argument, NULL, OPT_WAIT},
        {"follow", no_argument, NULL, OPT_FOLLOW},
        {"watch", no_argument, NULL, OPT_WATCH},
        {"force", no_argument, NULL, OPT_FORCE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
};

/* What getopt does not take; option: '?' or ':'. */
static int tell_bad_option(int option, const char *word)
{
        struct near near = {0};
        char name[64];

        if (option == ':')
                return ctl_error(CTL_USAGE, "'%s' wants a value: 'sqmgrctl --help' says which", word);
        if (strncmp(word, "--", 2) != 0)
                return ctl_error(CTL_USAGE, "unknown option '-%c': 'sqmgrctl --help' lists them", optopt);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
        for (const struct option *known = long_options; known->name; known++) {
                if (strcmp(known->name, name) == 0)
                        return ctl_error(CTL_USAGE, "--%s takes no value", name);
                compare_words(&near, name, known->name);
        }
        if (near.word)
                return ctl_error(CTL_USAGE, "unknown option '--%s', did you mean '--%s'?", name, near.word);
        return ctl_error(CTL_USAGE, "unknown option '--%s': 'sqmgrctl --help' lists them", name);
}

/* Carries out one option. Returns CTL_DONE to go on, -1 where help or version was shown, or an exit code.
 * word: where it stands. */
static int parse_option(struct ctl *ctl, int option, const char *word, bool *timeout_given)
{
        switch (option) {
        case 's':
                free(ctl->socket);
                ctl->socket = strdup(optarg);
                return ctl->socket ? CTL_DONE : ctl_error(CTL_FAILED, "there is too little memory");
        case OPT_JSON:
                ctl->json = true;
                return CTL_DONE;
        case OPT_TIMEOUT:
                *timeout_given = true;
                if (parse_duration(optarg, &ctl->timeout) == 0)
                        return CTL_DONE;
                return ctl_error(CTL_USAGE, "'%s' is not a duration: " PARSE_DURATION_HINT " is wanted",
                                 optarg);
        case OPT_WAIT:
                ctl->wait = optarg && strcmp(optarg, "drained") == 0 ? CTL_WAIT_DRAINED : CTL_WAIT_REPLACED;
                if (!optarg || ctl->wait == CTL_WAIT_DRAINED || strcmp(optarg, "replaced") == 0)
                        return CTL_DONE;
                return ctl_error(CTL_USAGE, "--wait=%s: 'replaced' and 'drained' can be waited for", optarg);
        case OPT_FOLLOW:
                ctl->follow = true;
                return CTL_DONE;
        case OPT_WATCH:
                ctl->watch = true;
                return CTL_DONE;
        case OPT_FORCE:
                ctl->force = true;
                return CTL_DONE;
        case 'h':
                print_help();
                return -1;
        case 'V':
                puts("sqmgrctl " PACKAGE_VERSION);
                return -1;
        default:
                return tell_bad_option(option, word);
        }
}

/* The options that not every command has: how they are written, and whose they are. */
static const struct {
        enum option_bit bit;
        const char *name, *value, *command;
} command_options[] = {
        {OPTION_WAIT, "--wait", "[=drained]", "restart"},
        {OPTION_FORCE, "--force", "", "stop"},
        {OPTION_FOLLOW, "--follow", "", "events"},
        {OPTION_WATCH, "--watch", "", "status"},
};

int ctl_usage(const struct command *command, const char *what)
{
        char options[64] = "";

        for (size_t i = 0; i < ELEMENTSOF(command_options); i++)
                if (command->options & command_options[i].bit)
                        snprintf(options, sizeof(options), " [%s%s]", command_options[i].name,
                                 command_options[i].value);
        return ctl_error(CTL_USAGE, "%s: usage: sqmgrctl %s%s%s%s", what, command->name,
                         command->arguments[0] != '\0' ? " " : "", command->arguments, options);
}

static int check_usage(const struct ctl *ctl, const struct command *command)
{
        const bool given[] = {ctl->wait != CTL_WAIT_NONE, ctl->force, ctl->follow, ctl->watch};
        static_assert(ELEMENTSOF(given) == ELEMENTSOF(command_options), "each option that may be given");

        for (size_t i = 0; i < ELEMENTSOF(given); i++)
                if (given[i] && !(command->options & command_options[i].bit))
                        return ctl_error(CTL_USAGE, "'%s' has no option %s: '%s' has", command->name,
                                         command_options[i].name, command_options[i].command);
        if (ctl->n_arguments < command->min)
                return ctl_usage(command, "an argument is missing");
        if (ctl->n_arguments > command->max)
                return ctl_usage(command, "there are too many arguments");
        return CTL_DONE;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
        bool timeout_given = false;
        int option;

        while ((option = getopt_long(argc, argv, ":s:hV", long_options, NULL)) != -1) {
                int r = parse_option(ctl, option, argv[optind - 1], &timeout_given);

                if (r != CTL_DONE)
                        return MAX(r, 0);
        }
        if (optind >= argc)
                return ctl_error(CTL_USAGE, "a command is missing: 'sqmgrctl --help' lists them");
        const struct command *command = find_command(argv[optind]);
        if (!command)
                return tell_unknown_command(argv[optind]);
        ctl->arguments = argv + optind + 1;
        ctl->n_arguments = (size_t)(argc - optind - 1);
        int r = check_usage(ctl, command);
        if (r != CTL_DONE)
                return r;
        if (!ctl_find_socket(ctl))
                return ctl_error(CTL_FAILED, "there is too little memory");
        if (!timeout_given)
                ctl->timeout =
                        ctl->wait != CTL_WAIT_NONE || ctl->follow ? USEC_INFINITY : ANSWER_TIMEOUT_USEC;
        return command->run(ctl);
}

int main(int argc, char **argv)
{
        struct ctl ctl = {.fd = -1, .signal_fd = -1, .key_fd = -1};
        int code = CTL_DONE;

        /* One that was closed can be read alone, so that what is written there fails. */
        if (fd_open_standard(O_RDONLY) < 0)
                return CTL_FAILED;
        /* For shells, not for people: --help has no word on it. */
        if (argc > 1 && strcmp(argv[1], "--complete") == 0)
                complete(&ctl, argv + 2, (size_t)(argc - 2));
        else
                code = run(&ctl, argc, argv);

        client_close(&ctl);
        close_fd(ctl.signal_fd);
        free(ctl.socket);
        if (fflush(stdout) != 0 || ferror(stdout))
                return ctl_error(CTL_FAILED, "cannot write to standard output: %s", strerrordesc_np(errno));
        return code;
}
