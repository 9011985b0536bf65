/* SPDX-License-Identifier: MIT */
/* Calls sqmgr over its socket. Functions that return an exit code (ctl/output.h) have printed every error to
 * stderr, except CTL_LOST and CTL_WOKEN. */
#pragma once

#include "base/macro.h"
#include "wire/varlink.h"

struct command;

enum ctl_wait { CTL_WAIT_NONE, CTL_WAIT_REPLACED, CTL_WAIT_DRAINED };

struct ctl {
        unsigned options; /* set of enum option_bit: options on the command line */
        char *socket;     /* owned; NULL: not given, and not found by instances_choose() yet */
        char *instance;   /* owned; its name; NULL: the path of the socket was given */
        bool json;
        bool force;
        bool resume;
        bool previous;
        bool follow;
        bool watch;
        bool ready;
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
