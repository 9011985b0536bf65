/* SPDX-License-Identifier: MIT */
/* Tests of the settings: what a reload changes, comparing, merging and the hash of what a worker is started
 * from. */
#include "golden.h"
#include "settings_text.h"
#include "unit.h"

static int refuse_change(const struct settings_change *change _unused_, void *userdata _unused_)
{
        return -ECANCELED;
}

TEST(reports_what_a_reload_changes)
{
        _cleanup_settings_ struct settings *old = read_good(
                "[sqmgr]\nlog_level=info\n[redis]\nurl=redis://:one@h\npassword=a\n"
                "[fleet:a]\ncommand=run\nmemory_threshold=512M\ndirectory=/g\n[fleet:gone]\ncommand=x");
        _cleanup_settings_ struct settings *new = read_good(
                "[sqmgr]\nlog_level=debug\n[redis]\nurl=redis://:two@h\npassword=b\n"
                "[fleet:new]\ncommand=y\n[fleet:a]\ncommand=run 2\nmemory_threshold=1G\nrestart_surge=3\n"
                "max_processes=5\nenvironment=A=secret");
        char text[NOTES_MAX] = "";

        ck_assert_int_eq(settings_diff(old, new, note_change, text), 0);
        ck_assert_str_eq(text, "sqmgr log_level: info -> debug\n"
                               "redis url: redis://***@h -> redis://***@h (restart)\n"
                               "redis password: *** -> *** (restart)\n"
                               "fleet:a command: run -> run 2 (outdates)\n"
                               "fleet:a directory: /g -> sqmgr's own (outdates)\n"
                               "fleet:a environment: none -> *** (outdates)\n"
                               "fleet:a max_processes: 3 x the larger of active_process_count and "
                               "active_process_max -> 5\n"
                               "fleet:a restart_surge: 100% -> 3\n"
                               "fleet:a memory_threshold: 512M -> 1G\n"
                               "fleet:gone *: present -> removed\n"
                               "fleet:new *: absent -> added\n");
        text[0] = '\0';
        ck_assert_int_eq(settings_diff(old, old, note_change, text), 0);
        ck_assert_str_eq(text, "");
        ck_assert_int_eq(settings_diff(old, new, refuse_change, NULL), -ECANCELED);
}

TEST(merges_only_what_a_reload_applies)
{
        _cleanup_settings_ struct settings *old =
                read_good("[sqmgr]\nsocket=/old\n[redis]\nurl=redis://old\n[fleet:b]\ncommand=old b\n"
                          "[fleet:a]\ncommand=old a\nenvironment=A=old\ndirectory=/old\nstop_timeout=40s\n");
        _cleanup_settings_ struct settings *new = read_good(
                "[sqmgr]\nsocket=/new\ncheck_interval=1s\n[redis]\nurl=redis://new\n"
                "[fleet:c]\ncommand=new c\n[fleet:a]\ncommand=new a\nenvironment=A=new\nstop_timeout=50s\n"
                "active_process_count=7\nmax_age=3d\n");
        _cleanup_settings_ struct settings *merged = NULL;
        char text[NOTES_MAX] = "";

        ck_assert_int_eq(settings_merge(old, new, &merged), 0);
        ck_assert_str_eq(merged->socket, "/old");
        ck_assert_uint_eq(merged->check_interval, USEC_PER_SEC);
        ck_assert_str_eq(merged->redis.url, "redis://old");
        ck_assert_uint_eq(merged->n_fleets, 3);
        ck_assert_str_eq(merged->fleets[0]->name, "b");
        ck_assert_str_eq(merged->fleets[0]->argv[1], "b");
        ck_assert(merged->fleets[0]->removed);
        ck_assert_str_eq(merged->fleets[2]->name, "c");
        ck_assert_str_eq(merged->fleets[2]->argv[0], "new");
        ck_assert(!merged->fleets[2]->removed);
        const struct fleet_settings *a = merged->fleets[1];
        ck_assert_str_eq(a->name, "a");
        ck_assert_str_eq(a->argv[0], "new");
        ck_assert_str_eq(a->environment_list[0], "A=new");
        ck_assert_ptr_null(a->directory);
        ck_assert(!a->removed);
        ck_assert_uint_eq(a->stop_timeout, 50 * USEC_PER_SEC);
        ck_assert_uint_eq(a->active_process_count, 7);
        ck_assert_uint_eq(a->max_age, 3 * USEC_PER_DAY);

        /* What is left to be changed needs a restart. */
        settings_diff(merged, new, note_change, text);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                ck_assert_msg(strstr(line, "(restart)"), "%s", line);

        /* One that was removed comes back as it is configured then. */
        _cleanup_settings_ struct settings *back = NULL;
        text[0] = '\0';
        ck_assert_int_eq(settings_diff(merged, old, note_change, text), 0);
        ck_assert_uint_eq(count_changes(text), 9);
        ck_assert_ptr_nonnull(strstr(text, "fleet:b *: absent -> added\n"));
        ck_assert_ptr_nonnull(strstr(text, "fleet:c *: present -> removed\n"));
        ck_assert_int_eq(settings_merge(merged, old, &back), 0);
        ck_assert(!back->fleets[0]->removed);
        ck_assert(back->fleets[2]->removed);
        settings_drop_removed(back, 2);
        ck_assert_uint_eq(back->n_fleets, 2);
        ck_assert_str_eq(back->fleets[1]->name, "a");
}

