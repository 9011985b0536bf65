/* SPDX-License-Identifier: MIT */
/* Which names do workers of Solid Queue and GoodJob have, and which commands are refused or warned of? */
/* promises: P1 */
#include "frameworks/framework.h"
#include "frameworks/good_job/good_job.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "golden.h"
#include "settings/operations.h"
#include "settings/settings.h"
#include "unit.h"
#include <stdio.h>

#define UUID "0f8fad5b-d9cb-469f-a165-70867728950e"

static const struct {
        const struct framework *framework;
        const char *identity;
        size_t host_len; /* 0: refused */
        pid_t pid;
} identities[] = {
        {&solid_queue_framework, "web-1:4711:12", 5, 4711},
        {&solid_queue_framework, "web-1:4711:0", 0, 0},
        {&solid_queue_framework, "web-1:4711:012", 0, 0},
        {&solid_queue_framework, "web-1:4711:12x", 0, 0},
        {&solid_queue_framework, "web-1:4711:", 0, 0},
        {&solid_queue_framework, "web-1:4711", 0, 0},
        {&solid_queue_framework, "web-1:0:12", 0, 0},
        {&solid_queue_framework, ":4711:12", 0, 0},
        {&solid_queue_framework, "a:b:4711:12", 0, 0},
        {&good_job_framework, "web-1:4711:" UUID, 5, 4711},
        {&good_job_framework, "web-1:4711:12", 0, 0},
        {&good_job_framework, "web-1:4711:" UUID "0", 0, 0},
        {&good_job_framework, "web-1:4711:0F8FAD5B-d9cb-469f-a165-70867728950e", 0, 0},
        {&good_job_framework, "web-1:4711:0f8fad5b0d9cb-469f-a165-70867728950e", 0, 0},
};

TEST_LOOP(an_identity_has_one_reading, ELEMENTSOF(identities))
{
        const char *text = identities[_i].identity;
        size_t host_len = 0;
        pid_t pid = 0;

        ck_assert(identities[_i].framework->identity_parse(text, strlen(text), &host_len, &pid) ==
                  (identities[_i].host_len > 0));
        ck_assert_uint_eq(host_len, identities[_i].host_len);
        ck_assert_int_eq(pid, identities[_i].pid);
}

/* The traits that decide over signals: TERM is sent once, and its worker is replaced before. */
TEST(term_begins_the_drain)
{
        const struct framework *const list[] = {&solid_queue_framework, &good_job_framework};

        FOREACH_POINTER(framework, list, ELEMENTSOF(list)) {
                ck_assert_int_eq(framework->quiet_signal, 0);
                ck_assert(framework->traits->quiet_is_stop && !framework->traits->quiet_when_idle);
                ck_assert_int_eq(framework->traits->heartbeat, HEARTBEAT_DATABASE);
                ck_assert(framework->traits->stand_in);
        }
        ck_assert(solid_queue_traits.can_rescue && !good_job_traits.can_rescue);
}

static const struct {
        const struct traits *traits;
        const char *command, *environment;
} commands[] = {
        {&solid_queue_traits, "bin/jobs", NULL},
        {&solid_queue_traits, "bin/jobs --mode fork", "A=b"},
        {&solid_queue_traits, "bin/jobs --mode async", NULL},
        {&solid_queue_traits, "sh -c 'exec bin/jobs --mode=async'", NULL},
        {&solid_queue_traits, "bin/jobs", "RAILS_ENV=production SOLID_QUEUE_SUPERVISOR_MODE=async"},
        {&good_job_traits, "bundle exec good_job start", NULL},
        {&good_job_traits, "good_job start --daemonize", NULL},
        {&good_job_traits, "good_job start --shutdown-timeout=30", NULL},
        {&good_job_traits, "good_job start --shutdown-timeout=-1", NULL},
        {&good_job_traits, "good_job start --idle-timeout 60", NULL},
};

TEST(flaws_of_a_command)
{
        char text[COMMAND_FLAW_MAX], label[256];

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
                struct fleet_settings *fleet = fleet_settings_new("a");

                fleet->traits = commands[i].traits;
                fleet->command = strdup(commands[i].command);
                fleet->environment = commands[i].environment ? strdup(commands[i].environment) : NULL;
                ck_assert_int_eq(fleet_settings_derive(fleet), 0);
                snprintf(label, sizeof(label), "%s %s", commands[i].command, commands[i].environment ?: "");
                for (const struct command_flaw *flaw = fleet->traits->command_flaws; flaw->text; flaw++)
                        if (command_has_flaw(fleet, flaw))
                                golden_add(label, command_flaw_text(flaw, text));
                fleet_settings_free(fleet);
        }
        golden_end("settings-errors", "flaws of a command");
}

TEST_MAIN("database_frameworks")
