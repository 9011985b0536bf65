/* SPDX-License-Identifier: MIT */
/* Handles calls about sqmgr itself: Reload, Reexec, Ping and GetVersion. */
#include "daemon/api/handler.h"
#include "model/names.h"
#include "model/world.h"
#include <string.h>

void handle_reload(struct control *control, struct call *call, json_t *parameters _unused_,
                   usec_t now _unused_)
{
        const struct orderer by = handler_orderer(call);
        _cleanup_free_ char *lines = NULL;
        int r = control->host.reload(control->host.reloader, &by, &lines);

        if (r < 0) {
                handler_refuse(call, "cannot reload the configuration: %s; the old settings remain active",
                               strerrordesc_np(-r));
                return;
        }
        json_t *list = handler_lines(lines);
        if (r > 0) {
                server_reply_error(call, CONTROL_REFUSED,
                                   json_pack("{s:s, s:o}", "reason",
                                             "the configuration has errors; the old settings remain active",
                                             "details", list));
                return;
        }
        handler_changed(control);
        server_reply(call, json_pack("{s:o}", "changes", list), false);
}

void handle_reexec(struct control *control, struct call *call, json_t *parameters _unused_,
                   usec_t now _unused_)
{
        const struct orderer by = handler_orderer(call);
        char who[ORDERER_TEXT_MAX];

        event_by(&by, world_event(control->host.world, EVENT_ORDER, NULL, NULL, "re-exec requested by %s",
                                  orderer_text(&by, who)));
        control->host.reexec_request(control->host.reexec, call);
}

void handle_ping(struct control *control _unused_, struct call *call, json_t *parameters _unused_,
                 usec_t now _unused_)
{
        server_reply(call, json_object(), false);
}

void handle_get_version(struct control *control, struct call *call, json_t *parameters _unused_,
                        usec_t now _unused_)
{
        server_reply(
                call,
                json_pack("{s:s, s:s}", "version", control->host.version, "instance", control->host.instance),
                false);
}
