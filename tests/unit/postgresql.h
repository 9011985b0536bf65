/* SPDX-License-Identifier: MIT */
/* A private PostgreSQL for tests, in a folder of its own, reached by a Unix socket and by an address of this
 * machine that no other test uses. One cluster is made for a test file (postgresql_make() and
 * postgresql_remove() around all tests); each test starts a server for it, and kills it. */
#pragma once

#include "unit.h"
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>

static char postgresql_folder[64], postgresql_programs[128], postgresql_address[32];
static char postgresql_pid_file[96];
static char postgresql_url[160], postgresql_tcp_url[160]; /* of the superuser, who needs no password */
static pid_t postgresql_pid;                              /* 0: no server runs */

static inline bool postgresql_is_missing(void)
{
        glob_t found = {0};
        bool missing = glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) != 0;

        if (!missing) {
                snprintf(postgresql_programs, sizeof(postgresql_programs), "%s",
                         found.gl_pathv[found.gl_pathc - 1]);
                *strrchr(postgresql_programs, '/') = '\0';
        }
        globfree(&found);
        if (missing)
                printf("skipped: postgres is missing\n");
        return missing;
}

/* In a child: PostgreSQL refuses to run as root. */
static inline void postgresql_drop_root(void)
{
        const struct passwd *nobody = geteuid() == 0 ? getpwnam("nobody") : NULL;

        if (nobody && (setgroups(0, NULL) < 0 || setgid(nobody->pw_gid) < 0 || setuid(nobody->pw_uid) < 0))
                _exit(1);
        /* A change of the user would have reset this. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_DUMPABLE, 1);
}

/* Runs a shell command in the folder as the user of the server. */
static inline void postgresql_shell(const char *command)
{
        int status;
        pid_t pid = unit_fork();

        if (pid == 0) {
                postgresql_drop_root();
                if (chdir(postgresql_folder) < 0)
                        _exit(1);
                execl("/bin/sh", "sh", "-c", command, (char *)NULL);
                _exit(1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "'%s' failed: see %s/log", command, postgresql_folder);
}

/* Marks the server's segment of shared memory for removal: the kernel removes it with the last process that
 * uses it. Nothing else would remove that of a killed server. */
static inline void postgresql_mark_memory(void)
{
        char line[128];
        int id = -1, key;

        FILE *file = fopen(postgresql_pid_file, "re");
        for (int i = 0; file && fgets(line, sizeof(line), file); i++)
                if (i == 6 && sscanf(line, "%d %d", &key, &id) == 2)
                        (void)shmctl(id, IPC_RMID, NULL);
        if (file)
                (void)fclose(file);
}

static inline void postgresql_launch(void)
{
        char program[160], data[80], address[64];

        /* A killed server leaves its file, and its memory if it was not ready yet. */
        postgresql_mark_memory();
        (void)unlink(postgresql_pid_file);
        snprintf(program, sizeof(program), "%s/postgres", postgresql_programs);
        snprintf(data, sizeof(data), "%s/data", postgresql_folder);
        snprintf(address, sizeof(address), "listen_addresses=%s", postgresql_address);
        postgresql_pid = unit_fork();
        if (postgresql_pid != 0)
                return;
        postgresql_drop_root();
        int log = chdir(postgresql_folder) < 0 ? -1 : open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
                _exit(1);
        execl(program, program, "-D", data, "-k", postgresql_folder, "-c", address, "-c", "fsync=off", "-c",
              "dynamic_shared_memory_type=mmap", "-c", "shared_buffers=1MB", "-c", "max_connections=20", "-c",
              "autovacuum=off", "-c", "restart_after_crash=off", (char *)NULL);
        _exit(1);
}

/* Starts the server. Returns once it accepts connections. Tries again while the last children of a killed
 * server hold its address. */
static inline void postgresql_start(void)
{
        unsigned tries = 0;

        postgresql_launch();
        while (PQping(postgresql_url) != PQPING_OK) {
                (void)usleep(20000);
                if (waitpid(postgresql_pid, NULL, WNOHANG) == 0)
                        continue;
                if (++tries == 100) {
                        postgresql_shell("tail -n 5 log");
                        ck_abort_msg("the server does not start");
                }
                postgresql_launch();
        }
        /* Now: a test that is killed cannot. */
        postgresql_mark_memory();
}

/* Sends a signal to the processes of the server that have connections. */
static inline void postgresql_signal_children(int signal)
{
        char path[64], list[1024] = "";

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)postgresql_pid, (int)postgresql_pid);
        FILE *file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        (void)!fgets(list, sizeof(list), file);
        (void)fclose(file);
        for (char *rest = list, *word; (word = strsep(&rest, " ")) && *word != '\0';)
                (void)kill((pid_t)strtol(word, NULL, 10), signal);
}

