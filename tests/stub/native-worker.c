/* SPDX-License-Identifier: MIT */
/* A worker with the C client; jobs.bash describes what each one does. Usage: worker FOLDER THREADS [fork] */
#include "sqmgr_heartbeat.h"
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void pause_shortly(void)
{
        (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000L}, NULL);
}

static bool put(const char *from, const char *to, const char *name)
{
        char old[300], new[300];

        snprintf(old, sizeof(old), "%s/%s", from, name);
        snprintf(new, sizeof(new), "%s/%s", to, name);
        return rename(old, new) == 0;
}

static bool fetch(char *name, size_t size)
{
        DIR *queue = opendir("queue");
        struct dirent *entry;
        bool found = false;

        while (queue && !found && (entry = readdir(queue))) {
                snprintf(name, size, "%s", entry->d_name);
                found = name[0] != '.' && put("queue", "running", name);
        }
        if (queue)
                (void)closedir(queue);
        return found;
}

static void run(const char *name)
{
        char path[300];
        FILE *file;

        snprintf(path, sizeof(path), "ran/%s", name);
        if (!(file = fopen(path, "a")) || fputs("x\n", file) < 0 || fclose(file) != 0)
                abort();
        pause_shortly();
        while (access("hold", F_OK) == 0)
                pause_shortly();
        if (!put("running", "done", name))
                abort();
}

static void *work(void *unused)
{
        char name[256];

        while (sqmgr_heartbeat_take()) {
                if (fetch(name, sizeof(name)))
                        run(name);
                else
                        pause_shortly();
                sqmgr_heartbeat_done();
        }
        return unused;
}

static void fork_child(void)
{
        FILE *file;

        if (fork() != 0)
                return;
        if (!(file = fopen("child", "w")) || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file) != 0)
                abort();
        for (;;)
                (void)pause();
}

int main(int argc, char **argv)
{
        pthread_t threads[16];
        size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

        if (n == 0 || n > 16 || chdir(argv[1]) < 0 || sqmgr_heartbeat_start("c\n", (unsigned)n) < 0)
                return EXIT_FAILURE;
        for (size_t i = 0; i < n; i++)
                if (pthread_create(&threads[i], NULL, work, NULL) != 0)
                        abort();
        if (argc > 3)
                fork_child();
        for (size_t i = 0; i < n; i++)
                (void)pthread_join(threads[i], NULL);
        sqmgr_heartbeat_finish();
        return EXIT_SUCCESS;
}
