/* SPDX-License-Identifier: MIT */
/* The workers of this host that its framework lists; see the header. */
#include "daemon/takeover/roster.h"
#include "base/fd.h"
#include "continuity/adoption.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/runtime/runtime.h"
#include "daemon/workers/release.h"
#include "io/log.h"
#include "model/birth.h"
#include "model/fleet.h"
#include "model/world.h"
#include "privileged/proc_inspect.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of different directories compared with one fleet's: one for each release with running workers. */
#define PLACES_MAX 16

struct entry {
        pid_t pid;
        uint64_t born_usec;
};

/* A directory of a process. same: the fleet's directory leads there; valid once known. */
struct place {
        char *path;
        bool known, same;
};

struct fleet_roster {
        struct roster *roster;
        struct fleet *fleet;
        struct reader *asked; /* NULL: no query is pending */
        bool read;
        bool current;    /* read before the current search began */
        bool unresolved; /* a process of the current search waits for the comparison of its directory */
        struct entry *entries;
        size_t n_entries, allocated;
        struct place places[PLACES_MAX];
        size_t n_places;
        struct release_check *check; /* comparison of the last place; NULL: none in progress */
};

struct roster {
        struct runtime *runtime;
        struct adoption *adoption;
        void (*news)(void *userdata);
        void *userdata;
        struct fleet_roster *fleets;
        size_t n_fleets;
        struct fleet **listed; /* room for all fleets */
};

static const struct framework *framework_of_fleet(const struct fleet *fleet)
{
        return framework_of(fleet->settings->traits);
}

/* Returns 0 or -ENOMEM. */
static int take_roster(struct fleet_roster *list, const struct answer_roster *roster)
{
        const struct fleet *fleet = list->fleet;

        list->n_entries = 0;
        for (size_t i = 0; i < roster->n; i++) {
                const struct answer_worker *worker = &roster->list[i];
                const struct field queues = QUERY_TEXT(worker->queues);

                if (!framework_of_fleet(fleet)->command_serves(fleet->settings->argv, &queues))
                        continue;
                if (!ARRAY_RESERVE(list->entries, list->n_entries, list->allocated))
                        return -ENOMEM;
                list->entries[list->n_entries++] = (struct entry){worker->pid, worker->born_usec};
        }
        return 0;
}

static void on_roster(struct answer *answer, void *userdata)
{
        struct fleet_roster *list = userdata;

        list->asked = NULL;
        if (answer->status == ANSWER_LOST || take_roster(list, &answer->roster) < 0)
                return;
        /* A refused list counts as read: the next search could not read it either. */
        list->read = true;
        if (answer->status != ANSWER_OK)
                log_warning("fleet '%s': cannot read the worker list in Redis; workers of an earlier sqmgr "
                            "are not searched for there",
                            list->fleet->settings->name);
        list->roster->news(list->roster->userdata);
}

static void ask(struct fleet_roster *list)
{
        const struct field texts[] = {QUERY_TEXT(links_host_name(&list->roster->runtime->links))};
        const struct query query = {.kind = QUERY_ROSTER, .texts = texts, .n_texts = 1};
        struct reader *reader = list->fleet->link ? list->fleet->link->reader : NULL;

        if (!list->asked && !list->read && reader && reader_ask(reader, &query, on_roster, list) == 0)
                list->asked = reader;
}

static void on_compared(const struct error_report *error, void *userdata)
{
        struct fleet_roster *list = userdata;
        struct place *place = &list->places[list->n_places - 1];

        list->check = NULL;
        place->known = true;
        place->same = !error;
        list->roster->news(list->roster->userdata);
}

/* Starts to compare where the fleet's directory leads with path. A child resolves the directory as the
 * fleet's user, who may have it on a file server that hangs. */
static void compare(struct fleet_roster *list, const char *path)
{
        struct place *place = &list->places[list->n_places];

        if (list->check)
                return;
        *place = (struct place){.path = strdup(path)};
        if (!place->path)
                return;
        list->n_places++;
        if (release_check_begin(list->roster->runtime, list->fleet, place->path, on_compared, list,
                                &list->check) < 0)
                place->known = true;
}

/* Returns true if path is known to be the directory of the fleet's workers; otherwise may start a
 * comparison. */
static bool is_directory(struct fleet_roster *list, const char *path)
{
        const char *directory = list->fleet->settings->directory;
        char own[PATH_MAX];

        if (!directory)
                return getcwd(own, sizeof(own)) && strcmp(own, path) == 0;
        if (strcmp(directory, path) == 0)
                return true;
        for (size_t i = 0; i < list->n_places; i++)
                if (strcmp(list->places[i].path, path) == 0) {
                        list->unresolved |= !list->places[i].known;
                        return list->places[i].same;
                }
        if (list->n_places < PLACES_MAX) {
                list->unresolved = true;
                compare(list, path);
        }
        return false;
}

/* Returns true if the parent is init or an ancestor of ours: orphans of an earlier sqmgr have such a
 * parent. */
static bool is_orphan(const struct proc_place *place)
{
        _cleanup_proc_ struct proc *parent = NULL;

        return place->parent == 1 ||
               (proc_open(place->parent, &parent) >= 0 &&
                proc_has_ancestor(getpid(), place->parent, proc_start_time(parent)) > 0);
}

/* True if one of these control groups is a service. text: as read by proc_cgroup(). */
static bool names_service(const char *text)
{
        static const char suffix[] = ".service";

        for (const char *at = text; (at = strstr(at, suffix)); at += strlen(suffix))
                if (at[strlen(suffix)] == '\n' || at[strlen(suffix)] == '\0')
                        return true;
        return false;
}

