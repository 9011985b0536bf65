/* SPDX-License-Identifier: MIT */
/* Merges the metrics of several instances, as Prometheus text 0.0.4 or OpenMetrics 1.0. No I/O. */
#include "web/metrics.h"
#include "base/memstream.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define OPEN_TYPE "application/openmetrics-text"
/* For each instance. sqmgr has less than a hundred. */
#define FAMILIES_MAX 500
/* Longer values are no numbers. */
#define NUMBER_MAX 64

#define NONE UINT32_MAX

/* Strings point into the texts being merged. */
struct family {
        const char *name, *type, *help; /* type and help may be "" */
        uint32_t first, last;           /* indices of its samples; NONE: no sample */
};

struct sample {
        uint32_t next;      /* index of the next sample of the family; NONE: the last */
        uint32_t source;    /* index of the instance; the number of instances: sqmgr-web itself */
        const char *suffix; /* after the family's name: "_sum" */
        const char *labels; /* text between the braces */
        const char *value;
};

struct merge {
        struct family *families; /* in the order of their first appearance */
        uint32_t *sorted;        /* indices of the families, by name */
        size_t n_families;
        size_t families_max; /* grows by FAMILIES_MAX with each text: no instance takes the places of others
                              */
        struct sample *samples;
        size_t n_samples, n_allocated;
        bool failed; /* memory was short */
};

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

static bool is_name(const char *text)
{
        static const char allowed[] = "_:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        bool digit = text[0] >= '0' && text[0] <= '9';

        return text[0] != '\0' && !digit && text[strspn(text, allowed)] == '\0';
}

/* Returns the family of that name, created if missing. Returns NULL if there are too many families. */
static struct family *find_family(struct merge *merge, const char *name)
{
        size_t low = 0, high = merge->n_families;

