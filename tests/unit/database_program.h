/* SPDX-License-Identifier: MIT */
/* A reader program of a database, run as sqmgr runs it, with the tables of Solid Queue and one worker. */
#pragma once

#include "daemon/runtime/reader_process.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "loop.h"
#include "servers/configuration.h"
#include "tables.h"
#include "wire/quoted.h"
#include <signal.h>
#include <stdio.h>

#define PATIENCE (60 * USEC_PER_SEC)
#define IDENTITY "web-1:4711:1"

static struct children children;
static struct reader_starter_daemon starter;
static struct reader *reader;
static unsigned downs;
static struct error_report why; /* of the last state with an error */

static struct {
        unsigned n;
        enum answer_status status;
        bool found;
        uint64_t sent_usec;
        unsigned concurrency;
} answered;

static void on_state(struct reader *whose _unused_, enum reader_state state, const struct error_report *error,
                     void *userdata _unused_)
{
        downs += state == READER_STATE_DOWN;
        if (error)
                why = *error;
}

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

        ck_assert_int_ge(sd_event_new(&event), 0);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        ck_assert_int_ge(sd_event_add_signal(event, NULL, SIGCHLD, on_child, NULL), 0);
        reader_starter_init(&starter, &children, "./sqmgr-reader");
}

static inline void end_programs(void)
{
        reader = reader_free(reader);
        reader_starter_clear(&starter);
        ck_assert_ptr_null(children.first);
        sd_event_unref(event);
}

/* Makes the tables and the rows of a worker. execute: runs statements in the database. */
static inline void make_worker(const char *file, void (*execute)(const char *sql))
{
        char *sql = tables_read(file);

        execute(sql);
        free(sql);
        execute("INSERT INTO solid_queue_processes"
                " (id, kind, last_heartbeat_at, supervisor_id, pid, hostname, metadata, created_at, name)"
                " VALUES"
                " (1, 'Supervisor(async)', '2026-11-27 06:00:00.000001', NULL, 4711, 'web-1', NULL,"
                "  '2026-11-27 05:00:00', 's'),"
                " (2, 'Worker', '2026-11-27 06:00:01.000002', 1, 4711, 'web-1',"
                "  '{\"polling_interval\":0.1,\"queues\":\"*\",\"thread_pool_size\":3}',"
                "  '2026-11-27 05:00:00', 'w')");
}

static inline void start_reader(const char *url, usec_t timeout)
{
        const struct redis_settings settings = {.timeout = timeout};
        struct reader_configuration configuration;

        ck_assert_int_eq(
                reader_configuration_make_database(&settings, url, solid_queue_traits.id, &configuration), 0);
        ck_assert_int_eq(reader_new(event, &starter.starter, &configuration, on_state, NULL, &reader), 0);
}

static inline bool is_up(void)
{
        return reader_state(reader) == READER_STATE_CONNECTED;
}

static inline pid_t reader_pid(void)
{
        ck_assert_ptr_nonnull(children.first);
        return children.first->pid;
}

static void on_heartbeat(struct answer *answer, void *userdata _unused_)
{
        answered.n++;
        answered.status = answer->status;
        answered.found = answer->status == ANSWER_OK && answer->heartbeat.found;
        answered.sent_usec = answer->heartbeat.heartbeat.sent_usec;
        answered.concurrency = answer->heartbeat.heartbeat.concurrency;
}

/* Asks for the heartbeat of the worker, and waits for the answer. */
static inline void ask(void)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};
        unsigned before = answered.n;

        ck_assert_int_eq(reader_ask(reader, &query, on_heartbeat, NULL), 0);
        run_until(answered.n > before);
}