TEST(reports_what_a_fleet_that_comes_back_cannot_change)
{
        _cleanup_settings_ struct settings *old = read_good("[fleet:a]\ncommand=x\n[fleet:b]\ncommand=x\n");
        _cleanup_settings_ struct settings *without = read_good("[fleet:a]\ncommand=x\n");
        _cleanup_settings_ struct settings *new = read_good(
                "[fleet:a]\ncommand=x\n[fleet:b]\ncommand=y\nredis_url=redis://other\nmax_age=1d\n");
        _cleanup_settings_ struct settings *draining = NULL;
        char text[NOTES_MAX] = "";

        ck_assert_int_eq(settings_merge(old, without, &draining), 0);
        ck_assert_int_eq(settings_diff(draining, new, note_change, text), 0);
        ck_assert_str_eq(text, "fleet:b *: absent -> added\n"
                               "fleet:b redis_url: the url of [redis] -> redis://other (restart)\n");
}

TEST(adds_a_fleet_that_is_not_configured)
{
        _cleanup_settings_ struct settings *s = read_good("[fleet:a]\ncommand=x\n");

        const struct fleet_settings *b = settings_add_removed(s, "b", &sidekiq_traits);
        ck_assert_ptr_eq(b, settings_find_fleet(s, "b"));
        ck_assert(b && b->removed);
        ck_assert_uint_eq(b->stop_timeout, 60 * USEC_PER_SEC);
        ck_assert_ptr_null(b->command);
}

TEST(hashes_what_a_worker_is_started_from)
{
        static const char *const others[] = {"command=y\n",
                                             "command=x\ndirectory=/a\n",
                                             "command=x\nenvironment_file=/a\n",
                                             "command=x\nenvironment=A=1\n",
                                             "command=x\nlog=journal\n",
                                             "command=x\nlog=inherit\n",
                                             "command=x\npreload=yes\n",
                                             "command=x\nrollout_trial=5min\n"};
        _cleanup_settings_ struct settings *a = read_good("[fleet:a]\ncommand=x\n");
        _cleanup_settings_ struct settings *same =
                read_good("[fleet:b]\nactive_process_count=3\npreload=no\nmax_age=1d\ncommand=x\n");
        uint64_t hash = a->fleets[0]->launch_hash;

        ck_assert_uint_eq(hash, same->fleets[0]->launch_hash);
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                char text[128];

                snprintf(text, sizeof(text), "[fleet:a]\n%s", others[i]);
                _cleanup_settings_ struct settings *other = read_good(text);
                ck_assert_uint_ne(hash, other->fleets[0]->launch_hash);
        }
}

