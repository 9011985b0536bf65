/* SPDX-License-Identifier: MIT */
/* The daemon's own state, shared by its files: the loop, the model, and the descriptors behind each worker.
 */
#pragma once

#include "daemon/api/control.h"
#include "daemon/life/alerts.h"
#include "daemon/run/children.h"
#include "frameworks/sidekiq/beats.h"
#include "io/host.h"
#include "io/launch.h"
#include "io/proc.h"
#include "io/redis.h"
#include "io/statefile.h"
#include "io/systemd.h"
#include "model/pass.h"
#include "model/queues.h"
#include "model/world.h"
#include <systemd/sd-event.h>

struct supervisor;
struct exit_status; /* model/observe.h */
struct state_dead;  /* model/state.h */
struct last_lines;  /* last_lines.c: those that are being read */
struct adoption;    /* adopt.c: what is still looked for */

/* One Redis, with the fleets whose heartbeats are there. It is the link of those fleets. */
struct link {
        struct supervisor *supervisor;
        char *url;         /* NULL: the Sentinels of the settings name the server */
        char *server_text; /* the master that was used last, of those that they named; NULL: none yet */
        struct redis *redis;
        struct beats *beats;
        struct queues_read *queues_read; /* NULL: none is under way */
        struct queues *queues;           /* as last read; NULL: they could not be, see queues_error */
        char queues_error[256];
        bool queues_error_told; /* while Redis answers, and limits wait for it */
        struct queue_watch queue_watch;
};

/* What the shell holds of a worker. */
struct process {
        struct supervisor *supervisor;
        struct worker *worker;
        struct proc *main;
        struct proc *beat; /* the process that beats, where it is another one; NULL else */
        struct beats_slot *slot;
        sd_event_source *main_exit;
        sd_event_source *beat_exit;
        sd_event_source *report_source;
        int report_fd;
        struct launch_report report;
        pid_t beat_pid;      /* the process that was found to beat last; 0: none was */
        struct works *works; /* its jobs are being read; NULL: they are not */
        bool works_culprits; /* since its memory went over a limit */
        char **long_jobs;    /* ids of those that were told of; NULL-terminated, NULL: none */
};

/* How sqmgr was called; it is called so again. */
struct invocation {
        const char *program; /* the path that was executed, absolute */
        char **argv;
        const char *config_path;
};

struct framework;
struct handover;

struct supervisor {
        sd_event *event;
        const struct invocation *invocation;
        const char *config_path;
        struct settings *settings;
        struct world *world;
        struct pass pass; /* of world */
        struct link **links;
        size_t n_links;
        struct proc_host *host;
        struct children children; /* those that are no workers */
        struct alerts *alerts;
        struct control *control;
        struct server *server;
        int state_lock_fd;
        char boot_id[BOOT_ID_MAX];
        bool grown;                /* workers were started since memory was last given back */
        int save_error;            /* of the last try to write it; 0: it is written */
        struct adoption *adoption; /* NULL: all that lives is known */
        struct reexec *reexec;     /* NULL: none is under way */
        struct queue_reading *queue_reading;
        struct systemd_query *query; /* told to end, systemd is asked why; NULL: it is not */
        struct last_lines *last_lines;
        struct state_dead *rescues; /* of rescue.c */
        uint64_t lines_token;       /* the last that was given */
        struct rlimit nofile;       /* before sqmgr raised its own */
        char instance[17];          /* the same for every sqmgr on this state file */
        char host_name[256];

        sd_event_source *turn; /* one more turn of plan and execute */
        sd_event_source *timer;
        usec_t started_at;
        usec_t watchdog_usec;  /* how often systemd wants to hear from us; 0: never */
        usec_t fed_at;         /* it last did */
        char status_text[256]; /* as last told to systemd */
};

/* supervisor.c: the loop. handover: what the image before left, which is taken over; settings too. */
int supervisor_new(const struct invocation *invocation, struct settings *settings,
                   const struct handover *handover, struct supervisor **ret);
struct supervisor *supervisor_free(struct supervisor *supervisor);
/* Runs until told to end. Returns 0, or -errno where the loop itself failed. */
int supervisor_run(struct supervisor *supervisor);
/* Something was observed: plan before the loop sleeps again. */
void supervisor_arm_turn(struct supervisor *supervisor);

/* service.c: the control socket's view of the daemon. -EBUSY: another sqmgr holds the socket, which was told.
 */
int service_start(struct supervisor *supervisor, const struct handover *handover);
/* Once the workers are adopted: goes on with the connections of the image before. */
void service_continue(struct supervisor *supervisor, const struct handover *handover);
void service_end(struct supervisor *supervisor);

/* reload.c: reads the config file again. 0: *ret_lines says what changed; 1: refused, *ret_lines says why,
 * and nothing changed; a line each, NULL-terminated, list and lines to be freed by the caller. -errno:
 * *ret_lines is untouched. */
int reload(struct supervisor *supervisor, char ***ret_lines);

/* adopt.c: takes over the workers of an earlier sqmgr. What is not clear at once is looked for a while
 * longer; no worker is started and no state written meanwhile. Returns 0, or -errno where a worker that lives
 * cannot be watched: then no fleet may run. */
