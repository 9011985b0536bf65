/* SPDX-License-Identifier: MIT */
/* sqmgr: reads its options and its settings, and starts the event loop. */
#include "base/argv.h"
#include "base/fd.h"
#include "base/socket_path.h"
#include "config.h"
#include "continuity/state.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/lifecycle/reload.h"
#include "daemon/supervisor.h"
#include "frameworks/backends.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/ini.h"
#include "io/launch.h"
#include "io/log.h"
#include "io/own_program.h"
#include "io/users.h"
#include "settings/errors.h"
#include "settings/operations.h"
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/auxv.h>

#define EXIT_CONFIG        78 /* EX_CONFIG of sysexits.h */
#define REHEARSAL_USEC     (10 * USEC_PER_SEC)
#define MALLOC_BLOCK_BYTES (128 * 1024)
#define CONFIG_FOLDER      SYSCONFDIR "/sqmgr"

struct options {
        const char *config;
        bool check;
        bool print;
        bool check_state;
        const char *state; /* state file to check; NULL: the one in the settings */
};

static void print_help(void)
{
        printf("Usage: sqmgr [OPTION]...\n"
               "       sqmgr init [OPTION]...   writes a config file: see 'sqmgr init --help'\n"
               "Supervises fleets of job workers, in the foreground. Control it with sqmgrctl.\n"
               "\n"
               "  -c, --config FILE   read FILE instead of $SQMGR_CONFIG, or " CONFIG_FOLDER "/USER.ini\n"
               "      --check-config  check the config file as a start would, and exit: 0, or 78\n"
               "      --check-state[=STATE]\n"
               "                      also check whether this sqmgr could take over from one that\n"
               "                      runs with the state file STATE, and exit: 0, 1 or 78\n"
               "      --print-config  print the active settings, including defaults, and exit\n"
               "  -V, --version       print the version and exit\n"
               "  -h, --help          print this help and exit\n"
               "\n"
               "SIGTERM or SIGINT drains all workers and ends sqmgr (see on_stop); a second one\n"
               "stops the workers now. SIGHUP reloads the config file. SIGUSR2 replaces the running\n"
               "sqmgr by the installed one; workers keep running.\n"
               "Exit status: 0 exited as requested, 1 failed, 78 the config file has errors.\n"
               "See sqmgr(8), sqmgr.ini(5), sqmgrctl(1).\n" REPORT_FAULTS "\n");
}

/* The config of the instance of this user, unless the environment names another one. */
static const char *default_config(void)
{
        static char path[PATH_MAX];
        const char *named = getenv("SQMGR_CONFIG");
        char user[LOGIN_NAME_MAX];

        users_name_or_number(geteuid(), user, sizeof(user));
        snprintf(path, sizeof(path), CONFIG_FOLDER "/%s.ini", user);
        return named && named[0] != '\0' ? named : path;
}

/* Returns 0 to continue, 1 to exit successfully, -EINVAL for invalid usage. */
static int parse_options(int argc, char **argv, struct options *options)
{
        enum { OPTION_CHECK = 256, OPTION_CHECK_STATE, OPTION_PRINT };
        static const struct option long_options[] = {
                {"config", required_argument, NULL, 'c'},
                {"check-config", no_argument, NULL, OPTION_CHECK},
                {"check-state", optional_argument, NULL, OPTION_CHECK_STATE},
                {"print-config", no_argument, NULL, OPTION_PRINT},
                {"version", no_argument, NULL, 'V'},
                {"help", no_argument, NULL, 'h'},
                {NULL, 0, NULL, 0},
        };
        int option;

        *options = (struct options){.config = default_config()};
        while ((option = getopt_long(argc, argv, "c:hV", long_options, NULL)) != -1) {
                switch (option) {
                case 'c':
                        options->config = optarg;
                        break;
                case OPTION_CHECK:
                        options->check = true;
                        break;
                case OPTION_CHECK_STATE:
                        options->check_state = true;
                        options->state = optarg;
                        break;
                case OPTION_PRINT:
                        options->print = true;
                        break;
                case 'V':
                        printf("sqmgr " PACKAGE_VERSION "\n%s\n", REPORT_FAULTS);
                        return 1;
                case 'h':
                        print_help();
                        return 1;
                default:
                        fprintf(stderr, "Try 'sqmgr --help'.\n");
                        return -EINVAL;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "sqmgr: unexpected argument '%s'. Try 'sqmgr --help'.\n", argv[optind]);
                return -EINVAL;
        }
        return 0;
}

