/* SPDX-License-Identifier: MIT */
/* Puts the metrics of several instances together, as text 0.0.4 of Prometheus or as OpenMetrics 1.0. No I/O.
 */
#include "web/metrics.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define OPEN_TYPE "application/openmetrics-text"
/* Many times what sqmgr has. */
#define FAMILIES_MAX 1000

/* A part of a text. */
struct part {
        const char *start;
        size_t size;
};

struct family {
        struct part name, type, help; /* the latter two may be empty */
};

struct sample {
        size_t family, order;
        const struct metrics_source *source; /* NULL: of sqmgr-web itself */
        struct part suffix;                  /* behind the family's name: "_sum" */
        struct part labels;                  /* between the braces */
        struct part value;
};

struct merge {
        struct family *families;
        size_t n_families;
        struct sample *samples;
        size_t n_samples, n_allocated;
        bool failed; /* memory is short */
};

const char *metrics_type(enum metrics_format format)
{
        static const char *const types[] = {
                [METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
                [METRICS_OPEN] = OPEN_TYPE "; version=1.0.0; charset=utf-8",
        };

        static_assert(ELEMENTSOF(types) == _METRICS_FORMAT_MAX, "each format has its type");
        return types[format];
}

/* The weight of a media range, in thousandths. */
static unsigned weight_of(const char *range, size_t size)
{
        for (size_t i = 0; i + 1 < size; i++) {
                unsigned weight = 0, digit = 1000;

                if (range[i] != ';')
                        continue;
                i += 1 + strspn(range + i + 1, " \t");
                if (i + 2 >= size || (range[i] != 'q' && range[i] != 'Q') || range[i + 1] != '=') {
                        i--;
                        continue;
                }
                for (i += 2; i < size && digit > 0; i++) {
                        if (range[i] == '.')
                                continue;
                        if (range[i] < '0' || range[i] > '9')
                                break;
                        weight += digit * (unsigned)(range[i] - '0');
                        digit /= 10;
                }
                return MIN(weight, 1000U);
        }
        return 1000;
}

enum metrics_format metrics_negotiate(const char *accept)
{
        unsigned open = 0, text = 0;

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

static bool is_same(struct part a, struct part b)
{
        return a.size == b.size && memcmp(a.start, b.start, a.size) == 0;
}

static bool part_is(struct part part, const char *text)
{
        return is_same(part, (struct part){text, strlen(text)});
}

static bool ends_with(struct part part, const char *suffix)
{
        size_t size = strlen(suffix);

        return part.size > size && memcmp(part.start + part.size - size, suffix, size) == 0;
}

/* Takes what stands before the next blank, and the blank. */
static struct part take_word(struct part *line)
{
        const char *blank = line->size > 0 ? memchr(line->start, ' ', line->size) : NULL;
        struct part word = {line->start, blank ? (size_t)(blank - line->start) : line->size};
        size_t taken = word.size + (blank ? 1 : 0);

        line->start += taken;
        line->size -= taken;
        return word;
}

static bool is_name(struct part part)
{
        for (size_t i = 0; i < part.size; i++) {
                char c = part.start[i];
                bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';

                if (!letter && !(i > 0 && c >= '0' && c <= '9'))
                        return false;
        }
        return part.size > 0;
}

/* The family of that name, made where there is none. SIZE_MAX: there are too many. */
static size_t find_family(struct merge *merge, struct part name)
{
        for (size_t i = 0; i < merge->n_families; i++)
                if (is_same(merge->families[i].name, name))
                        return i;
        if (merge->n_families == FAMILIES_MAX)
                return SIZE_MAX;
        merge->families[merge->n_families] = (struct family){.name = name};
        return merge->n_families++;
}

static void take_comment(struct merge *merge, struct part line, size_t *family)
{
        struct part hash = take_word(&line), kind = take_word(&line), name = take_word(&line);

        if (!part_is(hash, "#") || (!part_is(kind, "HELP") && !part_is(kind, "TYPE")) || !is_name(name))
                return;
        *family = find_family(merge, name);
        if (*family == SIZE_MAX)
                return;
        struct part *place =
                part_is(kind, "HELP") ? &merge->families[*family].help : &merge->families[*family].type;
        if (place->size == 0)
                *place = line;
}

/* The labels, up to the brace that ends them; -1: it is missing. */
static ssize_t labels_size(struct part line)
{
        bool quoted = false;

        for (size_t i = 0; i < line.size; i++) {
                if (quoted && line.start[i] == '\\')
                        i++;
                else if (line.start[i] == '"')
                        quoted = !quoted;
                else if (line.start[i] == '}' && !quoted)
                        return (ssize_t)i;
        }
        return -1;
}

static bool is_number(struct part value)
{
        static const char *const words[] = {"NaN", "+Inf", "-Inf", "Inf"};
        char text[64], *end;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (part_is(value, words[i]))
                        return true;
        if (value.size == 0 || value.size >= sizeof(text) ||
            strspn(value.start, "0123456789+-.eE") < value.size)
                return false;
        memcpy(text, value.start, value.size);
        text[value.size] = '\0';
        (void)strtod(text, &end);
        return *end == '\0';
}

/* May a sample of that name stand in the family, and which suffix has it? */
static bool belongs_to(const struct family *family, struct part name, struct part *ret_suffix)
{
        static const char *const suffixes[] = {"", "_sum", "_count", "_bucket"};

        if (name.size < family->name.size || memcmp(name.start, family->name.start, family->name.size) != 0)
                return false;
        *ret_suffix = (struct part){name.start + family->name.size, name.size - family->name.size};
        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (part_is(*ret_suffix, suffixes[i]))
                        return true;
        return false;
}

static void add_sample(struct merge *merge, struct sample sample)
{
        if (merge->n_samples == merge->n_allocated) {
                size_t allocated = MAX((size_t)1024, merge->n_allocated * 2);
                struct sample *samples = reallocarray(merge->samples, allocated, sizeof(*samples));

                if (!samples) {
                        merge->failed = true;
                        return;
                }
                merge->samples = samples;
                merge->n_allocated = allocated;
        }
        sample.order = merge->n_samples;
        merge->samples[merge->n_samples++] = sample;
}

static void take_sample(struct merge *merge, const struct metrics_source *source, struct part line,
                        size_t family)
{
        struct sample sample = {.source = source, .family = family};
        struct part name = {line.start, 0};

        while (name.size < line.size && name.start[name.size] != '{' && name.start[name.size] != ' ')
                name.size++;
        line.start += name.size;
        line.size -= name.size;
        if (line.size > 0 && line.start[0] == '{') {
                line.start++;
                line.size--;
                ssize_t size = labels_size(line);
                if (size < 0)
                        return;
                sample.labels = (struct part){line.start, (size_t)size};
                line.start += size + 1;
                line.size -= (size_t)size + 1;
        }
        if (line.size == 0 || line.start[0] != ' ' || !is_name(name))
                return;
        /* No time stands behind it: one would be of another unit in the other format. */
        sample.value = (struct part){line.start + 1, line.size - 1};
        if (!is_number(sample.value))
                return;
        if (family == SIZE_MAX || !belongs_to(&merge->families[family], name, &sample.suffix)) {
                sample.family = find_family(merge, name);
                sample.suffix = (struct part){name.start, 0};
        }
        if (sample.family != SIZE_MAX)
                add_sample(merge, sample);
}

/* source: NULL for sqmgr-web's own. */
static void take_text(struct merge *merge, const struct metrics_source *source, const char *text)
{
        size_t family = SIZE_MAX;

        while (*text != '\0') {
                struct part line = {text, strcspn(text, "\n")};

                text += line.size + (text[line.size] == '\n');
                if (line.size == 0)
                        continue;
                if (line.start[0] == '#')
                        take_comment(merge, line, &family);
                else
                        take_sample(merge, source, line, family);
        }
}

static int compare_samples(const void *a, const void *b)
{
        const struct sample *one = a, *other = b;

        if (one->family != other->family)
                return one->family < other->family ? -1 : 1;
        return one->order < other->order ? -1 : one->order > other->order;
}

static void put_part(FILE *out, struct part part)
{
        if (part.size > 0) /* else there may be no start */
                fwrite(part.start, 1, part.size, out);
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

/* OpenMetrics has quotes escaped there as in a label. */
static void put_help(FILE *out, struct part help, enum metrics_format format)
{
        for (size_t i = 0; i < help.size; i++) {
                if (format == METRICS_OPEN && help.start[i] == '"')
                        fputc('\\', out);
                fputc(help.start[i], out);
        }
}

/* A counter's family is named without its `_total` in OpenMetrics, where each of its samples has it. */
static struct part family_name(const struct family *family, enum metrics_format format)
{
        struct part name = family->name;

        if (format == METRICS_OPEN && part_is(family->type, "counter") && ends_with(name, "_total"))
                name.size -= strlen("_total");
        return name;
}

static void put_family(FILE *out, const struct family *family, enum metrics_format format)
{
        struct part name = family_name(family, format);

        if (family->help.size > 0) {
                fprintf(out, "# HELP %.*s ", (int)name.size, name.start);
                put_help(out, family->help, format);
                fputc('\n', out);
        }
        if (family->type.size == 0)
                return;
        fprintf(out, "# TYPE %.*s ", (int)name.size, name.start);
        if (format == METRICS_OPEN && part_is(family->type, "untyped"))
                fputs("unknown", out);
        else
                put_part(out, family->type);
        fputc('\n', out);
}

static void put_sample(FILE *out, const struct family *family, const struct sample *sample, bool several,
                       enum metrics_format format)
{
        bool labelled = several && sample->source;

        put_part(out, family_name(family, format));
        if (format == METRICS_OPEN && part_is(family->type, "counter"))
                fputs("_total", out);
        put_part(out, sample->suffix);
        if (labelled || sample->labels.size > 0) {
                fputc('{', out);
                if (labelled) {
                        fputs("socket=", out);
                        put_quoted(out, sample->source->socket);
                        if (sample->labels.size > 0)
                                fputc(',', out);
                }
                put_part(out, sample->labels);
                fputc('}', out);
        }
        fputc(' ', out);
        put_part(out, sample->value);
        fputc('\n', out);
}

static void put_own(FILE *out, const struct metrics_source *sources, size_t n,
                    const struct metrics_self *self)
{
        fputs("# HELP sqmgr_web_instance_up Whether the sqmgr of this socket answers.\n"
              "# TYPE sqmgr_web_instance_up gauge\n",
              out);
        for (size_t i = 0; i < n; i++) {
                fputs("sqmgr_web_instance_up{socket=", out);
                put_quoted(out, sources[i].socket);
                fprintf(out, "} %d\n", sources[i].up);
        }
        fputs("# HELP sqmgr_web_status_age_seconds Time since the sqmgr of this socket told its status.\n"
              "# TYPE sqmgr_web_status_age_seconds gauge\n",
              out);
        for (size_t i = 0; i < n; i++) {
                if (sources[i].age_seconds < 0)
                        continue;
                fputs("sqmgr_web_status_age_seconds{socket=", out);
                put_quoted(out, sources[i].socket);
                fprintf(out, "} %.3f\n", sources[i].age_seconds);
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

/* To be freed; NULL: memory is short. */
static char *render_own(const struct metrics_source *sources, size_t n, const struct metrics_self *self)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        put_own(out, sources, n, self);
        bool failed = ferror(out) != 0;
        if (fclose(out) == 0 && !failed)
                return text;
        free(text);
        return NULL;
}

static int render(struct merge *merge, bool several, enum metrics_format format, char **ret, size_t *ret_size)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return -ENOMEM;
        if (merge->n_samples > 0)
                qsort(merge->samples, merge->n_samples, sizeof(*merge->samples), compare_samples);
        for (size_t i = 0; i < merge->n_samples; i++) {
                const struct sample *sample = &merge->samples[i];
                const struct family *family = &merge->families[sample->family];

                if (i == 0 || sample->family != sample[-1].family)
                        put_family(out, family, format);
                put_sample(out, family, sample, several, format);
        }
        if (format == METRICS_OPEN)
                fputs("# EOF\n", out);
        bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed) {
                free(text);
                return -ENOMEM;
        }
        *ret = text;
        *ret_size = size;
        return 0;
}

int metrics_merge(const struct metrics_source *sources, size_t n, const struct metrics_self *self,
                  enum metrics_format format, char **ret, size_t *ret_size)
{
        _cleanup_free_ char *own = render_own(sources, n, self);
        struct merge merge = {.families = calloc(FAMILIES_MAX, sizeof(*merge.families))};
        int r = own && merge.families ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < n; i++)
                take_text(&merge, &sources[i], sources[i].text ?: "");
        if (r == 0)
                take_text(&merge, NULL, own);
        if (r == 0)
                r = merge.failed ? -ENOMEM : render(&merge, n > 1, format, ret, ret_size);
        free(merge.families);
        free(merge.samples);
        return r;
}
