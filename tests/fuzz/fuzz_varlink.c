/* SPDX-License-Identifier: MIT */
/* Two clients of the control socket and a viewer, and the real server with the real handlers. The first bytes
 * say in what pieces the rest arrives; a byte that no text has changes the client. Each source of quoted text
 * has a canary, which others are sent and viewers never are. */
#include "../guard.h"
#include "daemon/service.h"
#include "daemon/workers/side_start.h"
#include "frameworks/sidekiq/format.h"
#include "fuzz.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include <sys/socket.h>

#define CLIENTS 3
#define VIEWER  1
#define PIECES  4
#define CHANGE  0xfe
#define NOW     (1000 * USEC_PER_SEC)
#define PING    CALL("Ping")

#define CALL(method) "{\"method\":\"org.sqmgr.Control." method "\"}"
#define CANARY       "canary"

/* The canaries, one for each source of quoted text. */
static const char *const canaries[] = {
        CANARY " of a log tail",   CANARY " of a late log tail", CANARY " of a start",
        CANARY " of a template",   CANARY " of a restart",       CANARY " of a rescue",
        CANARY " of a dead Redis",
};
enum source { LOG_TAIL, LATE_LOG_TAIL, START, TEMPLATE, RESTART, RESCUE, REDIS, _SOURCE_MAX };
static_assert(ELEMENTSOF(canaries) == _SOURCE_MAX, "a canary for each");

struct client {
        int fd;
        bool views;
        struct varlink_input input;
        bool seen[_SOURCE_MAX]; /* the canaries that this client was sent */
};

static char names[][8] = {"web", "mail"};
static struct fleet_settings fleet_settings[2];
static struct fleet_settings *fleet_list[] = {&fleet_settings[0], &fleet_settings[1]};
static struct settings settings = {
        .check_interval = 5 * USEC_PER_SEC,
        .fleets = fleet_list,
        .n_fleets = 2,
        .redis = {.queue_warn_size = (char *)"", .queue_warn_latency = (char *)""},
};
static char folder[] = "/tmp/sqmgr-fuzz-XXXXXX", path[64];
static sd_event *event;
static struct world *world;
static struct control control;
static struct call *kept;
static struct wakeup loop_iterate;
static struct runtime runtime = {.wakeup = &loop_iterate};
static struct link link_down;
static struct link *link_list[] = {&link_down};
/* A check for a release; fn is NULL if none is in progress. */
static struct side_start {
        release_fn fn;
        void *userdata;
} check;
static bool has_release;
static bool keeps;

static struct quoted canary(enum source source)
{
        struct quoted quoted;

        quoted_set(&quoted, canaries[source]);
        return quoted;
}

/* The reader of a server that is down. */
enum reader_state __wrap_reader_state(const struct reader *reader);
enum reader_state __wrap_reader_state(const struct reader *reader _unused_)
{
        return READER_STATE_DOWN;
}

const struct error_report *__wrap_reader_error(const struct reader *reader);
const struct error_report *__wrap_reader_error(const struct reader *reader _unused_)
{
        static struct error_report error;

        error_report_quote(&error, canaries[REDIS], "it refuses the command");
        return &error;
}

const char *__wrap_reader_url_text(const struct reader *reader);
const char *__wrap_reader_url_text(const struct reader *reader _unused_)
{
        return "redis://r";
}

int __wrap_reader_ask(struct reader *reader, const struct query *query, reader_answer_fn callback,
                      void *userdata);
int __wrap_reader_ask(struct reader *reader _unused_, const struct query *query _unused_,
                      reader_answer_fn callback _unused_, void *userdata _unused_)
{
        return -ENOTCONN;
}

int __wrap_reload_settings(struct reloader *reloader, const struct orderer *by, char **ret_lines);
int __wrap_reload_settings(struct reloader *reloader _unused_, const struct orderer *by _unused_,
                           char **ret_lines)
{
        *ret_lines = strdup("");
        return *ret_lines ? 0 : -ENOMEM;
}

