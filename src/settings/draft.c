/* SPDX-License-Identifier: MIT */
/* Settings while they are being read: takes sections, keys and values in file order, then fills in defaults
 * and makes the checks. */
#include "settings/draft.h"
#include "base/argv.h"
#include "base/parse.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "settings/errors.h"
#include "settings/limits.h"
#include "settings/operations.h"
#include "settings/settings.h"
#include <strings.h>

static bool is_absolute(const char *path)
{
        return path && path[0] == '/';
}

/* Sets settings->orders_file: in the directory of the unit, or of the user whose sqmgr has its default
 * socket, or beside the state file. own_paths: the settings name a socket or a state file, which are not the
 * defaults then. Both paths are set in any case. Returns 0 or -ENOMEM. */
static int orders_file_find(struct settings *settings, const struct settings_surroundings *around,
                            bool own_paths)
{
        char **file = &settings->orders_file;

        settings->orders_make_folder = true;
        if (is_absolute(around->state_dir)) {
                *file = text_format("%.*s/orders", (int)strcspn(around->state_dir, ":"), around->state_dir);
        } else if (!own_paths && is_absolute(around->state_home)) {
                *file = text_format("%s/sqmgr/orders", around->state_home);
        } else if (!own_paths && is_absolute(around->home) && around->home[1] != '\0') {
                *file = text_format("%s/.local/state/sqmgr/orders", around->home);
        } else {
                settings->orders_make_folder = false;
                *file = text_format("%s.orders", settings->state_file);
        }
        return *file ? 0 : -ENOMEM;
}

/* inih truncates section names at 49 bytes; FLEET_NAME_MAX stays below that. */
#define FLEET_PREFIX "fleet:"

/* A fleet with the line of each key. The first entry of the draft holds the defaults for all fleets. */
struct draft_fleet {
        struct fleet_settings
                *settings; /* owned by the settings of the draft; the defaults, in [0], by the draft itself */
        unsigned lines[SETTINGS_KEYS_MAX];
};

struct settings_draft {
        struct settings_surroundings surroundings;
        struct settings_errors *errors, *warnings;
        struct settings *settings; /* owned; complete after settings_draft_finish() */
        unsigned lines[SETTINGS_KEYS_MAX];

        struct draft_fleet
                *fleets; /* owned; [0] is the section [fleet], then the fleets of `settings` in order */
        size_t n_fleets;

        enum { SECTION_NONE, SECTION_REFUSED, SECTION_KNOWN } section;
        enum settings_scope scope; /* of the current section */
        size_t fleet;              /* index of the current fleet if scope is SETTINGS_FLEET */
};

/* Add an error: refuse() for a line, refuse_fleet() for the line of the fleet's key. */
#define refuse(draft, line, ...) settings_errors_add((draft)->errors, line, __VA_ARGS__)
#define refuse_fleet(draft, fleet, key, format, ...)                                                         \
        refuse(draft, fleet_line(fleet, key), "fleet '%s': " format, (fleet)->settings->name, __VA_ARGS__)

/* Appends a fleet with all values unset. name is NULL for the section [fleet]. */
static int add_fleet(struct settings_draft *draft, const char *name, unsigned line)
{
        if (!ARRAY_RESIZE(draft->fleets, draft->n_fleets + 1))
                return -ENOMEM;
        struct fleet_settings *settings =
                name ? settings_add_fleet(draft->settings, name) : fleet_settings_new(NULL);
        if (!settings)
                return -ENOMEM;
        settings->line = line;
        draft->fleets[draft->n_fleets++] = (struct draft_fleet){.settings = settings};
        return 0;
}

int settings_draft_new(const struct settings_surroundings *surroundings, struct settings_errors *errors,
                       struct settings_errors *warnings, struct settings_draft **ret)
{
        _cleanup_settings_draft_ struct settings_draft *draft = calloc(1, sizeof(*draft));

