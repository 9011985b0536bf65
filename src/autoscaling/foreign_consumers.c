/* SPDX-License-Identifier: MIT */
/* Counts the processes of one server that are not workers of this host; see the header. */
#include "autoscaling/foreign_consumers.h"
#include "io/clock.h"

/* Consumers read per count. Further ones are assumed to be like those read. */
#define READ_MAX 2000
/* Pages of 100 identities or more. A server can name a next page for ever. */
#define PAGES_MAX 1000
/* The pause between counts is the greatest of three: a fixed time, a multiple of the count's duration, and
 * a time per consumer found. Many consumers mean many hosts that count them. */
#define COUNT_USEC (60 * USEC_PER_SEC)
#define COUNT_DUTY 50
#define FOUND_USEC (100 * USEC_PER_MSEC)
/* If counts fail, the last result stays valid for this long after the next count was due. */
#define KEEP_USEC (5 * USEC_PER_MIN)

struct consumer {
        struct consumer *next;
        struct foreign_consumers *consumers;
        struct heartbeat_info *info; /* owned; NULL: the process reported nothing about itself */
        bool active;                 /* the last heartbeat was read and is not quiet */
        unsigned threads, idle;
};

struct consumer_list {
        struct consumer *list; /* owned; the consumers whose heartbeat was requested */
        size_t n_read;         /* with a heartbeat */
        size_t n_found;        /* identities that are not ours, requested or not */
};

struct foreign_consumers {
        const struct framework *framework;
        struct reader *reader;
        bool (*is_ours)(const char *identity, size_t len, void *userdata);
        void *userdata;
        size_t pending; /* queries */
        unsigned pages; /* of this count */
        bool failed;
        char cursor[ANSWER_CURSOR_MAX];   /* of the next page; "": none */
        usec_t begun_at, next_at;         /* next_at: 0: no count has ended or failed yet */
        usec_t counted_at, counted_until; /* end of the last count; its result is valid until then; 0: none */
        struct consumer_list now, counted;
};

static void census_clear(struct consumer_list *census)
{
        for (struct consumer *consumer = census->list, *next; consumer; consumer = next) {
                next = consumer->next;
                free(consumer->info);
                free(consumer);
        }
        *census = (struct consumer_list){0};
}

struct foreign_consumers *foreign_consumers_free(struct foreign_consumers *consumers)
{
        if (!consumers)
                return NULL;
        if (consumers->pending > 0) {
                reader_forget(consumers->reader, consumers);
                for (struct consumer *consumer = consumers->now.list; consumer; consumer = consumer->next)
                        reader_forget(consumers->reader, consumer);
        }
        census_clear(&consumers->now);
        census_clear(&consumers->counted);
        free(consumers);
        return NULL;
}

static void ask(struct foreign_consumers *consumers, const struct query *query, reader_answer_fn callback,
                void *userdata)
{
        bool sent = reader_ask(consumers->reader, query, callback, userdata) == 0;

        consumers->pending += sent;
        consumers->failed |= !sent;
}

static void end(struct foreign_consumers *consumers)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        consumers->next_at = now + MAX(MAX(COUNT_USEC, COUNT_DUTY * usec_sub(now, consumers->begun_at)),
                                       FOUND_USEC * consumers->now.n_found);
        if (!consumers->failed) {
                census_clear(&consumers->counted);
                consumers->counted = consumers->now;
                consumers->counted_at = now;
                consumers->counted_until = consumers->next_at + KEEP_USEC;
                consumers->now = (struct consumer_list){0};
        }
        census_clear(&consumers->now);
}

static void on_page(struct answer *answer, void *userdata);

static void ask_page(struct foreign_consumers *consumers)
{
        const struct field texts[] = {QUERY_TEXT(consumers->cursor)};
        const struct query query = {.kind = QUERY_SCAN, .numbers = {1}, .texts = texts, .n_texts = 1};

        ask(consumers, &query, on_page, consumers);
        consumers->failed |= ++consumers->pages > PAGES_MAX;
}

/* Call answer_begin() first and answer_end() last for each answer. */
static void answer_begin(struct foreign_consumers *consumers, const struct answer *answer)
{
        consumers->pending--;
        consumers->failed |= answer->status != ANSWER_OK;
}