void __wrap_reexec_request(struct reexec *reexec, struct call *call);
void __wrap_reexec_request(struct reexec *reexec _unused_, struct call *call)
{
        call_reply(call, json_object(), false);
}

static void on_cancelled(struct call *call, void *userdata _unused_)
{
        fuzz_check(call == kept);
        kept = NULL;
}

/* Keeps every second call until its client leaves or the next call arrives. */
void __real_jobs_calls_add(struct control *of, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now);
void __wrap_jobs_calls_add(struct control *of, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now);
void __wrap_jobs_calls_add(struct control *of, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now)
{
        fuzz_check(n_fleets > 0 && fleets[0]);
        if (kept) {
                struct call *answered = kept;

                kept = NULL;
                call_reply(answered, json_object(), false);
        }
        keeps = !keeps;
        if (keeps) {
                __real_jobs_calls_add(of, call, fleets, n_fleets, now);
                return;
        }
        call_keep(call, on_cancelled, NULL);
        kept = call;
}

void __wrap_problems_collect(const struct control *of, struct problem_storage *ret, usec_t now);
void __wrap_problems_collect(const struct control *of _unused_, struct problem_storage *ret,
                             usec_t now _unused_)
{
        ret->redis[0] = (struct problem_redis){.kind = "redis",
                                               .url = "redis://r",
                                               .state = READER_STATE_DOWN,
                                               .error = __wrap_reader_error(NULL)};
        ret->facts = (struct problem_facts){.redis = ret->redis, .n_redis = 1};
}

void __wrap_doctor_request(const struct control *of, struct call *call);
void __wrap_doctor_request(const struct control *of _unused_, struct call *call)
{
        call_reply(call, json_object(), false);
}

int __wrap_release_check_begin(struct runtime *of, const struct fleet *fleet, const char *release,
                               release_fn fn, void *userdata, struct side_start **ret);
int __wrap_release_check_begin(struct runtime *of _unused_, const struct fleet *fleet, const char *release,
                               release_fn fn, void *userdata, struct side_start **ret)
{
        fuzz_check(fleet && release);
        if (check.fn)
                return -EAGAIN;
        check = (struct side_start){.fn = fn, .userdata = userdata};
        *ret = &check;
        return 0;
}

struct side_start *__wrap_release_check_cancel(struct side_start *cancelled);
struct side_start *__wrap_release_check_cancel(struct side_start *cancelled)
{
        if (cancelled)
                cancelled->fn = NULL;
        return NULL;
}

/* Ends the check: every second one finds the release. */
static void end_check(void)
{
        const struct side_start ended = check;
        struct error_report error;

        if (!ended.fn)
                return;
        check.fn = NULL;
        has_release = !has_release;
        error_report_quote(&error, canaries[START], "it was not found");
        ended.fn(has_release ? NULL : &error, ended.userdata);
}

void __wrap_persist_save_now(struct runtime *saved, usec_t now);
void __wrap_persist_save_now(struct runtime *saved _unused_, usec_t now _unused_)
{
}

usec_t __wrap_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock _unused_)
{
        return NOW;
}

