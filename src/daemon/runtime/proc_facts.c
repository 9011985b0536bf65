/* SPDX-License-Identifier: MIT */
/* Asks the proc reader; see the header. */
#include "daemon/runtime/proc_facts.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/signal.h"
#include "io/timer.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FRESH_USEC    (500 * USEC_PER_MSEC)
#define DEADLINE_USEC (2 * USEC_PER_SEC)
#define KEEP_USEC     (10 * USEC_PER_SEC)
/* Pause before a reader is started again, and before a late question is repeated: doubled each time, up to
 * PAUSE_MAX_USEC. */
#define PAUSE_USEC     USEC_PER_SEC
#define PAUSE_MAX_USEC (64 * USEC_PER_SEC)
/* Limit of killed processes that have not ended: a file server can delay even their end. At the limit no
 * other is started. */
#define STUCK_MAX 16
/* Limit of questions sent to one reader at a time. Unsent questions can still be given up. */
#define SENT_MAX (4 * PROC_QUESTIONS_MAX)
#define BATCH    16
#define BUCKETS  1024

/* A question and its result. */
struct proc_fact {
        struct proc_fact *next;  /* the next in the same bucket */
        struct proc_fact *after; /* the next in the queue */
        enum fact_state { FACT_ASKED, FACT_ANSWERED, FACT_LATE } state;
        pid_t pid;
        uint64_t start;
        enum proc_subject subject;
        bool queued;         /* in the queue of the reader */
        struct proc_log log; /* PROC_LOG_TAIL: its descriptor is owned until answered; else -1 */
        usec_t asked_at, changed_at;
        usec_t retry_at; /* FACT_LATE: not asked again before */
        unsigned failures;
        struct proc_reply *reply; /* FACT_ANSWERED: owned */
};

struct proc_reader_process {
        struct child child;
        struct proc_reader_process *next;
        struct proc_facts *facts;
        int fd;
        sd_event_source *input;
};

struct proc_facts {
        sd_event *event;
        struct children *children;
        struct proc_facts_ops ops;
        int program_fd;
        sd_event_source *soon, *timer;
        struct proc_reader_process *process;   /* the one that is asked; NULL: none runs */
        struct proc_reader_process *processes; /* all processes, including killed ones that have not ended */
        unsigned failures;                     /* failures since the last answer */
        usec_t start_at;                       /* no process is started before this time */
        bool has_answered;                     /* has answered since `arrived` was last called */
        struct proc_fact *first, **end;        /* the queue, of which n_sent were sent */
        size_t n_sent;
        usec_t progress_at; /* when the first of the queue was sent, or became the first */
        bool news;
        usec_t sweep_at; /* when old facts are dropped next; USEC_INFINITY: there are none */
        struct proc_fact *buckets[BUCKETS];
};

