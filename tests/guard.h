/* SPDX-License-Identifier: MIT */
/* A test leaves no folder behind, even when it fails, crashes or is killed. A separate guard process removes
 * the folders once all processes that could use them have ended. No signal to the test or its process group
 * reaches the guard. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The descriptor to the guard. The number is high because some tests count their descriptors, or limit them.
 */
#define GUARD_FD 190

/* Executes a shell, which waits in a process in the background: an orphan, and no child of the test. A plain
 * exit would not do: valgrind would report all memory of the test as leaked by this copy. */
static inline void guard_run(int input)
{
        static const char script[] =
                "exec 3<&0; { trap '' HUP INT TERM; while read -r folder; do set -- \"$@\" \"$folder\"; "
                "done; rm -rf -- \"$@\"; } <&3 3<&- &";
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)setsid();
        if (null < 0 || dup2(input, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
                _exit(1);
        for (int fd = 3; fd <= GUARD_FD; fd++)
                (void)close(fd);
        execl("/bin/sh", "sh", "-c", script, "sh", (char *)NULL);
        _exit(1);
}

/* Starts the guard, before any other process. The guard is no child of the test, because some tests count
 * their children. Returns true if the guard runs. */
static inline bool guard_start(void)
{
        int ends[2], status = 0;

        if (fcntl(GUARD_FD, F_GETFD) >= 0)
                return true;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return false;
        pid_t pid = fork();
        if (pid == 0)
                guard_run(ends[0]);
        bool runs = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
                    dup3(ends[1], GUARD_FD, O_CLOEXEC) >= 0;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return runs;
}

/* As mkdtemp(). */
static inline char *guard_mkdtemp(char *template)
{
        char line[256];
        char *folder = mkdtemp(template);

        if (!folder)
                return NULL;
        int length = snprintf(line, sizeof(line), "%s\n", folder);
        return length < (int)sizeof(line) && write(GUARD_FD, line, (size_t)length) == length ? folder : NULL;
}

/* Nobody makes one that it does not know of. */
#define mkdtemp(template) guard_mkdtemp(template)
