/* SPDX-License-Identifier: MIT */
/* sqmgr-init, which `sqmgr init` executes: writes a first config file, and a drop-in for the unit of sqmgr,
 * from what another supervisor is configured with. Runs with the rights of its caller, and never replaces a
 * file. */
#include "base/fd.h"
#include "base/memstream.h"
#include "config.h"
#include "frameworks/table.h"
#include "init/source_rules.h"
#include "io/ini.h"
#include "settings/errors.h"
#include "settings/settings.h"
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>

#define SOURCE_MAX_BYTES ((size_t)1 << 20)
#define FILE_MODE        0640 /* passwords may come to stand in it */
#define CONFIG_FOLDER    SYSCONFDIR "/sqmgr"

enum source { SOURCE_NONE, SOURCE_SYSTEMD, SOURCE_SUPERVISORD, SOURCE_PROCFILE, SOURCE_SIDEKIQSWARM };

enum { VALUE_ENTRY, VALUE_NAME, VALUE_OUTPUT, VALUE_DROP_IN };

/* The options with a value, and the key of the fleet that they set; NULL: none. */
static const struct {
        const char *option, *key;
} values[] = {
        [VALUE_ENTRY] = {"entry", NULL},
        [VALUE_NAME] = {"name", NULL},
        [VALUE_OUTPUT] = {"output", NULL},
        [VALUE_DROP_IN] = {"drop-in", NULL},
        {"command", "command"},
        {"count", "active_process_count"},
        {"directory", "directory"},
        {"environment-file", "environment_file"},
        {"framework", "framework"},
        {"group", PROPOSAL_GROUP},
        {"memory", "memory_threshold"},
        {"user", PROPOSAL_USER},
};

struct options {
        enum source source;
        const char *from;                       /* argument of --from-...; NULL: none */
        const char *values[ELEMENTSOF(values)]; /* NULL: not given */
};

static void print_help(void)
{
        printf("Usage: sqmgr init [OPTION]...\n"
               "Writes a first config file, from what another supervisor is configured with, or from\n"
               "options alone, and a drop-in for the unit of sqmgr with what only a unit can set.\n"
               "What could not be taken over is listed on standard error.\n"
               "\n"
               "      --from-systemd UNIT      a service, with its drop-ins; sidekiq@ counts its instances.\n"
               "                               With a '/' it is the file of a unit, and - is standard input\n"
               "      --from-supervisord FILE  a section [program:NAME]\n"
               "      --from-procfile FILE     a line NAME: COMMAND\n"
               "      --from-sidekiqswarm[=FILE]\n"
               "                               SIDEKIQ_COUNT and the like, of the environment or of FILE\n"
               "      --entry NAME             which program or process, if there are several\n"
               "\n"
               "      --command COMMAND        what starts one worker, in the foreground\n"
               "      --count N                number of workers\n"
               "      --directory DIRECTORY    where they run\n"
               "      --environment-file FILE  their environment\n"
               "      --framework NAME         sidekiq, resque, rq, celery, bullmq, solid_queue,\n"
               "                               good_job, native or plain\n"
               "      --group GROUP            group of sqmgr and its workers\n"
               "      --memory SIZE            replace a worker above this: 1G\n"
               "      --user USER              user of sqmgr and its workers\n"
               "\n"
               "      --name NAME              name of the fleet\n"
               "  -o, --output FILE            write FILE, which must not exist, not standard output\n"
               "      --drop-in FILE           write the drop-in to FILE, which must not exist; else it\n"
               "                               stands in comments at the end of the config file\n"
               "  -h, --help                   print this help and exit\n"
               "\n"
               "Exit status: 0 written, 1 nothing was written.\n"
               "See sqmgr(8), sqmgr.ini(5).\n" REPORT_FAULTS "\n");
}

static int say(const char *format, ...) _printf_(1, 2);
static int say(const char *format, ...)
{
        va_list arguments;

        fputs("sqmgr init: ", stderr);
        va_start(arguments, format);
        (void)vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        return -EINVAL;
}

