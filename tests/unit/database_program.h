/* SPDX-License-Identifier: MIT */
/* The client of a database and its helper program, run as sqmgr runs it. */
#pragma once

#include "daemon/runtime/database_helpers.h"
#include "database_driver.h"
#include <signal.h>

static struct children children;
static struct database_helpers helpers;

static int on_child(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                    void *userdata _unused_)
{
        for (struct child *child = children.first, *next; child; child = next) {
                next = child->next;
                (void)children_reap(&children, child->pid);
        }
        return 0;
}

static inline void begin_programs(void)
{
        sigset_t child;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        database_helpers_init(&helpers, &children, ".");
        driver_starter = &helpers.starter;
}

static inline void end_programs(void)
{
        database = database_free(database);
        database_helpers_clear(&helpers);
        ck_assert_ptr_null(children.first);
        teardown_alone();
}

static inline bool is_up(void)
{
        return database_state(database) == DATABASE_CONNECTED;
}

/* The helper that was started last is the first of the list. */
static inline pid_t helper_pid(void)
{
        ck_assert_ptr_nonnull(children.first);
        return children.first->pid;
}
