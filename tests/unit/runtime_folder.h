/* SPDX-License-Identifier: MIT */
/* A runtime whose processes write to a folder of the test. */
#pragma once

#include "daemon/workers/exits.h"
#include "runtime.h"

static char dir[] = "/tmp/sqmgr-test-XXXXXX";

/* The first step of a fixture; the test or the fixture starts the runtime. */
static inline void runtime_folder_open(void)
{
        unit_make_folder(dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
}

static inline void runtime_folder_close(void)
{
        runtime_end();
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

/* A line of a shell script that writes a pid to a file for runtime_read_pid(). $d is the folder. */
#define REPORT_PID(name, pid) "echo " pid " >$d/" name ".new; mv $d/" name ".new $d/" name "\n"

/* An orphan of ours is a zombie first. */
static inline bool is_gone(pid_t pid)
{
        exits_reap(&runtime);
        return kill(pid, 0) < 0;
}
