/* SPDX-License-Identifier: MIT */
/* Rollouts over many hosts, as the daemon calls them. */
#include "rollout_hosts/rollout_hosts.h"
#include "advice/findings.h"
#include "daemon/api/metrics.h"
#include "model/fleet.h"
#include "model/world.h"
#include "rollout_hosts/group.h"
#include "rollout_hosts/rollouts.h"

/* A fleet that leaves its group, since it is removed, is shown until its workers are gone. */
static const struct rollout_group *rule_of(const struct fleet *fleet)
{
        static const struct rollout_group none = {.turn = HOST_TURN_WAITING, .mine = HOST_TURN_NONE};

        return fleet->group ? &fleet->group->rule : &none;
}

static double value_turn(const struct rollout_group *rule, unsigned i)
{
        return rule->turn == (enum host_turn)i;
}

static double value_epoch_state(const struct rollout_group *rule, unsigned i)
{
        return rule->state == (enum epoch_state)i;
}

static const char *turn_name(unsigned i)
{
        return host_turn_name((enum host_turn)i);
}

static const char *epoch_name(unsigned i)
{
        return epoch_state_name((enum epoch_state)i);
}

static void put_group_states(struct metrics *metrics, const char *name, const char *help, unsigned n,
                             double (*value)(const struct rollout_group *rule, unsigned i),
                             const char *(*state)(unsigned i))
{
        const struct world *world = metrics_world(metrics);

        metrics_family(metrics, name, "gauge", help);
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];

                for (unsigned j = 0; fleet->settings->rollout_group && j < n; j++)
                        METRICS_SAMPLE(metrics, name, value(rule_of(fleet), j), "fleet",
                                       fleet->settings->name, "group", fleet->settings->rollout_group,
                                       "state", state(j), NULL);
        }
}

static double value_epoch(const struct rollout_group *rule)
{
        return (double)rule->number;
}

static double value_trouble(const struct rollout_group *rule)
{
        return rule->refused || rule->trouble != ROLLOUT_TROUBLE_NONE;
}

static void put_group(struct metrics *metrics, const char *name, const char *help,
                      double (*value)(const struct rollout_group *rule))
{
        const struct world *world = metrics_world(metrics);

        metrics_family(metrics, name, "gauge", help);
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];

                if (fleet->settings->rollout_group)
                        METRICS_SAMPLE(metrics, name, value(rule_of(fleet)), "fleet", fleet->settings->name,
                                       "group", fleet->settings->rollout_group, NULL);
        }
}

/* Of fleets that are restarted with other hosts; without any there is nothing to report. */
static void put_groups(const void *self _unused_, struct metrics *metrics)
{
        const struct world *world = metrics_world(metrics);
        bool any = false;

        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->settings->rollout_group)
                        any = true;
        if (!any)
                return;
        put_group(metrics, "sqmgr_group_epoch",
                  "Number of the last restart of all hosts of the fleet's group that this host knows.",
                  value_epoch);
        put_group_states(metrics, "sqmgr_group_state", "1 for the state of that restart.", _EPOCH_STATE_MAX,
                         value_epoch_state, epoch_name);
        put_group_states(metrics, "sqmgr_group_turn", "1 for the state of this host's turn in it.",
                         _HOST_TURN_MAX, value_turn, turn_name);
        put_group(metrics, "sqmgr_group_trouble", "1 where this host takes no part in it.", value_trouble);
}

static void diagnose(const void *self _unused_, const struct fleet *fleet, struct findings *findings)
{
        char trouble[GROUP_ERROR_MAX];

        if (fleet->group)
                doctor_group(findings, fleet, group_trouble(fleet->group, trouble));
}

const struct subsystem rollout_hosts_subsystem = {
        .name = "rollout-hosts",
        .begin = groups_begin,
        .join = groups_join,
        .poll = groups_poll,
        .tick = groups_tick,
        .answer = rollouts_answer,
        .metrics = put_groups,
        .diagnose = diagnose,
        .end = groups_end,
        .pack = groups_pack,
        .unpack = groups_unpack,
};