        while (low < high) {
                size_t middle = (low + high) / 2;
                struct family *family = &merge->families[merge->sorted[middle]];
                int compared = strcmp(name, family->name);

                if (compared == 0)
                        return family;
                if (compared < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        if (merge->n_families == merge->families_max)
                return NULL;
        memmove(&merge->sorted[low + 1], &merge->sorted[low],
                (merge->n_families - low) * sizeof(*merge->sorted));
        merge->sorted[low] = (uint32_t)merge->n_families;
        merge->families[merge->n_families] =
                (struct family){.name = name, .type = "", .help = "", .first = NONE, .last = NONE};
        return &merge->families[merge->n_families++];
}

/* Splits the line into words. A comment that is neither HELP nor TYPE leaves *family unchanged. */
static void take_comment(struct merge *merge, char *line, struct family **family)
{
        const char *hash = strsep(&line, " "), *kind = strsep(&line, " "), *name = strsep(&line, " ");
        bool is_help = kind && strcmp(kind, "HELP") == 0;

        if (!hash || !kind || !name || strcmp(hash, "#") != 0 || (!is_help && strcmp(kind, "TYPE") != 0) ||
            !is_name(name))
                return;
        *family = find_family(merge, name);
        if (!*family)
                return;
        const char **place = is_help ? &(*family)->help : &(*family)->type;
        if ((*place)[0] == '\0')
                *place = line ?: "";
}

/* Returns the brace that ends the labels; NULL: missing. */
static char *labels_end(char *labels)
{
        bool quoted = false;

        for (char *at = labels; *at != '\0'; at++) {
                if (quoted && at[0] == '\\' && at[1] != '\0')
                        at++;
                else if (*at == '"')
                        quoted = !quoted;
                else if (*at == '}' && !quoted)
                        return at;
        }
        return NULL;
}

static bool is_number(const char *value)
{
        static const char *const words[] = {"NaN", "+Inf", "-Inf", "Inf"};
        char *end;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcmp(value, words[i]) == 0)
                        return true;
        if (value[0] == '\0' || strlen(value) >= NUMBER_MAX ||
            value[strspn(value, "0123456789+-.eE")] != '\0')
                return false;
        (void)strtod(value, &end);
        return *end == '\0';
}

/* Returns the suffix of the sample's name after the family's name. Returns NULL if the sample does not belong
 * to the family. */
static const char *find_suffix(const struct family *family, const char *name)
{
        static const char *const suffixes[] = {"", "_sum", "_count", "_bucket"};
        size_t length = strlen(family->name);

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (strncmp(name, family->name, length) == 0 && strcmp(name + length, suffixes[i]) == 0)
                        return suffixes[i];
        return NULL;
}

static void add_sample(struct merge *merge, struct family *family, const struct sample *sample)
{
        if (!ARRAY_RESERVE(merge->samples, merge->n_samples, merge->n_allocated) ||
            merge->n_samples == NONE) {
                merge->failed = true;
                return;
        }
        uint32_t index = (uint32_t)merge->n_samples++;
        merge->samples[index] = *sample;
        if (family->first == NONE)
                family->first = index;
        else
                merge->samples[family->last].next = index;
        family->last = index;
}

/* Splits the line into its parts. */
static void take_sample(struct merge *merge, uint32_t source, char *line, struct family *family)
{
        struct sample sample = {.next = NONE, .source = source, .labels = ""};
        char *at = line + strcspn(line, "{ ");

        if (*at == '{') {
                *at++ = '\0';
                sample.labels = at;
                at = labels_end(at);
                if (!at)
                        return;
                *at++ = '\0';
        }
        if (*at != ' ')
                return;
        *at++ = '\0';
        /* A timestamp is not allowed after the value: the two formats use different units. */
        sample.value = at;
        if (!is_name(line) || !is_number(sample.value))
                return;
        sample.suffix = family ? find_suffix(family, line) : NULL;
        if (!sample.suffix) {
                family = find_family(merge, line);
                sample.suffix = "";
        }
        if (family)
                add_sample(merge, family, &sample);
}

/* Splits the text into lines. */
static void take_text(struct merge *merge, uint32_t source, char *text)
{
        struct family *family = NULL;
        char *line;

        while ((line = strsep(&text, "\n")))
                if (line[0] == '#')
                        take_comment(merge, line, &family);
                else
                        take_sample(merge, source, line, family);
}

static void put_quoted(FILE *out, const char *text)
{
        fputc('"', out);
        for (; *text != '\0'; text++) {
                if (*text == '\\' || *text == '"')
                        fputc('\\', out);
                if (*text == '\n')
                        fputs("\\n", out);
                else
                        fputc(*text, out);
        }
        fputc('"', out);
}

/* OpenMetrics escapes quotes in help texts as in labels. */
static void put_help(FILE *out, const char *help, enum metrics_format format)
{
        for (; *help != '\0'; help++) {
                if (format == METRICS_OPEN && *help == '"')
                        fputc('\\', out);
                fputc(*help, out);
        }
}

/* In OpenMetrics the name of a counter family lacks `_total`, which each of its samples has. */
static int name_length(const struct family *family, enum metrics_format format)
{
        static const char total[] = "_total";
        size_t length = strlen(family->name), without = length - strlen(total);

        if (format == METRICS_OPEN && strcmp(family->type, "counter") == 0 && length > strlen(total) &&
            strcmp(family->name + without, total) == 0)
                return (int)without;
        return (int)length;
}

static void put_family(FILE *out, const struct family *family, enum metrics_format format)
{
        int length = name_length(family, format);
        bool unknown = format == METRICS_OPEN && strcmp(family->type, "untyped") == 0;

        if (family->help[0] != '\0') {
                fprintf(out, "# HELP %.*s ", length, family->name);
                put_help(out, family->help, format);
                fputc('\n', out);
        }
        if (family->type[0] != '\0')
                fprintf(out, "# TYPE %.*s %s\n", length, family->name, unknown ? "unknown" : family->type);
}

/* socket: the label of the instance, as in `socket="PATH"`; "" for none. */
static void put_sample(FILE *out, const struct family *family, const struct sample *sample,
                       const char *socket, enum metrics_format format)
{
        bool labelled = socket[0] != '\0', has_labels = sample->labels[0] != '\0';
        bool is_counter = format == METRICS_OPEN && strcmp(family->type, "counter") == 0;

        fprintf(out, "%.*s%s%s", name_length(family, format), family->name, is_counter ? "_total" : "",
                sample->suffix);
        if (labelled || has_labels)
                fprintf(out, "{%s%s%s}", socket, labelled && has_labels ? "," : "", sample->labels);
        fprintf(out, " %s\n", sample->value);
}

static void put_own(FILE *out, const struct instances *instances, usec_t now, const struct http_counts *self)
{
        fputs("# HELP sqmgr_web_instance_up Whether the sqmgr of this socket answers.\n"
              "# TYPE sqmgr_web_instance_up gauge\n",
              out);
        assert(instances->n == 0 || instances->list);
        for (size_t i = 0; i < instances->n; i++) {
                fputs("sqmgr_web_instance_up{socket=", out);
                put_quoted(out, instances->list[i].socket);
                fprintf(out, "} %d\n", instances->list[i].reachable);
        }
        fputs("# HELP sqmgr_web_status_age_seconds Time since the sqmgr of this socket told its status.\n"
              "# TYPE sqmgr_web_status_age_seconds gauge\n",
              out);
        for (size_t i = 0; i < instances->n; i++) {
                const struct instance *instance = &instances->list[i];

                if (!instance->status)
                        continue;
                fputs("sqmgr_web_status_age_seconds{socket=", out);
                put_quoted(out, instance->socket);
                fprintf(out, "} %.3f\n", (double)usec_sub(now, instance->reported_at) / (double)USEC_PER_SEC);
        }
        fprintf(out,
                "# HELP sqmgr_web_connections Connections that are open, this one too.\n"
                "# TYPE sqmgr_web_connections gauge\n"
                "sqmgr_web_connections %u\n"
                "# HELP sqmgr_web_streams Of these, streams of events.\n"
                "# TYPE sqmgr_web_streams gauge\n"
                "sqmgr_web_streams %u\n"
                "# HELP sqmgr_web_requests_total Requests that were read.\n"
                "# TYPE sqmgr_web_requests_total counter\n"
                "sqmgr_web_requests_total %" PRIu64 "\n"
                "# HELP sqmgr_web_refused_connections_total Connections that were ended: they took too long, "
                "or made "
                "room.\n"
                "# TYPE sqmgr_web_refused_connections_total counter\n"
                "sqmgr_web_refused_connections_total %" PRIu64 "\n",
                self->connections, self->streams, self->requests, self->refused);
}

/* The caller frees the text. Returns NULL if memory is short. */
static char *render_own(const struct instances *instances, usec_t now, const struct http_counts *self)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (out)
                put_own(out, instances, now, self);
        (void)memstream_close(out, &text);
        return text;
}