/* Checks that this program could continue with the settings and the state of the running sqmgr. */
static int check_state(const struct options *options, const struct settings *settings)
{
        const char *path = options->state ? options->state : settings->state_file;
        char boot_id[BOOT_ID_MAX], why[512] = "out of memory";
        struct state *state = NULL;

        if (strcmp(path, settings->state_file) != 0) {
                fprintf(stderr,
                        "%s: state_file is '%s', but '%s' is in use; change state_file only while no worker "
                        "runs\n",
                        options->config, settings->state_file, path);
                return EXIT_FAILURE;
        }
        int r = state_load(path, state_load_boot_id(boot_id), clock_now(CLOCK_MONOTONIC), &state, why,
                           sizeof(why));
        state_free(state);
        if (listener_check(settings->socket, why, sizeof(why)) < 0) {
                fprintf(stderr, "%s: socket: %s\n", options->config, why);
                return EXIT_FAILURE;
        }
        if (r == STATEFILE_READ || (r == STATEFILE_MISSING && !options->state)) {
                printf("%s: ok\n", r == STATEFILE_READ ? path : options->config);
                return EXIT_SUCCESS;
        }
        fprintf(stderr, "%s: %s\n", path, why);
        return EXIT_FAILURE;
}

/* Returns the path that was executed, even if the file has changed since. To be freed. */
static char *program_path(void)
{
        const char *name = (const char *)getauxval(AT_EXECFN);
        char directory[PATH_MAX], *path = NULL;

        if (!name)
                name = "";
        if (name[0] == '/' || !getcwd(directory, sizeof(directory)))
                return strdup(name);
        return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* Executes `sqmgr init`, a separate program: code that reads files of other users is not part of the
 * daemon. */
static int run_init(char **argv)
{
        _cleanup_close_ int fd = own_program_open("sqmgr-init", INIT_PROGRAM);

        if (fd >= 0)
                (void)fexecve(fd, argv, environ);
        fprintf(stderr, "sqmgr: cannot run " INIT_PROGRAM ": %s\n", strerrordesc_np(fd < 0 ? -fd : errno));
        return EXIT_FAILURE;
}

/* Failed output must not go unnoticed. */
static int finish_output(int code)
{
        if (fflush(stdout) == 0 && ferror(stdout) == 0)
                return code;
        fprintf(stderr, "sqmgr: cannot write to standard output: %s\n", strerror(errno));
        return EXIT_FAILURE;
}

/* Rehearses the start of a worker, and adds a warning if the start would fail. */
static void rehearse(const struct settings *settings, const struct fleet_settings *fleet,
                     struct settings_errors *warnings)
{
        _cleanup_free_ char *status_parent = socket_path_status(settings->socket);
        _cleanup_free_ char *shims = own_program_path(SHIM_FOLDER, "src/shims");
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct launch_request request = {
                .fleet = fleet,
                .index = 1,
                .generation = 1,
                .instance = "",
                .base_environment = environ,
                .status_parent = fleet_settings_heartbeat(fleet) == HEARTBEAT_FILE ? status_parent : NULL,
                .redis_url = fleet_settings_need_redis(fleet) ? settings_fleet_url(settings, fleet) : NULL,
                .shims = shims,
        };
        char differs[REDIS_DIFFERENCE_MAX];
        int r = getrlimit(RLIMIT_NOFILE, &request.nofile) < 0 ? -errno : 0;

        if (r == 0)
                r = launch_rehearse(&request, REHEARSAL_USEC, &report);
        _cleanup_free_ struct quoted *error = report.error;
        const char *why = error ? quoted_reveal(error) : strerrordesc_np(r < 0 ? -r : ENOMEM);
        if (r == 0 && report.outcome == LAUNCH_PENDING)
                why = "files of the fleet did not respond within 10s; check whether a file server is "
                      "unreachable";
        if (r < 0 || report.outcome != LAUNCH_RUNNING)
                settings_errors_add(warnings, fleet->line,
                                    "fleet '%s': a worker could not be started now: %s", fleet->name, why);
        if (report.redis.difference != REDIS_SAME)
                settings_errors_add(warnings, fleet->line,
                                    "fleet '%s': %s. Heartbeats are read from redis_url: make both the same",
                                    fleet->name, redis_difference_text(&report.redis, differs));
        if (report.shim_error != 0)
                settings_errors_add(
                        warnings, fleet->line, "fleet '%s': workers start without sqmgr's shim: '%s/%s': %s",
                        fleet->name, shims, fleet->traits->shim->file, shim_error_text(report.shim_error));
}

/* Root can read files that the user of the instance cannot. */
static void note_root(const char *config)
{
        const char *slash = strrchr(config, '/'), *name = slash ? slash + 1 : config;
        const char *end = strrchr(name, '.');
        _cleanup_free_ char *user = strndup(name, end ? (size_t)(end - name) : 0), *program = program_path();

        if (geteuid() != 0 || !user || !program || strcmp(user, "root") == 0)
                return;
        fprintf(stderr,
                "note: checked as root, who can read files that the instance's user cannot. To check as that "
                "user: runuser -u %s -- %s -c ",
                getpwnam(user) ? user : "USER", program);
        argv_put_quoted(stderr, config);
        fputs(" --check-config\n", stderr);
}

/* Warnings go to standard error, like errors. */
static void check_config(const struct options *options, const struct settings *settings,
                         struct settings_errors *warnings)
{
        char place[SETTINGS_PLACE_MAX];

        for (size_t i = 0; i < settings->n_fleets; i++)
                rehearse(settings, settings->fleets[i], warnings);
        for (size_t i = 0; i < warnings->n; i++)
                fprintf(stderr, "warning: %s: %s\n",
                        settings_errors_place(warnings, warnings->list[i].line, options->config, place,
                                              sizeof(place)),
                        warnings->list[i].text);
        note_root(options->config);
        printf("%s: ok\n", options->config);
}

int main(int argc, char **argv)
{
        if (argc > 1 && strcmp(argv[1], "init") == 0)
                return run_init(argv + 1);
        (void)pthread_setname_np(pthread_self(), "sqmgr");
        /* Return large blocks to the system when freed. By default, malloc raises the threshold to the
         * largest block freed so far, and keeps as much. */
        (void)mallopt(M_MMAP_THRESHOLD, MALLOC_BLOCK_BYTES);
        (void)mallopt(M_TRIM_THRESHOLD, MALLOC_BLOCK_BYTES);
        /* The threads that start processes need no arenas of their own. */
        (void)mallopt(M_ARENA_MAX, 1);

        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *settings = NULL;
        struct options options;
        struct handover handover;

        handover_take(&handover);
        int r = fd_open_standard(O_RDWR);
        if (r >= 0)
                r = parse_options(argc, argv, &options);
        if (r != 0)
                return r > 0 ? finish_output(EXIT_SUCCESS) : EXIT_FAILURE;

        r = ini_load(options.config, framework_traits, redis_judge_tls, &settings, &errors, &warnings);
        if (r < 0) {
                _cleanup_free_ char *text = settings_errors_text(&errors, options.config);

                fputs(text ? text : "out of memory\n", stderr);
                if (options.check)
                        note_root(options.config);
                return EXIT_CONFIG;
        }
        if (options.print) {
                _cleanup_free_ char *text = settings_print(settings);

                if (text)
                        fputs(text, stdout);
                return finish_output(text ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        if (options.check) {
                check_config(&options, settings, &warnings);
                return finish_output(EXIT_SUCCESS);
        }
        if (options.check_state)
                return finish_output(check_state(&options, settings));
        log_set_level(settings->log_level);
        reload_log_warnings(&warnings, options.config);
        _cleanup_free_ char *program = program_path();
        struct invocation invocation = {.program = program, .argv = argv, .config_path = options.config};
        if (!program) {
                log_error("out of memory");
                return EXIT_FAILURE;
        }
        return supervisor_run(&invocation, TAKE_PTR(settings), &handover) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
