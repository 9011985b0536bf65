/* SPDX-License-Identifier: MIT */
/* Chooses the instance of sqmgr that a command is for. */
#include "ctl/instances.h"
#include "base/argv.h"
#include "base/fd.h"
#include "base/locate.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* More instances are not looked at. */
#define INSTANCES_MAX 256
/* How long an instance may take to accept the connection that shows that it runs. */
#define RUNS_USEC USEC_PER_SEC

struct entry {
        char *name, *socket; /* owned */
        bool own;            /* the directory belongs to the caller */
        bool runs;
};

struct list {
        struct entry entries[INSTANCES_MAX];
        size_t n;
        bool failed; /* memory was short */
};

static void add(void *userdata, const struct located *instance)
{
        struct list *list = userdata;
        struct entry *entry = &list->entries[list->n];

        if (list->n == INSTANCES_MAX)
                return;
        *entry = (struct entry){.name = strdup(instance->name),
                                .socket = strdup(instance->socket),
                                .own = instance->owner == geteuid()};
        list->failed |= !entry->name || !entry->socket;
        list->n++;
}

static void release(struct list *list)
{
        for (size_t i = 0; i < list->n; i++) {
                free(list->entries[i].name);
                free(list->entries[i].socket);
        }
        free(list);
}
DEFINE_CLEANUP(struct list *, release)

/* Returns the instances, to be released; NULL if memory is short. */
static struct list *find(void)
{
        struct list *list = calloc(1, sizeof(*list));

        if (list)
                locate_instances(SOCKET_PATH_SYSTEM, getenv("XDG_RUNTIME_DIR"), add, list);
        if (!list || !list->failed)
                return list;
        release(list);
        return NULL;
}

/* Returns the only instance that is its own or runs, as `running` says; NULL: none, or several. */
static const struct entry *only(const struct list *list, bool running)
{
        const struct entry *found = NULL;
        size_t n = 0;

        for (size_t i = 0; i < list->n; i++) {
                if (running ? !list->entries[i].runs : !list->entries[i].own)
                        continue;
                found = &list->entries[i];
                n++;
        }
        return n == 1 ? found : NULL;
}

static void look_who_runs(struct list *list)
{
        const char *reason;

        for (size_t i = 0; i < list->n; i++) {
                int fd = locate_connect(list->entries[i].socket, true, 0, RUNS_USEC, &reason);

                /* An instance that is too busy to accept runs. One that is not trusted, or has crashed and
                 * left its socket, is reported: an order must not go to another one instead. */
                list->entries[i].runs =
                        fd >= 0 || fd == -EAGAIN || fd == -EKEYREJECTED || fd == -ECONNREFUSED;
                close_fd(MAX(fd, -1));
        }
}

static const struct entry *choose(struct list *list)
{
        const struct entry *entry = only(list, false);

        if (entry || list->n == 0)
                return entry;
        if (list->n == 1)
                return &list->entries[0];
        look_who_runs(list);
        return only(list, true);
}

static int take(struct ctl *ctl, const struct entry *entry)
{
        free(ctl->socket);
        free(ctl->instance);
        ctl->socket = strdup(entry->socket);
        ctl->instance = strdup(entry->name);
        return ctl->socket && ctl->instance ? 0 : -ENOMEM;
}

/* Without a socket in the runtime directory of the unit, the name may be that of the user manager's instance.
 */
static int take_named(struct ctl *ctl, const struct list *list)
{
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->entries[i].name, ctl->instance) == 0)
                        return take(ctl, &list->entries[i]);
        return 0;
}

/* *ret_list: what was found, to be released, if the result is -EMLINK. */
static int choose_from(struct ctl *ctl, struct list **ret_list)
{
        const char *from_environment = getenv("SQMGR_SOCKET");

        if (ctl->socket && !ctl->instance)
                return 0;
        if (!ctl->socket && from_environment && from_environment[0] != '\0') {
                ctl->socket = strdup(from_environment);
                return ctl->socket ? 0 : -ENOMEM;
        }
        _cleanup_(release_pointer) struct list *list = find();
        if (!list)
                return -ENOMEM;
        if (ctl->instance)
                return take_named(ctl, list);
        const struct entry *entry = choose(list);
        if (entry)
                return take(ctl, entry);
        if (list->n == 0)
                return -ENOENT;
        *ret_list = TAKE_PTR(list);
        return -EMLINK;
}

int instances_choose(struct ctl *ctl)
{
        _cleanup_(release_pointer) struct list *list = NULL;

        return choose_from(ctl, &list);
}

static int report_several(const struct list *list)
{
        char names[512] = "";

        for (size_t i = 0; i < list->n; i++) {
                if (strlen(names) + strlen(list->entries[i].name) > sizeof(names) - sizeof("'', ...")) {
                        text_append(names, sizeof(names), ", ...");
                        break;
                }
                text_append(names, sizeof(names), "%s'%s'", i > 0 ? ", " : "", list->entries[i].name);
        }
        return output_error_as("several-instances", CTL_USAGE,
                               "there are several instances: %s. Give one by -i NAME", names);
}

/* Runs the command in a child: `logs` executes another program. Returns its exit code. */
static int run_one(struct ctl *ctl, const struct entry *entry)
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
static int run_each(struct ctl *ctl, const struct list *list)
{
        bool comment = strcmp(ctl->command->name, "metrics") == 0;
        int code = CTL_DONE;

        for (size_t i = 0; i < list->n; i++) {
                const struct entry *entry = &list->entries[i];

                if (!ctl->json)
                        printf("%s%sinstance %s\n", i > 0 ? "\n" : "", comment ? "# " : "", entry->name);
                output_instance(entry->name);
                int r = run_one(ctl, entry);
                code = code == CTL_DONE ? r : code;
        }
        output_instance(NULL);
        return code;
}

int instances_run(struct ctl *ctl)
{
        _cleanup_(release_pointer) struct list *list = NULL;
        int r = choose_from(ctl, &list);

        if (r == -ENOENT)
                return output_error(CTL_CONNECT,
                                    "no instance of sqmgr found. Start one, or give its socket by -s or "
                                    "SQMGR_SOCKET");
        if (r == -EMLINK && list)
                return ctl->command->reads && !ctl->watch && !ctl->follow ? run_each(ctl, list)
                                                                          : report_several(list);
        return r < 0 ? output_error(CTL_FAILED, "not enough memory") : ctl->command->run(ctl);
}

void instances_offer(void (*offer)(const char *name, const char *help, const char *partial),
                     const char *partial)
{
        _cleanup_(release_pointer) struct list *list = find();

        for (size_t i = 0; list && i < list->n; i++)
                if (argv_is_plain(list->entries[i].name))
                        offer(list->entries[i].name, "", partial);
}
