/* SPDX-License-Identifier: MIT */
/* Chooses the instance of sqmgr that a command is for. */
#include "base/fd.h"
#include "base/locate.h"
#include "base/socket_path.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "wire/reply.h"
#include <stdio.h>
#include <sys/wait.h>

/* More instances are not looked at. */
#define INSTANCES_MAX 256
/* How long an instance may take to accept the connection that shows that it runs. */
#define RUNS_USEC USEC_PER_SEC

struct found {
        json_t *list; /* objects with name, socket, own: the directory belongs to the caller, and runs */
        bool failed;  /* memory was short */
};

static void add(void *userdata, const struct located *instance)
{
        struct found *found = userdata;

        if (json_array_size(found->list) < INSTANCES_MAX)
                found->failed |= json_array_append_new(found->list,
                                                       json_pack("{s:s, s:s, s:b}", "name", instance->name,
                                                                 "socket", instance->socket, "own",
                                                                 instance->owner == geteuid())) < 0;
}

json_t *instances_list(void)
{
        struct found found = {.list = json_array()};

        locate_instances(SOCKET_PATH_SYSTEM, getenv("XDG_RUNTIME_DIR"), add, &found);
        if (!found.failed)
                return found.list;
        json_decref(found.list);
        return NULL;
}

/* Returns the only instance with that member; NULL: none, or several. */
static json_t *only(json_t *list, const char *member)
{
        json_t *entry, *found = NULL;
        size_t n = 0;

        json_foreach(entry, list) {
                if (!reply_is_true(entry, member))
                        continue;
                found = entry;
                n++;
        }
        return n == 1 ? found : NULL;
}

static json_t *choose(json_t *list)
{
        json_t *entry = only(list, "own");
        const char *reason;

        if (entry || json_array_size(list) <= 1)
                return entry ?: json_array_get(list, 0);
        json_foreach(entry, list) {
                int fd = locate_connect(reply_string(entry, "socket"), true, 0, RUNS_USEC, &reason);

                /* An instance that is too busy to accept runs. One that is not trusted, or has crashed and
                 * left its socket, is reported: an order must not go to another one instead. */
                bool runs = fd >= 0 || fd == -EAGAIN || fd == -EKEYREJECTED || fd == -ECONNREFUSED;
                (void)json_object_set_new(entry, "runs", json_boolean(runs));
                close_fd(MAX(fd, -1));
        }
        return only(list, "runs");
}

static int take(struct ctl *ctl, const json_t *entry)
{
        free(ctl->socket);
        free(ctl->instance);
        ctl->socket = strdup(reply_string(entry, "socket"));
        ctl->instance = strdup(reply_string(entry, "name"));
        return ctl->socket && ctl->instance ? 0 : -ENOMEM;
}

/* *ret_list: what was found, a new reference, if the result is -EMLINK. */
static int choose_from(struct ctl *ctl, json_t **ret_list)
{
        const char *from_environment = getenv("SQMGR_SOCKET");
        json_t *entry;

        if (ctl->socket && !ctl->instance)
                return 0;
        if (!ctl->socket && from_environment && from_environment[0] != '\0') {
                ctl->socket = strdup(from_environment);
                return ctl->socket ? 0 : -ENOMEM;
        }
        _cleanup_json_ json_t *list = instances_list();
        if (!list)
                return -ENOMEM;
        if (ctl->instance) {
                /* Without a socket in the runtime directory of the unit, the name may be that of the user
                 * manager's instance. */
                json_foreach(entry, list)
                        if (reply_is(entry, "name", ctl->instance))
                                return take(ctl, entry);
                return 0;
        }
        entry = choose(list);
        if (entry)
                return take(ctl, entry);
        if (json_array_size(list) == 0)
                return -ENOENT;
        *ret_list = TAKE_PTR(list);
        return -EMLINK;
}

int instances_choose(struct ctl *ctl)
{
        _cleanup_json_ json_t *list = NULL;

        return choose_from(ctl, &list);
}

static int report_several(json_t *list)
{
        _cleanup_json_ json_t *names = json_array();
        json_t *entry;

        json_foreach(entry, list)
                json_array_append(names, json_object_get(entry, "name"));
        return output_error_as("several-instances", CTL_USAGE,
                               "there are several instances: %s. Give one by -i NAME", output_names(names));
}

/* Runs the command in a child: `logs` executes another program. Returns its exit code. */
static int run_one(struct ctl *ctl, const json_t *entry)
{
        int status = 0;

        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
                int r = take(ctl, entry) < 0 ? output_error(CTL_FAILED, "not enough memory")
                                             : ctl->command->run(ctl);

                _exit(fflush(stdout) != 0 && r == CTL_DONE ? CTL_FAILED : r);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return output_error(CTL_FAILED, "cannot start a process: %s", strerrordesc_np(errno));
        return WIFEXITED(status) ? WEXITSTATUS(status) : CTL_FAILED;
}

/* Returns the first exit code that is not CTL_DONE. */
static int run_each(struct ctl *ctl, json_t *list)
{
        bool comment = strcmp(ctl->command->name, "metrics") == 0;
        int code = CTL_DONE;
        json_t *entry;

        json_foreach(entry, list) {
                const char *name = reply_string(entry, "name");

                if (!ctl_has(ctl, OPTION_JSON))
                        printf("%s%sinstance %s\n", entry != json_array_get(list, 0) ? "\n" : "",
                               comment ? "# " : "", name);
                output_instance(name);
                int r = run_one(ctl, entry);
                code = code == CTL_DONE ? r : code;
        }
        output_instance(NULL);
        return code;
}

int instances_run(struct ctl *ctl)
{
        _cleanup_json_ json_t *list = NULL;
        int r = choose_from(ctl, &list);

        if (r == -ENOENT)
                return output_error(CTL_CONNECT,
                                    "no instance of sqmgr found. Start one, or give its socket by -s or "
                                    "SQMGR_SOCKET");
        if (r == -EMLINK)
                return ctl->command->reads && !ctl_has(ctl, OPTION_WATCH) && !ctl_has(ctl, OPTION_FOLLOW)
                               ? run_each(ctl, list)
                               : report_several(list);
        return r < 0 ? output_error(CTL_FAILED, "not enough memory") : ctl->command->run(ctl);
}
