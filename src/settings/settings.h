/* SPDX-License-Identifier: MIT */
/* The contents of the ini file. settings/value.h has the table of keys, settings/operations.h the operations
 * on whole settings. */
#pragma once

#include "settings/traits.h"
#include <string.h>
#include <sys/types.h>

enum hang_action { HANG_KEEP, HANG_KILL, _HANG_ACTION_MAX };

enum rescue_jobs { RESCUE_JOBS_OFF, RESCUE_JOBS_REPORT, RESCUE_JOBS_REQUEUE, _RESCUE_JOBS_MAX };

enum trial_default { TRIAL_DEFAULT_PASS, TRIAL_DEFAULT_HALT, _TRIAL_DEFAULT_MAX };

enum on_stop { ON_STOP_DRAIN, ON_STOP_LEAVE, _ON_STOP_MAX };

/* Well-known programs for fleets of framework plain: `preset = NAME`. */
enum {
        PRESET_NONE = -1,
        PRESET_CELERY,
        PRESET_HUEY,
        PRESET_GOOD_JOB,
        PRESET_SOLID_QUEUE,
        PRESET_DELAYED_JOB,
        PRESET_QUE,
        PRESET_DRAMATIQ,
        PRESET_PUMA,
        _PRESET_MAX,
};

struct preset {
        int stop_signal;
        usec_t stop_usec; /* the longest time to exit, with a margin; 0: as long as the jobs take */
};

extern const struct preset presets[_PRESET_MAX];

/* A number, or a percentage of another number, rounded up (`4`, `100%`). */
struct share {
        uint32_t value;
        bool percent;
};

/* The files for TLS. */
enum settings_tls_file {
        SETTINGS_TLS_CA,
        SETTINGS_TLS_CERT,
        SETTINGS_TLS_KEY,
        _SETTINGS_TLS_MAX,
};

/* Why the files for TLS cannot be used. */
struct settings_tls_refusal {
        enum settings_tls_file file; /* _SETTINGS_TLS_MAX: none of them is at fault */
        char why[512];
};

/* How long an address of a Redis or a database may take to accept a connection, and a server to answer: far
 * more than a healthy one needs, and short beside the time in which heartbeats become old. */
#define SERVER_TIMEOUT_USEC USEC_PER_SEC

struct redis_settings {
        char *url; /* never NULL after settings_draft_finish() */
        char *username;
        char *password;
        char *password_file;
        char *sentinels; /* NULL: url is the address of the server */
        char *master_name;
        char *sentinel_password;
        char *tls_ca_file;
        char *tls_cert_file;
        char *tls_key_file;
        int tls_unverified; /* tls_verify = no: the server's certificate is not checked */
        char *namespace;
        usec_t timeout;        /* only tests set it; 0: SERVER_TIMEOUT_USEC */
        char *queue_warn_size; /* see settings/limits.h; neither is NULL after settings_draft_finish() */
        char *queue_warn_latency;
};

/* Maximum length of a fleet's name, in bytes. */
#define FLEET_NAME_MAX     40
#define FLEET_NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

struct fleet_settings {
        char *name;
        unsigned line; /* of the section's header; 0 if there is none */
        bool removed;  /* no longer configured: the workers drain */
        /* Derived: a hash of the values that decide how a worker is started. Workers started with another
         * hash are outdated. */
        uint64_t launch_hash;

