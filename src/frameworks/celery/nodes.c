/* SPDX-License-Identifier: MIT */
/* The table of Celery workers; see the header. Nodes of one name share a bucket. */
#include "frameworks/celery/nodes.h"
#include "base/hash.h"
#include "base/macro.h"
#include "frameworks/celery/celery.h"
#include "model/heartbeat_info.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPIRE_INTERVAL_USEC (10 * USEC_PER_SEC)

static void node_free(struct celery_node *node)
{
        job_list_clear(&node->jobs);
        free(node->queues);
        free(node->identity);
        free(node);
}

void celery_nodes_clear(struct celery_nodes *nodes)
{
        FOREACH_ELEMENT(bucket, nodes->buckets)
                for (struct celery_node *node = *bucket, *next; node; node = next) {
                        next = node->next;
                        node_free(node);
                }
        *nodes = (struct celery_nodes){0};
}

void celery_nodes_expire(struct celery_nodes *nodes, usec_t now)
{
        nodes->expired_at = now;
        FOREACH_ELEMENT(bucket, nodes->buckets)
                for (struct celery_node **at = bucket; *at;) {
                        struct celery_node *node = *at;

                        if (usec_sub(now, node->heard_at) <= CELERY_FORGET_USEC) {
                                at = &node->next;
                                continue;
                        }
                        *at = node->next;
                        node_free(node);
                        nodes->n--;
                }
}

/* Names that an attacker makes collide cost a search of CELERY_NODES_MAX nodes at most. */
static size_t bucket_of(const char *name)
{
        return hash_bytes(HASH_INIT, name, strlen(name)) % ELEMENTSOF(((struct celery_nodes *)NULL)->buckets);
}

static struct celery_node *find(const struct celery_nodes *nodes, const char *name, pid_t pid)
{
        for (struct celery_node *node = nodes->buckets[bucket_of(name)]; node; node = node->next)
                if (node->pid == pid && strcmp(node->name, name) == 0)
                        return node;
        return NULL;
}

struct celery_node *celery_nodes_find(const struct celery_nodes *nodes, const char *identity)
{
        size_t host_len;
        pid_t pid;

        return celery_identity_parse(identity, strlen(identity), &host_len, &pid)
                       ? find(nodes, celery_identity_node(identity), pid)
                       : NULL;
}

bool celery_node_is_shared(const struct celery_nodes *nodes, const struct celery_node *node, usec_t now)
{
        if (node->doubled_at != 0 && usec_sub(now, node->doubled_at) <= CELERY_FORGET_USEC)
                return true;
        for (const struct celery_node *other = nodes->buckets[bucket_of(node->name)]; other;
             other = other->next)
                if (other != node && celery_node_is_heard(other, now) && strcmp(other->name, node->name) == 0)
                        return true;
        return false;
}

/* Returns NULL with *ret_error if the node cannot be added. */
static struct celery_node *add(struct celery_nodes *nodes, const struct celery_event *event, int *ret_error)
{
        *ret_error = -ENOBUFS;
        if (nodes->n == CELERY_NODES_MAX)
                return NULL;
        char *identity = celery_identity_make(event->node, event->pid, ret_error);
        if (!identity)
                return NULL;
        struct celery_node *node = calloc(1, sizeof(*node));
        if (!node) {
                free(identity);
                *ret_error = -ENOMEM;
                return NULL;
        }
        struct celery_node **bucket = &nodes->buckets[bucket_of(event->node)];
        *node = (struct celery_node){
                .next = *bucket,
                .identity = identity,
                .name = celery_identity_node(identity),
                .host_len = strcspn(identity, ":"),
                .pid = event->pid,
        };
        *bucket = node;
        nodes->n++;
        return node;
}

/* Returns the length of the name before its last number. */
static size_t stem_len(const char *name)
{
        size_t len = strcspn(name, "@");
        const char *dash = memrchr(name, '-', len);

        return dash ? (size_t)(dash - name) : len;
}

uint64_t celery_nodes_peak(const struct celery_nodes *nodes, const struct celery_node *node)
{
        size_t len = stem_len(node->name);
        uint64_t peak = node->peak;

        CELERY_NODES_FOREACH(nodes, other)
        if (other->peak > peak && stem_len(other->name) == len && memcmp(other->name, node->name, len) == 0 &&
            strcmp(other->name + strcspn(other->name, "@"), node->name + strcspn(node->name, "@")) == 0)
                peak = other->peak;
        return peak;
}

static void forget_queues(struct celery_node *node)
{
        free(TAKE_PTR(node->queues));
        node->queues_at = 0;
        node->was_quiet = false;
}

void celery_nodes_missed(struct celery_nodes *nodes)
{
        CELERY_NODES_FOREACH(nodes, node)
        {
                forget_queues(node);
                node->work = (struct celery_work){0};
                /* Nor could it reply. */
                node->waits_since = 0;
        }
}

