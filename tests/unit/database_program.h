/* SPDX-License-Identifier: MIT */
/* The helper programs of databases, run on the loop of the test as sqmgr runs them. */
#pragma once

#include "daemon/runtime/database_helpers.h"
#include "loop.h"

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
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        database_helpers_init(&helpers, &children, ".");
}

/* Once no database is left. */
static inline void end_programs(void)
{
        database_helpers_clear(&helpers);
        ck_assert_ptr_null(children.first);
        event = sd_event_unref(event);
}

/* The helper that was started last is the first of the list. */
static inline pid_t helper_pid(void)
{
        ck_assert_ptr_nonnull(children.first);
        return children.first->pid;
}
