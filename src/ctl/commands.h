/* SPDX-License-Identifier: MIT */
/* The tables of commands and options. --help, completion and the check of the command line use them. */
#pragma once

#include "base/macro.h"

struct ctl; /* ctl/client.h */

/* Each option is a bit above all letters, which getopt_long() returns for short options. */
enum option_bit {
        OPTION_SOCKET = 1 << 8,
        OPTION_JSON = 1 << 9,
        OPTION_TIMEOUT = 1 << 10,
        OPTION_WAIT = 1 << 11,
        OPTION_LINES = 1 << 12,
        OPTION_FOLLOW = 1 << 13,
        OPTION_RELEASE = 1 << 14,
        OPTION_WATCH = 1 << 15,
        OPTION_FORCE = 1 << 16,
        OPTION_READY = 1 << 17,
        OPTION_HELP = 1 << 18,
        OPTION_VERSION = 1 << 19,
        OPTION_RESUME = 1 << 20,
        OPTION_PREVIOUS = 1 << 21,
        OPTION_INSTANCE = 1 << 22,
};
/* The options of every command. */
#define OPTIONS_COMMON (OPTION_SOCKET | OPTION_INSTANCE | OPTION_TIMEOUT | OPTION_HELP | OPTION_VERSION)

struct command {
        const char *name;
        const char
                *arguments; /* as --help shows them; FLEET or WORKER here enables completion of these names */
        const char *help;
        const char *about;   /* for the command's own --help: sentences of sqmgrctl(1) */
        const char *failure; /* the meaning of exit code 1 beyond a failed command; NULL: none */
        size_t min, max;     /* number of arguments */
        unsigned options;
        int (*run)(struct ctl *ctl);
        bool reads; /* shows all instances if none is chosen */
};

struct usage_option {
        char letter; /* '\0': no short option */
        enum option_bit bit;
        const char *name;
        const char
                *value; /* as --help shows it: "" if there is no value, "[=VALUE]" if the value is optional */
        const char *help;       /* for --help and completion */
        const char *value_help; /* for completion of the option with its value; NULL: not offered */
        size_t flag;            /* offset in struct ctl of the bool that the option sets; 0: none */
};
extern const struct usage_option usage_options[];
extern const size_t usage_n_options;

extern const struct command commands[];
extern const size_t n_commands;

/* All return an exit code. Commands without a function of their own are rows in calls.c and run by
 * ctl_call(). */
int ctl_call(struct ctl *ctl);
int ctl_events(struct ctl *ctl);
int ctl_logs(struct ctl *ctl);
int ctl_ping(struct ctl *ctl);
int ctl_restart(struct ctl *ctl);
int ctl_rollback(struct ctl *ctl);
int ctl_scale(struct ctl *ctl);
int ctl_status(struct ctl *ctl);
int ctl_top(struct ctl *ctl);
int ctl_why(struct ctl *ctl);

/* Reads the command line into ctl. Help and the version are printed; ctl->command then stays NULL. Returns
 * CTL_DONE or an exit code. */
int command_line_read(struct ctl *ctl, int argc, char **argv);
/* Prints the error `what` and the usage of the command. Returns CTL_USAGE. */
int usage_error(const struct command *command, const char *what);

/* Shell completion (contrib/completion): prints the candidates for the last argument, one per line. A tab and
 * a short help text may follow a candidate. argv[0] is ignored. */
void complete(struct ctl *ctl, int argc, char **argv);
