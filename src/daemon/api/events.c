/* SPDX-License-Identifier: MIT */
/* Keeps the latest events and sends new ones to followers. */
#include "daemon/api/events.h"
#include "daemon/api/status.h"
#include "model/world.h"
#include <syslog.h>

struct entry {
        struct event event; /* fleet is NULL: the fleet may be removed before the event is dropped */
        char *fleet;        /* name of the fleet; NULL: none */
        usec_t realtime;
};

struct follower {
        struct events *events;
        struct follower *next;
        struct call *call;
        char **fleets; /* the fleets to follow; NULL: all */
        size_t n_fleets;
        char *worker; /* NULL: all */
        uint64_t at;  /* number of the next event to send */
};

struct events {
        struct entry ring[EVENTS_KEPT];
        uint64_t end; /* number of the next event */
        struct follower *first;
};

static void entry_clear(struct entry *entry)
{
        free(entry->fleet);
        free(entry->event.text);
        free(entry->event.quoted);
        *entry = (struct entry){0};
}

static void follower_free(struct follower *follower)
{
        if (!follower)
                return;
        for (size_t i = 0; i < follower->n_fleets; i++)
                free(follower->fleets[i]);
        free(follower->fleets);
        free(follower->worker);
        free(follower);
}

DEFINE_CLEANUP(struct follower *, follower_free)

static void on_cancelled(struct call *call _unused_, void *userdata)
{
        struct follower *follower = userdata;

        LIST_UNLINK(follower->events->first, follower);
        follower_free(follower);
}

int events_new(struct events **ret)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

struct events *events_free(struct events *events)
{
        if (!events)
                return NULL;
        assert(!events->first);
        for (size_t i = 0; i < EVENTS_KEPT; i++)
                entry_clear(&events->ring[i]);
        free(events);
        return NULL;
}

/* Returns an entry that borrows the texts of the event. */
static struct entry entry_of(const struct event *event, usec_t realtime)
{
        return (struct entry){
                .event = *event,
                .fleet = event->fleet ? event->fleet->settings->name : NULL,
                .realtime = realtime,
        };
}

void events_add(struct events *events, const struct event *event, usec_t realtime)
{
        struct entry *entry = &events->ring[events->end % EVENTS_KEPT], new = entry_of(event, realtime);

        new.event.fleet = NULL;
        new.event.text = strdup(event->text);
        new.event.quoted = NULL;
        if (event->quoted)
                event_quote(&new.event, event->quoted);
        if (new.fleet)
                new.fleet = strdup(new.fleet);
        if (!new.event.text || (event->fleet && !new.fleet)) {
                entry_clear(&new);
                return;
        }
        entry_clear(entry);
        *entry = new;
        events->end++;
}

static uint64_t first_kept(const struct events *events)
{
        return events->end > EVENTS_KEPT ? events->end - EVENTS_KEPT : 0;
}

/* Writes the worker id, or "" if the event has no worker. */
static const char *entry_worker(const struct entry *entry, char text[static WORKER_ID_MAX])
{
        text[0] = '\0';
        return entry->event.index != 0 ? worker_id(entry->fleet, entry->event.index, text) : text;
}

bool events_have(const struct events *events, const char *worker)
{
        char id[WORKER_ID_MAX];

        for (uint64_t at = first_kept(events); at < events->end; at++)
                if (strcmp(entry_worker(&events->ring[at % EVENTS_KEPT], id), worker) == 0)
                        return true;
        return false;
}

static bool is_wanted(const struct follower *follower, const struct entry *entry)
{
        char id[WORKER_ID_MAX];

        if (follower->worker && strcmp(entry_worker(entry, id), follower->worker) != 0)
                return false;
        if (!follower->fleets)
                return true;
        for (size_t i = 0; entry->fleet && i < follower->n_fleets; i++)
                if (strcmp(follower->fleets[i], entry->fleet) == 0)
                        return true;
        return false;
}

static const char *level_name(int level)
{
        return level == LOG_ERR ? "error" : level == LOG_WARNING ? "warning" : "info";
}

/* Time of an entry as rendered, for comparison with a time that a client sends back. JSON numbers have 15
 * digits, so the time is cut to 10 microseconds. */
static double entry_at(const struct entry *entry)
{
        return (double)(entry->realtime / 10 * 10) / (double)USEC_PER_SEC;
}

