/* SPDX-License-Identifier: MIT */
/* A test leaves no folder behind, also where it fails, crashes or is killed: a process of its own, which no
 * signal to the test or to its group reaches, removes what was made as soon as all who could use it have
 * ended. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* To the guard: out of the way of tests that count their descriptors, or leave themselves few. */
#define GUARD_FD 190

/* The shell leaves the waiting to a process of its own, which is nobody's child by then. Ended here, our copy
 * of the test would be judged by valgrind for all that the test holds. */
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

/* Before anything else is: it is a child of nobody who counts his. Returns whether it runs. */
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
