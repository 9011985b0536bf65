/* SPDX-License-Identifier: MIT */
/* sqmgrctl: its command line, its commands, and calls to sqmgr over its socket. Functions that return an exit
 * code (ctl/output.h) have printed every error to stderr, except CTL_LOST and CTL_WOKEN. */
#pragma once

#include "wire/varlink.h"

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

struct ctl;

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
};
extern const struct usage_option usage_options[];
extern const size_t usage_n_options;

extern const struct command commands[];
extern const size_t n_commands;

enum ctl_wait { CTL_WAIT_NONE, CTL_WAIT_REPLACED, CTL_WAIT_DRAINED };

struct ctl {
        unsigned options;    /* set of enum option_bit: options on the command line */
        char *socket;        /* owned; NULL: not given, and not found by instances_choose() yet */
        char *instance;      /* owned; its name; NULL: the path of the socket was given */
        const char *release; /* NULL: not given */
        uint64_t lines;      /* print at most the last `lines` events or lines; UINT64_MAX: no limit */
        enum ctl_wait wait;
        usec_t timeout;                /* USEC_INFINITY: none */
        const struct command *command; /* the current command */
        char **arguments;
        size_t n_arguments;

        int fd; /* -1: not connected */
        usec_t deadline;
        usec_t again_until; /* reconnect until this time; 0: the connection was not lost */
        int connect_error;  /* errno of the last connection attempt; 0: success */
        struct varlink_input input;
        const char *method; /* of the last call, without the interface name */

        /* Wake client_receive() in addition to a reply. */
        int signal_fd; /* signalfd; -1: signals have their default action */
        int signal;    /* signal that asked sqmgrctl to end; 0: none */
        int key_fd;    /* -1: none; the caller reads it */
};

static inline bool ctl_has(const struct ctl *ctl, enum option_bit option)
{
        return ctl->options & option;
}

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

/* Shell completion (contrib/completion): prints the candidates for the last argument, one per line. A tab and
 * a short help text may follow a candidate. argv[0] is ignored. */
void complete(struct ctl *ctl, int argc, char **argv);

/* Returns the instances on this machine: a new list of objects with the member `name`. NULL: memory is short.
 */
json_t *instances_list(void);

/* Sets ctl->socket, and ctl->instance unless the path was given: as the options or SQMGR_SOCKET say; else the
 * only instance of the caller; else the only one that runs. Prints nothing. Returns 0; -ENOENT if there is no
 * instance; -EMLINK if there are several; or -ENOMEM. */
int instances_choose(struct ctl *ctl);

/* Runs ctl->command for the instance that is chosen; for each one, under its name, if none is and the command
 * only reads. Returns an exit code. */
int instances_run(struct ctl *ctl);

/* CLOCK_MONOTONIC, in microseconds. */
usec_t client_now(void);

/* Connects and sends a call. Takes over the reference to parameters. If ctl->again_until is set, a failed
 * connection returns CTL_LOST and sets ctl->connect_error. */
int client_send(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* Waits for the next reply. Free *ret with varlink_reply_free(). May also return CTL_LOST or CTL_WOKEN. */
int client_receive(struct ctl *ctl, struct varlink_reply *ret);
/* Prints that the connection was lost. Returns CTL_CONNECT. */
int client_report_lost(const struct ctl *ctl);
/* Prints why a fleet cannot return to the previous release, and what leads to it. parameters: of the error
 * NotInMemory. code: CTL_DONE for a fleet that is left out of a rollback of others. Returns code. */
int client_report_not_in_memory(json_t *parameters, int code);
/* Sends a call and waits for its reply. *ret is a new reference to the reply's parameters. A lost connection
 * is printed, see client_report_lost(). */
int client_call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
/* The fleets on the command line as the value of the parameter `fleets`: a new reference, JSON null for all
 * fleets. Returns NULL if memory is short or a name is not UTF-8. */
json_t *client_fleets(const struct ctl *ctl);
void client_close(struct ctl *ctl);
/* From now on these signals wake client_receive() and client_wait(). SIGTSTP suspends the process, SIGWINCH
 * only wakes, all others set ctl->signal. Returns CTL_DONE or an exit code. */
int client_catch_signals(struct ctl *ctl, const int *signals, size_t n_signals);
/* Prints the sentence unless it is NULL, then dies of the signal ctl->signal. A calling script sees that
 * signal. */
int client_detach(const struct ctl *ctl, const char *sentence);
/* Closes the connection and waits for usec. Returns CTL_DONE, CTL_WOKEN after a signal or a key, or an exit
 * code. */
int client_wait(struct ctl *ctl, usec_t usec);
