/* SPDX-License-Identifier: MIT */
/* The tables of commands and of options: --help, completion and what a command line may hold follow from
 * them.
 */
#pragma once

#include "ctl/ctl.h"

/* The options that not every command has. */
enum option_bit {
        OPTION_WAIT = 1 << 0,
        OPTION_FORCE = 1 << 1,
        OPTION_FOLLOW = 1 << 2,
        OPTION_WATCH = 1 << 3,
        OPTION_LINES = 1 << 4,
        OPTION_READY = 1 << 5,
        OPTION_EVERYWHERE = 1 << 6,
        OPTION_RELEASE = 1 << 7,
};

struct command {
        const char *name;
        const char *arguments; /* for people; where it has FLEET or WORKER in it, those are completed */
        const char *help;
        size_t min, max; /* arguments */
        unsigned options;
        int (*run)(struct ctl *ctl);
};

/* What getopt_long() returns for an option that has no letter. */
enum {
        USAGE_JSON = 256,
        USAGE_TIMEOUT,
        USAGE_WAIT,
        USAGE_WATCH,
        USAGE_FORCE,
        USAGE_READY,
        USAGE_EVERYWHERE,
        USAGE_RELEASE
};

struct usage_option {
        int key;          /* its letter, or one of the above */
        unsigned command; /* enum option_bit of the commands that have it; 0: all have */
        const char *name;
        const char *value; /* as --help has it: "" where it takes none, "[=VALUE]" where it may be left out */
        const char *help;  /* for --help: may have several lines */
        const char *hint;  /* for completion */
        const char *value_hint; /* the same where the value stands there; NULL: it is not offered */
        size_t flag;            /* where in struct ctl it sets a bool; 0: it does more than that */
};
extern const struct usage_option usage_options[];
extern const size_t usage_n_options;
/* The option of that key, or NULL. */
const struct usage_option *usage_find(int key);

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
 * one a line: WORD, and often a tab and a word of help.
 */
void complete(struct ctl *ctl, char **words, size_t n_words);
