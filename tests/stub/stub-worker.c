/* SPDX-License-Identifier: MIT */
/* A worker that only speaks Sidekiq's heartbeat, fast and on demand, for tests that cannot wait for the real
 * one.
 *
 * stub-worker [-u SOCKET]... [-b HEARTBEAT_MS] [-c CONCURRENCY] [-n NAMESPACE] [-t STOP_SECONDS]
 *             [-d FOLDER] [-j LEDGER]
 *
 * Of several SOCKETs it uses the one whose server says that it is a master.
 *
 * Files in FOLDER steer it: `busy` and `busy.PID` hold the number of jobs that it says it runs, `mute` and
 * `mute.PID` hold its heartbeats back, `hang` its boot, `fail` makes it print that file, its pid instead of a
 * %, and exit with 1 at its start, `info` holds the members of its info that replace `"queues":["default"]`.
 * It has CONCURRENCY threads named `processor`, which exit once it is quiet and idle, and it takes up no
 * jobs. With -c 0 its only thread bears that name until then: so a thousand of them are cheap.
 *
 * With -j it does: an entry `JID MILLISECONDS` of the list stub:jobs is a job that sleeps. LEDGER gets a line
 * when it begins and one when it is done; the list stub:taken:TOKEN says who took it.
 *
 * To the file that STUB_TIMES names it appends what became of it, `WHAT PID NANOSECONDS`, where what is born
 * or beats (its first beat is out). */

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define MAX_SOCKETS 4

static struct {
        const char *sockets[MAX_SOCKETS];
        unsigned n_sockets;
        const char *prefix;
        const char *folder;
        const char *ledger;
        unsigned heartbeat_ms;
        unsigned concurrency;
        unsigned stop_seconds;
} options = {.prefix = "", .heartbeat_ms = 200, .concurrency = 5, .stop_seconds = 25};

static volatile sig_atomic_t reported_quiet, reported_stop;
static int wake[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool threads_may_go;
static char identity[256];
static char host[128];
static char start_time[32];
static int ledger = -1;
static atomic_uint n_running;

static void handle_signal(int number)
{
        if (number == SIGTSTP)
                reported_quiet = 1;
        else
                reported_quiet = reported_stop = 1;
        if (write(wake[1], "", 1) < 0)
                return; /* A full pipe wakes the thread anyway. */
}

/* Each line is a single write() to the end of the file, so lines of several workers do not mix. */
static void note(const char *what)
{
        const char *path = getenv("STUB_TIMES");
        struct timespec now;

        if (!path)
                return;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0)
                return;
        dprintf(fd, "%s %d %lld\n", what, (int)getpid(), now.tv_sec * 1000000000LL + now.tv_nsec);
        close(fd);
}

static bool is_master(redisContext *redis)
{
        redisReply *reply = redisCommand(redis, "ROLE");
        bool master =
                reply && reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[0]->str, "master") == 0;

        freeReplyObject(reply);
        return master;
}

static redisContext *redis_connect_to(const char *path)
{
        const struct timeval timeout = {.tv_sec = options.n_sockets > 1 ? 1 : 5};
        redisContext *redis = path ? redisConnectUnixWithTimeout(path, timeout)
                                   : redisConnectWithTimeout("127.0.0.1", 6379, timeout);
        if (redis && redis->err) {
                redisFree(redis);
                return NULL;
        }
        if (redis)
                redisSetTimeout(redis, timeout);
        if (redis && options.n_sockets > 1 && !is_master(redis)) {
                redisFree(redis);
                return NULL;
        }
        return redis;
}

static redisContext *redis_connect(void)
{
        redisContext *redis = NULL;

        if (options.n_sockets == 0)
                return redis_connect_to(NULL);
        for (unsigned i = 0; !redis && i < options.n_sockets; i++)
                redis = redis_connect_to(options.sockets[i]);
        return redis;
}

/* Takes a job. With the same token, returns the same job again, because an answer may get lost with Redis.
 * Returns 1 with a job, 0 without, and -EIO if Redis did not answer. */