static void make_folder(void)
{
        if (path[0] != '\0')
                return;
        fuzz_check(guard_start() && mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/control.sock", folder);
}

/* Puts a canary into each source that the fleet has. */
static void plant(struct fleet *fleet)
{
        const struct quoted tail = canary(LOG_TAIL), late = canary(LATE_LOG_TAIL), start = canary(START);
        const struct exit_status exits[] = {
                {.known = true, .log_tail = &tail},
                {.known = true, .launch_error = &start},
                {.known = true, .lines_token = 7},
        };
        struct error_report error;

        observe_redis(fleet, true, NOW);
        fleet->link = &link_down;
        for (unsigned i = 0; i < ELEMENTSOF(exits); i++) {
                struct worker *worker = observe_started(fleet, i + 1, REASON_NONE, 100 + (pid_t)i, 1, NOW);

                fuzz_check(worker);
                observe_exit(worker, &exits[i], NOW);
        }
        observe_log_tail(fleet, 7, &late);
        error_report_quote(&error, canaries[RESCUE], "it refuses the command");
        rescue_observe_failed(fleet->workers[0], &error);
        fleet->rollout.state = ROLLOUT_HALTED;
        snprintf(fleet->rollout.error, sizeof(fleet->rollout.error), "it failed");
        fleet->rollout.quoted = canary(RESTART);
        fleet->preload.refused_generation = fleet->generation;
        snprintf(fleet->preload.refused, sizeof(fleet->preload.refused), "it cannot be forked");
        fleet->preload.quoted = canary(TEMPLATE);
}

static void make_world(void)
{
        static const struct status_settings settings_age = {.refused = true};
        control = (struct control){
                .version = "1",
                .instance = "shop",
                .started_at = NOW,
                .runtime = &runtime,
                .settings = &settings_age,
        };

        for (size_t i = 0; i < ELEMENTSOF(fleet_settings); i++)
                fleet_settings[i] = (struct fleet_settings){
                        .traits = &sidekiq_traits,
                        .name = names[i],
                        .active_process_count = 1,
                        .max_processes = 4,
                        .ready_after = 10 * USEC_PER_SEC,
                        .rollout_timeout = USEC_PER_HOUR,
                        .preload = true,
                };
        fuzz_check(sd_event_new(&event) >= 0);
        fuzz_check(world_new(&settings, 1, &world) == 0);
        link_down = (struct link){.runtime = &runtime, .framework = &sidekiq_framework};
        runtime.links = (struct links){.list = link_list, .n = 1};
        for (size_t i = 0; i < world->n_fleets; i++)
                plant(world->fleets[i]);
        keeps = has_release = false;
        runtime.event = event;
        runtime.world = world;
        fuzz_check(events_new(&control.events) == 0);
        for (size_t i = 0; i < world->n_events; i++)
                events_add(control.events, &world->events[i], NOW);
}

/* Reads all replies, which must be complete. Returns their number. */
static unsigned take_replies(struct client *client)
{
        const char *text;
        unsigned n = 0;
        size_t size;
        char *room;

        for (;;) {
                fuzz_check(varlink_input_reserve(&client->input, 65536, &room) == 0);
                ssize_t got = recv(client->fd, room, 65536, MSG_DONTWAIT);
                if (got <= 0)
                        break;
                varlink_input_filled(&client->input, (size_t)got);
        }
        while (varlink_input_take(&client->input, VARLINK_REPLY_MAX, &text, &size) > 0) {
                struct varlink_reply reply = {0};

                fuzz_check(varlink_decode_reply(text, size, VARLINK_REPLY_MAX, &reply) == 0);
                fuzz_check(!client->views || !strstr(text, CANARY));
                for (size_t i = 0; i < ELEMENTSOF(canaries); i++)
                        client->seen[i] |= !!strstr(text, canaries[i]);
                varlink_reply_free(&reply);
                n++;
        }
        return n;
}

static enum control_access next_access; /* of the next client */

enum control_access __wrap_control_peer_access(const struct control_peer *peer, uid_t own_uid,
                                               gid_t view_group, gid_t operate_group);
enum control_access __wrap_control_peer_access(const struct control_peer *peer _unused_,
                                               uid_t own_uid _unused_, gid_t view_group _unused_,
                                               gid_t operate_group _unused_)
{
        return next_access;
}

static struct client client_open(struct api_server *server, bool views)
{
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        next_access = views ? CONTROL_VIEW : CONTROL_OWN;
        api_server_continue(server, fds[0], NULL);
        return (struct client){.fd = fds[1], .views = views};
}

static unsigned client_iterate(struct client *client)
{
        unsigned n = 0;

        for (unsigned wakeup = 0; wakeup < 1000 && sd_event_run(event, 0) > 0; wakeup++)
                n += take_replies(client);
        end_check();
        world_events_clear(world);
        if (queue_reading_tick(&runtime))
                queue_calls_answer(&control, NOW);
        control_tick(&control, NOW);
        return n + take_replies(client);
}

/* Calls each method that viewers may call. */
static void ask_all(struct client *client)
{
        static const char *const calls[] = {
                PING,
                CALL("GetVersion"),
                CALL("GetStatus"),
                CALL("Follow"),
                CALL("GetEvents"),
                CALL("GetJobs"),
                CALL("GetJobs"),
                CALL("GetMetrics"),
                CALL("GetQueues"),
        };

        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                size_t size = strlen(calls[i]) + 1;

                fuzz_check(send(client->fd, calls[i], size, MSG_NOSIGNAL) == (ssize_t)size);
                (void)client_iterate(client);
                /* The kept call would delay the calls behind it. */
                if (kept) {
                        call_reply(kept, json_object(), false);
                        kept = NULL;
                }
                (void)client_iterate(client);
        }
}

