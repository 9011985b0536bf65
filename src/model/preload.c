/* SPDX-License-Identifier: MIT */
/* Templates: decisions that follow from their state; see the header. */
#include "model/preload.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/world.h"

/* A fork takes a tenth of a second, longer on a busy machine, and never as long as a boot. */
#define FORK_PATIENCE_USEC (5 * USEC_PER_SEC)
#define FORK_PATIENCE_EACH 10
/* A serving template has no jobs: it ends at once, and its wrapper soon after. */
#define END_USEC (5 * USEC_PER_SEC)

static const char *const state_names[] = {
        [TEMPLATE_NONE] = "none",
        [TEMPLATE_LOADING] = "loading",
        [TEMPLATE_READY] = "ready",
        [TEMPLATE_ENDING] = "ending",
};
DEFINE_ENUM_NAMES(template_state_name, enum template_state, _TEMPLATE_STATE_MAX, state_names)

bool fleet_preload_is_refused(const struct fleet *fleet)
{
        return fleet->preload.refused_generation == fleet->generation && fleet->preload.refused[0] != '\0';
}

const char *fleet_preload_refused(const struct fleet *fleet)
{
        if (fleet_preload_is_refused(fleet))
                return fleet->preload.refused;
        return fleet->preload.unrecorded
                       ? "the state file cannot be written; without it, the next sqmgr would not find forked "
                         "workers"
                       : "";
}

static bool is_configured(const struct fleet *fleet)
{
        return fleet->settings->preload && fleet->settings->traits->can_preload && fleet_serves(fleet);
}

bool fleet_preloads(const struct fleet *fleet)
{
        return is_configured(fleet) && !fleet_preload_is_refused(fleet);
}

bool fleet_has_templates(const struct fleet *fleet)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template_is_alive(template))
                        return true;
        return false;
}

struct template *fleet_template(const struct fleet *fleet)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template_is_alive(template) && template->state != TEMPLATE_ENDING &&
                    template_is_current(template) && !template->lost)
                        return (struct template *)template;
        return NULL;
}

bool fleet_awaits_template(const struct fleet *fleet)
{
        const struct template *template = fleet_template(fleet);

        return fleet_preloads(fleet) && !fleet->preload.unrecorded &&
               (!template || template->state != TEMPLATE_READY);
}

struct template *fleet_template_place(const struct fleet *fleet)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (!template_is_alive(template))
                        return (struct template *)template;
        return NULL;
}

struct template *fleet_template_before(const struct fleet *fleet)
{
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->state == TEMPLATE_READY && !template->lost &&
                    template->generation == fleet->rollout.before)
                        return (struct template *)template;
        return NULL;
}

/* Returns the template that can be forked and is of the generation before the last restart, or else the
 * oldest one that is not of the current generation; NULL: none. */
static struct template *older_template(const struct fleet *fleet)
{
        struct template *before = fleet_template_before(fleet);
        const struct template *oldest = NULL;

        if (before && !template_is_current(before))
                return before;

        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->state == TEMPLATE_READY && !template_is_current(template) &&
                    (!oldest || template->generation < oldest->generation))
                        oldest = template;
        return (struct template *)oldest;
}

/* Returns true if crashed workers must come back from the old code. */
static bool falls_back(const struct fleet *fleet)
{
        enum rollout_state state = fleet->rollout.state;

        if (fleet->rollout.returned || state != ROLLOUT_ABORTED)
                return !fleet->rollout.returned && state == ROLLOUT_HALTED;
        return FLEET_COUNT_WORKERS(fleet, worker, worker->state <= WORKER_ACTIVE && worker_outdated(worker)) >
               0;
}

bool template_is_kept(const struct template *template)
{
        const struct fleet *fleet = template->fleet;

        /* A serving template notices the lost connection by itself, unless it is frozen. */
        if (template->lost)
                return template->serving_pid == 0;
        if (!is_configured(fleet))
                return false;
        if (template_is_current(template))
                return fleet_preloads(fleet);
        return (fleet->rollout.state == ROLLOUT_RUNNING || falls_back(fleet) ||
                (fleet->rollout.kept_since != 0 && template->generation == fleet->rollout.before)) &&
               template == older_template(fleet);
}

struct template *fleet_template_kept(const struct fleet *fleet)
{
        struct template *old = older_template(fleet);

        return old && template_is_kept(old) ? old : NULL;
}

struct template *fleet_template_to_fork(const struct fleet *fleet, bool missing)
{
        struct template *old = fleet_template_kept(fleet), *current = fleet_template(fleet);

        if (old && (falls_back(fleet) || fleet_is_limited(fleet)))
                return old;
        if (current && current->state == TEMPLATE_READY && template_is_kept(current))
                return current;
        /* With preload refused, new workers boot separately. A fork of the old template would be replaced. */
        return missing && fleet->rollout.kept_since == 0 && !fleet_preload_is_refused(fleet) ? old : NULL;
}

bool fleet_wants_template(const struct fleet *fleet)
{
        return fleet_preloads(fleet) && !fleet_template(fleet) && !fleet->rollout.returned &&
               !(falls_back(fleet) && older_template(fleet)) && fleet_template_place(fleet);
}

usec_t template_boot_deadline(const struct template *template)
{
        return boot_deadline(template->fleet, template->state_at);
}

usec_t template_kill_at(const struct template *template)
{
        usec_t from = MAX(MAX(template->state_at, template->killed_at), template->fleet->world->doubt.since);

        usec_t timeout = template->fleet->settings->stop_timeout;
        /* A template runs no jobs, which `stop_timeout = none` is for. */
        return usec_add(from, template->serving_pid != 0 || timeout == USEC_INFINITY ? END_USEC : timeout);
}

usec_t fleet_fork_patience(const struct fleet *fleet)
{
        usec_t slowest = FORK_PATIENCE_EACH * fleet->preload.slowest_fork;

        return MAX(FORK_PATIENCE_USEC, MIN(slowest, fleet->settings->boot_timeout));
}

uint64_t fleet_template_bytes(const struct fleet *fleet)
{
        uint64_t most = fleet->preload.template_bytes;

        FLEET_FOREACH_TEMPLATE(fleet, template)
                most = MAX(most, template->memory_bytes);
        for (size_t i = 0; i < fleet->n_workers && most == 0; i++)
                most = MAX(most, fleet->workers[i]->memory.bytes);
        return most;
}
