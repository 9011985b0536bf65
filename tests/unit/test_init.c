/* SPDX-License-Identifier: MIT */
/* Tests of src/init: what `sqmgr init` makes of other supervisors' configurations. */
#include "frameworks/table.h"
#include "golden.h"
#include "init/source_rules.h"
#include "io/ini.h"
#include "settings/errors.h"
#include "settings_text.h"
#include "unit.h"

#include <string.h>

static struct proposal proposal;
static struct entries entries;
static char *name;

static void set_up(void)
{
        proposal = (struct proposal){.surroundings = &root_surroundings};
}

static void tear_down(void)
{
        proposal_done(&proposal);
        entries_done(&entries);
        free(name);
        name = NULL;
}

static void read_entries(const char *text, enum entries_style style)
{
        unsigned line = 0;

        ck_assert_int_eq(entries_read(&entries, text, strlen(text), style, &line), 0);
}

/* Removes the comments, which are the same for all, in place. */
static char *without_comments(char *text)
{
        char *to = text, *end;

        for (char *line = text; *line != '\0'; line = end) {
                end = strchr(line, '\n') + 1;
                if (*line != '#')
                        to = (char *)mempcpy(to, line, (size_t)(end - line));
        }
        *to = '\0';
        return text;
}

/* Adds the config file and the notes, and has the reader of config files accept the former. */
static void add_finished(const char *what)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0};
        const struct proposal_names names = {what, "default", "app", "/etc/sqmgr"};
        _cleanup_free_ char *text = NULL, *unit = NULL;
        char label[64];
        size_t size;

        if (proposal_finish(&proposal) < 0) {
                snprintf(label, sizeof(label), "%s, refused", what);
                golden_add(label, proposal.error);
        } else {
                FILE *out = open_memstream(&text, &size);
                proposal_print(&proposal, &names, out);
                ck_assert_int_eq(fclose(out), 0);
                ck_assert_msg(ini_check_text(text, &root_surroundings, &errors) == 0, "%s", text);
                golden_add(what, strstr(without_comments(text), "command"));
                out = open_memstream(&unit, &size);
                bool needed = proposal_print_unit(&proposal, &names, "", out);
                ck_assert_int_eq(fclose(out), 0);
                snprintf(label, sizeof(label), "%s, drop-in", what);
                if (needed)
                        golden_add(label, strstr(unit, "[Service]"));
        }
        if (proposal.notes) {
                snprintf(label, sizeof(label), "%s, notes", what);
                golden_add(label, proposal.notes);
        }
        tear_down();
        set_up();
}

static void add_systemd(const char *what, const char *service)
{
        char text[2048];

        snprintf(text, sizeof(text), "[Unit]\nDescription=x\n[Service]\n%s\n[Install]\nWantedBy=x\n",
                 service);
        read_entries(text, ENTRIES_SYSTEMD);
        (void)source_systemd(&proposal, &entries);
        add_finished(what);
}

static void add_supervisord(const char *what, const char *text, const char *program)
{
        const char *found;

        read_entries(text, ENTRIES_SUPERVISORD);
        (void)source_supervisord(&proposal, &entries, program, &found);
        add_finished(what);
}

static void add_procfile(const char *what, const char *text, const char *process)
{
        if (source_procfile(&proposal, text, process, &name) == 0)
                golden_add("process", name);
        add_finished(what);
}

TEST(entries_are_read_as_each_supervisor_reads_them)
{
        read_entries("  [Service]\n; a\n# b\nA=1 ; 2 \\\n# c\n  3\nB = 'x;y'\n\n[Install]\nA:x=2\n",
                     ENTRIES_SYSTEMD);
        ck_assert_uint_eq(entries.n, 3);
        ck_assert_str_eq(entries.list[0].section, "Service");
        ck_assert_str_eq(entries.list[0].name, "A");
        ck_assert_str_eq(entries.list[0].value, "1 ; 2  3");
        ck_assert_uint_eq(entries.list[0].line, 4);
        ck_assert_str_eq(entries.list[1].value, "'x;y'");
        ck_assert_uint_eq(entries.list[1].line, 7);
        ck_assert_str_eq(entries.list[2].section, "Install");
        entries_done(&entries);
        read_entries("[program:a]\nenvironment=A=\"1\", ; one\n  B=\"2\"\nuser=x;y ; z\n",
                     ENTRIES_SUPERVISORD);
        ck_assert_uint_eq(entries.n, 2);
        ck_assert_str_eq(entries.list[0].value, "A=\"1\", B=\"2\"");
        ck_assert_str_eq(entries.list[1].value, "x;y");
}

