/* SPDX-License-Identifier: MIT */
/* Are workers found that a framework lists in Redis, and that nothing else shows? With a real redis-server,
 * and real processes of a user of their own, as far as one may. */
/* promises: P4 */
#include "continuity/adoption.h"
#include "daemon/takeover/roster.h"
#include "daemon/takeover/search.h"
#include "daemon/workers/exits.h"
#include "redis_runtime.h"
#include <time.h>

#define TITLE "rq: Listening on work"

static const char *title; /* of the next process; NULL: TITLE */

static struct search search;
static pid_t started[4];
static unsigned n_started, n_news;

/* The control groups of each process but our own; NULL: the real ones. */
static const char *groups;

int __real_proc_cgroup(const struct proc *proc, char *text, size_t size);
int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size);

int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size)
{
        if (!groups || proc_pid(proc) == getpid())
                return __real_proc_cgroup(proc, text, size);
        snprintf(text, size, "%s", groups);
        return 0;
}

static uid_t whose(void)
{
        return geteuid() == 0 ? 20000 + (uid_t)getpid() % 40000 : geteuid();
}

static void on_news(void *userdata _unused_)
{
        n_news++;
}

static void setup(void)
{
        server_directory_empty(); /* of what a test has left that failed */
        redis_runtime_setup();
}

static void teardown(void)
{
        for (unsigned i = 0; i < n_started; i++)
                (void)kill(started[i], SIGKILL);
        search.roster = roster_free(search.roster);
        search.adoption = adoption_free(search.adoption);
        free(search.pids);
        n_started = 0;
        groups = NULL;
        title = NULL;
        redis_runtime_teardown_all();
}

/* Fleets of these names run `rq worker work` in the directory `current`, which leads to `release`. */
static void begin(const char *const names[], size_t n)
{
        char text[2048];
        int used = snprintf(text, sizeof(text), "[redis]\nurl=%s\n", server_url);

        for (size_t i = 0; i < n; i++)
                used += snprintf(text + used, sizeof(text) - (size_t)used,
                                 "[fleet:%s]\nframework=rq\ncommand=/usr/bin/rq worker -v -u %s work\n"
                                 "directory=%s/current\nactive_process_count=2\n",
                                 names[i], server_url, server_directory);
        char path[128], link[128];
        snprintf(path, sizeof(path), "%s/release", server_directory);
        snprintf(link, sizeof(link), "%s/current", server_directory);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        ck_assert_int_eq(symlink("release", link), 0);
        runtime_start(text);
        n_news = 0;
        search = (struct search){.runtime = &runtime};
        ck_assert_int_eq(adoption_new(runtime_world, runtime.instance, geteuid(), &search.adoption), 0);
        for (size_t i = 0; i < n; i++)
                adoption_seek(search.adoption, runtime_world->fleets[i], whose(), clock_now(CLOCK_MONOTONIC));
        adoption_distrust(search.adoption);
        ck_assert_int_eq(roster_new(&runtime, search.adoption, on_news, NULL, &search.roster), 0);
}

static _Noreturn void run_titled(const char *path, uid_t uid, char *const environment[])
{
        static char seconds[] = "1000";
        char *const argv[] = {strdup(title ?: TITLE), seconds, NULL};

        if (setsid() < 0 || chdir(path) < 0 || (geteuid() == 0 && (setgid(uid) < 0 || setuid(uid) < 0)) ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                _exit(1);
        execve("/bin/sleep", argv, environment);
        _exit(127);
}

/* Starts a process with this title, as the leader of its session. below: as the child of one that lives. */
static pid_t start(const char *directory, char *const environment[], bool below)
{
        char path[128];
        int pair[2];

        snprintf(path, sizeof(path), "%s/%s", server_directory, directory);
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        uid_t uid = whose();
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0 && below) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                pid = fork();
                close_fd(pair[0]);
                while (pid > 0 && write(pair[1], &pid, sizeof(pid)) == sizeof(pid)) {
                        close_fd(pair[1]);
                        for (;;)
                                pause();
                }
        }
        if (pid == 0)
                run_titled(path, uid, environment);
        started[n_started++] = pid;
        close_fd(pair[1]);
        if (below)
                ck_assert_int_eq(read(pair[0], &pid, sizeof(pid)), sizeof(pid));
        /* Until it runs the program. */
        ck_assert_int_eq(read(pair[0], &(char){0}, 1), 0);
        close_fd(pair[0]);
        return pid;
}

/* Lists it as RQ would that many seconds ago. */
static void list(pid_t pid, const char *host, const char *queues, unsigned ago)
{
        struct timespec now;
        char birth[64];
        struct tm tm;

        ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
        time_t at = now.tv_sec - ago;
        size_t n = strftime(birth, sizeof(birth), "%Y-%m-%dT%H:%M:%S", gmtime_r(&at, &tm));
        snprintf(birth + n, sizeof(birth) - n, ".%06ldZ", now.tv_nsec / 1000);
        server_do("SADD rq:workers rq:worker:%d", (int)pid);
        server_do("HSET rq:worker:%d hostname %s pid %d birth %s queues %s", (int)pid, host, (int)pid, birth,
                  queues);
}

