/* SPDX-License-Identifier: MIT */
/* The part of this host in rollouts of a group; see the header. */
#include "rollout_hosts/group.h"
#include "base/hash.h"
#include "decide/command.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/describe.h"
#include "model/names.h"
#include "model/world.h"
#include "observe/observe_world.h"
#include "rollout_hosts/hmac.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Size of four numbers with blanks between them. */
#define COUNTS_MAX 64
#define RENEW_USEC (ROLLOUT_RENEW_SECONDS * USEC_PER_SEC)
/* A view that nobody has requested for this long is dropped. */
#define VIEW_USEC USEC_PER_MIN

static struct runtime *runtime_of(const struct host_group *group)
{
        return group->groups->persist->runtime;
}

static usec_t now_is(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

struct reader *group_reader(struct host_group *group, usec_t now)
{
        const struct link *link = group->fleet->link;

        if (!link || reader_state(link->reader) != READER_STATE_CONNECTED)
                return NULL;
        uint64_t connection = reader_connection_count(link->reader);
        if (connection != group->connection)
                rollout_group_observe_connection(&group->rule, now);
        group->connection = connection;
        return link->reader;
}

static struct rollout_caller caller_of(const struct host_group *group, struct reader *reader)
{
        struct runtime *runtime = runtime_of(group);

        return (struct rollout_caller){
                .reader = reader,
                .group = group->name,
                .host = links_host_name(&runtime->links),
                .instance = group->groups->instance,
                .number = group->rule.number,
                .id = group->rule.id,
        };
}

int group_call(struct host_group *group, const struct rollout_reply *rollout, const char *const words[],
               rollout_call_fn fn, void *userdata)
{
        struct reader *reader = group_reader(group, now_is());

        if (!reader)
                return -ENOTCONN;
        struct rollout_caller caller = caller_of(group, reader);
        if (rollout) {
                caller.number = rollout->number;
                caller.id = rollout->id;
        }
        int r = rollout_call(&caller, words, fn, userdata);
        group->n_calls += r == 0;
        return r;
}

void group_forget_view(struct host_group *group)
{
        free(group->view.hosts);
        group->view = (struct group_view){0};
}

static void group_free(struct host_group *group)
{
        free(group->view.hosts);
        free(group->name);
        free(group);
}

bool group_answered(struct host_group *group)
{
        group->n_calls--;
        if (group->fleet)
                return true;
        if (group->n_calls == 0)
                group_free(group);
        return false;
}

const struct error_report *group_trouble(const struct host_group *group, struct error_report *ret)
{
        const struct link *link = group->fleet->link;
        const struct error_report *error = link ? reader_error(link->reader) : NULL;

        *ret = group->error;
        if (link && reader_state(link->reader) != READER_STATE_CONNECTED) {
                error_report_set(ret, "Redis is %s%s%.400s", reader_state_text(reader_state(link->reader)),
                                 error ? ": " : "", error ? error->text : "");
                if (error)
                        ret->quoted = error->quoted;
        } else if (group->error.text[0] == '\0') {
                rollout_group_trouble_text(&group->rule, &group->last,
                                           links_host_name(&runtime_of(group)->links), ret->text,
                                           sizeof(ret->text));
        }
        return ret;
}

/* No event while Redis is down, which has an event of its own. */
static void report_trouble(struct host_group *group)
{
        struct fleet *fleet = group->fleet;
        struct error_report trouble;

        if (!fleet->link || reader_state(fleet->link->reader) != READER_STATE_CONNECTED)
                return;
        group_trouble(group, &trouble);
        if (strcmp(trouble.text, group->trouble_reported) == 0)
                return;
        memcpy(group->trouble_reported, trouble.text, sizeof(trouble.text));
        if (trouble.text[0] != '\0')
                event_quote(world_event(fleet->world, EVENT_GROUP_TROUBLE, fleet, NULL,
                                        "fleet '%s': this host takes no part in rollouts of group '%s': %s",
                                        fleet->settings->name, group->name, trouble.text),
                            &trouble.quoted);
        else
                world_event(fleet->world, EVENT_GROUP_JOINED, fleet, NULL,
                            "fleet '%s': this host takes part in rollouts of group '%s' again",
                            fleet->settings->name, group->name);
}

/* adopted: the rollout is another one than before. */
static void report_rollout(const struct host_group *group, const struct rollout_group *before, bool adopted)
{
        struct fleet *fleet = group->fleet;
        const struct rollout_group *rule = &group->rule;
        const struct rollout_reply *reply = &group->last;
        const char *name = fleet->settings->name;
        unsigned long long number = rule->number;

        if (rule->trouble != ROLLOUT_TROUBLE_NONE)
                return;
        if (adopted)
                world_event(fleet->world, EVENT_GROUP_BEGAN, fleet, NULL,
                            "fleet '%s': rollout %llu of group '%s' started on %s; hosts at a time: %s", name,
                            number, group->name, reply->by, reply->asked);
        if (rule->state == before->state && !adopted)
                return;
        if (rule->state == GROUP_HALTED)
                world_event(fleet->world, EVENT_GROUP_HALTED, fleet, NULL,
                            "fleet '%s': rollout %llu of group '%s' halted (reason: %s). See 'sqmgrctl "
                            "rollout %s'",
                            name, number, group->name, reply->error, name);
        else if (adopted || (before->state != GROUP_RUNNING && before->state != GROUP_HALTED))
                return;
        else if (rule->state == GROUP_DONE || rule->state == GROUP_ABORTED)
                world_event(fleet->world, EVENT_GROUP_ENDED, fleet, NULL,
                            "fleet '%s': rollout %llu of group '%s' %s%s%s%s", name, number, group->name,
                            rule->state == GROUP_DONE ? "done" : "aborted",
                            reply->error[0] != '\0' ? " (reason: " : "", reply->error,
                            reply->error[0] != '\0' ? ")" : "");
}

/* Compares the saved state, except for the rollout itself. */
static bool differs(const struct rollout_group *a, const struct rollout_group *b)
{
        return a->lease != b->lease || a->begun != b->begun || a->trusted != b->trusted ||
               a->drain_reported != b->drain_reported ||
               memcmp(&a->begun_at.counted, &b->begun_at.counted, sizeof(a->begun_at.counted)) != 0;
}

static void report_failure(const struct host_group *group, const struct quoted *quoted)
{
        struct fleet *fleet = group->fleet;

        event_quote(world_event(fleet->world, EVENT_GROUP_TURN_FAILED, fleet, NULL,
                                "fleet '%s': rollout %llu of group '%s': this host failed (reason: %s)",
                                fleet->settings->name, (unsigned long long)group->rule.number, group->name,
                                group->rule.error),
                    quoted);
}

static void fail_lease(struct host_group *group, const struct error_report *why)
{
        struct fleet *fleet = group->fleet;

        rollout_group_observe_failure(&group->rule, why->text);
        command_give_up(fleet, why->text);
        report_failure(group, &why->quoted);
        wakeup_changed(runtime_of(group)->wakeup);
}

/* Restarts the fleet's own workers, like an order. */
static void restart(struct host_group *group, usec_t now)
{
        struct fleet *fleet = group->fleet;
        struct orderer by = {.known = false};

        snprintf(by.name, sizeof(by.name), "rollout %llu of its group",
                 (unsigned long long)group->rule.number);
        enum command_outcome outcome = command_restart(fleet, &by, now);
        rollout_group_observe_begun(&group->rule, now);
        /* A stopped or quieted fleet has no old workers to replace. */
        if (outcome != COMMAND_DONE) {
                fleet_event(fleet, EVENT_ORDER, ": not restarted by %s (reason: the fleet is %s)", by.name,
                            fleet_order_name(fleet_order(fleet)));
                rollout_group_observe_fleet(&group->rule, ROLLOUT_DONE, "", now);
        }
        wakeup_changed(runtime_of(group)->wakeup);
}

static void on_release(const struct error_report *error, void *userdata)
{
        struct host_group *group = userdata;
        const struct rollout_group *rule = &group->rule;
        usec_t now = now_is();

        group->check = NULL;
        /* The lease may have ended meanwhile, or belong to another rollout. */
        if (rule->lease != HOST_LEASE_ROLLING || rule->begun)
                return;
        if (error)
                fail_lease(group, error);
        else if (rule->state == GROUP_RUNNING && !group->fleet->world->shutting_down)
                restart(group, now);
        group_ask(group, now);
}

/* Starts the lease of this host. The state is saved first. If that fails, nothing starts, and the lease is
 * given back; a host that still restarts for an earlier rollout keeps it, and the next reply tries again. */
static void begin_lease(struct host_group *group, usec_t now)
{
        struct fleet *fleet = group->fleet;
        struct persist *persist = group->groups->persist;
        const char *release = group->last.release;

        if (fleet->world->shutting_down || group->check)
                return;
        persist_save_now(persist, now);
        if (persist->error != 0) {
                if (fleet->rollout.state == ROLLOUT_RUNNING)
                        return;
                rollout_group_observe_unsaved(&group->rule);
                group->again = true;
                return;
        }
        world_event(fleet->world, EVENT_GROUP_TURN, fleet, NULL,
                    "fleet '%s': rollout %llu of group '%s', started on %s: this host is rolling",
                    fleet->settings->name, (unsigned long long)group->rule.number, group->name,
                    group->last.by);
        if (release[0] == '\0') {
                restart(group, now);
                return;
        }
        int r = release_check_begin(runtime_of(group), fleet, release, on_release, group, &group->check);
        if (r < 0)
                log_warning("fleet '%s': cannot check for release '%s' now: %s", fleet->settings->name,
                            release, strerror(-r));
}

static void act(struct host_group *group, enum rollout_act what, usec_t now)
{
        struct fleet *fleet = group->fleet;

        if (what == ROLLOUT_ACT_RESTART)
                begin_lease(group, now);
        if (what != ROLLOUT_ACT_ABORT)
                return;
        group->check = release_check_cancel(group->check);
        command_give_up(fleet, group->rule.error);
        report_failure(group, NULL);
}

/* Arms the timer for renewing the lease, or disarms it without a lease. since: when Redis last answered, or
 * was last called. */
static void arm_renewal(const struct host_group *group, usec_t since)
{
        bool rolls = group->rule.lease == HOST_LEASE_ROLLING;

        if (rolls)
                (void)sd_event_source_set_time(group->renewal, usec_add(since, RENEW_USEC));
        (void)sd_event_source_set_enabled(group->renewal, rolls ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* Called after each evaluated reply. */
static void followed(struct host_group *group, const struct rollout_group *before, enum rollout_act what,
                     usec_t now)
{
        const struct rollout_group *rule = &group->rule;
        bool adopted = rule->number != before->number || strcmp(rule->id, before->id) != 0;

        observe_name_taken(group->fleet, rule->trouble == ROLLOUT_TROUBLE_TAKEN);
        report_rollout(group, before, adopted);
        report_trouble(group);
        /* The running check is for the release of the previous rollout. */
        if (adopted)
                group->check = release_check_cancel(group->check);
        act(group, what, now);
        if (adopted || differs(rule, before))
                wakeup_changed(runtime_of(group)->wakeup);
        /* For a new rollout, the next request is sent at once. */
        group->again |= adopted;
        /* Wakes the loop to log the events and to answer waiting GetRollouts calls. */
        wakeup_arm(runtime_of(group)->wakeup);
        arm_renewal(group, group->rule.asked_at);
}

void group_observe_ordered(struct host_group *group, const struct rollout_reply *reply, usec_t now)
{
        struct rollout_group *rule = &group->rule;
        const struct rollout_group before = *rule;

        group->last = *reply;
        group_forget_view(group);
        followed(group, &before, rollout_group_observe_ordered(rule, reply, now), now);
}

struct rollout_place group_place(const struct host_group *group)
{
        const struct redis_settings *redis = &runtime_of(group)->world->settings->redis;
        const char *url = group->fleet->link ? group->fleet->link->url : NULL;

        return rollout_place(url ?: redis->url, url ? NULL : redis->master_name, redis->namespace,
                             group->name);
}

static bool is_signed(const struct host_group *group, const struct rollout_place *place, const char *order,
                      const struct rollout_reply *reply, const char *signature)
{
        const char *key = group->fleet->settings->rollout_key;
        _cleanup_free_ char *text = rollout_signed_text(order, place, reply);

        return text && hmac_verify(key, strlen(key), text, signature);
}

enum rollout_signature group_signature(const struct host_group *group, const struct rollout_reply *reply)
{
        const struct rollout_place place = group_place(group);

        if (!group->fleet->settings->rollout_key)
                return ROLLOUT_SIGNATURE_UNASKED;
        if (reply->number == 0)
                return ROLLOUT_SIGNATURE_GOOD;
        if (!is_signed(group, &place, "begin", reply, reply->mac) ||
            (reply->state == GROUP_ABORTED && !is_signed(group, &place, "abort", reply, reply->end_mac)))
                return ROLLOUT_SIGNATURE_BAD;
        return rollout_place_is_same(&place, reply->server) ? ROLLOUT_SIGNATURE_GOOD
                                                            : ROLLOUT_SIGNATURE_ELSEWHERE;
}

/* Handles a call without a reply of the script: Redis refused the script, or the connection was lost. */
static void observe_refusal(struct host_group *group, const struct error_report *error)
{
        group->error = *error;
        group->rule.refused = true;
        report_trouble(group);
        wakeup_arm(runtime_of(group)->wakeup);
}

static void on_said(const struct rollout_answer *answer, void *userdata)
{
        struct host_group *group = userdata;
        usec_t now = now_is();

        if (!group_answered(group))
                return;
        group->asked = false;
        if (!answer->reply) {
                observe_refusal(group, answer->error);
                return;
        }
        struct rollout_group *rule = &group->rule;
        const struct rollout_group before = *rule;

        rule->refused = false;
        group->error = (struct error_report){0};
        group->last = *answer->reply;
        followed(group, &before,
                 rollout_group_observe(rule, answer->reply, group_signature(group, answer->reply), now), now);
        if (group->again)
                group_ask(group, now);
}

/* Quoted text does not leave this host. */
static void progress(const struct host_group *group, usec_t now, char *text, size_t size)
{
        const struct fleet *fleet = group->fleet;
        char waits[ROLLOUT_TEXT_MAX - 48];

        if (!group->rule.begun) {
                snprintf(text, size, "%s", group->check ? "checks for the release" : "starts");
                return;
        }
        fleet_waits_for(fleet, now, waits, sizeof(waits));
        snprintf(text, size, "%u of %u replaced%s%s", fleet_replaced(fleet, now), fleet->rollout.total,
                 waits[0] != '\0' ? "; " : "", waits);
}

/* Why this host begins no restart, for the view on the other hosts. */
static void reason_to_wait(const struct host_group *group, usec_t now, char *text, size_t size)
{
        struct error_report why;

        if (group_trouble(group, &why)->text[0] == '\0')
                rollout_group_pause_text(&group->rule, now, why.text, sizeof(why.text));
        snprintf(text, size, "%.*s", (int)size - 1, why.text);
}

/* The progress as numbers, for the script; "" before the restart has begun. */
static void counts(const struct host_group *group, usec_t now, char *text, size_t size)
{
        const struct fleet *fleet = group->fleet;
        bool begun = group->rule.lease != HOST_LEASE_ROLLING || group->rule.begun;

        if (begun)
                snprintf(text, size, "%u %u %u %u", fleet->rollout.total, fleet_replaced(fleet, now),
                         fleet_count(fleet, now).draining, fleet->rollout.failures);
}

void group_ask(struct host_group *group, usec_t now)
{
        struct rollout_group *rule = &group->rule;
        char text[ROLLOUT_TEXT_MAX + 1] = "", numbers[COUNTS_MAX] = "";

        group->again = group->asked;
        if (!group_reader(group, now) || group->asked)
                return;
        rule->unsaved = group->groups->persist->error != 0;
        enum rollout_request word = rollout_group_next_request(rule, now);
        if (word == ROLLOUT_REQUEST_ROLL)
                progress(group, now, text, sizeof(text));
        else if (word == ROLLOUT_REQUEST_DONE && rule->draining)
                snprintf(text, sizeof(text), ROLLOUT_DRAINING);
        else if (word == ROLLOUT_REQUEST_FAIL)
                snprintf(text, sizeof(text), "%s", rule->error);
        else if (word == ROLLOUT_REQUEST_SEE && rule->lease == HOST_LEASE_WAITING)
                reason_to_wait(group, now, text, sizeof(text));
        if (word == ROLLOUT_REQUEST_ROLL || word == ROLLOUT_REQUEST_DONE || word == ROLLOUT_REQUEST_FAIL)
                counts(group, now, numbers, sizeof(numbers));
        const char *const words[] = {"tick", rollout_request_name(word), text, numbers, NULL};
        group->asked = group_call(group, NULL, words, on_said, group) == 0;
}

static void on_glance(const struct rollout_answer *answer, void *userdata)
{
        struct host_group *group = userdata;
        const struct rollout_reply *reply = answer->reply;
        usec_t now = now_is();

        if (!group_answered(group))
                return;
        if (!reply)
                observe_refusal(group, answer->error);
        else if (rollout_group_is_due(&group->rule, reply->number, reply->id, reply->state, now))
                group_ask(group, now);
}

static void look(struct host_group *group, usec_t now)
{
        const struct rollout_group *rule = &group->rule;
        struct reader *reader = group_reader(group, now);

        if (group->view.hosts && !group->shows && now >= usec_add(group->view.at, VIEW_USEC))
                group_forget_view(group);
        if (!reader || group->asked ||
            (group->fleet->world->shutting_down && rule->lease != HOST_LEASE_ROLLING))
                return;
        if (rule->lease == HOST_LEASE_ROLLING || rule->state == GROUP_RUNNING) {
                group_ask(group, now);
                return;
        }
        const struct rollout_caller caller = caller_of(group, reader);
        group->n_calls += rollout_call_glance(&caller, on_glance, group) == 0;
}

void groups_poll(void *self, usec_t now)
{
        const struct groups *groups = self;

        for (struct host_group *group = groups->first; group; group = group->next)
                look(group, now);
}

/* Rearms itself without waiting for the answer: if that never comes, the next poll may be after the end of
 * the lease. */
static int on_renewal(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        usec_t now = now_is();

        arm_renewal(userdata, now);
        group_ask(userdata, now);
        return 0;
}

/* Reports events that count against a release while this host is the canary. */
static void look_for_trouble(struct host_group *group, usec_t now)
{
        const struct fleet *fleet = group->fleet;
        const struct world *world = fleet->world;
        char why[ROLLOUT_TEXT_MAX + 1];

        /* Without the server, no failure counts against the release. */
        for (size_t i = 0; i < world->n_events && fleet->redis_up; i++) {
                const struct event *event = &world->events[i];

                if (event->fleet != fleet || event->generation != fleet->generation ||
                    (event->kind != EVENT_CRASHED && event->kind != EVENT_MEMORY_OVER &&
                     event->kind != EVENT_HUNG && event->kind != EVENT_BOOT_TIMEOUT))
                        continue;
                snprintf(why, sizeof(why), "%s", event->text);
                rollout_group_observe_trouble(&group->rule, why, now);
        }
}

static void lease(struct host_group *group, usec_t now)
{
        struct fleet *fleet = group->fleet;
        struct rollout_group *rule = &group->rule;
        enum host_lease before = rule->lease;

        if (before == HOST_LEASE_ROLLING)
                rollout_group_observe_fleet(rule, fleet->rollout.state, fleet->rollout.error, now);
        rule->draining = fleet_count(fleet, now).draining > 0;
        if (rule->lease == HOST_LEASE_DONE && rule->canary_seconds > 0)
                look_for_trouble(group, now);
        if (rule->lease == before)
                return;
        if (rule->lease == HOST_LEASE_FAILED)
                report_failure(group, &fleet->rollout.quoted);
        else
                world_event(fleet->world, EVENT_GROUP_TURN_DONE, fleet, NULL,
                            "fleet '%s': rollout %llu of group '%s': this host is done",
                            fleet->settings->name, (unsigned long long)rule->number, group->name);
        wakeup_changed(runtime_of(group)->wakeup);
        group_ask(group, now);
        arm_renewal(group, group->rule.asked_at);
}

void groups_tick(void *self, usec_t now)
{
        const struct groups *groups = self;

        for (struct host_group *group = groups->first; group; group = group->next)
                lease(group, now);
}

static void on_left(const struct rollout_answer *answer _unused_, void *userdata)
{
        (void)group_answered(userdata);
}

/* Removes this host from the rollout, so that other hosts do not wait for it. */
static void say_that_it_leaves(struct host_group *group)
{
        const char *const words[] = {"forget", links_host_name(&runtime_of(group)->links), NULL};

        if (group->rule.number > 0)
                (void)group_call(group, NULL, words, on_left, group);
}

static void detach(struct host_group *group)
{
        group->check = release_check_cancel(group->check);
        group->renewal = sd_event_source_disable_unref(group->renewal);
        group->fleet->group = NULL;
        observe_name_taken(group->fleet, false);
        group->fleet = NULL;
        if (group->n_calls == 0)
                group_free(group);
}

static void leave(struct host_group *group)
{
        log_info("fleet '%s': this host leaves group '%s'", group->fleet->settings->name, group->name);
        say_that_it_leaves(group);
        detach(group);
}

static bool is_member(const struct fleet *fleet, const char *name)
{
        const struct fleet_settings *settings = fleet->settings;

        return !settings->removed && settings->rollout_group && strcmp(settings->rollout_group, name) == 0;
}

static int join(struct groups *groups, struct fleet *fleet)
{
        const struct runtime *runtime = groups->persist->runtime;
        struct host_group *group = calloc(1, sizeof(*group));

        if (!group || !(group->name = strdup(fleet->settings->rollout_group))) {
                free(group);
                return -ENOMEM;
        }
        int r = sd_event_add_time(runtime->event, &group->renewal, CLOCK_MONOTONIC, 0, 0, on_renewal, group);
        if (r < 0) {
                group_free(group);
                return r;
        }
        group->groups = groups;
        group->rule = rollout_group_new();
        group->fleet = fleet;
        fleet->group = group;
        arm_renewal(group, group->rule.asked_at);
        group->next = groups->first;
        groups->first = group;
        return 0;
}

/* Identifies the pid namespace, which may be all that distinguishes two containers with the same machine,
 * host name and state directory. Not other namespaces: these change whenever a service with restricted files
 * or network restarts. */
static uint64_t namespace_of_processes(void)
{
        struct stat status;

        return stat("/proc/self/ns/pid", &status) < 0 ? 0 : status.st_ino;
}

static void name_instance(struct groups *groups)
{
        const char *boot = groups->persist->boot_id, *instance = groups->persist->runtime->instance;
        uint64_t inode = namespace_of_processes();
        uint64_t hash = hash_bytes(HASH_INIT, boot, strlen(boot));

        hash = hash_bytes(hash, instance, strlen(instance));
        hash = hash_bytes(hash, &inode, sizeof(inode));
        snprintf(groups->instance, sizeof(groups->instance), "%016llx", (unsigned long long)hash);
}

int groups_begin(struct persist *persist, void **ret)
{
        struct groups *groups = calloc(1, sizeof(*groups));

        if (!groups)
                return -ENOMEM;
        groups->persist = persist;
        *ret = groups;
        return 0;
}

void groups_join(void *self)
{
        struct groups *groups = self;
        const struct world *world = groups->persist->runtime->world;

        for (struct host_group **at = &groups->first; *at;) {
                struct host_group *group = *at;

                if (is_member(group->fleet, group->name)) {
                        at = &group->next;
                        continue;
                }
                *at = group->next;
                leave(group);
        }
        WORLD_FOREACH_FLEET(world, fleet) {
                if (!fleet->settings->rollout_group || fleet->settings->removed || fleet->group)
                        continue;
                if (groups->instance[0] == '\0')
                        name_instance(groups);
                int r = join(groups, fleet);
                if (r < 0)
                        log_error(
                                "fleet '%s': cannot join group '%s': %s. Run 'sqmgrctl reload' to try again",
                                fleet->settings->name, fleet->settings->rollout_group, strerror(-r));
        }
}

void groups_end(void *self)
{
        struct groups *groups = self;

        while (groups->first) {
                struct host_group *group = groups->first;

                groups->first = group->next;
                detach(group);
        }
        assert(!groups->calls);
        free(groups);
}

void groups_pack(const void *self _unused_, const struct fleet *fleet, struct codec_writer *writer)
{
        if (fleet->group)
                rollout_group_pack(&fleet->group->rule, fleet->group->name, writer);
}

void groups_unpack(void *self _unused_, struct fleet *fleet, struct codec_reader *reader)
{
        if (fleet->group && rollout_group_unpack(reader, fleet->group->name, &fleet->group->rule))
                arm_renewal(fleet->group, fleet->group->rule.asked_at);
}