TEST(a_line_that_is_no_entry_is_refused_and_a_long_one_is_marked)
{
        char text[512];
        unsigned line = 0;

        ck_assert_int_eq(entries_read(&entries, "[a]\nb=1\n\nc\n", 11, ENTRIES_SYSTEMD, &line), -EINVAL);
        ck_assert_uint_eq(line, 4);
        entries_done(&entries);
        ck_assert_int_eq(entries_read(&entries, "[a\n", 3, ENTRIES_SYSTEMD, &line), -EINVAL);
        entries_done(&entries);
        snprintf(text, sizeof(text), "[a]\nb=%0300d\nc=1\n", 7);
        read_entries(text, ENTRIES_SYSTEMD);
        ck_assert_uint_eq(entries.n, 2);
        ck_assert(entries.list[0].too_long);
        ck_assert(!entries.list[1].too_long);
        entries_done(&entries);
        ck_assert_int_eq(entries_read(&entries, "", 0, ENTRIES_SYSTEMD, &line), 0);
        entries_done(&entries);
        ck_assert_int_eq(entries_read(&entries, "[a]\nb=\0\001 1\n", 12, ENTRIES_SYSTEMD, &line), 0);
        ck_assert_str_eq(entries.list[0].value, "?\001 1");
}

TEST(a_command_is_recognized_by_its_program_or_task)
{
        ck_assert(proposal_find_program("bundle exec sidekiq -e production", "sidekiq"));
        ck_assert(proposal_find_program("/srv/app/bin/sidekiq", "sidekiq"));
        ck_assert(proposal_find_program("/bin/bash -lc 'exec sidekiq'", "sidekiq"));
        ck_assert(proposal_find_program("bundle exec rake resque:work", "resque"));
        ck_assert(!proposal_find_program("/srv/sidekiq/bin/run", "sidekiq"));
        ck_assert(!proposal_find_program("sidekiqswarm", "sidekiq"));
        ck_assert(!proposal_find_program("mysidekiq sidekiq-x", "sidekiq"));
}