int adopt(struct supervisor *supervisor, usec_t now);
struct adoption *adoption_free(struct adoption *adoption);
/* What lives on of a worker whose process has exited before any of it beat: a command that went to the
 * background, say. As subreaper we are its parent now. To be closed; NULL: nothing. */
struct proc *adopt_heir(const struct supervisor *supervisor, const struct worker *worker);

/* reexec.c: puts the installed program in the place of this one, once that has said that it takes the
 * settings and the state. The new image answers the call, or this one where it cannot be; NULL: a signal
 * asked. */
void reexec_request(struct supervisor *supervisor, struct call *call);
struct reexec *reexec_free(struct reexec *reexec);

/* queues.c: what waits in each Redis. Returns 0 or -ENOMEM; ends after service_end(). */
int queues_begin(struct supervisor *supervisor);
void queues_end(struct supervisor *supervisor);
/* Begins to read them where there is a limit to compare with. */
void queues_look(struct supervisor *supervisor);
/* Answers the call when they have been read; metrics: with these, the queues among them. */
void queues_request(struct supervisor *supervisor, struct call *call, bool metrics);
/* Goes on with what came in; may add events. */
void queues_turn(struct supervisor *supervisor);
/* The link ends. */
void queues_forget(struct link *link);

/* doctor.c: answers the call once the surroundings have been checked. */
void doctor_request(struct supervisor *supervisor, struct call *call);

/* keep.c: writes the state; starting as state_pack() takes it. Returns false where it is not written; what
 * fails is told. */
bool keep(struct supervisor *supervisor, const struct plan *starting, usec_t now);

/* links.c: the connections to Redis. The first makes those that fleets of these settings need, and returns 0
 * or -errno. The second, which cannot fail then, gives each fleet of the world its own and ends those that
 * none needs. */
int links_make(struct supervisor *supervisor, const struct settings *settings);
void links_join(struct supervisor *supervisor);
void links_free(struct supervisor *supervisor);

/* look.c: reads what is due; beats answer later. */
void look(struct supervisor *supervisor, bool fast, usec_t now);
/* How often the kernel's OOM killer was at work so far. */
void look_oom_kills(struct supervisor *supervisor, usec_t now);
/* Does its title or do its threads show that this process works for the framework? Returns 1, 0, or -errno
 * where there was no descriptor or memory to find out with. */
int look_has_booted(const struct proc *proc, const struct framework *framework);

/* work_list.c: has the jobs of this worker read, where it drains or any of them may be told of for running
 * too long. */
void work_list_look(struct worker *worker);
/* The same of all whose memory went over a limit: what they ran is told of. */
void work_lists_turn(struct supervisor *supervisor);
void work_list_forget(struct process *process);

/* execute.c: carries out one action, and observes what became of it. Returns false where nothing did. */
bool execute(struct supervisor *supervisor, const struct action *action, usec_t now);

/* last_lines.c: begins to read what a worker wrote last where that went to the journal; beat_pid: the process
 * that beat, 0 where none did. Returns the token of the answer, or 0 where none will come. */
uint64_t last_lines_read(struct supervisor *supervisor, const struct worker *worker, pid_t beat_pid);
void last_lines_forget(struct supervisor *supervisor);

/* rescue.c: the process that beat for worker under identity, NULL where that is not known, is dead: begins to
 * learn what it was running, where that was cut off, for rescue_jobs and where the kernel's OOM killer did
 * it. worker: as it was before, which is copied. exit: how that very process ended, as far as it is known. */
void rescue_begin(struct supervisor *supervisor, const struct fleet *fleet, const struct worker *worker,
                  const char *identity, const struct exit_status *exit);
/* Is there one that the end of sqmgr should wait for? */
bool rescues_hold_the_end(const struct supervisor *supervisor, usec_t now);
/* A fleet that is no longer configured is needed still. */
bool rescues_need_removed(const struct supervisor *supervisor);
/* Once the connections to Redis are closed. */
void rescues_forget(struct supervisor *supervisor);

/* worker_io.c: the descriptors behind a worker. Takes main and report_fd over, whatever it returns: 0 or
 * -errno; worker->process stays NULL only where memory was short. */
int worker_io_new(struct supervisor *supervisor, struct worker *worker, struct proc *main, int report_fd);
/* The same for an adopted worker. beat, taken over too: the process that beats, where it is another than
 * main; identity: that it is known to beat under; NULL: none. */
int worker_io_adopt(struct supervisor *supervisor, struct worker *worker, struct proc *main,
                    struct proc *beat, const char *identity);
/* For fleet_reap(); takes NULL. */
void worker_io_free(struct process *process);
/* The process pid was found to beat for this worker. */
void worker_io_set_beat(struct worker *worker, pid_t pid, usec_t now);
/* The process that jobs run in, as far as it is known. */
struct proc *worker_io_beating(const struct process *process);
/* Waits for the children that have exited: workers, others of ours, and orphans that we inherit as subreaper.
 */
void worker_io_sweep(struct supervisor *supervisor);
