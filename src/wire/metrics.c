/* SPDX-License-Identifier: MIT */
/* Metrics as data, and as text for Prometheus; see the header. */
#include "wire/metrics.h"
#include "base/memstream.h"
#include "wire/reply.h"
#include "wire/varlink.h"
#include <math.h>
#include <stdio.h>

#define LABELS_MAX 8 /* of a family */

struct metrics metrics_begin(void)
{
        return (struct metrics){.families = json_array()};
}

json_t *metrics_end(struct metrics *metrics)
{
        if (metrics->failed)
                json_decref(metrics->families);
        return metrics->failed ? NULL : metrics->families;
}

void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help)
{
        json_t *family = json_pack("{s:s, s:s, s:s, s:[], s:[]}", "name", name, "type", type, "help", help,
                                   "labels", "values");

        metrics->labels = json_object_get(family, "labels");
        metrics->values = json_object_get(family, "values");
        metrics->failed |= json_array_append_new(metrics->families, family) < 0;
}

static json_t *value_of(const char *text)
{
        return text[0] == '\0' ? json_string("") : varlink_text(text);
}

void metrics_sample(struct metrics *metrics, double value, const char *const *labels)
{
        if (!isfinite(value))
                return;
        for (size_t i = 0; labels && labels[2 * i]; i++) {
                if (json_array_size(metrics->values) == 0)
                        metrics->failed |= json_array_append_new(metrics->labels,
                                                                 json_pack("{s:s, s:[]}", "name",
                                                                           labels[2 * i], "values")) < 0;
                json_t *label = json_array_get(metrics->labels, i);

                metrics->failed |= json_array_append_new(json_object_get(label, "values"),
                                                         value_of(labels[2 * i + 1])) < 0;
        }
        metrics->failed |= json_array_append_new(metrics->values, json_real(value)) < 0;
}

/* A MetricFamily that was read. */
struct family {
        const char *name, *type, *help;
        struct {
                const char *name;
                const json_t *values;
        } labels[LABELS_MAX];
        size_t n_labels;
        const json_t *values;
};

static bool is_name(const char *text)
{
        static const char allowed[] = "_:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        bool digit = text[0] >= '0' && text[0] <= '9';

        return text[0] != '\0' && !digit && text[strspn(text, allowed)] == '\0';
}

/* Returns one of the types that exist; a later sqmgr may have more. */
static const char *known_type(const char *type, enum metrics_format format)
{
        static const char *const types[] = {"gauge", "counter", "summary"};

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strcmp(type, types[i]) == 0)
                        return types[i];
        return format == METRICS_OPEN ? "unknown" : "untyped";
}

/* Returns false if json is no MetricFamily. */
static bool read_family(const json_t *json, enum metrics_format format, struct family *ret)
{
        const json_t *label;

        *ret = (struct family){.name = reply_string(json, "name"),
                               .type = known_type(reply_string(json, "type"), format),
                               .help = reply_string(json, "help"),
                               .values = json_object_get(json, "values")};
        if (!is_name(ret->name))
                return false;
        json_foreach_in(label, json, "labels") {
                const char *name = reply_string(label, "name");
                const json_t *values = json_object_get(label, "values");

                if (ret->n_labels == LABELS_MAX || !is_name(name) ||
                    json_array_size(values) != json_array_size(ret->values))
                        return false;
                ret->labels[ret->n_labels].name = name;
                ret->labels[ret->n_labels++].values = values;
        }
        return true;
}

static void put_escaped(FILE *out, const char *text, bool quotes)
{
        for (; *text != '\0'; text++) {
                if (*text == '\\' || (quotes && *text == '"'))
                        fputc('\\', out);
                if (*text == '\n')
                        fputs("\\n", out);
                else
                        fputc(*text, out);
        }
}

static void put_label(FILE *out, const char **separator, const char *name, const char *value)
{
        if (value[0] == '\0')
                return;
        fprintf(out, "%s%s=\"", *separator, name);
        put_escaped(out, value, true);
        fputc('"', out);
        *separator = ",";
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

static void put_head(FILE *out, const struct family *family, enum metrics_format format)
{
        int length = name_length(family, format);

        if (family->help[0] != '\0') {
                fprintf(out, "# HELP %.*s ", length, family->name);
                put_escaped(out, family->help, format == METRICS_OPEN);
                fputc('\n', out);
        }
        fprintf(out, "# TYPE %.*s %s\n", length, family->name, family->type);
}

static const char *suffix_of(const struct family *family, size_t sample, enum metrics_format format)
{
        if (strcmp(family->type, "summary") == 0)
                return sample % 2 == 0 ? "_sum" : "_count";
        return format == METRICS_OPEN && strcmp(family->type, "counter") == 0 ? "_total" : "";
}

static void put_samples(FILE *out, const struct family *family, const char *socket,
                        enum metrics_format format)
{
        int length = name_length(family, format);

        for (size_t i = 0; i < json_array_size(family->values); i++) {
                const char *separator = "{";

                fprintf(out, "%.*s%s", length, family->name, suffix_of(family, i, format));
                put_label(out, &separator, "socket", socket ?: "");
                for (size_t j = 0; j < family->n_labels; j++) {
                        const json_t *value = json_array_get(family->labels[j].values, i);

                        put_label(out, &separator, family->labels[j].name, json_string_value(value) ?: "");
                }
                fprintf(out, "%s %.15g\n", separator[0] == ',' ? "}" : "",
                        json_number_value(json_array_get(family->values, i)));
        }
}

/* Returns lists of {socket, family}, each list with the name of its families as its key. */
static json_t *group_by_name(const struct metrics_source *sources, size_t n, enum metrics_format format)
{
        _cleanup_json_ json_t *groups = json_object();
        struct family family;
        json_t *json;

        for (size_t i = 0; i < n; i++)
                json_foreach(json, sources[i].families) {
                        if (!read_family(json, format, &family))
                                continue;
                        if (!json_object_get(groups, family.name) &&
                            json_object_set_new(groups, family.name, json_array()) < 0)
                                return NULL;
                        json_t *member =
                                json_pack("{s:s?, s:O}", "socket", sources[i].socket, "family", json);

                        if (json_array_append_new(json_object_get(groups, family.name), member) < 0)
                                return NULL;
                }
        return TAKE_PTR(groups);
}

int metrics_print(const struct metrics_source *sources, size_t n, enum metrics_format format, char **ret,
                  size_t *ret_size)
{
        _cleanup_json_ json_t *groups = group_by_name(sources, n, format);
        FILE *out = groups ? open_memstream(ret, ret_size) : NULL;
        json_t *group, *member;
        const char *name;
        struct family family;

        if (!out)
                return -ENOMEM;
        json_object_foreach(groups, name, group)
        {
                (void)read_family(json_object_get(json_array_get(group, 0), "family"), format, &family);
                put_head(out, &family, format);
                json_foreach(member, group) {
                        const char *type = family.type;

                        (void)read_family(json_object_get(member, "family"), format, &family);
                        family.type = type;
                        put_samples(out, &family, json_string_value(json_object_get(member, "socket")),
                                    format);
                }
        }
        if (format == METRICS_OPEN)
                fputs("# EOF\n", out);
        return memstream_close(out, ret);
}
