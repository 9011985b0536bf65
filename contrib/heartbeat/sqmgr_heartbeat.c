/* SPDX-License-Identifier: MIT */
/* Tells sqmgr what this worker is doing; see the header for how to use it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "sqmgr_heartbeat.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of a worker that is quiet sqmgr waits for further beats. Changes within the shortest of these are one
 * record. */
#define INTERVAL_MS       5000
#define QUIET_INTERVAL_MS 1000
#define SHORTEST_MS       100

static const struct {
        int signo;
        bool stops;
} signals[] = {{SIGTSTP, false}, {SIGTERM, true}};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told_to_stop = PTHREAD_COND_INITIALIZER;
/* Under the lock. */
static unsigned busy;
static bool quiet, stopping, finished;
/* Written by the handlers. */
static volatile sig_atomic_t asked_quiet, asked_stop;
/* Set once, by sqmgr_heartbeat_start(), and in a child of fork(). */
static int wake[2] = {-1, -1};
static struct sigaction before[N_SIGNALS];
static pthread_t thread;
static char path[PATH_MAX], beside[PATH_MAX], start[32], label[64];
static unsigned threads_max;

/* Only a full pipe refuses it, and that one wakes, too. */
static void wake_up(void)
{
        int saved = errno;

        if (write(wake[1], "", 1) < 0)
                errno = saved;
}

static void on_signal(int signo)
{
        asked_quiet = 1;
        for (size_t i = 0; i < N_SIGNALS; i++)
                if (signals[i].signo == signo && signals[i].stops)
                        asked_stop = 1;
        wake_up();
}

/* Field 22: the second is a name in parentheses, which may hold any others. */
static void read_start(void)
{
        char stat[1024] = "", *field, *rest = NULL;
        int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        if (read(fd, stat, sizeof(stat) - 1) > 0 && (field = strrchr(stat, ')'))) {
                field = strtok_r(field + 1, " ", &rest);
                for (int i = 3; field && i < 22; i++)
                        field = strtok_r(NULL, " ", &rest);
                if (field)
                        snprintf(start, sizeof(start), "%s", field);
        }
        (void)close(fd);
}

static void write_record(unsigned n_jobs, bool is_quiet)
{
        struct timespec now;
        FILE *file;
        int fd;

        if (!path[0] || (fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
                return;
        if (!(file = fdopen(fd, "w"))) {
                (void)close(fd);
                return;
        }
        (void)clock_gettime(CLOCK_REALTIME, &now);
        fprintf(file, "v=1\nbeat=%lld.%06ld\nbusy=%u\nquiet=%d\nstart=%s\n", (long long)now.tv_sec,
                now.tv_nsec / 1000, n_jobs, is_quiet, start);
        fprintf(file, "quiet_sig=TSTP\nresume_sig=\nstop_sig=TERM\n");
        if (threads_max > 0)
                fprintf(file, "concurrency=%u\n", threads_max);
        if (label[0])
                fprintf(file, "tag=%s\n", label);
        if (fclose(file) != 0 || rename(beside, path) < 0)
                (void)unlink(beside);
}

static void *beat(void *unused)
{
        struct timespec shortest = {.tv_nsec = SHORTEST_MS * 1000000L};
        struct pollfd woken = {.fd = wake[0], .events = POLLIN};
        char words[256];

        for (;;) {
                (void)pthread_mutex_lock(&lock);
                quiet = quiet || asked_quiet;
                stopping = stopping || asked_stop;
                unsigned n_jobs = busy;
                bool is_quiet = quiet, ends = finished;
                if (stopping)
                        (void)pthread_cond_broadcast(&told_to_stop);
                (void)pthread_mutex_unlock(&lock);
                if (ends)
                        return unused;
                write_record(n_jobs, is_quiet);
                (void)nanosleep(&shortest, NULL);
                (void)poll(&woken, 1, is_quiet ? QUIET_INTERVAL_MS : INTERVAL_MS);
                while (read(wake[0], words, sizeof(words)) > 0)
                        continue;
        }
}

static void hold_lock(void)
{
        (void)pthread_mutex_lock(&lock);
}
static void release_lock(void)
{
        (void)pthread_mutex_unlock(&lock);
}

/* The record is the parent's, and so are its signals. */
static void leave_to_parent(void)
{
        path[0] = '\0';
        for (size_t i = 0; i < N_SIGNALS; i++)
                (void)sigaction(signals[i].signo, &before[i], NULL);
        for (size_t i = 0; i < 2; i++) {
                if (wake[i] >= 0)
                        (void)close(wake[i]);
                wake[i] = -1;
        }
        (void)pthread_mutex_unlock(&lock);
}

/* The thread is none that handlers run in: what blocks in another one is woken by its signal. */
static int start_thread(void)
{
        sigset_t all, old;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&thread, NULL, beat, NULL);
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
        return -r;
}

int sqmgr_heartbeat_start(const char *tag, unsigned concurrency)
{
        const char *folder = getenv("SQMGR_STATUS_DIR");
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        int r;

        if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        if (folder && strlen(folder) < PATH_MAX - 16) {
                snprintf(path, sizeof(path), "%s/%ld", folder, (long)getpid());
                snprintf(beside, sizeof(beside), "%s/.%ld", folder, (long)getpid());
        }
        snprintf(label, sizeof(label), "%s", tag ? tag : "");
        for (char *c = label; *c; c++)
                if ((unsigned char)*c < ' ')
                        *c = ' ';
        threads_max = concurrency;
        read_start();
        for (size_t i = 0; i < N_SIGNALS; i++)
                (void)sigaction(signals[i].signo, &action, &before[i]);
        r = -pthread_atfork(hold_lock, release_lock, leave_to_parent);
        if (r == 0)
                r = start_thread();
        if (r < 0) {
                hold_lock();
                leave_to_parent();
        }
        return r;
}

bool sqmgr_heartbeat_take(void)
{
        bool taken;

        (void)pthread_mutex_lock(&lock);
        taken = !quiet && !asked_quiet;
        busy += taken;
        (void)pthread_mutex_unlock(&lock);
        if (taken)
                wake_up();
        return taken;
}

void sqmgr_heartbeat_done(void)
{
        (void)pthread_mutex_lock(&lock);
        busy--;
        (void)pthread_mutex_unlock(&lock);
        wake_up();
}

void sqmgr_heartbeat_finish(void)
{
        (void)pthread_mutex_lock(&lock);
        while (!stopping)
                (void)pthread_cond_wait(&told_to_stop, &lock);
        finished = true;
        (void)pthread_mutex_unlock(&lock);
        wake_up();
        (void)pthread_join(thread, NULL);
        if (path[0])
                (void)unlink(path);
}