/* Only Sidekiq loads a file to count its jobs, whatever the duration of a trial. */
TEST(a_trial_is_for_those_that_count_their_jobs)
{
        static const char *const counting[] = {"sidekiq", "celery", "bullmq", "rq", "resque", "native"};

        for (size_t i = 0; i < ELEMENTSOF(counting); i++) {
                char text[256];

                snprintf(text, sizeof(text),
                         "[fleet:a]\ncommand=run\nframework=%s\n[fleet:b]\ncommand=run\nframework=%s\n"
                         "rollout_trial=1h\n[fleet:c]\ncommand=run\nframework=%s\nrollout_trial=2h\n",
                         counting[i], counting[i], counting[i]);
                _cleanup_settings_ struct settings *s = read_good(text);
                ck_assert_int_eq(s->fleets[0]->launch_hash == s->fleets[1]->launch_hash, i > 0);
                ck_assert_uint_eq(s->fleets[1]->launch_hash, s->fleets[2]->launch_hash);
        }
        _cleanup_settings_ struct settings *inherited =
                read_good("[fleet]\nrollout_trial=1h\ninterruptible=ImportJob\n[fleet:a]\ncommand="
                          "run\nframework=plain\n[fleet:b]\ncommand=run\n"
                          "[fleet:c]\ncommand=run\nnamespaced=yes\n");
        ck_assert(inherited->fleets[0]->rollout_trial == 0 && inherited->fleets[1]->rollout_trial > 0);
        ck_assert_ptr_null(inherited->fleets[0]->interruptible);
        ck_assert_str_eq(inherited->fleets[1]->interruptible, "ImportJob");
        ck_assert(fleet_settings_load_outcomes(inherited->fleets[1]));
        ck_assert(!fleet_settings_load_outcomes(inherited->fleets[2]));
}

TEST(preloading_is_for_those_that_can)
{
        _cleanup_settings_ struct settings *inherited =
                read_good("[fleet]\npreload=yes\n[fleet:a]\ncommand=run\n"
                          "framework=resque\n[fleet:b]\ncommand=run\n[fleet:c]\ncommand=run\npreload=no\n");
        ck_assert(!inherited->fleets[0]->traits->can_preload);
        ck_assert(inherited->fleets[1]->preload);
        ck_assert(!inherited->fleets[2]->preload);
        _cleanup_settings_ struct settings *defaults = read_good("[fleet:a]\ncommand=run\n");
        ck_assert(!defaults->fleets[0]->preload);
}

TEST(namespaces_are_for_heartbeats_on_a_server_and_exclude_templates)
{
        _cleanup_settings_ struct settings *inherited =
                read_good("[fleet]\nnamespaced=yes\n[fleet:a]\ncommand=run\nframework=plain\n"
                          "[fleet:b]\ncommand=run\n[fleet:c]\ncommand=run\nframework=rq\n"
                          "[fleet:d]\ncommand=run\nnamespaced=no\n"
                          "[fleet:e]\ncommand=run\nframework=native\nheartbeat=redis\n");
        ck_assert(!inherited->fleets[0]->namespaced && inherited->fleets[1]->namespaced);
        ck_assert(inherited->fleets[2]->namespaced && !inherited->fleets[3]->namespaced);
        ck_assert(inherited->fleets[4]->namespaced);
        ck_assert_uint_ne(inherited->fleets[1]->launch_hash, inherited->fleets[3]->launch_hash);
}

/* Without a variable for the host name, namespaces are matched by the host name of this machine. */
TEST(warns_of_namespaces_without_a_unique_name)
{
        static const char text[] =
                "[sqmgr]\nsocket=/s\n[fleet:a]\ncommand=run\nframework=rq\nnamespaced=yes\n"
                "[fleet:b]\ncommand=run\nnamespaced=yes\n";
        _cleanup_free_ char *errors = NULL, *warnings = NULL;
        _cleanup_settings_ struct settings *settings =
                read_settings_warned(&root_surroundings, text, &errors, &warnings);

        ck_assert_msg(settings, "%s", errors);
        golden_expect("settings-errors", "namespaced, warnings", warnings);
}

/* An ini of an earlier version may still name the user that sqmgr runs as. */
TEST(accepts_its_own_user_with_a_warning)
{
        _cleanup_free_ char *errors = NULL, *warnings = NULL;
        _cleanup_settings_ struct settings *settings = read_settings_warned(
                &root_surroundings, "[fleet:a]\ncommand=run\nUser=own\n", &errors, &warnings);

        ck_assert_msg(settings, "%s", errors);
        golden_expect("settings-errors", "its own user", warnings);
}

TEST(keeps_every_key_of_a_cross_check_reloadable)
{
        /* Else merging two good settings could make one that contradicts itself. */
        static const char *const names[] = {"active_process_count", "max_processes", "restart_surge",
                                            "memory_threshold",     "memory_limit",  "stop_timeout"};

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                ck_assert_msg(settings_key_find(SETTINGS_FLEET, names[i])->reload == SETTINGS_APPLIED, "%s",
                              names[i]);
}

TEST_MAIN("settings_reload")
