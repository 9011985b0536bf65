/* SPDX-License-Identifier: MIT */
/* A SQLite file in a private folder, and an application that uses it. */
#pragma once

#include "database_driver.h"
#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

static char folder[64], path[96], url[128];

/* With each mode of the log. */
static const char *const modes[] = {"PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL"};

/* As an application does: by a connection of its own, with what its own schema may hold. */
static inline void execute(const char *sql)
{
        sqlite3 *handle;
        char *message = NULL;

        ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
        ck_assert_int_eq(sqlite3_busy_timeout(handle, 10000), SQLITE_OK);
        ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
        ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

static inline void setup(void)
{
        setup_alone();
        unit_make_folder(folder);
        snprintf(path, sizeof(path), "%s/queue.sqlite3", folder);
        snprintf(url, sizeof(url), "sqlite3:%s", path);
        execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, at DATETIME);"
                "INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', '2026-11-27 06:00:00.123456')");
}

static inline void open_within(usec_t timeout)
{
        open_url(url, timeout);
}

/* Holds a lock in a process of its own until it is killed. */
static inline pid_t hold(const char *sql)
{
        int pipe_fds[2];
        char byte;

        ck_assert_int_eq(pipe(pipe_fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
                sqlite3 *handle;

                if (sqlite3_open(path, &handle) != SQLITE_OK ||
                    sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK ||
                    write(pipe_fds[1], "x", 1) != 1)
                        _exit(1);
                (void)pause();
                _exit(0);
        }
        ck_assert_int_gt(pid, 0);
        close_fd(pipe_fds[1]);
        ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
        close_fd(pipe_fds[0]);
        return pid;
}

static inline void release(pid_t pid)
{
        unit_kill(pid);
}

static inline size_t count_files(void)
{
        DIR *directory = opendir(folder);
        size_t n = 0;

        ck_assert_ptr_nonnull(directory);
        while (readdir(directory))
                n++;
        ck_assert_int_eq(closedir(directory), 0);
        return n - 2;
}
