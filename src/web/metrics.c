/* SPDX-License-Identifier: MIT */
/* The metrics of several instances, and those of sqmgr-web itself. No I/O. */
#include "web/metrics.h"
#include "base/memstream.h"
#include "wire/reply.h"
#include <math.h>
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

/* Returns the metrics of sqmgr-web itself; NULL: memory is short. */
static char *collect_own(const struct instances *instances, usec_t now, const struct http_counts *self)
{
        struct metrics metrics;
        size_t size;
        char *text;

        assert(instances->n == 0 || instances->list);
        metrics_begin(&metrics);
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
        (void)metrics_end(&metrics, &text, &size);
        return text;
}

/* The families of all texts, in the order in which they first appear: by name, with `TYPE`, `HELP` and the
 * lines of `samples`. */
struct merge {
        json_t *families;
        json_t *family;    /* of the next lines; borrowed; NULL: none, so samples are left out */
        const char *name;  /* of family */
        const char *label; /* further label of each sample; "": none */
        bool failed;       /* memory was short */
};

static size_t name_length(const char *text)
{
        static const char allowed[] = "_:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

        return text[0] >= '0' && text[0] <= '9' ? 0 : strspn(text, allowed);
}

/* Takes a line `# TYPE NAME TEXT` or `# HELP NAME TEXT`. */
static void take_head(struct merge *merge, char *line)
{
        char *kind = line + strlen("# "), *name = kind + strlen("TYPE "), *text = name + name_length(name);

        merge->family = NULL;
        if (text == name || *text != ' ')
                return;
        kind[strlen("TYPE")] = *text++ = '\0';
        if (!json_object_get(merge->families, name))
                merge->failed |=
                        json_object_set_new(merge->families, name, json_pack("{s:[]}", "samples")) < 0;
        merge->family = json_object_get(merge->families, name);
        merge->name = name;
        if (!json_object_get(merge->family, kind))
                merge->failed |= json_object_set_new(merge->family, kind, json_string(text)) < 0;
}

/* Returns the end of labels, behind their closing brace; NULL if they are invalid. */
static const char *labels_end(const char *at)
{
        for (;; at++) {
                size_t length = name_length(at);

                at += length;
                if (length == 0 || strncmp(at, "=\"", 2) != 0)
                        return NULL;
                for (at += 2; *at != '"' && *at != '\0'; at++)
                        if (*at == '\\' && *++at == '\0')
                                return NULL;
                if (*at == '\0' || (*++at != ',' && *at != '}'))
                        return NULL;
                if (*at == '}')
                        return at + 1;
        }
}

static bool is_value(const char *text)
{
        char *end;

        return text[0] == ' ' && strchr("-0123456789", text[1]) && text[1] != '\0' &&
               isfinite(strtod(text + 1, &end)) && *end == '\0' && !strpbrk(text, "xX");
}

/* Returns the name's end if it is that of a sample of the family; otherwise NULL. */
static const char *sample_name_end(const char *line, const char *family)
{
        const char *end = line + name_length(line), *suffix = line + strlen(family);
        size_t length = (size_t)(end - line);

        if (length < strlen(family) || strncmp(line, family, strlen(family)) != 0)
                return NULL;
        length -= strlen(family);
        return length == 0 || (length == strlen("_sum") && strncmp(suffix, "_sum", length) == 0) ||
                               (length == strlen("_count") && strncmp(suffix, "_count", length) == 0)
                       ? end
                       : NULL;
}

static void add_sample(struct merge *merge, const char *line, const char *name_end)
{
        bool has_labels = *name_end == '{';
        char *text;
        int size = asprintf(&text, "%.*s{%s%s%s", (int)(name_end - line), line, merge->label,
                            has_labels ? "," : "}", name_end + has_labels);
        json_t *sample = merge->label[0] == '\0' ? json_string(line) : size < 0 ? NULL : json_string(text);

        merge->failed |= json_array_append_new(json_object_get(merge->family, "samples"), sample) < 0;
        if (size >= 0)
                free(text);
}

static void take_line(struct merge *merge, char *line)
{
        if (strncmp(line, "# TYPE ", 7) == 0 || strncmp(line, "# HELP ", 7) == 0) {
                take_head(merge, line);
                return;
        }
        const char *name_end = merge->family ? sample_name_end(line, merge->name) : NULL,
                   *value = name_end && *name_end == '{' ? labels_end(name_end + 1) : name_end;

        /* A line that is no sample is left out. */
        if (value && is_value(value))
                add_sample(merge, line, name_end);
}

/* socket: the value of a further label of each sample; NULL: no such label. */
static void take_text(struct merge *merge, const char *text, const char *socket)
{
        _cleanup_free_ char *copy = strdup(text ?: ""), *label = NULL;
        size_t size;
        FILE *out = open_memstream(&label, &size);
        bool failed = out && socket && !metrics_put_label(out, "socket", socket);

        if (memstream_close(out, &label) < 0 || !copy || failed) {
                merge->failed = true;
                return;
        }
        merge->family = NULL;
        merge->label = label;
        for (char *next = copy, *line; !merge->failed && (line = strsep(&next, "\n"));)
                take_line(merge, line);
}

/* Returns one of the types that exist; a later sqmgr may have more. */
static const char *known_type(const char *type, enum metrics_format format)
{
        static const char *const known[] = {"gauge", "counter", "summary"};

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (strcmp(type, known[i]) == 0)
                        return known[i];
        return format == METRICS_OPEN ? "unknown" : "untyped";
}

static void put_head(FILE *out, const char *name, const json_t *family, enum metrics_format format)
{
        static const char total[] = "_total";
        const char *type = known_type(reply_string(family, "TYPE"), format),
                   *help = reply_string(family, "HELP");
        int length = (int)strlen(name), base = length - (int)strlen(total);

        /* In OpenMetrics the name of a counter lacks `_total`, which each of its samples has. */
        if (format == METRICS_OPEN && strcmp(type, "counter") == 0) {
                if (base > 0 && strcmp(name + base, total) == 0)
                        length = base;
                else
                        type = "unknown";
        }
        if (help[0] != '\0')
                fprintf(out, "# HELP %.*s ", length, name);
        for (const char *at = help; *at != '\0'; at++) {
                if (format == METRICS_OPEN && *at == '"')
                        fputc('\\', out);
                fputc(*at, out);
        }
        fprintf(out, "%s# TYPE %.*s %s\n", help[0] != '\0' ? "\n" : "", length, name, type);
}

int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size)
{
        _cleanup_free_ char *own = collect_own(instances, now, self);
        _cleanup_json_ json_t *families = json_object();
        struct merge merge = {.families = families, .failed = !own || !families};
        const json_t *family, *sample;
        const char *name;

        for (size_t i = 0; i < instances->n; i++)
                take_text(&merge, instances->list[i].metrics,
                          instances->n > 1 ? instances->list[i].socket : NULL);
        take_text(&merge, own, NULL);
        FILE *out = merge.failed ? NULL : open_memstream(ret, ret_size);
        if (!out)
                return -ENOMEM;
        json_object_foreach(families, name, family)
        {
                put_head(out, name, family, format);
                json_foreach_in(sample, family, "samples")
                        fprintf(out, "%s\n", json_string_value(sample));
        }
        if (format == METRICS_OPEN)
                fputs("# EOF\n", out);
        return memstream_close(out, ret);
}