        char *command;
        char **argv;                 /* command split into words; NULL-terminated */
        char *before_start;          /* NULL: none */
        char **before_start_argv;    /* before_start split into words; NULL: none */
        char *after_exit;            /* NULL: none */
        char **after_exit_argv;      /* after_exit split into words; NULL: none */
        const struct traits *traits; /* of the framework; static */
        int heartbeat;               /* enum heartbeat_place; HEARTBEAT_UNSET: the framework's default */
        int preset;                  /* see the table of presets */
        int preload;                 /* fork workers from a template: 0 or 1 */
        int namespaced; /* the command enters a PID, UTS or mount namespace, or a container: 0 or 1 */
        char *directory;
        char *environment;
        char **environment_list; /* environment split into `K=V`; NULL-terminated, may be NULL */
        char *environment_file;
        char *log;          /* "inherit", "journal", or a path; NULL: see log_of_workers() */
        char *redis_url;    /* NULL: the url of [redis] */
        bool broker_named;  /* derived: the ini names the Redis with the queues, see
                               fleet_settings_need_broker() */
        char *database_url; /* also from database_url_file; never NULL if heartbeats are in a database */
        char *database_url_file;

        unsigned active_process_count;
        unsigned active_process_max; /* 0: no autoscaling */
        char *latency_target;        /* see settings/limits.h; never NULL after settings_draft_finish() */
        usec_t scale_down_after;
        unsigned max_processes; /* 0: 3 x the larger of the two counts, at least 3 */
        struct share restart_surge;
        usec_t ready_after;
        usec_t boot_timeout;
        usec_t rollout_timeout;
        usec_t rollout_trial;             /* 0: releases are not judged by their jobs */
        struct share rollout_trial_share; /* workers of the new generation meanwhile, at least one */
        int rollout_trial_default;        /* enum trial_default */
        uint64_t memory_threshold;        /* bytes; 0: none */
        uint64_t memory_limit;            /* bytes; 0: none */
        usec_t max_age;                   /* 0: none */
        usec_t drain_timeout;             /* 0: none */
        usec_t stop_timeout;
        bool stop_bounded; /* derived: stop_timeout is set and bounds the time from a worker's stop signal to
                            * its exit */
        usec_t hang_after; /* 0: never */
        int hang_action;
        int rescue_jobs;
        char *interruptible;  /* job classes, separated by blanks; NULL: none */
        char *job_warn_after; /* see settings/limits.h; NULL: none */
        int stop_signal;      /* 0: the preset's, else the framework's */
};

/* The time a framework needs beyond its own shutdown time before it may be killed. */
#define SETTINGS_STOP_MARGIN_USEC (5 * USEC_PER_SEC)

/* Returns the minimum of stop_timeout: the framework's shutdown time, as given by the command or by default,
 * plus the margin. Returns 0 if the framework has no shutdown time. */
usec_t fleet_settings_stop_usec(const struct fleet_settings *fleet);

#define HEARTBEAT_UNSET (-1)
static inline enum heartbeat_place fleet_settings_heartbeat(const struct fleet_settings *fleet)
{
        return fleet->traits->heartbeat_chosen && fleet->heartbeat != HEARTBEAT_UNSET
                       ? (enum heartbeat_place)fleet->heartbeat
                       : fleet->traits->heartbeat;
}
static inline bool fleet_settings_write_heartbeats(const struct fleet_settings *fleet)
{
        return fleet_settings_heartbeat(fleet) != HEARTBEAT_NONE;
}
static inline bool fleet_settings_need_redis(const struct fleet_settings *fleet)
{
        return fleet_settings_heartbeat(fleet) == HEARTBEAT_REDIS;
}
static inline bool fleet_settings_need_database(const struct fleet_settings *fleet)
{
        return fleet_settings_heartbeat(fleet) == HEARTBEAT_DATABASE;
}
/* Returns true if the running jobs of the fleet's workers are known: from a server, or from heartbeat files.
 */
static inline bool fleet_settings_list_jobs(const struct fleet_settings *fleet)
{
        return fleet->traits->has_work_list || fleet_settings_heartbeat(fleet) == HEARTBEAT_FILE;
}
/* Returns true if the fleet's heartbeats are read from a server: a Redis or a database. */
static inline bool fleet_settings_need_server(const struct fleet_settings *fleet)
{
        return fleet_settings_need_redis(fleet) || fleet_settings_need_database(fleet);
}
/* Returns true if heartbeats are in files and the queues in the broker of the application, which may be a
 * Redis or another server. */
