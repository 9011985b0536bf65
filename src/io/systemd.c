/* SPDX-License-Identifier: MIT */
/* Asks the service manager why our unit is being stopped. */
#include "io/systemd.h"
#include "base/fd.h"
#include "base/text.h"
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-login.h>

#define ANSWER_USEC (2 * USEC_PER_SEC)
#define SYSTEMD     "org.freedesktop.systemd1"
#define MANAGER     "/org/freedesktop/systemd1"

struct systemd_query {
        sd_bus *bus;
        sd_event_source *deadline;
        bool stopping; /* the manager itself is shutting down */
        void (*answered)(enum systemd_intent intent, void *userdata);
        void *userdata;
};

struct systemd_query *systemd_query_free(struct systemd_query *query)
{
        if (!query)
                return NULL;
        sd_event_source_disable_unref(query->deadline);
        sd_bus_close_unref(query->bus);
        free(query);
        return NULL;
}

static void answer(struct systemd_query *query, enum systemd_intent intent)
{
        (void)sd_event_source_set_enabled(query->deadline, SD_EVENT_OFF);
        query->answered(intent, query->userdata);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        answer(userdata, SYSTEMD_UNKNOWN);
        return 0;
}

static int get(struct systemd_query *query, const char *path, const char *interface, const char *property,
               sd_bus_message_handler_t answered)
{
        return sd_bus_call_method_async(query->bus, NULL, SYSTEMD, path, "org.freedesktop.DBus.Properties",
                                        "Get", answered, query, "ss", interface, property);
}

static int on_job_type(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
        const char *type;

        if (sd_bus_message_is_method_error(message, NULL) ||
            sd_bus_message_read(message, "v", "s", &type) < 0)
                answer(userdata, SYSTEMD_UNKNOWN);
        else
                answer(userdata, strcmp(type, "restart") == 0 ? SYSTEMD_RESTARTS : SYSTEMD_STOPS);
        return 1;
}

static int on_job(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
        struct systemd_query *query = userdata;
        const char *path;
        uint32_t id;

        if (sd_bus_message_is_method_error(message, NULL) ||
            sd_bus_message_read(message, "v", "(uo)", &id, &path) < 0)
                answer(query, SYSTEMD_UNKNOWN);
        else if (query->stopping)
                answer(query, SYSTEMD_SHUTS_DOWN);
        else if (id == 0)
                answer(query, SYSTEMD_STOPS);
        else if (get(query, path, SYSTEMD ".Job", "JobType", on_job_type) < 0)
                answer(query, SYSTEMD_UNKNOWN);
        return 1;
}

/* Called before on_job(): replies arrive in the order of the calls. */
static int on_system_state(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
        struct systemd_query *query = userdata;
        const char *state;

        query->stopping = !sd_bus_message_is_method_error(message, NULL) &&
                          sd_bus_message_read(message, "v", "s", &state) >= 0 &&
                          strcmp(state, "stopping") == 0;
        return 1;
}

/* Connects without a message bus. */
static int open_private(const char *address, sd_bus **ret)
{
        int r = sd_bus_new(ret);

        if (r >= 0)
                r = sd_bus_set_address(*ret, address);
        return r < 0 ? r : sd_bus_start(*ret);
}

/* Returns our unit and a connection to the manager that started it. *ret_bus may be set on errors, too. */
static int open_manager(char **ret_unit, sd_bus **ret_bus)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        _cleanup_free_ char *address = NULL;

        /* Only the service process itself gets NOTIFY_SOCKET; other processes may run in the unit too. */
        if (!getenv("NOTIFY_SOCKET"))
                return -ENXIO;
        if (sd_pid_get_user_unit(0, ret_unit) >= 0) {
                if (!runtime)
                        return -ENXIO;
                address = text_format("unix:path=%s/systemd/private", runtime);
                return address ? open_private(address, ret_bus) : -ENOMEM;
        }
        if (sd_pid_get_unit(0, ret_unit) < 0)
                return -ENXIO;
        return sd_bus_open_system(ret_bus);
}

DEFINE_CLEANUP(struct systemd_query *, systemd_query_free)

int systemd_ask(sd_event *event, void (*answered)(enum systemd_intent intent, void *userdata), void *userdata,
                struct systemd_query **ret)
{
        _cleanup_(systemd_query_free_pointer) struct systemd_query *query = NULL;
        _cleanup_free_ char *unit = NULL, *path = NULL;

        query = calloc(1, sizeof(*query));
        if (!query)
                return -ENOMEM;
        query->answered = answered;
        query->userdata = userdata;
        int r;
        if ((r = open_manager(&unit, &query->bus)) < 0 ||
            (r = sd_bus_path_encode(MANAGER "/unit", unit, &path)) < 0 ||
            (r = sd_bus_attach_event(query->bus, event, SD_EVENT_PRIORITY_NORMAL)) < 0 ||
            (r = get(query, MANAGER, SYSTEMD ".Manager", "SystemState", on_system_state)) < 0 ||
            (r = get(query, path, SYSTEMD ".Unit", "Job", on_job)) < 0 ||
            (r = sd_event_add_time_relative(event, &query->deadline, CLOCK_MONOTONIC, ANSWER_USEC, 0,
                                            on_deadline, query)) < 0)
                return r;
        *ret = TAKE_PTR(query);
        return 0;
}

void systemd_notify(const char *text)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t length = path ? strlen(path) : 0;

        if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
                return;
        memcpy(address.sun_path, path, length);
        if (path[0] == '@')
                address.sun_path[0] = '\0';
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
                (void)sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                             (const struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}
