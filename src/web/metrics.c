/* SPDX-License-Identifier: MIT */
/* Merges the metrics of several instances, as Prometheus text 0.0.4 or OpenMetrics 1.0. No I/O. */
#include "web/metrics.h"
#include "base/memstream.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define OPEN_TYPE "application/openmetrics-text"
/* Many times the number of families that sqmgr has. */
#define FAMILIES_MAX 1000
/* Longer values are no numbers. */
#define NUMBER_MAX 64

/* Strings point into the texts being merged. */
struct family {
        const char *name, *type, *help; /* type and help may be "" */
};

struct sample {
        const struct family *family;
        size_t order;
        const struct instance *instance; /* NULL: metrics of sqmgr-web itself */
        const char *suffix;              /* after the family's name: "_sum" */
        const char *labels;              /* text between the braces */
        const char *value;
};

struct merge {
        struct family *families;
        size_t n_families;
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
        for (size_t i = 0; i < merge->n_families; i++)
                if (strcmp(merge->families[i].name, name) == 0)
                        return &merge->families[i];
        if (merge->n_families == FAMILIES_MAX)
                return NULL;
        merge->families[merge->n_families] = (struct family){.name = name, .type = "", .help = ""};
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

static void add_sample(struct merge *merge, struct sample sample)
{
        if (!ARRAY_RESERVE(merge->samples, merge->n_samples, merge->n_allocated)) {
                merge->failed = true;
                return;
        }
        sample.order = merge->n_samples;
        merge->samples[merge->n_samples++] = sample;
}

/* Splits the line into its parts. */
static void take_sample(struct merge *merge, const struct instance *instance, char *line,
                        const struct family *family)
{
        struct sample sample = {.instance = instance, .family = family, .labels = ""};
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
                sample.family = find_family(merge, line);
                sample.suffix = "";
        }
        if (sample.family)
                add_sample(merge, sample);
}

/* Splits the text into lines. instance: NULL for sqmgr-web's own metrics. */
static void take_text(struct merge *merge, const struct instance *instance, char *text)
{
        struct family *family = NULL;
        char *line;

        while ((line = strsep(&text, "\n")))
                if (line[0] == '#')
                        take_comment(merge, line, &family);
                else
                        take_sample(merge, instance, line, family);
}

static int compare_samples(const void *a, const void *b)
{
        const struct sample *one = a, *other = b;

        if (one->family != other->family)
                return one->family < other->family ? -1 : 1;
        return one->order < other->order ? -1 : one->order > other->order;
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

static void put_sample(FILE *out, const struct sample *sample, bool several, enum metrics_format format)
{
        const struct family *family = sample->family;
        bool labelled = several && sample->instance, has_labels = sample->labels[0] != '\0';
        bool is_counter = format == METRICS_OPEN && strcmp(family->type, "counter") == 0;

        fprintf(out, "%.*s%s%s", name_length(family, format), family->name, is_counter ? "_total" : "",
                sample->suffix);
        if (labelled || has_labels)
                fputc('{', out);
        if (labelled) {
                fputs("socket=", out);
                put_quoted(out, sample->instance->socket);
        }
        if (labelled || has_labels)
                fprintf(out, "%s%s}", labelled && has_labels ? "," : "", sample->labels);
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

static int render(struct merge *merge, bool several, enum metrics_format format, char **ret, size_t *ret_size)
{
        FILE *out = open_memstream(ret, ret_size);

        if (merge->n_samples > 0)
                qsort(merge->samples, merge->n_samples, sizeof(*merge->samples), compare_samples);
        for (size_t i = 0; out && i < merge->n_samples; i++) {
                const struct sample *sample = &merge->samples[i];

                if (i == 0 || sample->family != sample[-1].family)
                        put_family(out, sample->family, format);
                put_sample(out, sample, several, format);
        }
        if (out && format == METRICS_OPEN)
                fputs("# EOF\n", out);
        return memstream_close(out, ret);
}

int metrics_merge(const struct instances *instances, usec_t now, const struct http_counts *self,
                  enum metrics_format format, char **ret, size_t *ret_size)
{
        size_t n = instances->n;
        char **texts = calloc(n + 1, sizeof(*texts));
        struct merge merge = {.families = calloc(FAMILIES_MAX, sizeof(*merge.families))};
        bool failed = !texts || !merge.families;

        for (size_t i = 0; !failed && i <= n; i++) {
                const struct instance *instance = i < n ? &instances->list[i] : NULL;

                texts[i] = instance ? strdup(instance->metrics ?: "") : render_own(instances, now, self);
                failed = !texts[i];
                if (!failed)
                        take_text(&merge, instance, texts[i]);
        }
        int r = failed || merge.failed ? -ENOMEM : render(&merge, n > 1, format, ret, ret_size);
        for (size_t i = 0; texts && i <= n; i++)
                free(texts[i]);
        free(texts);
        free(merge.families);
        free(merge.samples);
        return r;
}