int celery_nodes_hear(struct celery_nodes *nodes, const struct celery_event *event, usec_t now)
{
        struct celery_node *node = find(nodes, event->node, event->pid);

        if (usec_sub(now, nodes->expired_at) >= EXPIRE_INTERVAL_USEC) {
                celery_nodes_expire(nodes, now);
                node = find(nodes, event->node, event->pid);
        }
        int error;
        if (!node)
                node = add(nodes, event, &error);
        if (!node)
                return error;
        node->heard_at = now;
        node->offline_at = event->type != CELERY_OFFLINE ? 0 : node->offline_at ?: now;
        /* A worker that has connected again may consume queues that it had been asked not to. */
        if (event->type == CELERY_ONLINE)
                forget_queues(node);
        if (event->type != CELERY_HEARTBEAT || !event->has_counts)
                return 0;
        node->counted_at = now;
        node->sent_usec = event->sent_usec;
        node->active = event->active;
        node->peak = MAX(node->peak, event->active);
        celery_work_count(&node->work, node->processed, event->processed, now);
        node->processed = event->processed;
        node->was_quiet = celery_node_is_quiet(node);
        return 0;
}

/* Names beyond HEARTBEAT_QUEUES_MAX bytes are dropped. Returns NULL if out of memory. */
static char *join_queues(const struct celery_reply *reply)
{
        char *names = calloc(1, HEARTBEAT_QUEUES_MAX);
        size_t length = 0;

        for (size_t i = 0; names && i < reply->n_queues; i++) {
                size_t size = strlen(reply->queues[i]) + 1;

                if (size == 1 || length + size >= HEARTBEAT_QUEUES_MAX)
                        continue;
                memcpy(names + length, reply->queues[i], size);
                length += size;
        }
        char *fitting = names ? realloc(names, length + 1) : NULL;
        return fitting ?: names;
}

static void take_queues(struct celery_node *node, const struct celery_reply *reply, bool readable,
                        usec_t asked_at)
{
        char *queues = readable && reply->n_queues > 0 ? join_queues(reply) : NULL;

        if (!readable || reply->failed || asked_at < node->queues_at || (reply->n_queues > 0 && !queues))
                return;
        free(node->queues);
        node->queues = queues;
        node->queues_at = asked_at;
        if (queues)
                node->was_quiet = false;
}

static void take_job(struct celery_node *node, struct celery_task *task)
{
        struct job_list *list = &node->jobs;
        struct job *jobs = reallocarray(list->jobs, list->n_jobs + 1, sizeof(*jobs));
        char *thread = NULL;

        if (!jobs) {
                list->n_unreadable++;
                return;
        }
        list->jobs = jobs;
        if (task->pid != 0 && asprintf(&thread, "%d", (int)task->pid) < 0)
                thread = NULL;
        struct job *job = &list->jobs[list->n_jobs++];
        *job = (struct job){.thread = thread, .started_usec = task->started_usec};
        job->queue = TAKE_PTR(task->routing_key);
        job->class = TAKE_PTR(task->name);
        job->jid = TAKE_PTR(task->id);
        list->next = list->n_entries = list->allocated = list->n_jobs;
}

static void take_active(struct celery_node *node, struct celery_reply *reply, size_t unreadable,
                        usec_t asked_at)
{
        if (asked_at < node->active_at)
                return;
        node->active_at = asked_at;
        node->n_active = reply->n_tasks + unreadable;
        job_list_clear(&node->jobs);
        node->jobs = (struct job_list){.n_unreadable = unreadable};
        for (size_t i = 0; node->keeps_jobs && i < reply->n_tasks; i++)
                take_job(node, &reply->tasks[i]);
}

/* The only node of this name that is heard. */
static struct celery_node *find_named(const struct celery_nodes *nodes, const char *name, usec_t now)
{
        struct celery_node *found = NULL;

        for (struct celery_node *node = nodes->buckets[bucket_of(name)]; node; node = node->next) {
                if (!celery_node_is_heard(node, now) || strcmp(node->name, name) != 0)
                        continue;
                if (found)
                        return NULL;
                found = node;
        }
        return found;
}

/* Returns when the request was sent that the last reply to this method belongs to. */
static usec_t replied_at(const struct celery_node *node, enum celery_method method)
{
        return method == CELERY_ACTIVE_QUEUES ? node->queues_at
               : method == CELERY_RESERVED    ? node->reserved_at
               : method == CELERY_ACTIVE      ? node->active_at
                                              : 0;
}

struct celery_node *celery_nodes_reply(struct celery_nodes *nodes, struct celery_reply *reply, bool readable,
                                       usec_t asked_at, usec_t now)
{
        struct celery_node *node = find_named(nodes, reply->node, now);
        /* A list that cannot be read holds at least one task. */
        size_t unreadable = reply->n_unreadable + (!readable || reply->failed);

        if (!node)
                return NULL;
        if (asked_at != 0 && asked_at == replied_at(node, reply->method))
                node->doubled_at = now;
        switch (reply->method) {
        case CELERY_ACTIVE_QUEUES:
                take_queues(node, reply, readable, asked_at);
                break;
        case CELERY_RESERVED:
                if (asked_at < node->reserved_at)
                        break;
                node->reserved_at = asked_at;
                node->n_reserved = reply->n_tasks + unreadable;
                break;
        case CELERY_ACTIVE:
                take_active(node, reply, unreadable, asked_at);
                break;
        case CELERY_PING:
        case CELERY_CANCEL_CONSUMER:
        case CELERY_ADD_CONSUMER:
        case _CELERY_METHOD_MAX:
                break;
        }
        return node;
}
