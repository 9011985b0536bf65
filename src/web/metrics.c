/* SPDX-License-Identifier: MIT */
/* The metrics of several instances, and those of sqmgr-web itself. No I/O. */
#include "web/metrics.h"
#include <string.h>
#include <strings.h>

#define OPEN_TYPE "application/openmetrics-text"

static const char *const types[] = {
        [METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [METRICS_OPEN] = OPEN_TYPE "; version=1.0.0; charset=utf-8",
};
DEFINE_ENUM_NAMES(metrics_type, enum metrics_format, _METRICS_FORMAT_MAX, types)

/* The weight of a media range: the value of its parameter `q`. */
static double weight_of(const char *range, size_t size)
{
        const char *end = range + size;

        while ((range = memchr(range, ';', (size_t)(end - range)))) {
                range += 1 + strspn(range + 1, " \t");
                if (strncasecmp(range, "q=", 2) == 0 && range[2] >= '0' && range[2] <= '9')
                        return MIN(strtod(range + 2, NULL), 1);
        }
        return 1;
}

enum metrics_format metrics_negotiate(const char *accept)
{
        double open = 0, text = 0;

        while (accept && *accept != '\0') {
                accept += strspn(accept, ", \t");
                size_t size = strcspn(accept, ","), name = strcspn(accept, ",; \t");

                if (name == strlen(OPEN_TYPE) && strncasecmp(accept, OPEN_TYPE, name) == 0)
                        open = MAX(open, weight_of(accept, size));
                if (name == strlen("text/plain") && strncasecmp(accept, "text/plain", name) == 0)
                        text = MAX(text, weight_of(accept, size));
                accept += size;
        }
        return open > 0 && open >= text ? METRICS_OPEN : METRICS_TEXT;
}

static void put_one(struct metrics *metrics, const char *name, const char *type, const char *help,
                    uint64_t value)
{
        metrics_family(metrics, name, type, help);
        metrics_sample(metrics, (double)value, NULL);
}

/* Returns the metrics of sqmgr-web itself, or NULL if memory is short. */
static json_t *collect_own(const struct instances *instances, usec_t now, const struct http_counts *self)
{
        struct metrics metrics = metrics_begin();

        assert(instances->n == 0 || instances->list);
        metrics_family(&metrics, "sqmgr_web_instance_up", "gauge",
                       "Whether the sqmgr of this socket answers.");
        for (size_t i = 0; i < instances->n; i++)
                METRICS_SAMPLE(&metrics, instances->list[i].reachable, "socket", instances->list[i].socket);
        metrics_family(&metrics, "sqmgr_web_status_age_seconds", "gauge",
                       "Time since the sqmgr of this socket last reported its status.");
        for (size_t i = 0; i < instances->n; i++) {
                usec_t age = usec_sub(now, instances->list[i].reported_at);

                if (instances->list[i].status)
                        METRICS_SAMPLE(&metrics, (double)(age / USEC_PER_MSEC) / 1000, "socket",
                                       instances->list[i].socket);
        }
        put_one(&metrics, "sqmgr_web_connections", "gauge", "Open connections, including this one.",
                self->connections);
        put_one(&metrics, "sqmgr_web_streams", "gauge", "Open connections that are event streams.",
                self->streams);
        put_one(&metrics, "sqmgr_web_requests_total", "counter", "Requests received.", self->requests);
        put_one(&metrics, "sqmgr_web_refused_connections_total", "counter",
                "Connections closed by sqmgr-web: too slow, or displaced by others.", self->refused);
        return metrics_end(&metrics);
}

int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size)
{
        _cleanup_json_ json_t *own = collect_own(instances, now, self);
        _cleanup_free_ struct metrics_source *sources = calloc(instances->n + 1, sizeof(*sources));

        if (!own || !sources)
                return -ENOMEM;
        for (size_t i = 0; i < instances->n; i++)
                sources[i] = (struct metrics_source){
                        .families = instances->list[i].metrics,
                        /* A single instance needs no label. */
                        .socket = instances->n > 1 ? instances->list[i].socket : NULL,
                };
        sources[instances->n] = (struct metrics_source){.families = own};
        return metrics_print(sources, instances->n + 1, format, ret, ret_size);
}
