/* SPDX-License-Identifier: MIT */
/* Translates what another supervisor is configured with into keys of a fleet. */
#pragma once

#include "init/proposal_rules.h"

struct entry {
        char *section, *name, *value; /* owned */
        unsigned line;                /* of its beginning, from 1 */
        bool cut;                     /* the line was too long: the value has lost its end */
};

struct entries {
        struct entry *list; /* owned */
        size_t n, allocated;
};

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