/* True if the process is, or may be, part of a service that sqmgr is not part of. */
static bool has_own_service(const struct proc *proc)
{
        _cleanup_proc_ struct proc *self = NULL;
        char groups[4096], own[4096];

        if (proc_cgroup(proc, groups, sizeof(groups)) < 0 || proc_open(getpid(), &self) < 0 ||
            proc_cgroup(self, own, sizeof(own)) < 0)
                return true;
        return strcmp(groups, own) != 0 && names_service(groups);
}

static const struct entry *find_entry(const struct fleet_roster *list, pid_t pid)
{
        for (size_t i = 0; list->current && i < list->n_entries; i++)
                if (list->entries[i].pid == pid)
                        return &list->entries[i];
        return NULL;
}

/* Checks that the process itself was registered, and not an earlier process with its pid. Returns 1, 0 or
 * -errno. */
static int is_born(const struct fleet_roster *list, const struct proc *proc, uid_t user)
{
        const struct traits *traits = list->fleet->settings->traits;
        struct birth birth;

        int r = proc_evidence_read_birth(list->roster->runtime->proc_facts, proc, user, framework_of(traits),
                                         &birth);
        if (r < 0)
                return is_shortage(r) || r == -EINPROGRESS ? r : 0;
        for (size_t i = 0; i < list->n_entries; i++) {
                birth.born_usec = list->entries[i].born_usec;
                if (list->entries[i].pid == proc_pid(proc) &&
                    birth_is_own(&birth, list->fleet->world, traits->stale_usec))
                        return 1;
        }
        return 0;
}

/* Checks that the title shows no queues that the fleet's command does not serve. Returns 1, 0 or -errno. */
static int has_queues_of(const struct fleet_roster *list, const struct proc *proc, uid_t user)
{
        const struct framework *framework = framework_of_fleet(list->fleet);
        char title[4096];
        struct field queues;

        int r = proc_facts_title(list->roster->runtime->proc_facts, proc, user, title, sizeof(title));
        if (r < 0)
                return is_shortage(r) || r == -EINPROGRESS ? r : 0;
        return !framework->title_queues(title, &queues) ||
               framework->command_serves(list->fleet->settings->argv, &queues);
}

bool roster_lists(const struct roster *roster, pid_t pid)
{
        for (size_t i = 0; roster && i < roster->n_fleets; i++)
                if (find_entry(&roster->fleets[i], pid))
                        return true;
        return false;
}

int roster_see(struct roster *roster, const struct proc *proc, const struct proc_place *place,
               struct sighting *sighting)
{
        char directory[PATH_MAX];
        int r = 0;

        if (!is_orphan(place) || has_own_service(proc) ||
            proc_directory(proc, directory, sizeof(directory)) < 0)
                return 0;
        sighting->listed = roster->listed;
        for (size_t i = 0; i < roster->n_fleets && r >= 0; i++) {
                struct fleet_roster *list = &roster->fleets[i];

                if (!find_entry(list, sighting->pid) || list->fleet->settings->traits != sighting->booted_as)
                        continue;
                r = has_queues_of(list, proc, sighting->uid);
                if (r > 0)
                        r = is_born(list, proc, sighting->uid);
                if (r > 0 && is_directory(list, directory))
                        roster->listed[sighting->n_listed++] = list->fleet;
        }
        return MIN(r, 0);
}

void roster_begin(struct roster *roster)
{
        for (size_t i = 0; roster && i < roster->n_fleets; i++) {
                roster->fleets[i].current = roster->fleets[i].read;
                roster->fleets[i].unresolved = false;
        }
}

bool roster_end(struct roster *roster)
{
        bool awaited = false;

        for (size_t i = 0; roster && i < roster->n_fleets; i++) {
                struct fleet_roster *list = &roster->fleets[i];

                bool sought = adoption_seeks_listed(roster->adoption, list->fleet);
                bool waits = sought && (!list->current || list->unresolved);

                adoption_await_list(roster->adoption, list->fleet, waits);
                awaited |= waits;
                if (waits)
                        ask(list);
        }
        return awaited;
}

struct roster *roster_free(struct roster *roster)
{
        if (!roster)
                return NULL;
        for (size_t i = 0; i < roster->n_fleets; i++) {
                struct fleet_roster *list = &roster->fleets[i];

                if (list->asked)
                        reader_forget(list->asked, list);
                release_check_cancel(list->check);
                for (size_t j = 0; j < list->n_places; j++)
                        free(list->places[j].path);
                free(list->entries);
        }
        free(roster->fleets);
        free(roster->listed);
        free(roster);
        return NULL;
}

static void roster_free_pointer(struct roster **roster)
{
        roster_free(*roster);
}

int roster_new(struct runtime *runtime, struct adoption *adoption, void (*news)(void *userdata),
               void *userdata, struct roster **ret)
{
        const struct world *world = runtime->world;
        _cleanup_(roster_free_pointer) struct roster *roster = calloc(1, sizeof(*roster));

        if (!roster)
                return -ENOMEM;
        *roster = (struct roster){
                .runtime = runtime,
                .adoption = adoption,
                .news = news,
                .userdata = userdata,
                .fleets = calloc(world->n_fleets + 1, sizeof(*roster->fleets)),
                .listed = calloc(world->n_fleets + 1, sizeof(struct fleet *)),
        };
        if (!roster->fleets || !roster->listed)
                return -ENOMEM;
        WORLD_FOREACH_FLEET(world, fleet) {
                if (framework_of_fleet(fleet)->title_queues && fleet_settings_need_redis(fleet->settings))
                        roster->fleets[roster->n_fleets++] =
                                (struct fleet_roster){.roster = roster, .fleet = fleet};
        }
        *ret = TAKE_PTR(roster);
        return 0;
}
