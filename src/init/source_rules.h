/* SPDX-License-Identifier: MIT */
/* Reads what another supervisor is configured with, and translates it into keys of a fleet. */
#pragma once

#include "init/proposal_rules.h"

/* The entries of a unit of systemd or a config file of supervisord. */
struct entry {
        const char *section, *name;
        char *value;
        unsigned line; /* of its beginning, from 1 */
        bool too_long; /* a config file of sqmgr cannot have a line of this length */
};

struct entries {
        char *text;         /* owned; the strings of all entries */
        struct entry *list; /* owned */
        size_t n, allocated;
};

enum entries_style {
        ENTRIES_SYSTEMD,     /* a backslash at the end continues a line */
        ENTRIES_SUPERVISORD, /* an indented line continues the one above; ';' or '#' after a blank begins a
                              * comment */
};

/* Reads the entries of a text into *entries, to be released by entries_done() whatever is returned. Returns
 * 0, or -ENOMEM; -EINVAL if line *ret_line is neither a section, an entry nor a comment. */
int entries_read(struct entries *entries, const char *text, size_t length, enum entries_style style,
                 unsigned *ret_line);

void entries_done(struct entries *entries);
#define _cleanup_entries_ _cleanup_(entries_done)

/* All return 0, or -EINVAL with the error of the proposal. Notes say what was not taken over. */

/* The entries of a service of systemd, drop-ins behind the unit. */
int source_systemd(struct proposal *proposal, const struct entries *entries);

/* The entries of a supervisord.conf. program names a section [program:NAME]; NULL: the only one. *ret_name is
 * its name, borrowed from the entries. */
int source_supervisord(struct proposal *proposal, const struct entries *entries, const char *program,
                       const char **ret_name);

/* A Procfile. process names one of its lines; NULL: the only one, `worker` or `sidekiq`. *ret_name, to be
 * freed, is its name. */
int source_procfile(struct proposal *proposal, const char *text, const char *process, char **ret_name);

/* The variables of sidekiqswarm, of which at least one must be set. */
int source_sidekiqswarm(struct proposal *proposal, const struct environment *variables);