static void client_close(struct client *client)
{
        close_fd(client->fd);
        varlink_input_free(&client->input);
}

static void talk(struct client clients[static CLIENTS], struct input *input)
{
        uint8_t pieces[PIECES];
        size_t at = 0;

        for (size_t i = 0; i < PIECES; i++)
                pieces[i] = input_byte(input);
        for (size_t piece = 0; input->left > 0; piece++) {
                size_t wanted = pieces[piece % PIECES] == 0 ? input->left : pieces[piece % PIECES];
                const uint8_t *change = memchr(input->at, CHANGE, input->left);
                size_t n = MIN(wanted, change ? (size_t)(change - input->at) : input->left);

                uint64_t before = loop_iterate.pass.serial;
                if (n > 0)
                        (void)send(clients[at].fd, input->at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
                input->at += n;
                input->left -= n;
                (void)client_iterate(&clients[at]);
                /* A viewer changes nothing. */
                fuzz_check(at != VIEWER || loop_iterate.pass.serial == before);
                if (input->at == change) {
                        (void)input_byte(input);
                        at = (at + 1) % CLIENTS;
                }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        struct client clients[CLIENTS];
        struct api_server *server = NULL;
        char error[512] = "";

        make_folder();
        make_world();
        struct api_server_options options = {
                .path = path,
                .groups = {CONTROL_NO_GROUP, CONTROL_NO_GROUP, ""},
                .version = "1",
                .handle = control_handle,
                .userdata = &control,
        };
        fuzz_check(api_server_new(event, &options, &server, error, sizeof(error)) == 0);
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = client_open(server, i == VIEWER);
        /* Before any client changes anything, all canaries are sent to the clients that may have them, and
         * none to viewers. */
        ask_all(&clients[VIEWER]);
        ask_all(&clients[0]);
        for (size_t i = 0; i < ELEMENTSOF(canaries); i++)
                fuzz_check(clients[0].seen[i]);
        talk(clients, &input);

        /* Another client is still answered, and a viewer is sent no canary. */
        struct client other = client_open(server, false), viewer = client_open(server, true);
        fuzz_check(send(other.fd, PING, sizeof(PING), MSG_NOSIGNAL) == sizeof(PING));
        fuzz_check(client_iterate(&other) == 1);
        ask_all(&viewer);
        client_close(&other);
        client_close(&viewer);
        for (size_t i = 0; i < CLIENTS; i++)
                client_close(&clients[i]);
        (void)sd_event_run(event, 0);
        api_server_free(server);
        fuzz_check(!kept && !check.fn);
        control_end(&control);
        world = world_free(world);
        event = sd_event_unref(event);
        return 0;
}
