/* SPDX-License-Identifier: MIT */
/* All that a new process needs to become a worker, or to run another command. Made by the launcher in one
 * block of memory: the child neither allocates nor reads settings that may change. sqmgr-start gets the block
 * as a file. */
#pragma once

#include "settings/settings.h"
#include <sys/resource.h>

struct environment; /* base/environment.h */

/* The descriptors of a new process, above the standard ones. */
enum {
        LAUNCH_REPORT_FD = STDERR_FILENO + 1, /* for struct launch_message */
        LAUNCH_BLOCK_FD,                      /* a memory file with the plan, for sqmgr-start */
        LAUNCH_TEMPLATE_FD,                   /* the socket of a template */
        LAUNCH_PROGRAM_FD,                    /* a program of ours, opened with O_PATH */
};

/* The messages of a new process to sqmgr. */
#define LAUNCH_ERROR_MAX 1024

enum launch_message_kind {
        LAUNCH_MESSAGE_LOG = 1, /* carries the descriptor of the log */
        LAUNCH_MESSAGE_ERROR,
        LAUNCH_MESSAGE_REDIS, /* the worker's environment names another Redis */
        LAUNCH_MESSAGE_SHIM,  /* the worker starts without its shim */
};

struct launch_message {
        uint32_t kind;
        uint64_t log_start_bytes;
        uint32_t redis_difference, redis_db, redis_other_db; /* as struct redis_comparison */
        uint32_t shim_error;                                 /* errno: why it cannot be loaded */
        char text[LAUNCH_ERROR_MAX];                         /* ends with a NUL */
};

/* Sends the message with a descriptor (-1: none). Returns 0 or -errno, which callers ignore: a process starts
 * even if sqmgr no longer reads the report. */
int launch_send(int report_fd, const struct launch_message *message, int fd);

enum launch_kind {
        LAUNCH_WORKER,
        LAUNCH_TEMPLATE,
        LAUNCH_AFTER_EXIT,
        LAUNCH_RELEASE,
        LAUNCH_REHEARSAL,
        LAUNCH_ORDERS, /* writes standard input to the file argv[0], see daemon/takeover/persist.h */
        LAUNCH_ALERT,
        LAUNCH_CHECK, /* by the sqmgr that is to take our place; no shell runs it */
        _LAUNCH_KIND_MAX,
};

/* A plan that was read from a block points into that block. */
struct launch_plan {
        enum launch_kind kind;
        /* The settings that a start needs. argv has a free place before it, for the shell of a script
         * without an interpreter. `log` is set. */
        struct fleet_settings fleet;
        bool journal_required; /* the fleet's `log` asks for the journal */
        struct rlimit nofile;
        char *identifier; /* in the journal */
        char *marker;     /* see io/marker.h; NULL: none */
        /* A start whose record is lost ends with the sqmgr that made it: a new sqmgr does not know of it. */
        bool supervised; /* sqmgr has a ledger */
        pid_t parent;    /* sqmgr */
        ino_t ledger_inode;
        char *ledger_path; /* NULL: the ledger has no file */
        /* From here on for sqmgr-start. */
        usec_t after_timeout;                            /* of after_exit */
        char *status_parent, *release, *outcomes_script; /* as in struct launch_request */
        char *redis_url; /* to compare with that of the environment; secret; NULL: nothing to compare */
        char *template_script;
        char *shim_path, *shim_variable, *shim_value; /* shim_path is to be readable; shim_value is added */
        char shim_separator;
        uint32_t identity; /* number of entries at the beginning of environment that override all */
        char **environment;
};

/* Writes the plan as one block, which the caller frees. Returns its size, or 0 if memory is short. */
size_t launch_plan_encode(const struct launch_plan *plan, char **ret);
/* Reads a block, and keeps pointers into it. *ret_pointers is freed by the caller, after the plan. Returns 0
 * or -errno. */
int launch_plan_decode(char *block, size_t size, struct launch_plan *ret, char ***ret_pointers);

/* Returns true if the start needs more than system calls: sqmgr-start. */
bool launch_plan_needs_program(const struct launch_plan *plan);

/* Reports over report_fd if the environment names another Redis than redis_url. */
void launch_plan_compare_redis(const struct launch_plan *plan, const struct environment *environment,
                               int report_fd);
/* Has the command load sqmgr's scripts and its shim. Returns 0 or -ENOMEM. */
int launch_plan_add_scripts(const struct launch_plan *plan, struct environment *environment, int report_fd);

/* The steps from a new process to its command. A child in the memory of sqmgr takes them, and sqmgr-start:
 * all are system calls alone, and allocate nothing. An error is reported, and ends the process. */

/* Reports one sentence, the texts put together, and exits with status 127. */
#define launch_fail(...) launch_fail_parts((const char *const[]){__VA_ARGS__, NULL})
_Noreturn void launch_fail_parts(const char *const *parts);
void launch_enter_directory(const struct launch_plan *plan);
/* Opens the log, reports it, and makes it standard output and error; and an empty standard input. An alert
 * has the streams that it was started with. */
void launch_open_streams(const struct launch_plan *plan);
/* Becomes the command of the plan. */
_Noreturn void launch_run(const struct launch_plan *plan);
/* Becomes that command. step: of the message if it cannot run, as "before_start: ". exact: a file that is no
 * program is an error, and not a script. */
_Noreturn void launch_execute(const char *step, bool exact, char **argv, char *const *environment);
/* Reports if that command cannot run, provided that the content of its file is valid. */
void launch_check_command(const char *step, const char *name, char *const *environment);
