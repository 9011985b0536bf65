/* SPDX-License-Identifier: MIT */
/* Shared parts of the call handlers: parameters and refusals. */
#include "daemon/api/handler.h"
#include "io/clock.h"
#include "io/users.h"
#include "model/world.h"

bool handler_forget(struct control *control, usec_t until)
{
        bool any = false;

        for (unsigned kind = 0; kind < _REPLY_KIND_MAX; kind++)
                for (unsigned view = 0; view < 2; view++) {
                        if (!control->latest[kind][view].reply.text || control->latest[kind][view].at > until)
                                continue;
                        shared_reply_clear(&control->latest[kind][view].reply);
                        any = true;
                }
        return any;
}

void handler_changed(struct control *control)
{
        (void)handler_forget(control, USEC_INFINITY);
        wakeup_changed(control->runtime->wakeup);
        persist_save_now(control->runtime, clock_now(CLOCK_MONOTONIC));
}

/* Returns true after replying that the last write of the state has failed. */
static bool refuse_if_unsaved(struct control *control, struct call *call, const char *outcome)
{
        int error = control->runtime->save_error;

        if (error == 0)
                return false;
        handler_refuse(call,
                       "%s: the state file '%s' cannot be written (%s), so a restarted sqmgr would not know "
                       "of the order. Make the directory writable and check for a full disk",
                       outcome, control->runtime->world->settings->state_file, strerrordesc_np(-error));
        return true;
}

bool handler_record(struct control *control, struct call *call)
{
        handler_changed(control);
        return !refuse_if_unsaved(control, call, "order carried out but not recorded");
}

bool handler_refuse_unrecorded(struct control *control, struct call *call)
{
        persist_save_now(control->runtime, clock_now(CLOCK_MONOTONIC));
        return refuse_if_unsaved(control, call, "order refused, nothing has changed");
}

void handler_done(struct control *control, struct call *call)
{
        if (handler_record(control, call))
                call_reply(call, json_object(), false);
}

struct orderer handler_orderer(const struct call *call)
{
        struct orderer by = {.known = true, .uid = call_uid(call)};

        users_name(by.uid, by.name, sizeof(by.name));
        return by;
}

void handler_refuse_parameter(struct call *call, const char *name)
{
        call_reply_error(call, VARLINK_INVALID_PARAMETER, json_pack("{s:s}", "parameter", name));
}

void handler_refuse_quoted(struct call *call, const struct quoted *quoted, const char *format, ...)
{
        va_list arguments;
        char reason[512];

        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        json_t *parameters = json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details");
        call_reply_error(call, CONTROL_REFUSED, quoted ? quoted_put(parameters, quoted) : parameters);
}

json_t *handler_lines(char *text)
{
        _cleanup_json_ json_t *lines = json_array();

        for (const char *line; (line = strsep(&text, "\n"));)
                if (line[0] != '\0' && json_array_append_new(lines, varlink_text(line)) < 0)
                        return NULL;
        return TAKE_PTR(lines);
}

static json_t *fleet_names(const struct world *world)
{
        _cleanup_json_ json_t *names = json_array();

        WORLD_FOREACH_FLEET(world, fleet)
                if (json_array_append_new(names, varlink_text(fleet->settings->name)) < 0)
                        return NULL;
        return TAKE_PTR(names);
}

static void refuse_fleet(struct control *control, struct call *call, const char *name)
{
        call_reply_error(
                call, CONTROL_UNKNOWN_FLEET,
                json_pack("{s:s, s:o}", "name", name, "fleets", fleet_names(control->runtime->world)));
}

static void refuse_worker(struct call *call, const char *id, const struct fleet *fleet)
{
        _cleanup_json_ json_t *ids = json_array();
        bool failed = false;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE)
                        failed |= json_array_append_new(ids, varlink_text(WORKER_ID(worker))) < 0;
        call_reply_error(call, CONTROL_UNKNOWN_WORKER,
                         failed ? NULL : json_pack("{s:s, s:O}", "name", id, "workers", ids));
}

void handler_refuse_removed(struct call *call, const struct fleet *fleet)
{
        handler_refuse(call, "fleet '%s' is no longer configured; its workers are being drained",
                       fleet->settings->name);
}

void handler_refuse_unknown(struct control *control, struct call *call, const char *name)
{
        const char *slash = strrchr(name, '/');
        _cleanup_free_ char *fleet_name = strndup(name, slash ? (size_t)(slash - name) : strlen(name));
        const struct fleet *fleet = fleet_name ? world_fleet(control->runtime->world, fleet_name) : NULL;

        if (fleet)
                refuse_worker(call, name, fleet);
        else
                refuse_fleet(control, call, fleet_name ? fleet_name : name);
}

bool handler_parse_flag(struct call *call, json_t *parameters, const char *name, bool *ret)
{
        const json_t *value = json_object_get(parameters, name);

        *ret = json_is_true(value);
        if (!value || json_is_null(value) || json_is_boolean(value))
                return true;
        handler_refuse_parameter(call, name);
        return false;
}

bool handler_parse_text(struct call *call, json_t *parameters, const char *name, const char **ret)
{
        const json_t *value = json_object_get(parameters, name);

        *ret = json_string_value(value);
        if (!value || json_is_null(value) || *ret)
                return true;
        handler_refuse_parameter(call, name);
        return false;
}

void handler_fleets_free(struct handler_fleets *list)
{
        free(list->fleets);
}

static bool fleet_list_has(const struct handler_fleets *list, const struct fleet *fleet)
{
        FOREACH_POINTER(listed, list->fleets, list->n_fleets)
                if (listed == fleet)
                        return true;
        return false;
}

bool handler_parse_fleets(struct control *control, struct call *call, json_t *parameters,
                          struct handler_fleets *ret)
{
        const struct world *world = control->runtime->world;
        json_t *names = json_object_get(parameters, "fleets"), *name;
        size_t i;

        if (names && !json_is_null(names) && !json_is_array(names)) {
                handler_refuse_parameter(call, "fleets");
                return false;
        }
        ret->fleets = calloc(world->n_fleets + 1, sizeof(*ret->fleets));
        if (!ret->fleets) {
                call_reply(call, NULL, false);
                return false;
        }
        if (json_array_size(names) == 0) {
                ret->all = true;
                ret->n_fleets = world->n_fleets;
                for (i = 0; i < world->n_fleets; i++)
                        ret->fleets[i] = world->fleets[i];
                return true;
        }
        json_array_foreach(names, i, name)
        {
                struct fleet *fleet;

                if (!json_is_string(name)) {
                        handler_refuse_parameter(call, "fleets");
                        return false;
                }
                fleet = world_fleet(world, json_string_value(name));
                if (!fleet) {
                        refuse_fleet(control, call, json_string_value(name));
                        return false;
                }
                if (!fleet_list_has(ret, fleet))
                        ret->fleets[ret->n_fleets++] = fleet;
        }
        return true;
}

struct fleet *handler_parse_fleet(struct control *control, struct call *call, json_t *parameters)
{
        json_t *name = json_object_get(parameters, "fleet");

        if (!json_is_string(name)) {
                handler_refuse_parameter(call, "fleet");
                return NULL;
        }
        struct fleet *fleet = world_fleet(control->runtime->world, json_string_value(name));
        if (!fleet)
                refuse_fleet(control, call, json_string_value(name));
        return fleet;
}

bool handler_refuse_at_shutdown(struct control *control, struct call *call)
{
        if (!control->runtime->world->shutting_down)
                return false;
        handler_refuse(call, "sqmgr is shutting down");
        return true;
}