/* The caller frees the label. Returns NULL if memory is short. */
static char *render_socket_label(const struct instances *instances, size_t source)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        /* A single instance, and sqmgr-web itself, need no label. */
        if (out && instances->n > 1 && source < instances->n) {
                fputs("socket=", out);
                put_quoted(out, instances->list[source].socket);
        }
        (void)memstream_close(out, &text);
        return text;
}

static int render(const struct merge *merge, char *const *labels, enum metrics_format format, char **ret,
                  size_t *ret_size)
{
        FILE *out = open_memstream(ret, ret_size);

        for (size_t i = 0; out && i < merge->n_families; i++) {
                const struct family *family = &merge->families[i];

                if (family->first == NONE)
                        continue;
                put_family(out, family, format);
                for (uint32_t at = family->first; at != NONE; at = merge->samples[at].next)
                        put_sample(out, family, &merge->samples[at], labels[merge->samples[at].source],
                                   format);
        }
        if (out && format == METRICS_OPEN)
                fputs("# EOF\n", out);
        return memstream_close(out, ret);
}

/* The text of each source, split into parts, and its label. */
struct sources {
        char **texts, **labels;
        size_t n;
};

static bool take_sources(struct merge *merge, const struct instances *instances,
                         const struct sources *sources, usec_t now, const struct http_counts *self)
{
        for (size_t i = 0; i < sources->n; i++) {
                sources->texts[i] = i < instances->n ? strdup(instances->list[i].metrics ?: "")
                                                     : render_own(instances, now, self);
                sources->labels[i] = render_socket_label(instances, i);
                if (!sources->texts[i] || !sources->labels[i])
                        return false;
                merge->families_max += FAMILIES_MAX;
                take_text(merge, (uint32_t)i, sources->texts[i]);
        }
        return !merge->failed;
}

static void free_list(char **list, size_t n)
{
        for (size_t i = 0; list && i < n; i++)
                free(list[i]);
        free(list);
}

int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size)
{
        size_t n = instances->n + 1;
        struct sources sources = {
                .texts = calloc(n, sizeof(char *)), .labels = calloc(n, sizeof(char *)), .n = n};
        struct merge merge = {.families = calloc(n * FAMILIES_MAX, sizeof(*merge.families)),
                              .sorted = calloc(n * FAMILIES_MAX, sizeof(*merge.sorted))};
        bool good = sources.texts && sources.labels && merge.families && merge.sorted &&
                    take_sources(&merge, instances, &sources, now, self);
        int r = good ? render(&merge, sources.labels, format, ret, ret_size) : -ENOMEM;

        free_list(sources.texts, n);
        free_list(sources.labels, n);
        free(merge.families);
        free(merge.sorted);
        free(merge.samples);
        return r;
}
