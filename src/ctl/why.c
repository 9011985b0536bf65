/* SPDX-License-Identifier: MIT */
/* The command `why`: the story of one worker, what happened to it and what it does now; or of a fleet. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include "ctl/story.h"
#include "ctl/why_fleet.h"
#include <stdio.h>
#include <string.h>

static int get(struct ctl *ctl, json_t **ret_status, json_t **ret_events)
{
        int r = client_call(ctl, "GetEvents", json_object(), ret_events);

        client_close(ctl);
        return r == CTL_DONE ? client_call(ctl, "GetStatus", json_object(), ret_status) : r;
}

static int tell_unknown(const struct story *story)
{
        _cleanup_json_ json_t *ids = json_array(), *fleets = json_array();
        size_t i, k, length = (size_t)(strrchr(story->id, '/') - story->id);
        json_t *fleet, *worker;
        char names[REPLY_NAMES_MAX];
        bool known = false;

        json_array_foreach(json_object_get(story->status, "fleets"), i, fleet)
        {
                const char *name = reply_string(fleet, "name");

                json_array_append(fleets, json_object_get(fleet, "name"));
                if (strlen(name) != length || strncmp(name, story->id, length) != 0)
                        continue;
                known = true;
                json_array_foreach(json_object_get(fleet, "workers"), k, worker)
                        json_array_append(ids, json_object_get(worker, "id"));
        }
        if (!known)
                return say_error_as("unknown-fleet", CTL_USAGE, "unknown fleet '%.*s': %s", (int)length,
                                    story->id, reply_names(fleets, names));
        return say_error_as("unknown-worker", CTL_USAGE, "unknown worker '%s': %s", story->id,
                            reply_names(ids, names));
}

static int print_json(const struct story *story)
{
        _cleanup_json_ json_t *json =
                json_pack("{s:O?, s:O}", "worker", story->worker, "events", story->events);

        if (!json)
                return say_error(CTL_FAILED, "there is too little memory");
        reply_print_json(json);
        return CTL_DONE;
}

static int tell(const struct ctl *ctl, const struct story *story)
{
        struct view view = screen_view();

        if (!story->worker && story->n_own == 0)
                return tell_unknown(story);
        if (ctl->json)
                return print_json(story);
        story_print(stdout, story, &view);
        return CTL_DONE;
}

int ctl_why(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL, *reply = NULL;
        const char *id = ctl->arguments[0];
        struct story story;

        if (!strchr(id, '/'))
                return why_fleet(ctl);
        int r = get(ctl, &status, &reply);
        if (r != CTL_DONE)
                return r;
        if (story_find(&story, id, status, json_object_get(reply, "events")) < 0)
                r = say_error(CTL_FAILED, "there is too little memory");
        else
                r = tell(ctl, &story);
        story_release(&story);
        return r;
}
