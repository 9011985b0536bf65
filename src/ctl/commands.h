/* SPDX-License-Identifier: MIT */
/* The tables of commands and of options: --help, completion and what a command line may hold follow from
 * them.
 */
#pragma once

#include "ctl/ctl.h"

/* The options: each is a bit above all letters. */
enum option_bit {
        OPTION_SOCKET = 1 << 8,
        OPTION_JSON = 1 << 9,
        OPTION_TIMEOUT = 1 << 10,
        OPTION_WAIT = 1 << 11,
        OPTION_LINES = 1 << 12,
        OPTION_FOLLOW = 1 << 13,
        OPTION_EVERYWHERE = 1 << 14,
        OPTION_RELEASE = 1 << 15,
        OPTION_WATCH = 1 << 16,
        OPTION_FORCE = 1 << 17,
        OPTION_READY = 1 << 18,
        OPTION_HELP = 1 << 19,
        OPTION_VERSION = 1 << 20,
};
/* Those that every command has. */
#define OPTIONS_COMMON (OPTION_SOCKET | OPTION_JSON | OPTION_TIMEOUT | OPTION_HELP | OPTION_VERSION)

struct command {
        const char *name;
        const char *arguments; /* for people; where it has FLEET or WORKER in it, those are completed */
        const char *help;
        size_t min, max; /* arguments */
        unsigned options;
        int (*run)(struct ctl *ctl);
};

struct usage_option {
        char letter; /* '\0': it has none */
        enum option_bit bit;
        const char *name;
        const char *value; /* as --help has it: "" where it takes none, "[=VALUE]" where it may be left out */
        const char *help;  /* for --help: may have several lines */
        const char *hint;  /* for completion */
        const char *value_hint; /* the same where the value stands there; NULL: it is not offered */
        size_t flag;            /* where in struct ctl it sets a bool; 0: nowhere */
};
extern const struct usage_option usage_options[];
extern const size_t usage_n_options;
/* Takes the next option of a command line by getopt_long(), and notes it in ctl. Returns its row; or NULL
 * where none is left (*ret is -1), or for a wrong one (*ret is '?' or ':'). */
const struct usage_option *usage_next_option(struct ctl *ctl, int argc, char **argv, int *ret);

extern const struct command commands[];
extern const size_t n_commands;

/* The command of that name, or NULL. */
const struct command *commands_find(const char *name);

/* They return an exit code. A command without a function of its own is a row in calls.c: ctl_call(). */
int ctl_abort(struct ctl *ctl);
int ctl_call(struct ctl *ctl);
int ctl_events(struct ctl *ctl);
int ctl_logs(struct ctl *ctl);
int ctl_ping(struct ctl *ctl);
int ctl_restart(struct ctl *ctl);
int ctl_rollout(struct ctl *ctl);
int ctl_scale(struct ctl *ctl);
int ctl_status(struct ctl *ctl);
int ctl_top(struct ctl *ctl);
int ctl_why(struct ctl *ctl);
/* Carries out restart --everywhere. Returns an exit code. */
int group_rollout_restart(struct ctl *ctl);

/* Tells what is wrong with the command's arguments, and how it is used. Returns CTL_USAGE. */
int usage_error(const struct command *command, const char *what);

/* Answers the shells' completion (contrib/completion): prints what may stand in the place of the last word,
 * one a line: WORD, and often a tab and a word of help. argv[0] is not read. */
void complete(struct ctl *ctl, int argc, char **argv);
