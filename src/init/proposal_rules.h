/* SPDX-License-Identifier: MIT */
/* The config file that `sqmgr init` proposes: the keys of one fleet, and notes on what was not taken over. */
#pragma once

#include "base/environment.h"
#include "settings/value.h"
#include <stdio.h>

struct proposal {
        const struct settings_surroundings *surroundings; /* for the checks of values */
        struct environment keys;                          /* values by the names of keys */
        char *notes;                                      /* owned; a line for each note, in order */
        size_t notes_length;
        char error[512]; /* why there is no proposal; empty: none yet */
        bool lost;       /* memory was short: nothing can be proposed */
        bool lacks_user; /* the source has a user that could not be taken over */
};

void proposal_done(struct proposal *proposal);
#define _cleanup_proposal_ _cleanup_(proposal_done)

/* Adds a note. Control characters in the text become '?'. */
void proposal_note(struct proposal *proposal, const char *format, ...) _printf_(2, 3);

/* Sets the error, unless there is one. Returns -EINVAL. */
int proposal_fail(struct proposal *proposal, const char *format, ...) _printf_(2, 3);

/* Sets a key of the fleet, replacing an earlier value. A value that the config file cannot have is noted as
 * not taken over. `from` is what the source calls the key. */
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

/* Writes the config file of a finished proposal. source says where the keys come from. */
void proposal_print(const struct proposal *proposal, const char *fleet, const char *source, FILE *out);