/* Returns 0 to continue, 1 to exit successfully, -EINVAL for invalid usage. */
static int parse_options(int argc, char **argv, struct options *options)
{
        enum { OPTION_FROM = 256, OPTION_VALUE = OPTION_FROM + 16 };
        struct option long_options[ELEMENTSOF(values) + 6] = {
                {"from-systemd", required_argument, NULL, OPTION_FROM + SOURCE_SYSTEMD},
                {"from-supervisord", required_argument, NULL, OPTION_FROM + SOURCE_SUPERVISORD},
                {"from-procfile", required_argument, NULL, OPTION_FROM + SOURCE_PROCFILE},
                {"from-sidekiqswarm", optional_argument, NULL, OPTION_FROM + SOURCE_SIDEKIQSWARM},
                {"help", no_argument, NULL, 'h'},
        };
        int option;

        argv[0] = (char *)"sqmgr init";
        for (int i = 0; i < (int)ELEMENTSOF(values); i++)
                long_options[5 + i] =
                        (struct option){values[i].option, required_argument, NULL, OPTION_VALUE + i};
        while ((option = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1) {
                if (option == 'h') {
                        print_help();
                        return 1;
                }
                if (option == '?') {
                        fprintf(stderr, "Try 'sqmgr init --help'.\n");
                        return -EINVAL;
                }
                if (option == 'o' || option >= OPTION_VALUE) {
                        options->values[option == 'o' ? VALUE_OUTPUT : option - OPTION_VALUE] = optarg;
                        continue;
                }
                if (options->source != SOURCE_NONE)
                        return say("only one --from-... is possible");
                options->source = (enum source)(option - OPTION_FROM);
                options->from = optarg;
        }
        if (optind < argc)
                return say("unexpected argument '%s'. Try 'sqmgr init --help'", argv[optind]);
        return 0;
}

/* Reads a file, or standard input for `-`. */
static int read_source(const char *path, char **ret, size_t *ret_length)
{
        bool standard = strcmp(path, "-") == 0;
        _cleanup_close_ int opened = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int r = !standard && opened < 0
                        ? -errno
                        : fd_read_whole(standard ? STDIN_FILENO : opened, SOURCE_MAX_BYTES, ret, ret_length);

        return r < 0 ? say("cannot read %s: %s", path, strerrordesc_np(-r)) : 0;
}

/* Runs systemctl and reads what it prints. Its errors go to standard error. */
static int read_systemctl(const char *const *arguments, char **ret, size_t *ret_length)
{
        posix_spawn_file_actions_t actions;
        int ends[2], status = 0;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return say("cannot make a pipe: %s", strerrordesc_np(errno));
        int failed = posix_spawn_file_actions_init(&actions);
        if (failed == 0) {
                failed = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
                if (failed == 0)
                        failed = posix_spawnp(&pid, arguments[0], &actions, NULL, (char *const *)arguments,
                                              environ);
                (void)posix_spawn_file_actions_destroy(&actions);
        }
        (void)close(ends[1]);
        int r = failed == 0 ? fd_read_whole(ends[0], SOURCE_MAX_BYTES, ret, ret_length) : 0;
        (void)close(ends[0]);
        if (failed != 0)
                return say("cannot run %s: %s: name the file of the unit, or '-' for what 'systemctl cat' "
                           "prints",
                           arguments[0], strerrordesc_np(failed));
        if (waitpid(pid, &status, 0) != pid || r < 0 || status != 0)
                return say("'systemctl %s' failed", arguments[1]);
        return 0;
}

/* Counts the instances of a template, `sidekiq@`. *ret_first is the first one's name, to be freed; NULL:
 * there is none. */
static int count_instances(const char *template, unsigned *ret_n, char **ret_first)
{
        _cleanup_free_ char *pattern = NULL, *text = NULL;
        size_t length;

        if (asprintf(&pattern, "%s*.service", template) < 0)
                return say("out of memory");
        const char *const arguments[] = {"systemctl",  "list-units", "--all", "--plain", "--no-legend",
                                         "--no-pager", "--",         pattern, NULL};
        int r = read_systemctl(arguments, &text, &length);
        if (r < 0)
                return r;
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
                line += strspn(line, " ");
                if (strncmp(line, template, strlen(template)) != 0)
                        continue;
                if ((*ret_n)++ == 0)
                        *ret_first = strndup(line, strcspn(line, " "));
        }
        return 0;
}

/* Reads a unit as `systemctl cat` prints it, or from a file. For a template, *ret_n is the number of its
 * instances. */
static int read_unit(const char *unit, char **ret, size_t *ret_length, unsigned *ret_n)
{
        const char *at = strchr(unit, '@');
        _cleanup_free_ char *template = NULL, *first = NULL;

        if (strchr(unit, '/') || strcmp(unit, "-") == 0)
                return read_source(unit, ret, ret_length);
        if (at) {
                template = strndup(unit, (size_t)(at - unit) + 1);
                int r = template ? count_instances(template, ret_n, &first) : say("out of memory");
                if (r < 0)
                        return r;
        }
        /* An instance that is named is read, and any other for the template alone. */
        bool named = !at || (at[1] != '\0' && strcmp(at, "@.service") != 0);
        const char *const arguments[] = {
                "systemctl", "cat", "--no-pager", "--", named || !first ? unit : first, NULL};
        return read_systemctl(arguments, ret, ret_length);
}

