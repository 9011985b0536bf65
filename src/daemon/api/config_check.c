/* SPDX-License-Identifier: MIT */
/* Checks whether the next start would refuse the config file; see the header. */
#include "daemon/api/config_check.h"
#include "io/clock.h"
#include "io/program.h"
#include "io/signal.h"
#include <sys/wait.h>
#include <sysexits.h>

/* Judge an unchanged file again after this time: included files, keys and users may have changed. */
#define AGAIN_USEC (10 * USEC_PER_MIN)
/* Time limit of the child: the file may be on a disk that does not answer. */
#define PATIENCE_USEC (20 * USEC_PER_SEC)

/* Returns true if the file is another one than at the last call. A missing file has size -1. */
static bool observe_file(struct config_check *check)
{
        struct stat st = {.st_size = -1};

        (void)stat(check->config_path, &st);
        bool same = st.st_ino == check->inode && st.st_size == check->size &&
                    st.st_mtim.tv_sec == check->mtime.tv_sec && st.st_mtim.tv_nsec == check->mtime.tv_nsec;
        check->inode = st.st_ino;
        check->size = st.st_size;
        check->mtime = st.st_mtim;
        return !same;
}

void config_check_end(struct config_check *check)
{
        children_kill(&check->runtime->children, &check->child);
}

void config_check_accept(struct config_check *check, usec_t now)
{
        /* A child may have read the file before its last change. */
        config_check_end(check);
        (void)observe_file(check);
        check->judged_at = now;
        check->refused = false;
}

void config_check_doubt(struct config_check *check)
{
        check->size = -2;
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct config_check *check = CHILD_OWNER(child, struct config_check);
        bool refused = info->si_code == CLD_EXITED && info->si_status == EX_CONFIG;
        bool accepted = info->si_code == CLD_EXITED && info->si_status == 0;

        /* Keep the last result if the child was killed or could not be executed. */
        if (!refused && !accepted)
                return;
        if (refused && !check->refused)
                check->refused_at = clock_now(CLOCK_MONOTONIC);
        check->refused = refused;
}

static void start(struct config_check *check, usec_t now)
{
        const struct program_check question = {
                .program = check->program,
                .config_path = check->config_path,
                .nofile = check->runtime->nofile,
        };
        struct program_checking checking;

        if (program_check_start(&question, &checking) < 0) {
                config_check_doubt(check);
                return;
        }
        check->child = (struct child){.pid = checking.pid, .exited = on_exited};
        check->judged_at = now;
        children_add(&check->runtime->children, &check->child);
}

const char *config_check_refused(struct config_check *check, usec_t now)
{
        if (check->child.pid > 0 && now >= usec_add(check->judged_at, PATIENCE_USEC))
                (void)signal_child(check->child.pid, SIGKILL);
        else if (check->child.pid <= 0 &&
                 (observe_file(check) || now >= usec_add(check->judged_at, AGAIN_USEC)))
                start(check, now);
        return check->refused ? check->config_path : NULL;
}