static int take_job(redisContext *redis, const char *token, char *ret_jid, unsigned *ret_ms)
{
        static const char script[] = "return redis.call('lindex', KEYS[2], 0) or "
                                     "redis.call('rpoplpush', KEYS[1], KEYS[2])";
        redisReply *reply = redisCommand(redis, "EVAL %s 2 stub:jobs stub:taken:%s", script, token);
        int r = -EIO;

        if (reply && reply->type == REDIS_REPLY_NIL)
                r = 0;
        else if (reply && reply->type == REDIS_REPLY_STRING)
                r = sscanf(reply->str, "%63s %u", ret_jid, ret_ms) == 2 ? 1 : -EIO;
        if (reply)
                freeReplyObject(reply);
        return r;
}

static void run_job(const char *jid, const char *token, unsigned ms)
{
        struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

        dprintf(ledger, "started %s %s\n", jid, token);
        while (nanosleep(&left, &left) < 0)
                ;
        dprintf(ledger, "done %s %s\n", jid, token);
}

/* Runs jobs until the worker is quieted. If Redis has not answered, a job may have been taken: the request is
 * then repeated even when quiet. */
static void take_jobs(unsigned thread)
{
        char token[64], jid[64];
        unsigned n = 0, ms = 0;
        bool unclear = false;
        redisContext *redis = NULL;

        while (!reported_quiet || unclear) {
                snprintf(token, sizeof(token), "%d.%s.%u.%u", (int)getpid(), start_time, thread, n);
                if (!redis)
                        redis = redis_connect();
                int r = redis ? take_job(redis, token, jid, &ms) : -EIO;
                if (r > 0) {
                        atomic_fetch_add(&n_running, 1);
                        run_job(jid, token, ms);
                        atomic_fetch_sub(&n_running, 1);
                        n++;
                } else {
                        usleep(50000);
                }
                if (r < 0 && redis) {
                        redisFree(redis);
                        redis = NULL;
                        unclear = true;
                } else if (r >= 0) {
                        unclear = false;
                }
        }
        if (redis)
                redisFree(redis);
}

static void *processor(void *number)
{
        if (ledger >= 0) {
                take_jobs((unsigned)(uintptr_t)number);
                return NULL;
        }
        pthread_mutex_lock(&lock);
        while (!threads_may_go)
                pthread_cond_wait(&released, &lock);
        pthread_mutex_unlock(&lock);
        return NULL;
}

static bool steering_file(const char *name, bool mine, char *ret_path)
{
        if (!options.folder)
                return false;
        int n = mine ? snprintf(ret_path, PATH_MAX, "%s/%s.%d", options.folder, name, (int)getpid())
                     : snprintf(ret_path, PATH_MAX, "%s/%s", options.folder, name);
        return n < PATH_MAX && access(ret_path, F_OK) == 0;
}

static unsigned busy_jobs(void)
{
        char path[PATH_MAX];
        unsigned jobs = 0;

        if (ledger >= 0)
                return atomic_load(&n_running);
        if (!steering_file("busy", true, path) && !steering_file("busy", false, path))
                return 0;
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        if (fscanf(file, "%u", &jobs) != 1)
                jobs = 0;
        fclose(file);
        return jobs;
}

static void fail_if_reported(void)
{
        char path[PATH_MAX], line[512];

        if (!steering_file("fail", false, path))
                return;
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file)) {
                char *percent = strchrnul(line, '%');

                fprintf(stderr, "%.*s", (int)(percent - line), line);
                if (*percent)
                        fprintf(stderr, "%d%s", (int)getpid(), percent + 1);
        }
        exit(EXIT_FAILURE);
}

static void send_command(redisContext *redis, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        redisvAppendCommand(redis, format, arguments);
        va_end(arguments);
}

/* How it says which queues it serves. */
static const char *queues_members(char text[static 256])
{
        char path[PATH_MAX];
        FILE *file = steering_file("info", false, path) ? fopen(path, "re") : NULL;

        if (!file || !fgets(text, 256, file))
                strcpy(text, "\"queues\":[\"default\"]");
        if (file)
                fclose(file);
        text[strcspn(text, "\n")] = '\0';
        return text;
}

