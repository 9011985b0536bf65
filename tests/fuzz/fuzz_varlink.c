/* SPDX-License-Identifier: MIT */
/* Two clients of the control socket, one of them a viewer, and the real server with the real handlers. The
 * first bytes say in what pieces the rest arrives; a byte that no text has changes the client. */
#include "../guard.h"
#include "daemon/api/control.h"
#include "frameworks/sidekiq/format.h"
#include "fuzz.h"
#include "model/exit_status.h"
#include "model/fleet.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_world.h"
#include "wire/withhold.h"
#include <sys/socket.h>
#include <sys/un.h>

#define CLIENTS 3
#define VIEWER  1
#define PIECES  4
#define CHANGE  0xfe
#define NOW     (1000 * USEC_PER_SEC)
#define PING    "{\"method\":\"org.sqmgr.Control.Ping\"}"

struct client {
        int fd;
        bool views;
        struct varlink_input input;
};

static char names[][8] = {"web", "mail"};
static struct fleet_settings fleet_settings[2];
static struct fleet_settings *fleet_list[] = {&fleet_settings[0], &fleet_settings[1]};
static struct settings settings = {.check_interval = 5 * USEC_PER_SEC, .fleets = fleet_list, .n_fleets = 2};
static char folder[] = "/tmp/sqmgr-fuzz-XXXXXX", path[64], view_path[64];
static sd_event *event;
static struct world *world;
static struct control *control;
static struct call *kept;
static struct wakeup loop_iterate;
static struct runtime runtime = {.wakeup = &loop_iterate};
static struct persist runtime_keeper = {.runtime = &runtime};

static int on_reload(struct reloader *reloader _unused_, const struct orderer *by _unused_, char **ret_lines)
{
        *ret_lines = strdup("");
        return *ret_lines ? 0 : -ENOMEM;
}

static void on_reexec(struct reexec *reexec _unused_, struct call *call)
{
        server_reply(call, json_object(), false);
}

static void on_cancelled(struct call *call, void *userdata _unused_)
{
        fuzz_check(call == kept);
        kept = NULL;
}

/* One is kept, until its client leaves or the next one asks. */
void __wrap_jobs_calls_add(struct jobs_calls *list, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now);
void __wrap_jobs_calls_add(struct jobs_calls *list _unused_, struct call *call, struct fleet *const *fleets,
                           size_t n_fleets, usec_t now _unused_)
{
        fuzz_check(n_fleets > 0 && fleets[0]);
        if (kept) {
                struct call *answered = kept;

                kept = NULL;
                server_reply(answered, json_object(), false);
        }
        server_keep(call, on_cancelled, NULL);
        kept = call;
}

void __wrap_queue_calls_add(struct queue_calls *calls, struct call *call, enum queue_question question,
                            usec_t now);
void __wrap_queue_calls_add(struct queue_calls *calls, struct call *call, enum queue_question question,
                            usec_t now _unused_)
{
        server_reply(call,
                     question == QUEUE_QUESTION_METRICS || question == QUEUE_QUESTION_FAMILIES
                             ? calls->metrics(calls->userdata, question == QUEUE_QUESTION_METRICS)
                             : json_object(),
                     false);
}

void __wrap_problems_collect(const struct problem_source *source, struct problem_storage *ret, usec_t now);
void __wrap_problems_collect(const struct problem_source *source _unused_, struct problem_storage *ret,
                             usec_t now _unused_)
{
        ret->facts = (struct problem_facts){0};
}

void __wrap_doctor_request(const struct problem_source *source, struct call *call);
void __wrap_doctor_request(const struct problem_source *source _unused_, struct call *call)
{
        server_reply(call, json_object(), false);
}

void __wrap_persist_save_now(struct persist *persist, usec_t now);
void __wrap_persist_save_now(struct persist *persist _unused_, usec_t now _unused_)
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
        snprintf(view_path, sizeof(view_path), "%s/read.sock", folder);
}

static void make_world(void)
{
        static const struct status_settings settings_age = {.refused = true};
        struct control_host host = {
                .version = "1",
                .started_at = NOW,
                .persist = &runtime_keeper,
                .settings = &settings_age,
                .reload = on_reload,
                .reexec_request = on_reexec,
        };

        for (size_t i = 0; i < ELEMENTSOF(fleet_settings); i++)
                fleet_settings[i] = (struct fleet_settings){
                        .traits = &sidekiq_traits,
                        .name = names[i],
                        .active_process_count = 1,
                        .max_processes = 4,
                        .ready_after = 10 * USEC_PER_SEC,
                        .rollout_timeout = USEC_PER_HOUR,
                };
        fuzz_check(sd_event_new(&event) >= 0);
        fuzz_check(world_new(&settings, 1, &world) == 0);
        for (size_t i = 0; i < world->n_fleets; i++) {
                observe_redis(world->fleets[i], true, NOW);
                struct worker *worker =
                        observe_started(world->fleets[i], 1, REASON_NONE, 100 + (pid_t)i, 1, NOW);
                const struct exit_status exit = {.known = true, .log_tail = "a secret"};

                /* What a worker wrote is among what can be told. */
                fuzz_check(worker);
                observe_exit(worker, &exit, NOW);
        }
        host.world = world;
        runtime.event = event;
        fuzz_check(control_new(&host, &control) == 0);
}

/* All that came: replies, each of them whole. Returns how many. */
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
                fuzz_check(!client->views || !strstr(text, "a secret"));
                varlink_reply_free(&reply);
                n++;
        }
        return n;
}

static struct client client_open(struct server *server)
{
        int fds[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        server_continue(server, fds[0], NULL);
        return (struct client){.fd = fds[1]};
}

static struct client client_open_view(struct server *server)
{
        const struct listener_place place = {.path = view_path, .mode = 0600, .group = CONTROL_NO_GROUP};
        struct client client = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                                .views = true};
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char error[512];

        fuzz_check(server_open_view(server, &place, error, sizeof(error)) == 0);
        memcpy(address.sun_path, view_path, sizeof(view_path));
        fuzz_check(connect(client.fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
        return client;
}

static unsigned client_iterate(struct client *client)
{
        unsigned n = 0;

        for (unsigned wakeup = 0; wakeup < 1000 && sd_event_run(event, 0) > 0; wakeup++)
                n += take_replies(client);
        world_events_clear(world);
        control_tick(control, NOW);
        return n + take_replies(client);
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
        struct server *server = NULL;
        char error[512] = "";

        make_folder();
        make_world();
        struct server_options options = {
                .place.path = path,
                .place.mode = 0600,
                .place.group = CONTROL_NO_GROUP,
                .version = "1",
                .handle = control_handle,
                .userdata = control,
        };
        fuzz_check(server_new(event, &options, &server, error, sizeof(error)) == 0);
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = i == VIEWER ? client_open_view(server) : client_open(server);
        talk(clients, &input);

        /* Whatever those did: another one is answered. */
        struct client other = client_open(server);
        fuzz_check(send(other.fd, PING, sizeof(PING), MSG_NOSIGNAL) == sizeof(PING));
        fuzz_check(client_iterate(&other) == 1);
        client_close(&other);
        for (size_t i = 0; i < CLIENTS; i++)
                client_close(&clients[i]);
        (void)sd_event_run(event, 0);
        server_free(server);
        fuzz_check(!kept);
        control = control_free(control);
        world = world_free(world);
        event = sd_event_unref(event);
        return 0;
}