static bool search_once(void)
{
        int r = SEARCH_GOES_ON;

        while (r == SEARCH_GOES_ON)
                r = search_run(&search, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(r, SEARCH_WHOLE);
        return adoption_search_end(search.adoption, 0, clock_now(CLOCK_MONOTONIC));
}

/* Searches until all is certain. */
static void search_all(void)
{
        while (!search_once()) {
                ck_assert(search.awaits_lists);
                ck_assert(runtime_world->fleets[0]->held);
                ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
                (void)exits_reap(&runtime);
        }
        ck_assert(!runtime_world->fleets[0]->held);
}

static const char *host(void)
{
        return links_host_name(&runtime.links);
}

static char *const no_environment[] = {NULL};
static const char *const alone[] = {"web"};

TEST(a_worker_that_redis_alone_tells_of_is_adopted)
{
        begin(alone, 1);
        const struct fleet *fleet = runtime_world->fleets[0];
        pid_t one = start("release", no_environment, false), other = start("release", no_environment, false);
        list(one, host(), "work", 0);
        list(other, host(), "work", 0);
        search_all();
        ck_assert_uint_gt(n_news, 0);
        ck_assert_uint_eq(fleet->n_workers, 2);
        ck_assert_int_eq(fleet->workers[0]->process.pid, MIN(one, other));
        ck_assert_int_eq(fleet->workers[1]->process.pid, MAX(one, other));
        ck_assert_uint_eq(fleet->workers[1]->index, 2);
        ck_assert(!fleet->workers[0]->process.unproven);
}

static char another[] = "SQMGR_INSTANCE=fedcba9876543210", its_worker[] = "SQMGR_WORKER=web/1";
static char *const marked[] = {another, its_worker, NULL};

static const struct {
        const char *directory, *host, *queues;
        unsigned ago;
        bool marked, below;
        const char *groups;
} strangers[] = {
        {".", NULL, "work", 0, false, false, NULL},
        {"release", "another-host", "work", 0, false, false, NULL},
        {"release", NULL, "mail", 0, false, false, NULL},
        {"release", NULL, "work,mail", 0, false, false, NULL},
        /* By a process that had its pid before. */
        {"release", NULL, "work", 3600, false, false, NULL},
        /* Another sqmgr's. */
        {"release", NULL, "work", 0, true, false, NULL},
        /* Another supervisor's. */
        {"release", NULL, "work", 0, false, true, NULL},
        {"release", NULL, "work", 0, false, false, "1:name=systemd:/system.slice/rq.service\n0::/\n"},
        {"release", NULL, "work", 0, false, false, "0::/system.slice/rq.service\n"},
};

TEST_LOOP(a_process_that_does_not_fit_is_left_alone, ELEMENTSOF(strangers))
{
        begin(alone, 1);
        groups = strangers[_i].groups;
        pid_t pid = start(strangers[_i].directory, strangers[_i].marked ? marked : no_environment,
                          strangers[_i].below);
        list(pid, strangers[_i].host ?: host(), strangers[_i].queues, strangers[_i].ago);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 0);
}

/* Anybody may write in Redis that it serves the fleet's queues. */
TEST(a_process_that_shows_other_queues_is_left_alone)
{
        begin(alone, 1);
        title = "rq:worker:mine: Listening on mail";
        list(start("release", no_environment, false), host(), "work", 0);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 0);
}

TEST(a_process_that_runs_a_job_and_shows_no_queues_is_adopted)
{
        begin(alone, 1);
        title = "rq:worker:mine: Forked 4711 at 1795344309.1";
        list(start("release", no_environment, false), host(), "work", 0);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 1);
}

/* A session of a user, not a service. */
TEST(a_worker_of_another_control_group_is_adopted)
{
        begin(alone, 1);
        groups = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope\n";
        list(start("release", no_environment, false), host(), "work", 0);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 1);
}

TEST(a_process_that_fits_two_fleets_is_left_alone)
{
        static const char *const two[] = {"web", "mail"};

        begin(two, 2);
        list(start("release", no_environment, false), host(), "work", 0);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 0);
        ck_assert_uint_eq(runtime_world->fleets[1]->n_workers, 0);
        ck_assert_uint_eq(search.adoption->n_strays, 1);
        ck_assert(search.adoption->strays[0].reported);
}

TEST(a_list_that_is_none_ends_the_wait)
{
        begin(alone, 1);
        server_do("SET rq:workers x");
        (void)start("release", no_environment, false);
        search_all();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 0);
}

REDIS_RUNTIME_MAIN("roster", setup, teardown)
