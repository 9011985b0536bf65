/* SPDX-License-Identifier: MIT */
/* sqmgr-web: parses its options and runs the event loop. */
#include "base/fd.h"
#include "base/printable.h"
#include "base/socket_path.h"
#include "config.h"
#include "web/log.h"
#include "web/web.h"
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#define EXIT_USAGE 2
#define LIST_MAX   INSTANCES_MAX
/* Descriptors besides clients: listeners, connections to sqmgr, and the event loop. */
#define DESCRIPTORS_BESIDES (2 * LIST_MAX + 32)

struct list {
        const char *texts[LIST_MAX];
        size_t n;
};

struct options {
        struct list listens, sockets, hosts;
        const char *history;
        bool public;
};

static void print_help(void)
{
        printf("Usage: sqmgr-web [OPTION]...\n"
               "Serves the state of sqmgr over HTTP: a page, JSON, metrics and probes. Read-only.\n"
               "\n"
               "  -l, --listen ADDRESS  listen on ADDRESS instead of 127.0.0.1:" ADDRESS_PORT ";\n"
               "                        also [::1]:PORT, unix:/PATH; may be given several times\n"
               "  -s, --socket PATH     show the sqmgr with this socket, not all that are\n"
               "                        found; may be given several times\n"
               "      --host NAME       also answer to this host name; may be given several times\n"
               "      --public          allow addresses that other machines can reach\n"
               "      --history PATH    keep the history in the file PATH\n"
               "  -V, --version         print the version and exit\n"
               "  -h, --help            print this help and exit\n"
               "\n"
               "Anyone who can connect can read: see SECURITY in sqmgr-web(8).\n"
               "Exit status: 0 success, 1 failure, 2 bad usage.\n"
               "See sqmgr-web(8), sqmgr(8), sqmgrctl(1).\n" REPORT_FAULTS "\n");
}

static _printf_(1, 2) int bad_usage(const char *format, ...)
{
        va_list arguments;

        fputs("sqmgr-web: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputs(". Try 'sqmgr-web --help'.\n", stderr);
        return -EINVAL;
}

static int add(struct list *list, const char *text)
{
        if (list->n == ELEMENTSOF(list->texts))
                return bad_usage("'%s': give each option at most 64 times", text);
        list->texts[list->n++] = text;
        return 0;
}

/* Returns 0 to continue, 1 to exit with success, -EINVAL for bad usage. */
static int parse_options(int argc, char **argv, struct options *options)
{
        enum { OPTION_HOST = 256, OPTION_PUBLIC, OPTION_HISTORY };
        static const struct option long_options[] = {
                {"listen", required_argument, NULL, 'l'},
                {"socket", required_argument, NULL, 's'},
                {"host", required_argument, NULL, OPTION_HOST},
                {"public", no_argument, NULL, OPTION_PUBLIC},
                {"history", required_argument, NULL, OPTION_HISTORY},
                {"version", no_argument, NULL, 'V'},
                {"help", no_argument, NULL, 'h'},
                {NULL, 0, NULL, 0},
        };
        int option, r = 0;

        *options = (struct options){0};
        while (r == 0 && (option = getopt_long(argc, argv, "l:s:hV", long_options, NULL)) != -1) {
                switch (option) {
                case 'l':
                        r = add(&options->listens, optarg);
                        break;
                case 's':
                        r = add(&options->sockets, optarg);
                        break;
                case OPTION_HOST:
                        r = add(&options->hosts, optarg);
                        break;
                case OPTION_PUBLIC:
                        options->public = true;
                        break;
                case OPTION_HISTORY:
                        options->history = optarg;
                        break;
                case 'V':
                        printf("sqmgr-web " PACKAGE_VERSION "\n%s\n", REPORT_FAULTS);
                        return 1;
                case 'h':
                        print_help();
                        return 1;
                default:
                        fprintf(stderr, "Try 'sqmgr-web --help'.\n");
                        return -EINVAL;
                }
        }
        if (r == 0 && optind < argc)
                return bad_usage("unexpected argument '%s'", argv[optind]);
        return r;
}

static int check_socket(const char *path)
{
        _cleanup_free_ char *copy = printable_copy(path, false);

        if (!copy)
                return -ENOMEM;
        if (path[0] != '/' || strcmp(copy, path) != 0)
                return bad_usage("--socket is '%s': give a path that begins with '/'", copy);
        return 0;
}

static int check_options(struct options *options, struct address *addresses)
{
        if (options->listens.n == 0)
                (void)add(&options->listens, "127.0.0.1:" ADDRESS_PORT);
        for (size_t i = 0; i < options->sockets.n; i++) {
                int r = check_socket(options->sockets.texts[i]);

                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < options->listens.n; i++) {
                const char *text = options->listens.texts[i], *error;

                if (address_parse(text, &addresses[i], &error) < 0) {
                        fprintf(stderr, "sqmgr-web: --listen is '%s': %s\n", text, error);
                        return -EINVAL;
                }
                if (!options->public && !address_is_local(&addresses[i]))
                        return bad_usage("--listen is '%s', which other machines can reach: anyone who can "
                                         "connect can "
                                         "read. To allow that, also give --public",
                                         text);
        }
        return 0;
}

static int listen_all(struct http *http, const struct options *options, const struct address *addresses)
{
        char error[512];

        http_allow_hosts(http, options->hosts.texts, options->hosts.n);
        for (size_t i = 0; i < options->listens.n; i++) {
                char text[ADDRESS_TEXT_MAX];

                if (http_listen(http, &addresses[i], error, sizeof(error)) < 0) {
                        log_error("%s", error);
                        return -EADDRINUSE;
                }
                log_info("listening on %s", address_format(&addresses[i], text, sizeof(text)));
        }
        return 0;
}

static int catch_signals(sd_event *event)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        int r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

/* Any process may raise its soft limit up to the hard limit. With a low hard limit, connections wait for free
 * descriptors. */
static void allow_descriptors(void)
{
        const rlim_t wanted = http_default_limits.connections + DESCRIPTORS_BESIDES;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
                return;
        limit.rlim_cur = MIN(wanted, limit.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int serve(sd_event *event, const struct options *options, const struct address *addresses)
{
        const struct watch_places places = {.sockets = options->sockets.texts,
                                            .n = options->sockets.n,
                                            .runtime_dir = SOCKET_PATH_SYSTEM,
                                            .enabled_dir = FIND_INSTANCES_ENABLED};
        struct web *web = NULL;
        int r = catch_signals(event);

        allow_descriptors();
        if (r >= 0)
                r = web_new(&web, event, &places, options->history);
        if (r >= 0)
                r = listen_all(web_http(web), options, addresses);
        if (r >= 0) {
                (void)sd_event_set_watchdog(event, true);
                (void)sd_notify(false, "READY=1\nSTATUS=Serving.");
                r = sd_event_loop(event);
                (void)sd_notify(false, "STOPPING=1");
        }
        web_free(web);
        return r;
}

int main(int argc, char **argv)
{
        struct options options;
        struct address addresses[LIST_MAX];
        sd_event *event = NULL;

        int r = fd_open_standard(O_RDWR);
        if (r >= 0)
                r = parse_options(argc, argv, &options);
        if (r > 0)
                return EXIT_SUCCESS;
        if (r == 0)
                r = check_options(&options, addresses);
        if (r < 0)
                return EXIT_USAGE;
        r = sd_event_new(&event);
        if (r >= 0)
                r = serve(event, &options, addresses);
        sd_event_unref(event);
        if (r < 0 && r != -EADDRINUSE)
                log_error("sqmgr-web exits: %s", strerrordesc_np(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