static json_t *render_entry(const struct entry *entry)
{
        const struct event *event = &entry->event;
        char id[WORKER_ID_MAX];

        static const struct quoted nothing;
        json_t *object = json_pack(
                "{s:f, s:s, s:s, s:o, s:o, s:o, s:o, s:s?, s:o, s:o}", "at", entry_at(entry), "event",
                event_kinds[event->kind].name, "level", level_name(event_level(event)), "fleet",
                varlink_text(entry->fleet), "worker", varlink_text(entry_worker(entry, id)), "pid",
                event->pid > 0 ? json_integer(event->pid) : json_null(), "generation",
                event->generation > 0 ? json_integer((json_int_t)event->generation) : json_null(), "reason",
                event->reason != REASON_NONE ? reason_name(event->reason) : NULL, "text",
                varlink_text(event->text), "by", status_orderer(&event->by));

        return quoted_put(object, event->quoted ?: &nothing);
}

json_t *event_render(const struct event *event, usec_t realtime)
{
        struct entry entry = entry_of(event, realtime);

        return render_entry(&entry);
}

uint64_t events_end(const struct events *events)
{
        return events->end;
}

uint64_t events_after(const struct events *events, double at)
{
        uint64_t first = first_kept(events), later = events->end;

        for (uint64_t i = events->end; i-- > first;) {
                double there = entry_at(&events->ring[i % EVENTS_KEPT]);

                if (there == at)
                        return i + 1;
                if (there > at)
                        later = i;
        }
        return later;
}

/* Excludes halted and aborted rollouts: the caller reports these itself. */
static bool is_trouble_of(const struct entry *entry, const char *fleet)
{
        enum event_kind kind = entry->event.kind;

        return event_kinds[kind].level <= LOG_WARNING && kind != EVENT_ROLLOUT_HALTED &&
               kind != EVENT_ROLLOUT_ABORTED && entry->fleet && strcmp(entry->fleet, fleet) == 0;
}

int events_add_troubles(const struct events *events, uint64_t since, const char *fleet, json_t *list)
{
        for (uint64_t at = MAX(since, first_kept(events)); at < events->end; at++) {
                const struct entry *entry = &events->ring[at % EVENTS_KEPT];

                if (is_trouble_of(entry, fleet) && json_array_append_new(list, render_entry(entry)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Renders the events that the follower has not got yet. *ret_any: true if there are any. Returns NULL when
 * memory is short. */
static json_t *render_news(struct follower *follower, bool *ret_any)
{
        const struct events *events = follower->events;
        _cleanup_json_ json_t *list = json_array();

        for (follower->at = MAX(follower->at, first_kept(events)); follower->at < events->end;
             follower->at++) {
                const struct entry *entry = &events->ring[follower->at % EVENTS_KEPT];

                if (is_wanted(follower, entry) && json_array_append_new(list, render_entry(entry)) < 0)
                        return NULL;
        }
        *ret_any = json_array_size(list) > 0;
        return json_pack("{s:O}", "events", list);
}

static struct follower *follower_new(struct events *events, struct call *call,
                                     const struct handler_fleets *list, const char *worker, uint64_t from)
{
        _cleanup_(follower_free_pointer) struct follower *follower = calloc(1, sizeof(*follower));

        if (!follower)
                return NULL;
        follower->events = events;
        follower->call = call;
        follower->at = from;
        if (worker && !(follower->worker = strdup(worker)))
                return NULL;
        if (!list->all && !(follower->fleets = calloc(list->n_fleets + 1, sizeof(*follower->fleets))))
                return NULL;
        for (size_t i = 0; !list->all && i < list->n_fleets; i++) {
                follower->fleets[i] = strdup(list->fleets[i]->settings->name);
                if (!follower->fleets[i])
                        return NULL;
                follower->n_fleets = i + 1;
        }
        return TAKE_PTR(follower);
}

void events_reply(struct events *events, struct call *call, const struct handler_fleets *list,
                  const char *worker, uint64_t from)
{
        _cleanup_(follower_free_pointer) struct follower *follower =
                follower_new(events, call, list, worker, from);
        bool any;
        json_t *reply = follower ? render_news(follower, &any) : NULL;

        if (!call_wants_more(call) || !reply) {
                call_reply(call, reply, false);
                return;
        }
        call_reply(call, reply, true);
        call_keep(call, on_cancelled, follower);
        follower->next = events->first;
        events->first = TAKE_PTR(follower);
}

void events_tick(struct events *events)
{
        struct follower *next;

        for (struct follower *follower = events->first; follower; follower = next) {
                bool any = false;

                next = follower->next;
                if (follower->at == events->end)
                        continue;
                json_t *reply = render_news(follower, &any);
                if (!reply) {
                        call_reply(follower->call, NULL, false);
                        LIST_UNLINK(follower->events->first, follower);
                        follower_free(follower);
                } else if (any) {
                        call_reply(follower->call, reply, true);
                } else {
                        json_decref(reply);
                }
        }
}
