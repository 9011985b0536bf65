/* SPDX-License-Identifier: MIT */
/* The runtime of runtime.h with a real redis-server, and a fleet 'web'. */
#pragma once

#include "runtime.h"

#include "daemon/runtime/runtime.h"
#include "redis_server.h"

/* The fixture of each test; the test itself starts the runtime. */
static inline void redis_runtime_setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
}

static inline void redis_runtime_teardown(void)
{
        server_kill(); /* runtime_end() would wait for it, as for any child */
        runtime_end();
        loop_end();
}

/* The same where the test leaves files. */
static inline void redis_runtime_teardown_all(void)
{
        redis_runtime_teardown();
        server_directory_empty();
}

/* Starts the runtime with a fleet 'web' of this command and these further lines. */
static inline void web_start_command(const char *command, const char *lines)
{
        char text[1024];

        snprintf(text, sizeof(text), "[redis]\nurl=%s\n[fleet:web]\ncommand=%s\n%s", server_url, command,
                 lines);
        runtime_start(text);
}

static inline void web_start(const char *lines)
{
        web_start_command("/bin/true", lines);
}

/* The same; the command is a script in the server's directory. Returns the worker that runs it. */
static inline struct worker *web_start_script(const char *shell, const char *script, const char *lines)
{
        char command[128];

        unit_write_file(server_directory, "script", script);
        snprintf(command, sizeof(command), "%s %s/script", shell, server_directory);
        web_start_command(command, lines);
        struct worker *worker = runtime_start_worker();
        if (!worker || !worker->handle)
                ck_abort_msg("the worker was not started");
        return worker;
}

static inline struct fleet *web(void)
{
        return world_fleet(runtime_world, "web");
}

static inline bool web_is_up(void)
{
        return web()->redis_up;
}

/* The main() of a file whose tests use these fixtures. */
#define REDIS_RUNTIME_MAIN(name, setup, teardown)                                                            \
        TEST_MAIN(name, .each = {setup, teardown},                                                           \
                  .once = {server_directory_make, server_directory_remove_all},                              \
                  .is_missing = server_is_missing)
