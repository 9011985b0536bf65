/* SPDX-License-Identifier: MIT */
/* What the files of sqmgrctl share: options, exit codes, the connection, the commands. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "core/varlink.h"

enum ctl_exit {
        CTL_LOST = -1, /* no exit code: the connection ended before the reply, which was not told */
        CTL_DONE = 0,
        CTL_FAILED = 1,     /* the operation failed */
        CTL_USAGE = 2,      /* an unknown fleet or worker included */
        CTL_CONNECT = 3,    /* no sqmgr answers */
        CTL_PERMISSION = 4, /* not permitted */
        CTL_TIMEOUT = 5,    /* the operation goes on */
};

enum ctl_wait { CTL_WAIT_NONE, CTL_WAIT_REPLACED, CTL_WAIT_DRAINED };

struct ctl {
        char *socket; /* owned */
        bool json;
        bool force;
        bool follow;
        enum ctl_wait wait;
        usec_t timeout; /* USEC_INFINITY: none */
        char **arguments;
        size_t n_arguments;

        int fd; /* -1: not connected */
        usec_t deadline;
        usec_t again_until; /* 0, or the connection was lost and is tried to be made again until then */
        struct varlink_input input;
};

/* Prints `sqmgrctl: ` and the sentence to stderr. Returns code. */
int ctl_error(enum ctl_exit code, const char *format, ...) _printf_(2, 3);

/* client.c: each returns an exit code, what is not CTL_DONE having been told on stderr. */

/* Connects and sends a call; takes over the reference to parameters. */
int client_send(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* The same after a connection was lost: tries for a while where nobody answers, and says so. The while begins
 * with the first loss since a reply came. */
int client_send_again(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* Waits for the next reply: *ret is to be freed by varlink_reply_free(). May return CTL_LOST. */
int client_receive(struct ctl *ctl, struct varlink_reply *ret);
/* Tells of a CTL_LOST. */
int client_tell_lost(const struct ctl *ctl);
/* Sends a call and waits for its reply: *ret is a new reference to the parameters. */
int client_call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
void client_close(struct ctl *ctl);

/* The fleets named as arguments, as the methods want them. */
json_t *ctl_fleets(const struct ctl *ctl);
/* Prints one JSON object on a line of its own. */
void ctl_print_json(json_t *json);

/* The member of that name: "" or 0 where there is none. */
const char *ctl_string(json_t *object, const char *key);
long long ctl_integer(json_t *object, const char *key);

/* Is standard output a terminal that shows colours, and does the user want them? */
bool ctl_colour(void);

/* The commands. */
int command_abort(struct ctl *ctl);
int command_events(struct ctl *ctl);
int command_metrics(struct ctl *ctl);
int command_ping(struct ctl *ctl);
int command_queues(struct ctl *ctl);
int command_quiet(struct ctl *ctl);
int command_reexec(struct ctl *ctl);
int command_reload(struct ctl *ctl);
int command_restart(struct ctl *ctl);
int command_scale(struct ctl *ctl);
int command_start(struct ctl *ctl);
int command_status(struct ctl *ctl);
int command_stop(struct ctl *ctl);
int command_version(struct ctl *ctl);
