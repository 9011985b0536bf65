/* SPDX-License-Identifier: MIT */
/* Questions to the proc reader, by subject. Without a reader, this process reads by itself. */
#include "daemon/runtime/proc_facts.h"
#include "io/proc_inspect.h"
#include <stdio.h>
#include <string.h>

static int ask_text(struct proc_facts *facts, enum proc_subject subject, const struct proc *proc, char *text,
                    size_t size)
{
        const struct proc_reply *reply = NULL;
        int r = proc_facts_ask(facts, subject, proc, NULL, &reply);

        if (r == 0 && reply)
                snprintf(text, size, "%.*s", (int)size - 1, reply->text);
        return r;
}

int proc_facts_title(struct proc_facts *facts, const struct proc *proc, char *title, size_t size)
{
        return facts ? ask_text(facts, PROC_TITLE, proc, title, size) : proc_title(proc, title, size);
}

int proc_facts_peers(struct proc_facts *facts, const struct proc *proc, char peers[static PROC_PEERS_MAX])
{
        return facts ? ask_text(facts, PROC_PEERS, proc, peers, PROC_PEERS_MAX) : proc_peers(proc, peers);
}

ssize_t proc_facts_environment(struct proc_facts *facts, const struct proc *proc, char *text, size_t size,
                               size_t *ret_length)
{
        const struct proc_reply *reply = NULL;

        *ret_length = 0;
        if (!facts) {
                ssize_t n = proc_environment(proc, text, size);
                *ret_length = n > 0 ? (size_t)n : 0;
                return n;
        }
        int r = proc_facts_ask(facts, PROC_ENVIRONMENT, proc, NULL, &reply);
        if (r < 0)
                return r;
        assert(reply);
        *ret_length = MIN((size_t)reply->length, size - 1);
        memcpy(text, reply->text, *ret_length);
        text[*ret_length] = '\0';
        return MIN((ssize_t)reply->read_bytes, (ssize_t)size);
}

int proc_facts_memory(struct proc_facts *facts, const struct proc *proc, uint64_t *ret_pss,
                      uint64_t *ret_private)
{
        const struct proc_reply *reply = NULL;

        if (!facts)
                return proc_mapped_bytes(proc, ret_pss, ret_private);
        int r = proc_facts_ask(facts, PROC_MEMORY, proc, NULL, &reply);
        if (r < 0)
                return r;
        assert(reply);
        *ret_pss = reply->pss_bytes;
        *ret_private = reply->private_bytes;
        return 0;
}

int proc_facts_log_tail(struct proc_facts *facts, const struct proc *proc, const struct proc_log *log,
                        char *lines, size_t size)
{
        const pid_t pids[2] = {proc_pid(proc), log->other_pid};
        const struct proc_reply *reply = NULL;

        if (!facts)
                return log_tail_read(log->fd, log->start_bytes, pids, lines, size);
        int r = proc_facts_ask(facts, PROC_LOG_TAIL, proc, log, &reply);
        if (r < 0)
                return r;
        assert(reply);
        snprintf(lines, size, "%s", reply->text);
        return 0;
}