/* Names the fleet after its source. Other letters than those of fleets are left out, and signs at the
 * beginning, since programs take '-' for an option. */
static char *fleet_name(const char *source)
{
        char *name = strdup(source ?: "default");
        size_t n = 0;

        if (!name)
                return NULL;
        name[strcspn(name, "@")] = '\0';
        size_t length = strlen(name);
        if (length > strlen(".service") && strcmp(name + length - strlen(".service"), ".service") == 0)
                name[length - strlen(".service")] = '\0';
        for (const char *p = name; *p != '\0' && n < FLEET_NAME_MAX; p++)
                if (isalnum((unsigned char)*p) || (n > 0 && strchr("_.-", *p)))
                        name[n++] = *p;
        name[n] = '\0';
        if (n > 0)
                return name;
        free(name);
        return strdup("default");
}

/* Foreman starts processes in the directory of the Procfile, with its .env. */
static void add_procfile_directory(struct proposal *proposal, const char *path)
{
        _cleanup_free_ char *whole = strcmp(path, "-") == 0 ? NULL : realpath(path, NULL);
        char *slash = whole ? strrchr(whole, '/') : NULL;

        if (!whole && strcmp(path, "-") != 0)
                proposal->lost = true;
        if (!slash || slash == whole)
                return;
        *slash = '\0';
        proposal_set(proposal, "directory of the Procfile", "directory", whole);
        _cleanup_free_ char *file = proposal_text(proposal, "%s/.env", whole);
        if (file && access(file, F_OK) == 0)
                proposal_set(proposal, ".env", "environment_file", ".env");
}

/* A source as it was read. */
struct input {
        char *text;
        struct entries entries;       /* of systemd and supervisord */
        struct environment variables; /* of sidekiqswarm */
        unsigned instances;           /* of a template of systemd */
};

static void input_done(struct input *input)
{
        free(input->text);
        entries_done(&input->entries);
        environment_done(&input->variables);
}
#define _cleanup_input_ _cleanup_(input_done)

static int read_input(struct input *input, const struct options *options)
{
        const char *why = "this is neither a section, nor 'key = value', nor a comment";
        unsigned line = 0;
        size_t length = 0;
        int r = 0;

        if (options->source == SOURCE_SYSTEMD)
                r = read_unit(options->from, &input->text, &length, &input->instances);
        else if (options->from)
                r = read_source(options->from, &input->text, &length);
        if (r < 0)
                return r;
        if (options->source == SOURCE_SYSTEMD)
                r = entries_read(&input->entries, input->text, length, ENTRIES_SYSTEMD, &line);
        else if (options->source == SOURCE_SUPERVISORD)
                r = entries_read(&input->entries, input->text, length, ENTRIES_SUPERVISORD, &line);
        else if (options->source == SOURCE_SIDEKIQSWARM && options->from)
                r = environment_put_lines(&input->variables, input->text, length, &line, &why);
        else if (options->source == SOURCE_SIDEKIQSWARM)
                r = environment_put_inherited(&input->variables, environ);
        if (r == -EINVAL)
                return say("%s:%u: %s", options->from, line, why);
        return r < 0 ? say("out of memory") : 0;
}

static void add_instances(struct proposal *proposal, const char *unit, unsigned n)
{
        char count[16];

        snprintf(count, sizeof(count), "%u", n);
        if (n > 0)
                proposal_set(proposal, "instances", "active_process_count", count);
        else if (strchr(unit, '@'))
                proposal_note(proposal, "%s: no instance is counted: set active_process_count", unit);
}

/* Fills the proposal from the source. *ret_fleet is the name of the fleet, to be freed. */
static int translate(struct proposal *proposal, const struct options *options, char **ret_fleet)
{
        _cleanup_input_ struct input input = {0};
        _cleanup_free_ char *process = NULL;
        const char *name = NULL;
        int r = read_input(&input, options);

        if (r == 0 && options->source == SOURCE_SYSTEMD) {
                const char *slash = strrchr(options->from, '/');
                name = slash ? slash + 1 : options->from;
                r = source_systemd(proposal, &input.entries);
                add_instances(proposal, options->from, input.instances);
        } else if (r == 0 && options->source == SOURCE_SUPERVISORD) {
                r = source_supervisord(proposal, &input.entries, options->values[VALUE_ENTRY], &name);
        } else if (r == 0 && options->source == SOURCE_PROCFILE) {
                r = source_procfile(proposal, input.text, options->values[VALUE_ENTRY], &process);
                name = process;
                add_procfile_directory(proposal, options->from);
        } else if (r == 0 && options->source == SOURCE_SIDEKIQSWARM) {
                r = source_sidekiqswarm(proposal, &input.variables);
        }
        if (r < 0)
                return r;
        const char *fleet = options->values[VALUE_NAME];
        *ret_fleet = fleet ? strdup(fleet) : fleet_name(name);
        return *ret_fleet ? 0 : say("out of memory");
}

