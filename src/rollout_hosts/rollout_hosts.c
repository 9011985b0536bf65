/* SPDX-License-Identifier: MIT */
/* Registers rollouts of a group as a subsystem of the daemon. */
#include "rollout_hosts/rollout_hosts.h"
#include "advice/findings.h"
#include "advice/problem_rules.h"
#include "model/fleet.h"
#include "model/world.h"
#include "rollout_hosts/group.h"
#include "rollout_hosts/rollouts.h"
#include "wire/metrics.h"
#include <unistd.h>

/* The path of the key that the package makes. */
#define DEFAULT_KEY SYSCONFDIR "/sqmgr/rollout.key"

/* A removed fleet has left its group, but is shown until its workers are gone. */
static const struct rollout_group *rule_of(const struct fleet *fleet)
{
        static const struct rollout_group none = {.lease = HOST_LEASE_WAITING, .mine = HOST_LEASE_NONE};

        return fleet->group ? &fleet->group->rule : &none;
}

static double value_lease(const struct rollout_group *rule, unsigned i)
{
        return rule->lease == (enum host_lease)i;
}

static double value_state(const struct rollout_group *rule, unsigned i)
{
        return rule->state == (enum group_state)i;
}

static double value_number(const struct rollout_group *rule, unsigned i _unused_)
{
        return (double)rule->number;
}

static double value_trouble(const struct rollout_group *rule, unsigned i _unused_)
{
        return rule->refused || rule->trouble != ROLLOUT_TROUBLE_NONE;
}

static const char *lease_name(unsigned i)
{
        return host_lease_name((enum host_lease)i);
}

static const char *state_name(unsigned i)
{
        return group_state_name((enum group_state)i);
}

/* Writes metrics of fleets with a rollout_group, if there are any. */
static void put_groups(const void *self _unused_, const struct world *world, struct metrics *metrics)
{
        static const struct {
                const char *name, *help;
                double (*value)(const struct rollout_group *rule, unsigned i);
                const char *(*state)(unsigned i); /* the name of state i of n; NULL: no states */
                unsigned n;
        } families[] = {
                {"sqmgr_group_epoch", "Number of the last rollout of the fleet's group that this host knows.",
                 value_number, NULL, 1},
                {"sqmgr_group_state", "1 for the state of that rollout.", value_state, state_name,
                 _GROUP_STATE_MAX},
                {"sqmgr_group_turn", "1 for the state of this host in that rollout.", value_lease, lease_name,
                 _HOST_LEASE_MAX},
                {"sqmgr_group_trouble", "1 if this host takes no part in rollouts of its group.",
                 value_trouble, NULL, 1},
        };
        bool any = false;

        WORLD_FOREACH_FLEET(world, fleet)
                any |= !!fleet->settings->rollout_group;
        for (size_t i = 0; any && i < ELEMENTSOF(families); i++) {
                metrics_family(metrics, families[i].name, "gauge", families[i].help);
                WORLD_FOREACH_FLEET(world, fleet)
                        for (unsigned j = 0; fleet->settings->rollout_group && j < families[i].n; j++)
                                METRICS_SAMPLE(metrics, families[i].value(rule_of(fleet), j), "fleet",
                                               fleet->settings->name, "group", fleet->settings->rollout_group,
                                               families[i].state ? "state" : NULL,
                                               families[i].state ? families[i].state(j) : NULL);
        }
}

static void add_problems(const void *self _unused_, const struct fleet *fleet, usec_t now _unused_,
                         struct problems *problems)
{
        struct error_report trouble;

        if (!fleet->group)
                return;
        /* Redis itself is a problem of its own. */
        if (fleet->redis_up && group_trouble(fleet->group, &trouble)->text[0] != '\0')
                problems_add(problems,
                             &(struct problem){.code = PROBLEM_GROUP_TROUBLE,
                                               .fleet = fleet,
                                               .quoted = &trouble.quoted},
                             NULL, "this host takes no part in rollouts of group '%s': %s",
                             fleet->settings->rollout_group, trouble.text);
        if (rule_of(fleet)->state == GROUP_HALTED)
                problems_add(problems, &(struct problem){.code = PROBLEM_GROUP_HALTED, .fleet = fleet}, NULL,
                             "rollout of group '%s' halted", fleet->settings->rollout_group);
}

static void diagnose(const void *self _unused_, const struct fleet *fleet, struct findings *findings)
{
        struct error_report trouble;

        if (!fleet->group)
                return;
        const struct doctor_group facts = {
                .takes_part = group_trouble(fleet->group, &trouble)->text[0] == '\0',
                .default_key = DEFAULT_KEY,
                .has_default_key = access(DEFAULT_KEY, F_OK) == 0,
        };
        doctor_group(findings, fleet, &facts);
}

const struct subsystem rollout_hosts_subsystem = {
        .name = "rollout-hosts",
        .begin = groups_begin,
        .join = groups_join,
        .poll = groups_poll,
        .tick = groups_tick,
        .answer = rollouts_answer,
        .metrics = put_groups,
        .problems = add_problems,
        .diagnose = diagnose,
        .end = groups_end,
        .pack = groups_pack,
        .unpack = groups_unpack,
};