TEST(services_of_systemd)
{
        char long_line[900];

        golden_begin();
        add_systemd(
                "usual",
                "Type=notify\nWatchdogSec=10\nWorkingDirectory=/srv/app/current\n"
                "ExecStart=/usr/local/bin/bundle exec sidekiq -e production\nUser=app\nGroup=www\n"
                "UMask=0002\nEnvironment=MALLOC_ARENA_MAX=2 \"A=b c\"\nEnvironment=REDIS_URL=redis://r/1\n"
                "EnvironmentFile=/srv/app/env\nLimitNOFILE=65536\nNice=5\nOOMScoreAdjust=100\n"
                "Restart=always\nRestartSec=1\nStandardOutput=append:/var/log/sidekiq.log");
        add_systemd("drop-in", "ExecStart=sidekiq -c 5\nEnvironment=A=1\nUser=a\n[Service]\nExecStart=\n"
                               "ExecStart=sidekiq -c 10\nEnvironment=\nEnvironment=B=2\nUser=b");
        add_systemd("left out",
                    "ExecStart=-/usr/bin/sidekiq\nPrivateTmp=yes\nNice=99\nEnvironmentFile=-/a\n"
                    "EnvironmentFile=/b\nTimeoutStopSec=90\nWorkingDirectory=%h/app\nMemoryMax=2G\n"
                    "MemoryHigh=lots\nExecStart=/usr/bin/second");
        add_systemd(
                "sandbox",
                "ExecStart=sidekiq\nUser=app\nGroup=app\nCPUQuota=150%\nMemoryMax=infinity\n"
                "LimitNOFILE=\nLimitNOFILE=4096:8192\nIOSchedulingClass=idle\nProtectSystem=strict\n"
                "ReadWritePaths=/srv/app/shared %h/tmp\nReadWritePaths=/srv/%i\nSlice=jobs.slice\n"
                "CapabilityBoundingSet=\nSupplementaryGroups=ssl-cert\nRuntimeDirectory=app\n"
                "RuntimeDirectoryMode=0700\nPrivatePIDs=yes\nSystemCallFilter=@system-service \\\n ~@mount\n"
                "SystemCallErrorNumber=E\033PERM\nRestrictNamespaces=yes\nRestart=always");
        add_systemd("variables", "ExecStart=/usr/bin/bundle exec sidekiq -q ${QUEUE}");
        add_systemd("plain", "ExecStart=+/usr/bin/dramatiq app\nKillSignal=SIGTERM\nTimeoutStopSec=5min");
        add_systemd("celery beat", "ExecStart=/usr/bin/celery -A app beat");
        add_systemd("broker", "ExecStart=/usr/bin/celery -A app worker\n"
                              "Environment=CELERY_BROKER_URL=redis://r/1 REDIS_URL=redis://cache/2");
        add_systemd("other broker", "ExecStart=/usr/bin/celery -A app worker\n"
                                    "Environment=CELERY_BROKER_URL=amqp://rabbit");
        add_systemd("good_job",
                    "ExecStart=/usr/bin/bundle exec good_job start\n"
                    "Environment=DATABASE_URL=postgres://h/app QUEUE_DATABASE_URL=postgres://h/queue");
        add_systemd("good_job, MySQL", "ExecStart=/usr/bin/bundle exec good_job start\n"
                                       "Environment=DATABASE_URL=mysql2://h/app");
        add_systemd("good_job cleanup", "ExecStart=/usr/bin/bundle exec good_job cleanup\n"
                                        "Environment=DATABASE_URL=postgres://h/app");
        add_systemd("solid_queue", "ExecStart=/srv/app/bin/jobs\nEnvironmentFile=/srv/app/.env");
        add_systemd("solid_queue, rake", "ExecStart=/usr/bin/bundle exec rake solid_queue:start\n"
                                         "Environment=DATABASE_URL=postgres://h/app");
        add_systemd("rq", "ExecStart=/usr/bin/nice -n 10 /usr/bin/rq worker high");
        add_systemd("rq, one name", "ExecStart=/usr/bin/rq worker -n w1 --burst high");
        add_systemd("solid_queue, async",
                    "ExecStart=/srv/app/bin/jobs\nEnvironment=DATABASE_URL=postgres://h/app "
                    "SOLID_QUEUE_SUPERVISOR_MODE=async");
        add_systemd("no timeout", "ExecStart=/usr/bin/dramatiq app\nTimeoutStopSec=infinity");
        add_systemd("unknown", "ExecStart=/srv/app/bin/consumer 100%%");
        add_systemd("no variable", "ExecStart=/bin/bash -lc 'A=1; cd $$HOME && exec sidekiq -c $A'");
        add_systemd("quoted variable", "ExecStart=/usr/bin/sidekiq -q \"$QUEUE\"");
        add_systemd("word", "ExecStart=/usr/bin/sidekiq $OPTIONS -q 'x$y'");
        add_systemd("literal", "ExecStart=:/usr/bin/sidekiq -q $A -r $$");
        add_systemd("variable in a shell", "ExecStart=/bin/bash -c 'cd /x; exec sidekiq -c ${N}'");
        add_systemd("variable and glob", "ExecStart=/usr/bin/sidekiq -q ${QUEUE} -r *");
        add_systemd("variable and dollar", "ExecStart=/usr/bin/sidekiq -q ${QUEUE} -r $$");
        add_systemd("escapes", "ExecStart=sidekiq -q \"a\\\"b\\\\\" \\'\nEnvironment=A=a\\x20b\n"
                               "Environment='B=\\''\nExecStartPre=/bin/x \"\\n\"");
        add_systemd("several", "ExecStart=sidekiq\nExecStartPre=-/bin/a $$x\nExecStartPre=/bin/b\n"
                               "CPUAffinity=0 1\nCPUAffinity=3\nType=forking");
        add_systemd("variable before", "ExecStart=sidekiq\nExecStartPre=/bin/a $X");
        add_systemd("timeout", "ExecStart=/usr/bin/dramatiq app\nTimeoutSec=600");
        add_systemd("unknown user", "ExecStart=sidekiq\nUser=app\nUser=%i");
        add_systemd("no user yet", "ExecStart=sidekiq\nDynamicUser=yes");
        add_systemd("control character", "ExecStart=sidekiq\nEnvironment=A=\033c");
        add_systemd("swarm", "Environment=SIDEKIQ_COUNT=4 SIDEKIQ_MAXMEM_MB=700\n"
                             "ExecStart=/usr/bin/bundle exec sidekiqswarm -e production");
        add_systemd("swarm in a path", "ExecStart=/srv/sidekiqswarm/bin/sidekiqswarm");
        add_systemd("instance", "ExecStart=/usr/bin/bundle exec sidekiq -i %i");
        add_systemd("argv[0]", "ExecStart=@/usr/bin/sidekiq worker");
        snprintf(long_line, sizeof(long_line),
                 "ExecStart=sidekiq %0200d\nEnvironment=A=%0170d\nEnvironment=B=%020d\nReadOnlyPaths=/%0200d",
                 1, 2, 3, 4);
        add_systemd("long", long_line);
        read_entries("[Socket]\nListenStream=1\n", ENTRIES_SYSTEMD);
        ck_assert_int_eq(source_systemd(&proposal, &entries), -EINVAL);
        golden_add("no service", proposal.error);
        golden_end("init", "systemd");
}

