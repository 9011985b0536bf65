/* SPDX-License-Identifier: MIT */
/* What the ini file says. settings/keys.h has the table of its keys, settings/operations.h what is done with
 * the settings as a whole. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "settings/traits.h"
#include <string.h>
#include <sys/types.h>

enum memory_metric { MEMORY_RSS, MEMORY_PSS, _MEMORY_METRIC_MAX };

enum hang_action { HANG_KEEP, HANG_KILL, _HANG_ACTION_MAX };

enum stuck_job_action { STUCK_JOB_WARN, STUCK_JOB_DUMP, _STUCK_JOB_ACTION_MAX };

enum rescue_jobs { RESCUE_JOBS_OFF, RESCUE_JOBS_REPORT, RESCUE_JOBS_REQUEUE, _RESCUE_JOBS_MAX };

enum pressure_action { PRESSURE_REPORT, PRESSURE_QUIET, _PRESSURE_ACTION_MAX };

enum on_stop { ON_STOP_DRAIN, ON_STOP_LEAVE, _ON_STOP_MAX };

/* A count, or a share of another count rounded up (`4`, `100%`). */
struct share {
        uint32_t value;
        bool percent;
};

struct redis_settings {
        char *url; /* never NULL after settings_finish() */
        char *username;
        char *password;
        char *password_file;
        char *sentinels; /* NULL: url names the server */
        char *master_name;
        char *sentinel_password;
        char *tls_ca_file;
        char *tls_cert_file;
        char *tls_key_file;
        char *namespace;
        usec_t connect_timeout;
        usec_t command_timeout;
        char *queue_warn_size; /* see settings/limits.h; neither is NULL after settings_finish() */
        char *queue_warn_latency;
};

/* Bytes of a fleet's name. */
#define FLEET_NAME_MAX 40
/* Of a group's name; and the least of a key. */
#define ROLLOUT_GROUP_MAX 64
#define ROLLOUT_KEY_MIN   32

struct fleet_settings {
        char *name;
        unsigned line; /* of its section's header; 0 where there is none */
        bool removed;  /* it is no longer configured: its workers drain */
        /* Derived: differs where a worker would be started otherwise. */
        uint64_t launch_hash;

        char *command;
        char **argv;                 /* command, split into words; NULL-terminated */
        char *before_start;          /* NULL: none */
        char **before_start_argv;    /* the same, split; NULL: none */
        char *after_exit;            /* NULL: none */
        char **after_exit_argv;      /* the same, split; NULL: none */
        const struct traits *traits; /* of its framework; static */
        int heartbeat;               /* enum heartbeat_place; HEARTBEAT_UNSET: the framework's */
        int preset;                  /* see settings/presets.h */
        int preload;                 /* workers are forked from a template: 0 or 1 */
        int preload_compact;         /* whose heap is compacted before: the same */
        char *directory;
        char *user;
        char *group;
        char *environment;
        char **environment_list; /* environment, split: `K=V`; NULL-terminated, may be NULL */
        char *environment_file;
        mode_t umask; /* SETTINGS_UMASK_UNSET: inherited */
        int nice;     /* SETTINGS_NICE_UNSET: inherited */
        int oom_score_adj;
        char *cpu_affinity; /* see settings/resources.h, as of the limits; NULL: inherited */
        char *limit_as;
        char *limit_core;
        char *limit_fsize;
        char *limit_memlock;
        char *limit_nofile; /* NULL: sqmgr's original one */
        char *limit_nproc;
        char *limit_stack;
        char *log;       /* "inherit", "journal", or a path */
        char *redis_url; /* NULL: the [redis] one */

        unsigned active_process_count;
        unsigned active_process_max; /* 0: the count does not follow the queues */
        char *latency_target;        /* see settings/limits.h; never NULL after settings_finish() */
        usec_t scale_down_after;
        unsigned max_processes; /* 0: 3 x the larger of the two counts, at least 3 */
        struct share restart_surge;
        usec_t ready_after;
        usec_t boot_timeout;
        usec_t rollout_timeout;
        uint64_t memory_threshold; /* bytes; 0: none */
        uint64_t memory_limit;     /* bytes; 0: none */
        int memory_metric;
        usec_t max_age;       /* 0: none */
        usec_t drain_timeout; /* 0: none */
        usec_t stop_timeout;
        bool stop_bounded; /* derived: it is given, where it is how long a worker may take from its signal on
                            */
        usec_t hang_after; /* 0: never */
        int hang_action;
        int rescue_jobs;
        unsigned rescue_limit;
        char *rollout_group;        /* that it is restarted with, host by host; NULL: none */
        struct share rollout_hosts; /* of the group's hosts, that roll at once */
        usec_t rollout_canary;      /* after the first of them; 0: none */
        unsigned rollout_failures;
        char *rollout_key_file;
        char *rollout_key;    /* what that file has; NULL: none */
        char *job_warn_after; /* see settings/limits.h; NULL: none */
        int stuck_job_action;
        int stop_signal; /* 0: that of the preset, else the framework's */
        usec_t backoff_min;
        usec_t backoff_max;
};

/* What a framework needs beyond its own shutdown time before it may be killed. */
#define SETTINGS_STOP_MARGIN_USEC (5 * USEC_PER_SEC)

/* The least that stop_timeout must be: the framework's shutdown time, as far as the command tells it, and
 * that margin; 0 where it has none of its own. */
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
/* 0: the framework's. */
int fleet_settings_stop_signal(const struct fleet_settings *fleet);

#define SETTINGS_UMASK_UNSET ((mode_t)-1)
#define SETTINGS_NICE_UNSET  INT32_MIN

struct settings {
        char *include; /* pattern of files to read besides; NULL: none */
        char *socket;
        mode_t socket_mode;
        char *socket_group;
        char *read_socket; /* "none", or a path; see settings_read_socket() */
        char *state_file;
        usec_t check_interval;
        int log_level; /* syslog's: LOG_DEBUG, LOG_INFO, ... */
        usec_t shutdown_timeout;
        int on_stop;
        unsigned pressure_limit; /* percent; 0: none */
        int pressure_action;
        char *alert_command; /* NULL: none */
        char *alert_user;    /* NULL: sqmgr's own */
        int alert_level;     /* syslog's */

        struct redis_settings redis;

        struct fleet_settings **fleets;
        size_t n_fleets;
};

/* Where those who may only look reach sqmgr; NULL: nowhere. */
static inline const char *settings_read_socket(const struct settings *settings)
{
        const char *path = settings->read_socket;

        return path && path[0] == '/' ? path : NULL;
}

#define STALL_MINIMUM_USEC (5 * USEC_PER_SEC)
/* How late a tick may be, in microseconds, before time is in doubt. */
static inline usec_t settings_stall_usec(const struct settings *settings)
{
        return MAX(2 * settings->check_interval, STALL_MINIMUM_USEC);
}

/* The fleet of that name, or NULL. */
static inline const struct fleet_settings *settings_find_fleet(const struct settings *settings,
                                                               const char *name)
{
        for (size_t i = 0; i < settings->n_fleets; i++)
                if (strcmp(settings->fleets[i]->name, name) == 0)
                        return settings->fleets[i];
        return NULL;
}