static void answer_end(struct foreign_consumers *consumers)
{
        if (consumers->pending > 0)
                return;
        /* The page and all consumers on it were answered: continue with the next page. */
        if (!consumers->failed && consumers->cursor[0] != '\0')
                ask_page(consumers);
        if (consumers->pending == 0)
                end(consumers);
}

static void on_consumer(struct answer *answer, void *userdata)
{
        struct consumer *consumer = userdata;
        struct foreign_consumers *consumers = consumer->consumers;
        const struct heartbeat *heartbeat = &answer->heartbeat.heartbeat;

        answer_begin(consumers, answer);
        /* A dead process may leave its identity without a heartbeat. */
        if (answer->status == ANSWER_OK && answer->heartbeat.found) {
                consumer->info = TAKE_PTR(answer->heartbeat.info);
                consumers->now.n_read++;
                consumer->active = !heartbeat->quiet;
                consumer->threads = heartbeat->concurrency;
                consumer->idle = heartbeat->concurrency > heartbeat->busy
                                         ? heartbeat->concurrency - heartbeat->busy
                                         : 0;
        }
        answer_end(consumers);
}

static void found(struct foreign_consumers *consumers, const struct answer_identity *found)
{
        struct consumer_list *census = &consumers->now;
        const struct field texts[] = {QUERY_TEXT(found->identity)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .numbers = {1, 1}, .texts = texts, .n_texts = 1};

        if (consumers->is_ours(found->identity, texts[0].len, consumers->userdata) ||
            ++census->n_found > READ_MAX)
                return;
        struct consumer *consumer = calloc(1, sizeof(*consumer));
        if (!consumer) {
                consumers->failed = true;
                return;
        }
        *consumer = (struct consumer){.next = census->list, .consumers = consumers};
        census->list = consumer;
        ask(consumers, &query, on_consumer, consumer);
}

static void on_page(struct answer *answer, void *userdata)
{
        struct foreign_consumers *consumers = userdata;

        answer_begin(consumers, answer);
        memcpy(consumers->cursor, answer->scan.cursor, sizeof(consumers->cursor));
        for (size_t i = 0; i < answer->scan.n && !consumers->failed; i++)
                found(consumers, &answer->scan.list[i]);
        answer_end(consumers);
}

int foreign_consumers_new(const struct framework *framework, struct reader *reader,
                          bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                          struct foreign_consumers **ret)
{
        struct foreign_consumers *consumers = calloc(1, sizeof(*consumers));

        if (!consumers)
                return -ENOMEM;
        *consumers = (struct foreign_consumers){
                .framework = framework, .reader = reader, .is_ours = is_ours, .userdata = userdata};
        *ret = consumers;
        return 0;
}

void foreign_consumers_poll(struct foreign_consumers *consumers, usec_t now)
{
        if (consumers->pending > 0 || now < consumers->next_at ||
            reader_state(consumers->reader) != READER_STATE_CONNECTED)
                return;
        consumers->begun_at = now;
        consumers->failed = false;
        consumers->pages = 0;
        consumers->cursor[0] = '\0';
        ask_page(consumers);
        if (consumers->pending == 0)
                consumers->next_at = now + COUNT_USEC;
}

/* Returns true if a process that serves `queues` serves any of the names. */
static bool serves(const char *queues, const char *names, bool *ret_all)
{
        bool any = false;

        *ret_all = true;
        for (; names && *names != '\0'; names += strlen(names) + 1) {
                bool has = queue_names_have(queues, names);

                any |= has;
                *ret_all &= has;
        }
        return any;
}

struct foreign_count foreign_consumers_count(const struct foreign_consumers *consumers, const char *names,
                                             usec_t now)
{
        const struct consumer_list *census = &consumers->counted;
        double serving = 0, each = MAX((double)census->n_found / READ_MAX, 1.0);
        struct foreign_count count = {
                .known = now<consumers->counted_until, .unread = consumers->next_at == 0,
                             .counted_at = consumers->counted_at, .any = census->n_read> 0};

        if (!count.known)
                return count;
        for (const struct consumer *consumer = census->list; consumer; consumer = consumer->next) {
                bool all;

                if (!consumer->active ||
                    !serves(consumers->framework->queue_names(consumer->info), names, &all))
                        continue;
                serving += each;
                count.idle += consumer->idle * each;
                if (all)
                        count.threads += consumer->threads * each;
                else
                        count.partial_idle += consumer->idle * each;
        }
        count.serving = (unsigned)serving;
        return count;
}
