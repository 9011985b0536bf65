/* SPDX-License-Identifier: MIT */
/* Hands queries to the live object of a reader; see the header. */
#include "reader/live.h"
#include "frameworks/redis_format.h"
#include "reader/configure.h"

int reader_live_begin(struct reader_live *live, const struct reader_live_request *request)
{
        const struct reader_configuration *configuration = request->configuration;
        const struct live_format *format = redis_format_of(configuration->framework)->live;
        struct settings_tls_refusal refusal;
        int r = 0;

        if (!format)
                return 0;
        live->server = (struct live_server){
                .event = request->event,
                .redis = request->redis,
                .namespace = configuration->namespace,
                .database = redis_database(request->redis),
                .sentinels = configuration->sentinels && !configuration->url,
        };
        if (format->subscribes)
                r = configure_redis(request->event, configuration, request->on_state, request->userdata,
                                    &live->server.subscriber, &refusal);
        if (r >= 0 && format->subscribes && request->connector)
                redis_connect_by(live->server.subscriber, request->connector);
        if (r >= 0)
                r = format->begin(&live->server, &live->live);
        if (r >= 0)
                live->format = format;
        return r;
}

void reader_live_end(struct reader_live *live)
{
        redis_free(live->server.subscriber);
        if (live->format)
                live->format->end(live->live);
        *live = (struct reader_live){0};
}

/* A scan costs the server nothing, so all hosts may scan at once. */
static bool is_scan_permit(enum query_kind kind)
{
        return kind == QUERY_SCANNERS || kind == QUERY_SCAN_LEAVE;
}

bool reader_live_answers(const struct reader_live *live, enum query_kind kind)
{
        return live->format && (is_scan_permit(kind) || live->format->asks[kind]);
}

void reader_live_ask(struct reader_live *live, struct live_ask *ask)
{
        enum query_kind kind = ask->answer->kind;

        if (is_scan_permit(kind)) {
                ask->answer->scanners.blind = kind == QUERY_SCANNERS;
                ask->done(ask);
        } else {
                live->format->asks[kind](live->live, ask);
        }
}
