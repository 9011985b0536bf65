/* SPDX-License-Identifier: MIT */
/* What the files of sqmgrctl share: options, exit codes, the connection, the commands. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "wire/varlink.h"
#include <stdio.h>

enum ctl_exit {
        /* These are no exit codes, and were not told. */
        CTL_WOKEN = -2, /* a signal, a key or wake_at came before the reply */
        CTL_LOST = -1,  /* the connection ended before the reply */
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
        bool watch;
        enum ctl_wait wait;
        usec_t timeout; /* USEC_INFINITY: none */
        char **arguments;
        size_t n_arguments;

        int fd; /* -1: not connected */
        usec_t deadline;
        usec_t again_until; /* 0, or the connection was lost and is tried to be made again until then */
        struct varlink_input input;

        /* What ends client_receive() besides a reply. */
        usec_t wake_at; /* 0: nothing */
        int signal_fd;  /* -1: signals do what they always do */
        int signal;     /* the one that asked for an end; 0: none has */
        int key_fd;     /* -1: none; read by the caller */
};

usec_t monotonic_now(void);

/* Prints a sentence on standard output, on a terminal broken between words. */
void ctl_say(const char *format, ...) _printf_(1, 2);
/* Prints `sqmgrctl: ` and the sentence to stderr, in the same way, or where ctl_errors_to() wants it. Returns
 * code. */
int ctl_error(enum ctl_exit code, const char *format, ...) _printf_(2, 3);
/* A further line of the same. */
void ctl_error_line(const char *line);
/* From now on only the last error is kept, in text, which has size bytes; NULL: they are printed again. */
void ctl_errors_to(char *text, size_t size);

/* client.c: each returns an exit code, what is not CTL_DONE having been told on stderr. */

/* Connects and sends a call; takes over the reference to parameters. */
int client_send(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* The same after a connection was lost: tries for a while where nobody answers, and says so. The while begins
 * with the first loss since a reply came. */
int client_send_again(struct ctl *ctl, const char *method, json_t *parameters, bool more);
/* Waits for the next reply: *ret is to be freed by varlink_reply_free(). May return CTL_LOST or CTL_WOKEN. */
int client_receive(struct ctl *ctl, struct varlink_reply *ret);
/* Tells of a CTL_LOST. */
int client_tell_lost(const struct ctl *ctl);
/* Sends a call and waits for its reply: *ret is a new reference to the parameters. */
int client_call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret);
void client_close(struct ctl *ctl);
/* From now on these signals wake: SIGTSTP stops and goes on, SIGWINCH does no more than that, the others ask
 * for an end. Also client_send_again() returns CTL_WOKEN then. */
int client_catch_signals(struct ctl *ctl, const int *signals, size_t n_signals);
/* Closes the connection and waits so long. Returns CTL_DONE, or CTL_WOKEN where a signal or a key came. */
int client_wait(struct ctl *ctl, usec_t usec);

/* The strings of a list as a phrase: there are 'a', 'b'. Returns text. */
#define NAMES_MAX 512
const char *ctl_names(json_t *names, char text[static NAMES_MAX]);

/* The fleets named as arguments, as the methods want them. */
json_t *ctl_fleets(const struct ctl *ctl);
/* Prints one JSON object on a line of its own. */
void ctl_print_json(json_t *json);

/* The member of that name: "" or 0 where there is none. */
const char *ctl_string(json_t *object, const char *key);
long long ctl_integer(json_t *object, const char *key);

/* Is standard output a terminal that shows colours, and does the user want them? */
bool ctl_colour(void);

/* The options that not every command has. */
enum option_bit {
        OPTION_WAIT = 1 << 0,
        OPTION_FORCE = 1 << 1,
        OPTION_FOLLOW = 1 << 2,
        OPTION_WATCH = 1 << 3,
};

struct command {
        const char *name;
        const char *arguments; /* for people; where it has FLEET or WORKER in it, those are completed */
        const char *help;
        size_t min, max; /* arguments */
        unsigned options;
        int (*run)(struct ctl *ctl);
};
extern const struct command commands[];
extern const size_t n_commands;
/* The command of that name, or NULL. */
const struct command *find_command(const char *name);
/* Tells what is wrong with the command's arguments, and how it is used. Returns CTL_USAGE. */
int ctl_usage(const struct command *command, const char *what);
/* Sets ctl->socket where it is not set. Returns false where memory is short. */
bool ctl_find_socket(struct ctl *ctl);

/* complete.c: prints what may stand in the place of the last word, one a line: WORD, and often a tab and a
 * word of help. */
void complete(struct ctl *ctl, char **words, size_t n_words);

/* How status is shown. */
struct view {
        int columns; /* 0: lines may be as long as they want */
        bool colour;
        bool brief; /* only what is on its way: workers that just do their work are counted */
};
struct view ctl_view(void);

/* render.c: what GetStatus tells, for people. They return CTL_DONE or an exit code. */
int render_status(FILE *out, json_t *status, const struct view *view);
/* A table of workers; threshold: the memory_threshold of their fleet, 0 where there is none. */
int render_workers(FILE *out, json_t *workers, long long threshold, const struct view *view);
/* Prints text, broken between words where it is too long, each line after the first indented by so much. Its
 * first line begins in the column `used`. */
void render_text(FILE *out, const char *text, int used, int indent, const struct view *view);
/* The sentence with the worker's last lines that it quotes each on a line of its own, for a terminal: spoils
 * text, and returns it. */
char *render_last_lines(char *text);
/* Paints what draw prints, in brief where there is no room for all. */
void render_on_screen(void (*draw)(FILE *out, const struct view *view, void *userdata), void *userdata);
const char *render_seconds(json_t *object, const char *key, char *text);
/* The columns that text takes. */
int render_width(const char *text);
/* Prints text, filled up with blanks to so many columns. */
void render_cell(FILE *out, const char *text, int width);
/* One event with its time: a line, where nothing limits its length. */
void render_event(FILE *out, json_t *event, const struct view *view);

/* The commands. */
int command_abort(struct ctl *ctl);
int command_doctor(struct ctl *ctl);
int command_events(struct ctl *ctl);
int command_jobs(struct ctl *ctl);
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
int command_why(struct ctl *ctl);