static unsigned append_heartbeat(redisContext *redis, unsigned busy)
{
        const char *p = options.prefix;
        struct timespec now;
        char info[1024], members[256], work[64];
        unsigned n = 0;

        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(info, sizeof(info),
                 "{\"hostname\":\"%s\",\"started_at\":%ld.0,\"pid\":%d,\"tag\":\"stub\",\"concurrency\":%u,"
                 "%s,\"labels\":[],\"identity\":\"%s\"}",
                 host, (long)now.tv_sec, (int)getpid(), options.concurrency, queues_members(members),
                 identity);
        send_command(redis, "MULTI"), n++;
        send_command(redis, "SADD %sprocesses %s", p, identity), n++;
        send_command(redis, "HMSET %s%s info %s busy %u beat %ld.%06ld quiet %s rss 10000 rtt_us 100", p,
                     identity, info, busy, (long)now.tv_sec, now.tv_nsec / 1000,
                     reported_quiet ? "true" : "false"),
                n++;
        send_command(redis, "EXPIRE %s%s 60", p, identity), n++;
        send_command(redis, "DEL %s%s:workers", p, identity), n++;
        for (unsigned i = 0; i < busy; i++) {
                snprintf(work, sizeof(work), "{\"queue\":\"default\",\"payload\":\"{}\",\"run_at\":%ld}",
                         (long)now.tv_sec);
                send_command(redis, "HSET %s%s:workers t%u %s", p, identity, i, work), n++;
        }
        send_command(redis, "EXPIRE %s%s:workers 60", p, identity), n++;
        send_command(redis, "EXEC"), n++;
        return n;
}

/* Sends the appended commands. A broken connection is closed, and replaced at the next heartbeat; so is one
 * whose server refuses writes, as a master that became a replica does. */
static redisContext *redis_exchange(redisContext *redis, unsigned n_replies)
{
        bool refused = false;

        for (unsigned i = 0; i < n_replies; i++) {
                redisReply *reply = NULL;
                if (redisGetReply(redis, (void **)&reply) != REDIS_OK) {
                        redisFree(redis);
                        return NULL;
                }
                refused |= reply->type == REDIS_REPLY_ERROR;
                freeReplyObject(reply);
        }
        if (refused) {
                redisFree(redis);
                return NULL;
        }
        return redis;
}

static void pause_until_heartbeat(void)
{
        struct pollfd pollfd = {.fd = wake[0], .events = POLLIN};
        char byte;
        int n;

        /* A signal that interrupts the wait has left a byte in the pipe. If not read, it would cause a second
         * heartbeat at once. */
        do
                n = poll(&pollfd, 1, (int)options.heartbeat_ms);
        while (n < 0 && errno == EINTR);
        if (n > 0 && read(wake[0], &byte, 1) < 0)
                return;
}

static void boot_when_allowed(void)
{
        char path[PATH_MAX];

        while (!reported_stop && steering_file("hang", false, path))
                pause_until_heartbeat();
}

static void release_threads(void)
{
        if (options.concurrency == 0)
                prctl(PR_SET_NAME, "stub-worker");
        pthread_mutex_lock(&lock);
        threads_may_go = true;
        pthread_cond_broadcast(&released);
        pthread_mutex_unlock(&lock);
}

