/* SPDX-License-Identifier: MIT */
/* Metrics as text for Prometheus; see the header. */
#include "wire/metrics.h"
#include "base/memstream.h"
#include "base/printable.h"
#include <math.h>
#include <string.h>

void metrics_begin(struct metrics *metrics)
{
        *metrics = (struct metrics){0};
        metrics->out = open_memstream(&metrics->text, &metrics->size);
}

int metrics_end(struct metrics *metrics, char **ret, size_t *ret_size)
{
        int r = memstream_close(metrics->out, &metrics->text);

        if (metrics->failed && r >= 0) {
                free(metrics->text);
                metrics->text = NULL;
                r = -ENOMEM;
        }
        *ret = metrics->text;
        *ret_size = r < 0 ? 0 : metrics->size;
        return r;
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

void metrics_family(struct metrics *metrics, const char *name, const char *type, const char *help)
{
        metrics->name = name;
        metrics->is_summary = strcmp(type, "summary") == 0;
        metrics->n_samples = 0;
        if (!metrics->out)
                return;
        fprintf(metrics->out, "# HELP %s ", name);
        put_escaped(metrics->out, help, false);
        fprintf(metrics->out, "\n# TYPE %s %s\n", name, type);
}

bool metrics_put_label(FILE *out, const char *name, const char *value)
{
        _cleanup_free_ char *shown = printable_copy(value, true);

        if (!shown)
                return false;
        fprintf(out, "%s=\"", name);
        put_escaped(out, shown, true);
        fputc('"', out);
        return true;
}

void metrics_sample(struct metrics *metrics, double value, const char *const *labels)
{
        const char *suffix = !metrics->is_summary ? "" : metrics->n_samples++ % 2 == 0 ? "_sum" : "_count";
        char separator = '{';

        if (!isfinite(value) || !metrics->out)
                return;
        fprintf(metrics->out, "%s%s", metrics->name, suffix);
        for (; labels && labels[0]; labels += 2) {
                if (labels[1][0] == '\0')
                        continue;
                fputc(separator, metrics->out);
                metrics->failed |= !metrics_put_label(metrics->out, labels[0], labels[1]);
                separator = ',';
        }
        fprintf(metrics->out, "%s %.15g\n", separator == ',' ? "}" : "", value);
}
