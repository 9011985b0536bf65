/* SPDX-License-Identifier: MIT */
/* The plan of one fleet while it is made; see the header. */
#include "decide/round.h"
#include "base/macro.h"
#include <errno.h>

void round_add(struct round *round, struct action action)
{
        struct plan *plan = round->plan;

        if (!ARRAY_RESERVE(plan->actions, plan->n_actions, plan->allocated)) {
                round->error = -ENOMEM;
                return;
        }
        action.fleet = round->fleet;
        plan->actions[plan->n_actions++] = action;
}
