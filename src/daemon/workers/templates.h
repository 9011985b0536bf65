/* SPDX-License-Identifier: MIT */
/* Template processes: starts them, talks to them, attaches their forks and ends them. A template runs code of
 * the application and is not trusted. Messages count only if the kernel confirms them, and an unexpected
 * message ends a serving template. */
#pragma once

#include "daemon/runtime/runtime.h"

struct fleet;
struct fleet_settings;
struct state_fleet;
struct template;
struct worker;

/* The sockets to a template and to the workers that it forks. Incoming data is controlled by the fleet's
 * user: its length is bounded, descriptors are rejected, and the kernel supplies the sender's identity.
 *
 * SOCK_SEQPACKET. A message is a list of words, separated by NULs:
 *
 *   template  "ready", "version=1", any number of "unsafe=..." and "thread=..."
 *   sqmgr     "fork", NAME=VALUE entries, "log=..."; with one descriptor, the new worker's socket
 *   worker    "hello"; or "error", "errno=N" and a text
 *   sqmgr     "go" */
#define TEMPLATE_MESSAGE_MAX 4096

struct template_message {
        char text[TEMPLATE_MESSAGE_MAX + 1]; /* a NUL follows the last word */
        size_t length;
        pid_t pid; /* the sender's pid in our namespace; 0: not visible */
};

/* The properties that a ready template reports. */
struct template_ready {
        struct quoted unsafe;  /* the first reasons why the template cannot be forked; empty: none */
        struct quoted threads; /* threads that a fork leaves behind, separated by ", "; empty: none */
};

/* Execute actions on templates; the results are observed. templates_load() loads a new template of the
 * fleet. */
void templates_load(struct runtime *runtime, struct fleet *fleet, usec_t now);
/* Asks the template of the action for a fork that becomes the worker of the action. */
void templates_fork(const struct action *action, usec_t now);
void templates_end(struct template *template, usec_t now);
/* Kills a template that did not end in time: the process group of a loading template; of a serving one only
 * the command, since others may serve its workers. */
void templates_kill(struct template *template, usec_t now);
/* Lets a forked worker continue. Returns without effect until a complete scan of identities has shown others
 * of its pid, for at most one second; a later pass tries again. */
void templates_go(struct worker *worker, usec_t now);

/* Lets the commands of started templates begin. Call when the state was written, or could not be. */
void templates_begin(const struct runtime *runtime);

/* Polls the templates of all fleets. fast: only forks in progress. */
void templates_poll(struct runtime *runtime, bool fast, usec_t now);

/* Continues with the templates that await answers of the proc reader (daemon/runtime/proc_facts.h). */
void templates_resume(struct runtime *runtime, usec_t now);

/* Adopts the templates in the state of an earlier sqmgr. Returns 0 or -errno. */
int templates_adopt(struct runtime *runtime, struct fleet *fleet, const struct state_fleet *saved);

/* Lists the sockets for the next image of sqmgr, at most max. Returns the number. */
size_t templates_hand(const struct runtime *runtime, struct handed *ret, size_t max);

/* Frees all template processes without killing them. Serving templates end by themselves when the socket
 * closes. */
void templates_forget(struct runtime *runtime);

/* Creates a pair of sockets. Our end is non-blocking and receives the sender's credentials. Sets
 * close-on-exec on both ends. Returns 0 or -errno. */
int template_socket_pair(int *ret_ours, int *ret_theirs);
/* Returns 1 with a message, 0 if the peer has closed its end, -EAGAIN if no message is waiting, -EBADMSG for
 * an invalid message, or another -errno. Never waits. */
int template_socket_receive(int fd, struct template_message *ret);
/* Returns true if the first word of the message is word. */
bool template_message_is(const struct template_message *message, const char *word);
/* Parses a "ready" message. Returns false if the message is another one or has an unknown version. */
bool template_message_ready(const struct template_message *message, struct template_ready *ret);
/* Parses an "error" message. ret_errno is positive, or 0 if it is not a number. Returns false if the
 * message is another one. */
bool template_message_error(const struct template_message *message, int *ret_errno, struct quoted *ret_text);
/* Requests a worker of the fleet, whose socket is worker_fd. started_at identifies this start. Returns 0 or
 * -errno. */
int template_socket_fork(int fd, const struct fleet_settings *fleet, unsigned index, uint64_t generation,
                         usec_t started_at, int worker_fd);
/* Lets the worker proceed. Returns 0 or -errno. */
int template_socket_go(int fd);