static usec_t now_usec(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

static usec_t pause_usec(unsigned failures)
{
        return MIN(PAUSE_USEC << MIN(failures, 6U), PAUSE_MAX_USEC);
}

static struct proc_fact *fact_free(struct proc_fact *fact)
{
        close_fd(fact->log.fd);
        free(fact->reply);
        free(fact);
        return NULL;
}

static struct proc_fact **bucket_of(struct proc_facts *facts, pid_t pid)
{
        return &facts->buckets[(unsigned)pid % BUCKETS];
}

/* Removes the first of the queue. */
static struct proc_fact *take_first(struct proc_facts *facts)
{
        struct proc_fact *fact = facts->first;

        facts->first = fact->after;
        if (!facts->first)
                facts->end = &facts->first;
        fact->after = NULL;
        fact->queued = false;
        if (facts->n_sent > 0)
                facts->n_sent--;
        return fact;
}

static void put_last(struct proc_facts *facts, struct proc_fact *fact)
{
        fact->queued = true;
        fact->after = NULL;
        *facts->end = fact;
        facts->end = &fact->after;
        (void)sd_event_source_set_enabled(facts->soon, SD_EVENT_ONESHOT);
}

static void set_late(struct proc_facts *facts, struct proc_fact *fact, bool blamed, usec_t now)
{
        if (blamed)
                fact->failures++;
        fact->state = FACT_LATE;
        fact->changed_at = now;
        fact->retry_at = usec_add(now, pause_usec(fact->failures > 0 ? fact->failures - 1 : 0));
        facts->news = true;
}

static void process_free(struct proc_reader_process *process)
{
        struct proc_facts *facts = process->facts;

        sd_event_source_disable_unref(process->input);
        close_fd(process->fd);
        LIST_UNLINK(facts->processes, process);
        free(process);
}

/* Kills the reader's process. Its questions stay in the queue for the next process. */
static void reader_stop(struct proc_facts *facts, usec_t now)
{
        struct proc_reader_process *process = TAKE_PTR(facts->process);

        facts->n_sent = 0;
        facts->start_at = usec_add(now, pause_usec(facts->failures++));
        process->input = sd_event_source_disable_unref(process->input);
        process->fd = close_fd(process->fd);
        (void)signal_child(process->child.pid, SIGKILL);
}

static void on_exited(struct child *child, const siginfo_t *info _unused_)
{
        struct proc_reader_process *process = CHILD_OWNER(child, struct proc_reader_process);
        struct proc_facts *facts = process->facts;

        if (process == facts->process) {
                facts->process = NULL;
                facts->n_sent = 0;
                facts->start_at = usec_add(now_usec(), pause_usec(facts->failures++));
        }
        process_free(process);
        (void)sd_event_source_set_enabled(facts->soon, SD_EVENT_ONESHOT);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata);

static void start_process(struct proc_facts *facts, usec_t now)
{
        unsigned n_stuck = 0;

        for (const struct proc_reader_process *i = facts->processes; i; i = i->next)
                n_stuck++;
        if (now < facts->start_at || n_stuck >= STUCK_MAX)
                return;
        struct proc_reader_process *process = calloc(1, sizeof(*process));
        pid_t pid = 0;
        int fd = -1;

        int r = process ? facts->ops.start(facts->program_fd, PROC_READER_NAME, &pid, &fd) : -ENOMEM;
        if (!process || r < 0) {
                free(process);
                log_warning("cannot start the process reader: %s", strerrordesc_np(-r));
                facts->start_at = usec_add(now, pause_usec(facts->failures++));
                return;
        }
        *process = (struct proc_reader_process){
                .facts = facts,
                .child = {.pid = pid, .exited = on_exited},
                .fd = fd,
        };
        children_add(facts->children, &process->child);
        process->next = facts->processes;
        facts->processes = process;
        facts->process = process;
        if (sd_event_add_io(facts->event, &process->input, process->fd, EPOLLIN, on_input, process) < 0)
                reader_stop(facts, now);
}

static struct proc_question question_of(const struct proc_fact *fact)
{
        return (struct proc_question){
                .pid = fact->pid,
                .subject = fact->subject,
                .start = fact->subject == PROC_LOG_TAIL ? fact->log.start_bytes : fact->start,
                .other_pid = fact->log.other_pid,
        };
}

/* Sends the next message of questions. Returns how many were sent, 0 if none can be sent now, or -errno. */
static ssize_t send_some(struct proc_facts *facts, struct proc_fact *fact)
{
        struct proc_question questions[PROC_QUESTIONS_MAX];
        int log_fd = fact->log.fd;
        size_t n = 0;

        for (; fact && n < ELEMENTSOF(questions) && (n == 0 || (log_fd < 0 && fact->log.fd < 0));
             fact = fact->after)
                questions[n++] = question_of(fact);
        int r = fd_send(facts->process->fd, questions, n * sizeof(*questions), log_fd, MSG_DONTWAIT);
        if (r == -EAGAIN)
                return 0;
        return r < 0 ? r : (ssize_t)n;
}

static void reader_flush(struct proc_facts *facts, usec_t now)
{
        struct proc_fact *fact = facts->first;

        if (fact && !facts->process)
                start_process(facts, now);
        for (size_t i = 0; fact && i < facts->n_sent; i++)
                fact = fact->after;
        while (fact && facts->process && facts->n_sent < SENT_MAX) {
                ssize_t n = send_some(facts, fact);

                if (n < 0)
                        reader_stop(facts, now);
                if (n <= 0)
                        return;
                if (facts->n_sent == 0)
                        facts->progress_at = now;
                facts->n_sent += (size_t)n;
                while (n-- > 0)
                        fact = fact->after;
        }
}

/* Returns true for errors that a reply must not pass on to callers: a shortage, or a code that stands for a
 * missing answer. The reply then counts as late. */
static bool is_own_error(int error)
{
        return is_shortage(error) || error == -EINPROGRESS || error == -ETIMEDOUT;
}

/* Takes the answer to the first question of the queue. */
static void take_reply(struct proc_facts *facts, const struct proc_reply *reply, size_t size, usec_t now)
{
        struct proc_fact *fact = take_first(facts);
        facts->failures = 0;
        facts->progress_at = now;
        if (is_own_error(reply->error)) {
                set_late(facts, fact, true, now);
                fact->log.fd = close_fd(fact->log.fd);
                return;
        }
        free(fact->reply);
        fact->reply = malloc(size);
        if (fact->reply)
                memcpy(fact->reply, reply, size);
        fact->state = FACT_ANSWERED;
        fact->changed_at = now;
        fact->failures = 0;
        fact->log.fd = close_fd(fact->log.fd);
        facts->has_answered = true;
}

static void reader_receive(struct proc_facts *facts, usec_t now)
{
        static struct proc_reply replies[BATCH];
        struct iovec vectors[BATCH];
        struct mmsghdr messages[BATCH];

        for (size_t i = 0; i < BATCH; i++) {
                vectors[i] = (struct iovec){.iov_base = &replies[i], .iov_len = sizeof(replies[i])};
                messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
        }
        int n = recvmmsg(facts->process->fd, messages, BATCH, MSG_DONTWAIT, NULL);
        int r = n < 0 ? -errno : 0;
        if (r == -EAGAIN || r == -EINTR)
                return;
        for (int i = 0; r == 0 && i < n; i++)
                if (messages[i].msg_len == 0)
                        r = -EPIPE;
                else
                        take_reply(facts, &replies[i], messages[i].msg_len, now);
        if (n == 0)
                r = -EPIPE;
        /* Report news only once the queue is empty: each report causes a pass. */
        if (!facts->first && facts->has_answered) {
                facts->has_answered = false;
                facts->news = true;
        }
        if (r < 0)
                reader_stop(facts, now);
}

/* Gives up the questions that are late, and a process that does not answer. */
static void check_deadlines(struct proc_facts *facts, usec_t now)
{
        if (facts->n_sent > 0 && now >= usec_add(facts->progress_at, DEADLINE_USEC)) {
                struct proc_fact *fact = take_first(facts);

                set_late(facts, fact, true, now);
                fact->log.fd = close_fd(fact->log.fd);
                reader_stop(facts, now);
        }
        /* Questions that were sent stay in the queue until they are answered. */
        struct proc_fact **link = &facts->first;
        for (size_t i = 0; *link; i++) {
                struct proc_fact *fact = *link;

                if (fact->state == FACT_ASKED && now >= usec_add(fact->asked_at, DEADLINE_USEC))
                        set_late(facts, fact, false, now);
                if (i < facts->n_sent || fact->state == FACT_ASKED) {
                        link = &fact->after;
                        continue;
                }
                *link = fact->after;
                fact->after = NULL;
                fact->queued = false;
                fact->log.fd = close_fd(fact->log.fd);
        }
        facts->end = link;
}

static bool is_old(const struct proc_fact *fact, usec_t now)
{
        return !fact->queued && fact->state != FACT_ASKED && now >= usec_add(fact->changed_at, KEEP_USEC) &&
               (fact->state != FACT_LATE || now >= usec_add(fact->retry_at, KEEP_USEC));
}

static void sweep(struct proc_facts *facts, usec_t now)
{
        facts->sweep_at = USEC_INFINITY;
        for (size_t i = 0; i < BUCKETS; i++)
                for (struct proc_fact **link = &facts->buckets[i]; *link;) {
                        struct proc_fact *fact = *link;

                        if (!is_old(fact, now)) {
                                facts->sweep_at = usec_add(now, KEEP_USEC);
                                link = &fact->next;
                                continue;
                        }
                        *link = fact->next;
                        fact_free(fact);
                }
}

static void set_timer(struct proc_facts *facts, usec_t now)
{
        usec_t due = facts->sweep_at;

        for (const struct proc_fact *fact = facts->first; fact; fact = fact->after)
                if (fact->state == FACT_ASKED) {
                        due = MIN(due, usec_add(fact->asked_at, DEADLINE_USEC));
                        break;
                }
        if (facts->n_sent > 0)
                due = MIN(due, usec_add(facts->progress_at, DEADLINE_USEC));
        if (facts->first && !facts->process && facts->start_at > now)
                due = MIN(due, facts->start_at);
        timer_set(facts->timer, due);
}

/* Sends what was asked since, and reports what has arrived. */
static void advance(struct proc_facts *facts)
{
        usec_t now = now_usec();

        check_deadlines(facts, now);
        reader_flush(facts, now);
        if (now >= facts->sweep_at)
                sweep(facts, now);
        /* Questions may have been added or answered: schedule a sweep. */
        facts->sweep_at = MIN(facts->sweep_at, usec_add(now, KEEP_USEC));
        set_timer(facts, now);
        if (facts->news) {
                facts->news = false;
                facts->ops.arrived(facts->ops.userdata);
        }
}

static int on_soon(sd_event_source *source _unused_, void *userdata)
{
        advance(userdata);
        return 0;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        advance(userdata);
        return 0;
}

static int on_input(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                    void *userdata)
{
        struct proc_reader_process *process = userdata;
        struct proc_facts *facts = process->facts;

        reader_receive(facts, now_usec());
        (void)sd_event_source_set_enabled(facts->soon, SD_EVENT_ONESHOT);
        return 0;
}

int proc_facts_new(sd_event *event, struct children *children, int program_fd,
                   const struct proc_facts_ops *ops, struct proc_facts **ret)
{
        struct proc_facts *facts = calloc(1, sizeof(*facts));

        if (!facts) {
                close_fd(program_fd);
                return -ENOMEM;
        }
        *facts = (struct proc_facts){
                .event = event,
                .children = children,
                .program_fd = program_fd,
                .ops = *ops,
                .end = &facts->first,
                .sweep_at = USEC_INFINITY,
        };
        int r = sd_event_add_defer(event, &facts->soon, on_soon, facts);
        if (r >= 0)
                r = sd_event_source_set_enabled(facts->soon, SD_EVENT_OFF);
        if (r >= 0)
                r = timer_new(event, on_timer, facts, &facts->timer);
        *ret = r < 0 ? proc_facts_free(facts) : facts;
        return MIN(r, 0);
}

void proc_facts_kill(struct proc_facts *facts)
{
        for (const struct proc_reader_process *i = facts ? facts->processes : NULL; i; i = i->next)
                (void)signal_child(i->child.pid, SIGKILL);
}

struct proc_facts *proc_facts_free(struct proc_facts *facts)
{
        if (!facts)
                return NULL;
        while (facts->processes) {
                struct proc_reader_process *process = facts->processes;

                children_remove(facts->children, &process->child);
                (void)signal_child(process->child.pid, SIGKILL);
                process_free(process);
        }
        FOREACH_ELEMENT(bucket, facts->buckets)
                while (*bucket) {
                        struct proc_fact *fact = *bucket;

                        *bucket = fact->next;
                        fact_free(fact);
                }
        sd_event_source_disable_unref(facts->soon);
        sd_event_source_disable_unref(facts->timer);
        close_fd(facts->program_fd);
        free(facts);
        return NULL;
}

static struct proc_fact *find_fact(struct proc_facts *facts, enum proc_subject subject,
                                   const struct proc *proc)
{
        struct proc_fact *fact = *bucket_of(facts, proc_pid(proc));

        while (fact && (fact->pid != proc_pid(proc) || fact->start != proc_start_time(proc) ||
                        fact->subject != subject))
                fact = fact->next;
        return fact;
}

static struct proc_fact *add_fact(struct proc_facts *facts, enum proc_subject subject,
                                  const struct proc *proc)
{
        struct proc_fact *fact = calloc(1, sizeof(*fact)), **bucket = bucket_of(facts, proc_pid(proc));

        if (!fact)
                return NULL;
        fact->subject = subject;
        fact->pid = proc_pid(proc);
        fact->start = proc_start_time(proc);
        fact->state = FACT_LATE;
        fact->log.fd = -1;
        fact->next = *bucket;
        *bucket = fact;
        return fact;
}

void proc_facts_expire(struct proc_facts *facts, const struct proc *proc, usec_t before)
{
        for (int subject = 0; facts && subject < _PROC_SUBJECT_MAX; subject++) {
                struct proc_fact *fact = find_fact(facts, (enum proc_subject)subject, proc);

                if (fact && fact->state == FACT_ANSWERED && fact->asked_at < before)
                        fact->changed_at = 0;
        }
}

/* Asks the reader. Returns 0 with the answer in *ret, borrowed until the loop runs or
 * proc_facts_wait() is called; or -errno as above. log: for PROC_LOG_TAIL, its
 * descriptor is duplicated; else NULL. */
static int ask_reader(struct proc_facts *facts, enum proc_subject subject, const struct proc *proc,
                      const struct proc_log *log, const struct proc_reply **ret)
{
        static struct proc_reply direct;

        if (!facts) {
                const struct proc_fact asked = {.pid = proc_pid(proc),
                                                .start = proc_start_time(proc),
                                                .subject = subject,
                                                .log = log ? *log : (struct proc_log){.fd = -1}};
                const struct proc_question question = question_of(&asked);

                proc_answer(&question, asked.log.fd, &direct);
                *ret = &direct;
                return direct.error;
        }
        struct proc_fact *fact = find_fact(facts, subject, proc);
        usec_t now = now_usec();
        if (fact && fact->state == FACT_ANSWERED && now < usec_add(fact->changed_at, FRESH_USEC)) {
                *ret = fact->reply;
                return fact->reply ? fact->reply->error : -ENOMEM;
        }
        if (fact && fact->state == FACT_ASKED)
                return -EINPROGRESS;
        if (fact && (fact->queued || now < fact->retry_at))
                return -ETIMEDOUT;
        if (!fact)
                fact = add_fact(facts, subject, proc);
        if (!fact)
                return -ENOMEM;
        if (log) {
                close_fd(fact->log.fd);
                fact->log = *log;
                fact->log.fd = fcntl(log->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
                if (fact->log.fd < 0)
                        return -errno;
        }
        fact->state = FACT_ASKED;
        fact->asked_at = now;
        put_last(facts, fact);
        /* A question about a log has a message of its own: waiting for more questions gains nothing. */
        if (log)
                reader_flush(facts, now);
        return -EINPROGRESS;
}

void proc_facts_wait(struct proc_facts *facts, usec_t until)
{
        for (usec_t now = now_usec(); facts && now < until; now = now_usec()) {
                reader_flush(facts, now);
                if (!facts->first || !facts->process)
                        return;
                struct pollfd wait = {.fd = facts->process->fd, .events = POLLIN};
                if (poll(&wait, 1, (int)((until - now) / USEC_PER_MSEC) + 1) > 0)
                        reader_receive(facts, now_usec());
        }
}

bool proc_facts_is_reader(const struct proc_facts *facts, pid_t pid)
{
        for (const struct proc_reader_process *i = facts ? facts->processes : NULL; i; i = i->next)
                if (i->child.pid == pid)
                        return true;
        return false;
}

static int ask_text(struct proc_facts *facts, enum proc_subject subject, const struct proc *proc, char *text,
                    size_t size)
{
        const struct proc_reply *reply = NULL;
        int r = ask_reader(facts, subject, proc, NULL, &reply);

        if (r == 0 && reply)
                snprintf(text, size, "%.*s", (int)size - 1, reply->text);
        return r;
}

int proc_facts_title(struct proc_facts *facts, const struct proc *proc, char *title, size_t size)
{
        return ask_text(facts, PROC_TITLE, proc, title, size);
}

int proc_facts_peers(struct proc_facts *facts, const struct proc *proc, char peers[static PROC_PEERS_MAX])
{
        return ask_text(facts, PROC_PEERS, proc, peers, PROC_PEERS_MAX);
}

ssize_t proc_facts_environment(struct proc_facts *facts, const struct proc *proc,
                               char text[static PROC_ENVIRONMENT_MAX], size_t *ret_length)
{
        const struct proc_reply *reply = NULL;
        int r = ask_reader(facts, PROC_ENVIRONMENT, proc, NULL, &reply);

        *ret_length = 0;
        if (r < 0)
                return r;
        assert(reply);
        *ret_length = MIN((size_t)reply->length, sizeof(reply->text));
        memcpy(text, reply->text, *ret_length);
        text[*ret_length] = '\0';
        return (ssize_t)reply->read_bytes;
}

int proc_facts_memory(struct proc_facts *facts, const struct proc *proc, uint64_t *ret_pss,
                      uint64_t *ret_private)
{
        const struct proc_reply *reply = NULL;
        int r = ask_reader(facts, PROC_MEMORY, proc, NULL, &reply);

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
        const struct proc_reply *reply = NULL;
        int r = ask_reader(facts, PROC_LOG_TAIL, proc, log, &reply);

        if (r < 0)
                return r;
        assert(reply);
        snprintf(lines, size, "%s", reply->text);
        return 0;
}