/* Kills the server with all its processes. */
static inline void postgresql_kill(void)
{
        if (postgresql_pid == 0)
                return;
        ck_assert_int_eq(kill(postgresql_pid, SIGSTOP), 0);
        postgresql_signal_children(SIGKILL);
        unit_kill(postgresql_pid);
        postgresql_pid = 0;
}

/* With a certificate for the name localhost, signed by itself: the file "root.crt". Connections of the role
 * "secret" need the password "pass word" over TCP. */
static inline void postgresql_make(void)
{
        char command[2048];

        unit_make_folder(postgresql_folder);
        const struct passwd *nobody = geteuid() == 0 ? getpwnam("nobody") : NULL;
        ck_assert_int_eq(chmod(postgresql_folder, 0755), 0);
        snprintf(postgresql_pid_file, sizeof(postgresql_pid_file), "%s/data/postmaster.pid",
                 postgresql_folder);
        if (nobody)
                ck_assert_int_eq(chown(postgresql_folder, nobody->pw_uid, nobody->pw_gid), 0);
        snprintf(postgresql_address, sizeof(postgresql_address), "127.%d.%d.1",
                 1 + (int)(getpid() / 250) % 250, 1 + (int)getpid() % 250);
        snprintf(postgresql_url, sizeof(postgresql_url), "postgresql://postgres@/postgres?host=%s",
                 postgresql_folder);
        snprintf(postgresql_tcp_url, sizeof(postgresql_tcp_url), "postgresql://postgres@%s/postgres",
                 postgresql_address);
        snprintf(
                command, sizeof(command),
                "exec >log 2>&1; %1$s/initdb -D data -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync "
                "--wal-segsize=1 && "
                "echo \"CREATE ROLE secret LOGIN PASSWORD 'pass word'\" | %1$s/postgres --single -D data "
                "postgres && "
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "
                "/CN=localhost -addext subjectAltName=DNS:localhost -keyout data/server.key -out root.crt && "
                "chmod 600 data/server.key && cp root.crt data/server.crt && echo 'ssl = on' "
                ">>data/postgresql.conf && printf '%2$s\\n' 'local all daemon peer' 'local all all trust' "
                "'host all secret all scram-sha-256' 'host all all all trust' >data/pg_hba.conf",
                postgresql_programs, "%s");
        postgresql_shell(command);
}

static inline void postgresql_remove(void)
{
        unit_remove_tree(postgresql_folder);
}

/* Executes statements as the superuser. Returns the first value, which the caller frees; NULL: none. */
static inline char *postgresql_execute(const char *sql)
{
        PGconn *connection = PQconnectdb(postgresql_url);
        PGresult *result = PQexec(connection, sql);
        ExecStatusType status = PQresultStatus(result);

        ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", sql,
                      PQerrorMessage(connection));
        char *value = PQntuples(result) > 0 ? strdup(PQgetvalue(result, 0, 0)) : NULL;
        PQclear(result);
        PQfinish(connection);
        return value;
}

/* Listens at port 1234 of the folder, for a test that is the server. Returns the URL, and the socket. */
static inline const char *postgresql_listen(int *ret)
{
        static char url[192], path[192];

        snprintf(path, sizeof(path), "%s/.s.PGSQL.1234", postgresql_folder);
        (void)unlink(path);
        *ret = unit_listen(path, 0);
        snprintf(url, sizeof(url), "%s&port=1234", postgresql_url);
        return url;
}