        if (draft)
                draft->settings = calloc(1, sizeof(*draft->settings));
        if (!draft || !draft->settings)
                return -ENOMEM;
        draft->surroundings = *surroundings;
        draft->errors = errors;
        draft->warnings = warnings;
        settings_values_clear(false, draft->settings);
        int r = add_fleet(draft, NULL, 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(draft);
        return 0;
}

struct settings_draft *settings_draft_free(struct settings_draft *draft)
{
        if (draft) {
                settings_free(draft->settings);
                if (draft->n_fleets > 0)
                        fleet_settings_free(draft->fleets[0].settings);
                free(draft->fleets);
                free(draft);
        }
        return NULL;
}

static int fleet_section(struct settings_draft *draft, const char *name, unsigned line)
{
        if (name[strspn(name, ".")] == '\0' || name[strspn(name, FLEET_NAME_LETTERS)] != '\0') {
                refuse(draft, line,
                       "[fleet:%s]: a fleet name must consist of letters, digits, '_', '.' and '-', and not "
                       "of dots alone",
                       name);
                return 0;
        }
        if (strlen(name) > FLEET_NAME_MAX) {
                refuse(draft, line, "[fleet:%s]: a fleet name has at most %d characters; shorten the name",
                       name, FLEET_NAME_MAX);
                return 0;
        }
        draft->scope = SETTINGS_FLEET;
        draft->section = SECTION_KNOWN;
        for (draft->fleet = 1; draft->fleet < draft->n_fleets; draft->fleet++) {
                if (strcmp(draft->fleets[draft->fleet].settings->name, name) == 0)
                        return 0;
        }
        return add_fleet(draft, name, line);
}

void settings_draft_begin_file(struct settings_draft *draft)
{
        draft->section = SECTION_NONE;
}

int settings_draft_section(struct settings_draft *draft, const char *name, unsigned line)
{
        const char *near = "";

        draft->section = SECTION_REFUSED;
        if (strncasecmp(name, FLEET_PREFIX, strlen(FLEET_PREFIX)) == 0)
                return fleet_section(draft, name + strlen(FLEET_PREFIX), line);

        for (enum settings_scope scope = 0; scope < _SETTINGS_SCOPE_MAX; scope++) {
                if (strcasecmp(name, settings_scope_name(scope)) == 0) {
                        draft->section = SECTION_KNOWN;
                        draft->scope = scope;
                        draft->fleet = 0;
                        return 0;
                }
                if (edit_distance(name, settings_scope_name(scope)) <= 2)
                        near = settings_scope_name(scope);
        }
        if (*near)
                refuse(draft, line, "unknown section [%s]; did you mean [%s]?", name, near);
        else
                refuse(draft, line, "unknown section [%s]; use [sqmgr], [redis], [fleet] or [fleet:NAME]",
                       name);
        return 0;
}

void settings_draft_refuse_section(struct settings_draft *draft)
{
        draft->section = SECTION_REFUSED;
}

/* Keys of earlier versions, and what sets the same in the unit of sqmgr, which workers inherit. */
static const struct {
        const char *key, *directive;
} unit_keys[] = {
        {"user", "User"},
        {"group", "Group"},
        {"umask", "UMask"},
        {"nice", "Nice"},
        {"cpu_affinity", "CPUAffinity"},
        {"oom_score_adj", "OOMScoreAdjust"},
        {"limit_as", "LimitAS"},
        {"limit_core", "LimitCORE"},
        {"limit_fsize", "LimitFSIZE"},
        {"limit_memlock", "LimitMEMLOCK"},
        {"limit_nofile", "LimitNOFILE"},
        {"limit_nproc", "LimitNPROC"},
        {"limit_stack", "LimitSTACK"},
};

/* Reports an unknown key, with what replaces it, the section where it belongs or the likely name. */
static void unknown_key(const struct settings_draft *draft, const char *name, const char *value,
                        unsigned line)
{
        const struct settings_key *near = settings_key_near(draft->scope, name);
        const char *section = settings_scope_name(draft->scope);

        if (strcasecmp(name, "user") == 0 && draft->surroundings.user &&
            strcmp(value, draft->surroundings.user) == 0) {
                settings_errors_add(
                        draft->warnings, line,
                        "'user' is no key of sqmgr any more, and '%s' is its own user; remove the "
                        "line",
                        value);
                return;
        }
        FOREACH_ELEMENT(gone, unit_keys)
                if (strcasecmp(gone->key, name) == 0) {
                        refuse(draft, line,
                               "'%s' is no key of sqmgr any more; set %s= in the unit that runs sqmgr",
                               gone->key, gone->directive);
                        return;
                }
        for (enum settings_scope scope = 0; scope < _SETTINGS_SCOPE_MAX; scope++) {
                if (settings_key_find(scope, name)) {
                        refuse(draft, line, "unknown key '%s' in section [%s]; move the line to [%s]%s", name,
                               section, settings_scope_name(scope),
                               scope == SETTINGS_FLEET ? " or [fleet:NAME]" : "");
                        return;
                }
        }
        if (near)
                refuse(draft, line, "unknown key '%s'; did you mean '%s'?", name, near->name);
        else
                refuse(draft, line, "unknown key '%s' in section [%s]; see sqmgr.ini(5) for all keys", name,
                       section);
}

/* Sets the default, if any, for a missing or bad value. */
static int set_fallback(const struct settings_draft *draft, const struct settings_key *key, void *base)
{
        char why[SETTINGS_WHY_MAX];

        if (!key->fallback)
                return 0;
        return settings_value_parse(key, key->fallback, &draft->surroundings, base, why);
}

/* first is the line of the earlier value. */
static void given_twice(const struct settings_draft *draft, const char *name, unsigned first, unsigned line)
{
        char where[SETTINGS_PLACE_MAX];

        if (first / SETTINGS_LINES_MAX == line / SETTINGS_LINES_MAX)
                snprintf(where, sizeof(where), "on line %u", first % SETTINGS_LINES_MAX);
        else if (first < SETTINGS_LINES_MAX)
                snprintf(where, sizeof(where), "on line %u of the including file", first);
        else
                (void)settings_errors_place(draft->errors, first, "", where, sizeof(where));
        refuse(draft, line, "'%s' is set twice in this section (first %s); remove one of the lines", name,
               where);
}

int settings_draft_set(struct settings_draft *draft, const char *name, const char *value, unsigned line)
{
        char why[SETTINGS_WHY_MAX];

        if (draft->section == SECTION_REFUSED)
                return 0;
        if (draft->section == SECTION_NONE) {
                refuse(draft, line,
                       "'%s' is outside of any section; add [sqmgr], [redis] or [fleet:NAME] above the line",
                       name);
                return 0;
        }
        const struct settings_key *key = settings_key_find(draft->scope, name);
        if (!key) {
                unknown_key(draft, name, value, line);
                return 0;
        }
        struct draft_fleet *fleet = draft->scope == SETTINGS_FLEET ? &draft->fleets[draft->fleet] : NULL;
        void *base = fleet ? (void *)fleet->settings : draft->settings;
        unsigned *first = &(fleet ? fleet->lines : draft->lines)[key - settings_keys];
        if (*first > 0) {
                given_twice(draft, key->name, *first, line);
                return 0;
        }
        *first = line;

        int r = -EINVAL;
        if (*value == '\0')
                refuse(draft, line, "'%s' has no value; set one or remove the line", key->name);
        else
                r = settings_value_parse(key, value, &draft->surroundings, base, why);
        if (r == -EINVAL && *value != '\0') {
                if (key->secret || key->type == SETTINGS_ENVIRONMENT)
                        refuse(draft, line, "%s: %s", key->name, why);
                else
                        refuse(draft, line, "%s = %s: %s", key->name, value, why);
        }
        return r == -EINVAL ? set_fallback(draft, key, base) : r;
}

/* Returns the line that set the key, which may be in [fleet]; 0 if unset. */
static unsigned given_line(const struct draft_fleet *fleet, const char *name)
{
        return fleet->lines[settings_key_find(SETTINGS_FLEET, name) - settings_keys];
}

/* Returns the line of a key, or else of the fleet's section. */
static unsigned fleet_line(const struct draft_fleet *fleet, const char *name)
{
        return given_line(fleet, name) ?: fleet->settings->line;
}

/* Returns the line of a key of [sqmgr] or [redis]. No name is a key of both. */
static unsigned draft_line(const struct settings_draft *draft, const char *name)
{
        const struct settings_key *key =
                settings_key_find(SETTINGS_SQMGR, name) ?: settings_key_find(SETTINGS_REDIS, name);

        return draft->lines[key - settings_keys];
}

/* Returns true if the fleet's own section sets the key, not [fleet]. */
static bool is_own(const struct settings_draft *draft, const struct draft_fleet *fleet, const char *name)
{
        return given_line(fleet, name) != given_line(&draft->fleets[0], name);
}

/* Sets stop_timeout if the file does not. A stop_timeout inherited from [fleet] does not bound jobs. The
 * value is then the time to exit of a worker without jobs. */
static void finish_stop(const struct settings_draft *draft, struct draft_fleet *fleet)
{
        struct fleet_settings *s = fleet->settings;
        bool given = given_line(fleet, "stop_timeout") > 0;
        bool own = is_own(draft, fleet, "stop_timeout");
        usec_t preset =
                !s->traits->stop_chosen || s->preset == PRESET_NONE ? 0 : presets[s->preset].stop_usec;

        s->stop_bounded = s->traits->stop_chosen && (own || preset > 0) && s->stop_timeout != USEC_INFINITY;
        if (preset > 0 && !own)
                s->stop_timeout = preset;
        else if (!given)
                s->stop_timeout = MAX(s->stop_timeout, fleet_settings_stop_usec(s));
}

/* Takes the URL from the environment if the file gives none. */
static int finish_database(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct settings_key *key = settings_key_find(SETTINGS_FLEET, "database_url");
        struct fleet_settings *s = fleet->settings;
        const char *outer = draft->surroundings.database_url;
        char why[SETTINGS_WHY_MAX];

        if (!fleet_settings_need_database(s) || given_line(fleet, "database_url") > 0 ||
            given_line(fleet, "database_url_file") > 0)
                return 0;
        if (!outer || *outer == '\0') {
                refuse(draft, s->line,
                       "fleet '%s' has no database; set database_url or database_url_file, or DATABASE_URL "
                       "in the environment of sqmgr",
                       s->name);
                return 0;
        }
        int r = settings_value_parse(key, outer, &draft->surroundings, s, why);
        if (r == -EINVAL)
                refuse(draft, s->line,
                       "fleet '%s': DATABASE_URL in the environment of sqmgr: %s; fix it or set database_url",
                       s->name, why);
        return r == -EINVAL ? 0 : r;
}

/* Returns true if the environment of the fleet names a broker that is no Redis. */
static bool has_other_broker(const struct fleet_settings *s)
{
        static const char *const schemes[] = {"redis", "sentinel:", "unix:"};
        const char *name = s->traits->url_variable ?: "REDIS_URL", *url = NULL;

        for (char *const *list = s->environment_list; list && *list; list++)
                if (strncmp(*list, name, strlen(name)) == 0 && (*list)[strlen(name)] == '=')
                        url = *list + strlen(name) + 1;
        for (size_t i = 0; i < ELEMENTSOF(schemes) && url; i++)
                if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
                        return false;
        return url;
}

/* A default, or REDIS_URL of sqmgr itself, is no evidence that the broker is that Redis. */
static void finish_broker(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        struct fleet_settings *s = fleet->settings;
        bool of_all = draft_line(draft, "url") > 0 || draft_line(draft, "sentinels") > 0;

        s->broker_named = given_line(fleet, "redis_url") > 0 || (of_all && !has_other_broker(s));
        if (!fleet_settings_can_scale(s))
                s->active_process_max = 0;
}

/* Fills in unset values from [fleet] or from the defaults. */
static int inherit_fleet(const struct settings_draft *draft, struct draft_fleet *fleet)
{
        const struct draft_fleet *defaults = &draft->fleets[0];
        int r = 0;

        for (size_t i = 0; i < settings_keys_n && r == 0; i++) {
                const struct settings_key *key = &settings_keys[i];
                if (key->scope != SETTINGS_FLEET || fleet->lines[i] > 0)
                        continue;
                fleet->lines[i] = defaults->lines[i];
                if (fleet->lines[i] > 0)
                        r = settings_value_copy(key, defaults->settings, fleet->settings);
                else
                        r = set_fallback(draft, key, fleet->settings);
        }
        /* Inherited values that do not apply to this framework are meant for other fleets, and must not
         * outdate workers here. */
        if (!fleet->settings->traits->can_preload)
                fleet->settings->preload = 0;
        if (!fleet->settings->traits->counts_outcomes)
                fleet->settings->rollout_trial = 0;
        if (!fleet->settings->traits->resumes_jobs) {
                free(fleet->settings->interruptible);
                fleet->settings->interruptible = NULL;
        }
        if (!fleet_settings_need_server(fleet->settings))
                fleet->settings->namespaced = 0;
        if (r == 0)
                r = finish_database(draft, fleet);
        if (r == 0)
                r = fleet_settings_derive(fleet->settings);
        if (r < 0)
                return r;
        finish_broker(draft, fleet);
        finish_stop(draft, fleet);
        return 0;
}

/* Refuses keys that have no effect with this framework. Keys inherited from [fleet] are meant for other
 * fleets. */
static void check_framework(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;
        bool scales = fleet_settings_can_scale(s);
        const char *queues = s->traits->reports_queues
                                     ? "a Redis as the broker, named by redis_url or by url in [redis]"
                                     : "queues that show how long jobs wait";
        const struct {
                const char *name;
                bool known;
                const char *by;
        } keys[] = {
                {"heartbeat", s->traits->heartbeat_chosen, "framework 'native'"},
                {"preset", s->traits->stop_chosen, "framework 'plain'"},
                {"stop_signal", s->traits->stop_chosen, "framework 'plain'"},
                {"preload", s->traits->can_preload, "framework 'sidekiq', 'solid_queue' or 'good_job'"},
                {"rollout_trial", s->traits->counts_outcomes,
                 "a framework whose workers report failed jobs: 'sidekiq', 'celery', 'bullmq', 'rq', "
                 "'resque' or 'native'"},
                {"active_process_max", scales, queues},
                {"latency_target", scales, queues},
                {"scale_down_after", scales, queues},
                {"redis_url", fleet_settings_need_redis(s) || fleet_settings_have_broker(s),
                 "heartbeats or queues in Redis"},
                {"database_url", fleet_settings_need_database(s), "heartbeats in a database"},
                {"database_url_file", fleet_settings_need_database(s), "heartbeats in a database"},
                {"namespaced", fleet_settings_need_server(s), "heartbeats in Redis or a database"},
                {"hang_after", fleet_settings_write_heartbeats(s), "workers that send heartbeats"},
                {"hang_action", fleet_settings_write_heartbeats(s), "workers that send heartbeats"},
                {"rescue_jobs", s->traits->can_rescue, "workers whose jobs can be re-enqueued"},
                {"interruptible", s->traits->resumes_jobs, "framework 'sidekiq'"},
                {"job_warn_after", fleet_settings_list_jobs(s), "workers that list their running jobs"},
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (!keys[i].known && is_own(draft, fleet, keys[i].name))
                        refuse_fleet(draft, fleet, keys[i].name,
                                     "'%s' requires %s (this fleet: framework '%s'); remove the line",
                                     keys[i].name, keys[i].by, s->traits->name);
}

/* A preset that a framework has superseded still works. */
static void check_preset(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        static const char *const notes[_PRESET_MAX] = {
                [PRESET_CELERY] = "preset = celery: superseded; replace it and 'framework = plain' by "
                                  "'framework = celery'",
                [PRESET_GOOD_JOB] =
                        "preset = good_job: superseded; replace it and 'framework = plain' by "
                        "'framework = good_job' with database_url, or remove the line: TERM is the "
                        "default",
                [PRESET_SOLID_QUEUE] =
                        "preset = solid_queue: superseded for 'bin/jobs --mode async'; replace it "
                        "and 'framework = plain' by 'framework = solid_queue' with database_url",
        };
        int preset = fleet->settings->preset;

        if (preset != PRESET_NONE && notes[preset] && is_own(draft, fleet, "preset"))
                settings_errors_add(draft->warnings, given_line(fleet, "preset"), "%s", notes[preset]);
}

static void check_command(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;
        char text[COMMAND_FLAW_MAX];

        for (const struct command_flaw *flaw = s->traits->command_flaws; flaw && flaw->text; flaw++)
                if (s->argv && command_has_flaw(s, flaw))
                        settings_errors_add(draft->warnings, fleet_line(fleet, "command"),
                                            "fleet '%s': %s. %s", s->name, command_flaw_text(flaw, text),
                                            flaw->remedy);
}

static void check_database(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        unsigned file = given_line(fleet, "database_url_file"), url = given_line(fleet, "database_url");

        if (!fleet_settings_need_database(fleet->settings))
                return;
        if (file > 0 && url > 0)
                refuse(draft, MAX(file, url),
                       "fleet '%s': database_url and database_url_file are both set; remove one of them",
                       fleet->settings->name);
        if (!fleet_settings_database_fits(fleet->settings))
                refuse_fleet(draft, fleet, "database_url", "framework '%s' requires postgresql://",
                             fleet->settings->traits->name);
}

static void check_counts(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;
        unsigned most = MAX(s->active_process_count, s->active_process_max);
        const char *name = most > s->active_process_count ? "active_process_max" : "active_process_count";

        if (s->max_processes == 0)
                return;
        if (s->restart_surge.value == 0 && s->max_processes < most)
                refuse_fleet(draft, fleet, "max_processes",
                             "max_processes = %u is below %s = %u; raise max_processes", s->max_processes,
                             name, most);
        if (s->restart_surge.value > 0 && s->max_processes <= most)
                refuse_fleet(draft, fleet, "max_processes",
                             "max_processes = %u must exceed %s = %u: a replacement runs beside the old "
                             "worker; raise max_processes or set restart_surge = 0",
                             s->max_processes, name, most);
}

/* Checks the keys of autoscaling. */
static void check_scaling(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;

        if (s->active_process_max == 0)
                return;
        if (s->active_process_count == 0 && !s->traits->shows_due_jobs)
                refuse_fleet(
                        draft, fleet, "active_process_max",
                        "active_process_max = %u requires a minimum, but active_process_count = 0: without "
                        "a worker of %s, jobs that fall due cannot be seen; set active_process_count to 1 or "
                        "more, or remove active_process_max",
                        s->active_process_max, s->traits->title);
        else if (s->active_process_max < s->active_process_count)
                refuse_fleet(draft, fleet, "active_process_max",
                             "active_process_max = %u is below the minimum, active_process_count = %u; raise "
                             "active_process_max",
                             s->active_process_max, s->active_process_count);
        if (!limits_any(s->latency_target, LIMITS_DURATION))
                refuse_fleet(draft, fleet, "latency_target",
                             "latency_target = %s excludes every queue from autoscaling; set a duration "
                             "(30s) or remove active_process_max",
                             s->latency_target);
}

static void check_namespaced(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;

        if (s->namespaced && s->preload)
                refuse_fleet(draft, fleet, "namespaced", "%s",
                             "namespaced = yes excludes preload = yes: a template in namespaces of its own "
                             "cannot fork workers for sqmgr; remove one of the lines");
        if (s->namespaced && !s->traits->host_variable)
                settings_errors_add(draft->warnings, fleet_line(fleet, "namespaced"),
                                    "fleet '%s': namespaced = yes: sqmgr does not read the host names of UTS "
                                    "namespaces; workers of %s must keep the host name of this machine",
                                    s->name, s->traits->title);
}

static void check_pairs(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;
        usec_t stop = fleet_settings_stop_usec(s);

        if (s->memory_limit > 0 && s->memory_limit < s->memory_threshold)
                refuse_fleet(draft, fleet, "memory_limit",
                             "memory_limit = %s is below memory_threshold = %s; raise memory_limit",
                             FORMAT_SIZE_EXACT(s->memory_limit), FORMAT_SIZE_EXACT(s->memory_threshold));
        if (s->stop_timeout < stop)
                refuse_fleet(draft, fleet, "stop_timeout",
                             "stop_timeout = %s is too short: workers would be killed while %s saves running "
                             "jobs; set at least %s",
                             FORMAT_DURATION_EXACT(s->stop_timeout), s->traits->name,
                             FORMAT_DURATION_EXACT(stop));
}

static void check_fleet(const struct settings_draft *draft, const struct draft_fleet *fleet)
{
        const struct fleet_settings *s = fleet->settings;

        if (given_line(fleet, "command") == 0)
                refuse(draft, s->line,
                       "fleet '%s' has no command; add 'command = ...' to start one worker in the "
                       "foreground, without a shell",
                       s->name);
        if (s->environment_file && s->environment_file[0] != '/' && !s->directory)
                refuse_fleet(draft, fleet, "environment_file",
                             "environment_file = %s is relative, but 'directory' is not set; write an "
                             "absolute path or set 'directory'",
                             s->environment_file);
        check_framework(draft, fleet);
        check_preset(draft, fleet);
        check_command(draft, fleet);
        check_database(draft, fleet);
        check_counts(draft, fleet);
        check_scaling(draft, fleet);
        check_namespaced(draft, fleet);
        check_pairs(draft, fleet);
}

/* Sets a missing url from the environment, or else the default. */
static int finish_url(const struct settings_draft *draft)
{
        const struct settings_key *key = settings_key_find(SETTINGS_REDIS, "url");
        const char *outer = draft->surroundings.redis_url;
        struct redis_settings *redis = &draft->settings->redis;
        char why[SETTINGS_WHY_MAX];

        if (redis->url || !outer || *outer == '\0')
                return redis->url ? 0 : set_fallback(draft, key, draft->settings);
        int r = settings_value_parse(key, outer, &draft->surroundings, draft->settings, why);
        if (r != -EINVAL)
                return r;
        refuse(draft, 0, "REDIS_URL in the environment: %s; fix REDIS_URL or set url in section [redis]",
               why);
        return set_fallback(draft, key, draft->settings);
}

static void check_redis(const struct settings_draft *draft)
{
        const struct redis_settings *redis = &draft->settings->redis;
        unsigned list = draft_line(draft, "sentinels"), master = draft_line(draft, "master_name");
        unsigned list_password = draft_line(draft, "sentinel_password");
        unsigned cert = draft_line(draft, "tls_cert_file"), key = draft_line(draft, "tls_key_file");
        unsigned file = draft_line(draft, "password_file"), password = draft_line(draft, "password");
        /* A rejected value has its own error already. */
        bool any_tls = redis->tls_cert_file || redis->tls_key_file;
        const struct {
                bool is_wrong;
                unsigned line;
                const char *why;
        } checks[] = {
                {file > 0 && password > 0, MAX(file, password),
                 "password and password_file are both set; remove one of them"},
                {redis->username && file == 0 && password == 0, draft_line(draft, "username"),
                 "username is set without a password; add password or password_file"},
                {list > 0 && master == 0, list,
                 "sentinels is set without master_name; add the master's name as Sentinel knows it"},
                {list == 0 && master > 0, master,
                 "master_name is set without sentinels; add sentinels or remove master_name"},
                {list == 0 && list_password > 0, list_password,
                 "sentinel_password is set without sentinels; add sentinels or remove sentinel_password"},
                {list > 0 && strncmp(redis->url, "unix:", strlen("unix:")) == 0, list,
                 "sentinels requires a server reached over the network, but url is unix://; write redis:// "
                 "or rediss://"},
                {any_tls && cert > 0 && key == 0, cert,
                 "tls_cert_file is set without tls_key_file; add the key of the certificate"},
                {any_tls && cert == 0 && key > 0, key,
                 "tls_key_file is set without tls_cert_file; add the certificate of the key"},
        };

        for (size_t i = 0; i < ELEMENTSOF(checks); i++)
                if (checks[i].is_wrong)
                        refuse(draft, checks[i].line, "%s", checks[i].why);
}

static int finish_paths(const struct settings_draft *draft)
{
        struct settings *s = draft->settings;
        const struct settings_surroundings *around = &draft->surroundings;
        unsigned line = draft_line(draft, "socket");
        bool own_paths = line != 0 || s->state_file;

        if (!s->socket && line == 0) {
                if (socket_path_default(around->service_dir, around->runtime_dir, around->user, &s->socket) <
                    0)
                        return -ENOMEM;
                if (!s->socket)
                        refuse(draft, 0,
                               "no path for the socket: neither socket in [sqmgr] nor XDG_RUNTIME_DIR is "
                               "set; set one of them");
        }
        if (!s->socket)
                return 0;
        if (strlen(s->socket) > SOCKET_PATH_MAX)
                refuse(draft, line, "socket = %s: a socket path has at most %d bytes; shorten the path",
                       s->socket, SOCKET_PATH_MAX);
        if (!s->state_file)
                s->state_file =
                        text_format("%.*s/state", (int)(strrchr(s->socket, '/') - s->socket), s->socket);
        if (!s->state_file)
                return -ENOMEM;
        int r = orders_file_find(s, around, own_paths);
        /* Both have their locks at PATH.lock: see lock_take(). */
        if (strcmp(s->state_file, s->socket) == 0)
                refuse(draft, draft_line(draft, "state_file"),
                       "state_file = %s is the socket of sqmgr; set another path", s->state_file);
        return r;
}

static int finish_fleets(struct settings_draft *draft)
{
        for (size_t i = 1; i < draft->n_fleets; i++) {
                int r = inherit_fleet(draft, &draft->fleets[i]);
                if (r < 0)
                        return r;
                check_fleet(draft, &draft->fleets[i]);
        }
        if (draft->n_fleets == 1)
                refuse(draft, 0, "no fleet is configured; add a section [fleet:NAME] with a command");
        return 0;
}

int settings_draft_finish(struct settings_draft *draft)
{
        int r = 0;

        for (size_t i = 0; i < settings_keys_n && r == 0; i++) {
                const struct settings_key *key = &settings_keys[i];
                /* finish_url() handles the url, which has a second default. */
                if (key->scope != SETTINGS_FLEET && key->type != SETTINGS_URL && draft->lines[i] == 0)
                        r = set_fallback(draft, key, draft->settings);
        }
        if (r == 0)
                r = finish_url(draft);
        if (r == 0)
                check_redis(draft);
        if (r == 0)
                r = finish_paths(draft);
        return r == 0 ? finish_fleets(draft) : r;
}

struct settings *settings_draft_settings(const struct settings_draft *draft)
{
        return draft->settings;
}

unsigned settings_draft_line(const struct settings_draft *draft, const struct fleet_settings *fleet,
                             const char *name)
{
        if (!fleet)
                return draft_line(draft, name);
        for (size_t i = 1; i < draft->n_fleets; i++) {
                if (draft->fleets[i].settings == fleet)
                        return fleet_line(&draft->fleets[i], name);
        }
        return 0;
}

struct settings *settings_draft_take(struct settings_draft *draft)
{
        return TAKE_PTR(draft->settings);
}