TEST(a_config_file_has_comments_and_the_drop_in_if_no_file_is_for_it)
{
        const struct proposal_names names = {"systemd", "default", "app", "/etc/sqmgr"};
        _cleanup_free_ char *text = NULL;
        size_t size;

        read_entries("[Service]\nExecStart=sidekiq\nUser=deploy\nNice=5\n", ENTRIES_SYSTEMD);
        ck_assert_int_eq(source_systemd(&proposal, &entries), 0);
        ck_assert_int_eq(proposal_finish(&proposal), 0);
        FILE *out = open_memstream(&text, &size);
        proposal_print(&proposal, &names, out);
        ck_assert(proposal_print_unit(&proposal, &names, "# ", out));
        ck_assert_int_eq(fclose(out), 0);
        /* A '#' would begin a section. */
        for (char *p = text; (p = strchr(p, '#'));)
                *p = ';';
        golden_expect("init", "whole", text);
}

TEST(an_error_stays_if_sidekiqswarm_is_replaced)
{
        read_entries("[Service]\nExecStart=@/bin/x y\nExecStart=sidekiqswarm\n", ENTRIES_SYSTEMD);
        ck_assert_int_eq(source_systemd(&proposal, &entries), -EINVAL);
        ck_assert_str_eq(proposal_get(&proposal, "command"), "sidekiq");
}

TEST(programs_of_supervisord)
{
        static const char two[] = "[supervisord]\nx=1\n[program:web]\ncommand=puma\n[program:jobs]\n"
                                  "command=/usr/bin/rq worker high\nnumprocs=3\n";

        golden_begin();
        add_supervisord("usual",
                        "[program:sidekiq]\ncommand=bundle exec sidekiq ; the workers\ndirectory=/srv/app\n"
                        "user=app\nnumprocs=4\numask=022\nprocess_name=%(program_name)s_%(process_num)02d\n"
                        "environment=A=\"b, c\",\n  D='e'\nstdout_logfile=/var/log/a.log\nstopwaitsecs=60\n"
                        "autorestart=true\nserverurl=AUTO\n",
                        NULL);
        add_supervisord("plain",
                        "[program:x]\ncommand=/bin/x\nstopsignal=INT\nstopwaitsecs=60\nstdout_logfile=NONE\n",
                        NULL);
        add_supervisord("comments", "[program:x]\ncommand: /bin/sidekiq # one\n  # two\nuser=%(ENV_USER)s\n",
                        NULL);
        add_supervisord("expansion", "[program:x]\ncommand=sidekiq -i %(process_num)s\n", NULL);
        add_supervisord("one of two", two, "jobs");
        add_supervisord("two", two, NULL);
        add_supervisord("none", two, "nosuch");
        golden_end("init", "supervisord");
}

TEST(procfiles)
{
        golden_begin();
        add_procfile("usual", "# x\nweb: bin/rails s\nworker: bundle exec sidekiq -C config/sidekiq.yml\r\n",
                     NULL);
        add_procfile("only one", "jobs:   bin/jobs", NULL);
        add_procfile("assignment", "worker: RAILS_ENV=production bundle exec sidekiq", NULL);
        add_procfile("shell", "worker: cd app && bundle exec sidekiq -q 'it''s'", NULL);
        add_procfile("comment", "worker: bundle exec sidekiq # all\n", NULL);
        add_procfile("chosen", "web: puma\nworker: sidekiq\nmail: sidekiq -q mail\n", "mail");
        add_procfile("several", "web: puma\nmail: sidekiq -q mail\n", NULL);
        add_procfile("none of that name", "web: puma\n", "worker");
        add_procfile("none", "\n#\nx\n", NULL);
        golden_end("init", "procfile");
}

TEST(variables_of_sidekiqswarm)
{
        static const char *const sets[][5] = {
                {"SIDEKIQ_COUNT=4", "SIDEKIQ_MAXMEM_MB=700", "SIDEKIQ_PRELOAD_APP=1"},
                {"SIDEKIQ_MAXMEM_MB=x", "SIDEKIQ_PRELOAD=default"},
                {"HOME=/"},
        };

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(sets); i++) {
                _cleanup_environment_ struct environment variables = {0};

                for (size_t j = 0; sets[i][j]; j++)
                        ck_assert_int_eq(environment_put(&variables, sets[i][j]), 0);
                (void)source_sidekiqswarm(&proposal, &variables);
                add_finished(sets[i][0]);
        }
        golden_end("init", "sidekiqswarm");
}

TEST(options_are_refused_with_the_reason)
{
        static const struct {
                const char *what, *option, *key, *value;
        } wrong[] = {
                {"--memory 5", "--memory", "memory_threshold", "5"},
                {"--directory", "--directory", "directory", "/a\nuser = root"},
                {"--command", "--command", "command", "a 'b"},
                {"--framework", "--framework", "framework", "rails"},
        };

        golden_begin();
        FOREACH_ELEMENT(option, wrong) {
                proposal.error[0] = '\0';
                ck_assert_int_eq(proposal_require(&proposal, option->option, option->key, option->value),
                                 -EINVAL);
                golden_add(option->what, proposal.error);
        }
        golden_end("init", "options");
}

TEST_MAIN("init", .each = {set_up, tear_down})