static int work(void)
{
        redisContext *redis = NULL;
        bool has_sent_heartbeat = false;
        time_t stop_by = 0;
        char path[PATH_MAX];

        if (options.concurrency == 0)
                prctl(PR_SET_NAME, "processor");
        for (;;) {
                unsigned busy = busy_jobs();

                if (reported_quiet && busy == 0)
                        release_threads();
                if (reported_stop && stop_by == 0)
                        stop_by = time(NULL) + (time_t)options.stop_seconds;
                if (reported_stop && (busy == 0 || time(NULL) >= stop_by))
                        break;
                if (!redis)
                        redis = redis_connect();
                /* As with Sidekiq, the count of jobs was read a round trip earlier; the quiet flag is
                 * current. */
                if (redis) {
                        send_command(redis, "PING");
                        redis = redis_exchange(redis, 1);
                }
                if (redis && !steering_file("mute", true, path) && !steering_file("mute", false, path)) {
                        redis = redis_exchange(redis, append_heartbeat(redis, busy));
                        if (redis && !has_sent_heartbeat) {
                                has_sent_heartbeat = true;
                                note("beats");
                        }
                }
                pause_until_heartbeat();
        }
        if (redis) {
                send_command(redis, "SREM %sprocesses %s", options.prefix, identity);
                redis = redis_exchange(redis, 1);
        }
        if (redis)
                redisFree(redis);
        return EXIT_SUCCESS;
}

static int parse_options(int argc, char **argv)
{
        int option;

        options.folder = getenv("STUB_FOLDER");
        while ((option = getopt(argc, argv, "u:b:c:n:t:d:j:")) != -1)
                switch (option) {
                case 'u':
                        if (options.n_sockets == MAX_SOCKETS)
                                return -EINVAL;
                        options.sockets[options.n_sockets++] = optarg;
                        break;
                case 'b':
                        options.heartbeat_ms = (unsigned)strtoul(optarg, NULL, 10);
                        break;
                case 'c':
                        options.concurrency = (unsigned)strtoul(optarg, NULL, 10);
                        break;
                case 'n':
                        options.prefix = optarg;
                        break;
                case 't':
                        options.stop_seconds = (unsigned)strtoul(optarg, NULL, 10);
                        break;
                case 'd':
                        options.folder = optarg;
                        break;
                case 'j':
                        options.ledger = optarg;
                        break;
                default:
                        return -EINVAL;
                }
        if (options.n_sockets == 0 && getenv("STUB_REDIS"))
                options.sockets[options.n_sockets++] = getenv("STUB_REDIS");
        return options.concurrency <= MAX_THREADS ? 0 : -EINVAL;
}

/* Pid and start time together identify a process permanently. */
static int open_ledger(void)
{
        char text[1024];
        FILE *file = fopen("/proc/self/stat", "re");
        char *at = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;

        if (file)
                fclose(file);
        if (!at ||
            sscanf(at, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %31s",
                   start_time) != 1)
                return -EIO;
        ledger = open(options.ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        return ledger < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
        struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};
        unsigned char nonce[6];
        pthread_t thread;

        note("born");
        if (parse_options(argc, argv) < 0) {
                fprintf(stderr,
                        "usage: %s [-u SOCKET]... [-b BEAT_MS] [-c CONCURRENCY] [-n PREFIX] "
                        "[-t STOP_SECONDS] [-d FOLDER] [-j LEDGER]\n",
                        argv[0]);
                return 2;
        }
        fail_if_reported();
        if ((options.ledger && open_ledger() < 0) || pipe(wake) < 0 || gethostname(host, sizeof(host)) < 0 ||
            getrandom(nonce, sizeof(nonce), 0) < 0) {
                perror("stub-worker");
                return EXIT_FAILURE;
        }
        snprintf(identity, sizeof(identity), "%s:%d:%02x%02x%02x%02x%02x%02x", host, (int)getpid(), nonce[0],
                 nonce[1], nonce[2], nonce[3], nonce[4], nonce[5]);
        sigemptyset(&action.sa_mask);
        signal(SIGPIPE, SIG_IGN);
        sigaction(SIGTSTP, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        boot_when_allowed();
        for (unsigned i = 0; i < options.concurrency; i++) {
                if (pthread_create(&thread, NULL, processor, (void *)(uintptr_t)i) != 0)
                        return EXIT_FAILURE;
                /* The main thread sets the name: the new thread might do so after the first heartbeat, which
                 * must follow a visible boot, as with Sidekiq's title. */
                pthread_setname_np(thread, "processor");
                pthread_detach(thread);
        }
        return work();
}