static inline bool fleet_settings_have_broker(const struct fleet_settings *fleet)
{
        return fleet->traits->reports_queues && fleet_settings_heartbeat(fleet) == HEARTBEAT_FILE;
}
/* Returns true if the broker is a Redis that the ini names: only queues are read from it. */
static inline bool fleet_settings_need_broker(const struct fleet_settings *fleet)
{
        return fleet_settings_have_broker(fleet) && fleet->broker_named;
}
/* Returns true if the count may follow the queues. */
static inline bool fleet_settings_can_scale(const struct fleet_settings *fleet)
{
        return fleet->traits->reports_queues && (!fleet_settings_have_broker(fleet) || fleet->broker_named);
}
/* Returns true if the fleet's workers load sqmgr-outcomes.rb. In a namespace of its own the file may not
 * exist. */
static inline bool fleet_settings_load_outcomes(const struct fleet_settings *fleet)
{
        return fleet->traits->outcomes_by_script && fleet->rollout_trial > 0 && !fleet->namespaced;
}
/* Returns false if the framework cannot use the database of database_url. */
bool fleet_settings_database_fits(const struct fleet_settings *fleet);
/* Names the server with the fleet's heartbeats within a sentence: "Redis" or "the database". */
static inline const char *fleet_settings_server(const struct fleet_settings *fleet)
{
        return fleet_settings_need_database(fleet) ? "the database" : "Redis";
}
/* Returns the stop signal of the settings or the preset; 0: the framework's. */
int fleet_settings_stop_signal(const struct fleet_settings *fleet);

/* Judges the command by one of the flaws that the framework lists. Of the settings, traits, command, argv and
 * environment_list are read. */
bool command_has_flaw(const struct fleet_settings *fleet, const struct command_flaw *flaw);
/* Describes the flaw in a sentence without a period. Returns text. */
#define COMMAND_FLAW_MAX 256
const char *command_flaw_text(const struct command_flaw *flaw, char text[static COMMAND_FLAW_MAX]);

/* Describes why a worker starts without its shim (io/launch.h). Returns a static string. */
const char *shim_error_text(int error);

struct settings {
        char *include; /* glob pattern of further files to read; NULL: none */
        char *socket;
        char *socket_group;
        char *state_file;
        char *orders_file;       /* see settings/draft.c */
        bool orders_make_folder; /* the directory of that file is made if missing */
        usec_t check_interval;
        int log_level; /* syslog level: LOG_DEBUG, LOG_INFO, ... */
        usec_t shutdown_timeout;
        int on_stop;
        char *alert_command; /* NULL: none */
        int alert_level;     /* syslog level */

        struct redis_settings redis;

        struct fleet_settings **fleets;
        size_t n_fleets;
};

/* Returns the URL of the Redis or the database with the heartbeats or the queues of a fleet's workers; NULL
 * if Sentinels name the server. Sentinels are not used for a fleet's own Redis. */
static inline const char *settings_fleet_url(const struct settings *settings,
                                             const struct fleet_settings *fleet)
{
        if (fleet_settings_need_database(fleet))
                return fleet->database_url;
        return fleet->redis_url ?: (settings->redis.sentinels ? NULL : settings->redis.url);
}

#define STALL_MINIMUM_USEC (5 * USEC_PER_SEC)
/* Returns the delay in microseconds beyond which a late tick counts as a clock jump or suspend. */
static inline usec_t settings_stall_usec(const struct settings *settings)
{
        return MAX(2 * settings->check_interval, STALL_MINIMUM_USEC);
}

/* Returns the fleet of that name, or NULL. Borrowed. */
static inline const struct fleet_settings *settings_find_fleet(const struct settings *settings,
                                                               const char *name)
{
        for (size_t i = 0; i < settings->n_fleets; i++)
                if (strcmp(settings->fleets[i]->name, name) == 0)
                        return settings->fleets[i];
        return NULL;
}