/* Options override what the source says. */
static int apply_flags(struct proposal *proposal, const struct options *options)
{
        char name[32];
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(values) && r == 0; i++) {
                snprintf(name, sizeof(name), "--%s", values[i].option);
                if (values[i].key && options->values[i])
                        r = proposal_require(proposal, name, values[i].key, options->values[i]);
        }
        return r == 0 ? proposal_finish(proposal) : r;
}

/* Never replaces a file. One that could not be written whole is removed. */
static int write_output(const char *path, mode_t mode, const char *text)
{
        if (!path)
                return fputs(text, stdout) < 0 || fflush(stdout) != 0
                               ? say("cannot write to standard output: %s", strerrordesc_np(errno))
                               : 0;
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
        if (fd < 0 && errno == EEXIST)
                return say("%s is there already, and is left as it is: name another file", path);
        int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
        if (r < 0 && fd >= 0)
                (void)unlink(path);
        return r < 0 ? say("cannot write %s: %s", path, strerrordesc_np(-r)) : 0;
}

/* Names the instance after its config file, or else after its user. To be freed. */
static char *instance_name(const struct proposal *proposal, const char *output)
{
        static const char folder[] = CONFIG_FOLDER "/";
        const char *name =
                output && strncmp(output, folder, strlen(folder)) == 0 ? output + strlen(folder) : "";
        size_t length = strcspn(name, "./");

        if (length > 0 && strcmp(name + length, ".ini") == 0)
                return strndup(name, length);
        return strdup(proposal_get(proposal, PROPOSAL_USER) ?: "USER");
}

/* Has the reader of config files check the text. */
static int check_text(const struct proposal *proposal, const char *text)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0};

        if (ini_check_text(text, proposal->surroundings, &errors) == 0)
                return 0;
        for (size_t i = 0; i < errors.n; i++)
                (void)say("%s", errors.list[i].text);
        return errors.n > 0 ? -EINVAL : say("out of memory");
}

/* Prints the proposal, and writes the files: none if one of them cannot be written. */
static int write_proposal(const struct proposal *proposal, const struct options *options, const char *fleet)
{
        static const char *const sources[] = {"its options", "systemd", "supervisord", "a Procfile",
                                              "sidekiqswarm"};
        _cleanup_free_ char *text = NULL, *unit = NULL,
                            *instance = instance_name(proposal, options->values[VALUE_OUTPUT]);
        size_t size = 0, unit_size = 0;
        struct proposal_names names = {
                .source = sources[options->source],
                .fleet = fleet,
                .instance = instance,
                .folder = CONFIG_FOLDER,
        };
        const char *drop_in = options->values[VALUE_DROP_IN];
        bool needs_unit = false;

        FILE *out = open_memstream(&text, &size), *unit_out = open_memstream(&unit, &unit_size);
        if (out && unit_out && instance) {
                proposal_print(proposal, &names, out);
                needs_unit =
                        proposal_print_unit(proposal, &names, drop_in ? "" : "# ", drop_in ? unit_out : out);
        }
        int r = memstream_close(unit_out, &unit);
        if (memstream_close(out, &text) < 0 || r < 0 || !instance)
                return say("out of memory");
        r = check_text(proposal, text);
        bool separate = r == 0 && drop_in && needs_unit;
        if (separate)
                r = write_output(drop_in, 0644, unit);
        if (r < 0)
                return r;
        r = write_output(options->values[VALUE_OUTPUT], FILE_MODE, text);
        if (r < 0 && separate)
                (void)unlink(drop_in);
        if (r == 0 && drop_in && !separate)
                (void)say("no drop-in is needed: %s is not written", drop_in);
        return r;
}

int main(int argc, char **argv)
{
        const struct settings_surroundings surroundings = {
                .frameworks = framework_traits,
                .memory_total_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE),
                .user = "root",
        };
        _cleanup_proposal_ struct proposal proposal = {.surroundings = &surroundings};
        _cleanup_free_ char *fleet = NULL;
        struct options options = {0};

        int r = fd_open_standard(O_RDWR);
        if (r >= 0)
                r = parse_options(argc, argv, &options);
        if (r != 0)
                return r > 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        r = translate(&proposal, &options, &fleet);
        if (r == 0)
                r = apply_flags(&proposal, &options);
        for (char *rest = proposal.notes, *note; (note = strsep(&rest, "\n")) && *note != '\0';)
                (void)say("%s", note);
        if (proposal.error[0] != '\0')
                (void)say("%s", proposal.error);
        if (r == 0)
                r = write_proposal(&proposal, &options, fleet);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
