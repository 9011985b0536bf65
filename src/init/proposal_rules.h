/* SPDX-License-Identifier: MIT */
/* The proposal of `sqmgr init`: keys of one fleet for the config file, lines for a drop-in of the unit of
 * sqmgr, and notes on what was not taken over. */
#pragma once

#include "base/environment.h"
#include "settings/value.h"
#include <stdio.h>

struct proposal {
        const struct settings_surroundings *surroundings; /* for the checks of values */
        struct environment keys;                          /* values by the names of keys */
        char *notes;                                      /* owned; a line for each note, in order */
        char *unit;      /* owned; lines of the section [Service]; NULL: none */
        char error[512]; /* why there is no proposal; empty: none yet */
        bool lost;       /* memory was short: nothing can be proposed */
};

/* Beside the keys of the fleet: the account that the instance runs as. */
#define PROPOSAL_USER  "instance_user"
#define PROPOSAL_GROUP "instance_group"

void proposal_done(struct proposal *proposal);
#define _cleanup_proposal_ _cleanup_(proposal_done)

/* Returns the text, owned by the caller; NULL: memory is short, and the proposal is lost. */
char *proposal_text(struct proposal *proposal, const char *format, ...) _printf_(2, 3);

/* Adds a note. Control characters in the text become '?'. */
void proposal_note(struct proposal *proposal, const char *format, ...) _printf_(2, 3);

/* Adds `name=value` to the lines of the unit. */
void proposal_add_unit(struct proposal *proposal, const char *name, const char *value);

/* Sets the error, unless there is one. Returns -EINVAL. */
int proposal_fail(struct proposal *proposal, const char *format, ...) _printf_(2, 3);

/* Sets a key of the fleet, replacing an earlier value; NULL sets nothing. A value that the config file cannot
 * have is noted as not taken over. `from` is what the source calls the key. */
void proposal_set(struct proposal *proposal, const char *from, const char *key, const char *value);

/* As proposal_set(), but a value that the config file cannot have is an error. Returns 0 or -EINVAL. */
int proposal_require(struct proposal *proposal, const char *from, const char *key, const char *value);

/* Returns the value of a key, borrowed; NULL: not set. */
const char *proposal_get(const struct proposal *proposal, const char *key);

/* Adds the variables of the key environment. Returns 0, -EINVAL if the key cannot be split, or -ENOMEM. */
int proposal_get_variables(struct proposal *proposal, struct environment *variables);

/* Returns where the command names the program or the task that it runs, such as `bin/sidekiq` or `rake
 * resque:work`; NULL: it does not run that. */
const char *proposal_find_program(const char *command, const char *name);

/* Derives the framework from the command, and drops keys that this framework does not have. Returns 0, or
 * -EINVAL with the error. */
int proposal_finish(struct proposal *proposal);

/* Names in a printed proposal. */
struct proposal_names {
        const char *source;   /* of the keys, for a comment */
        const char *fleet;    /* the name of the fleet */
        const char *instance; /* as in sqmgr@INSTANCE.service */
        const char *folder;   /* of config files */
};

/* Writes the config file of a finished proposal. */
void proposal_print(const struct proposal *proposal, const struct proposal_names *names, FILE *out);

/* Writes the drop-in. The prefix makes its lines comments of the config file; empty: a file of its own.
 * Returns false if none is needed. */
bool proposal_print_unit(const struct proposal *proposal, const struct proposal_names *names,
                         const char *prefix, FILE *out);
